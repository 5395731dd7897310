"""What recipes, engines, patches and tools are, as data. Unknown fields are errors; units are in the names.

The shipped files beside this one are the examples.
"""

from __future__ import annotations

import datetime
from typing import Annotated, Literal

from msgspec import Meta, Struct

from sparkops.errors import InputError

Sha256 = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$")]
# A name that is part of file and directory names.
Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
Positive = Annotated[int, Meta(ge=1)]
Port = Annotated[int, Meta(ge=1, le=65535)]
Revision = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]*$")]
Host = Annotated[str, Meta(pattern=r"^[A-Za-z0-9:.-]+$")]
EnvName = Annotated[str, Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class PatchUse(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whether a recipe's engine carries a patch: `never` keeps it on record for the model, unused."""

    name: Name
    when: Literal["always", "never"]


class Draft(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a checkpoint that nobody publishes is made of, on the nodes: `target` with the draft layer of `donor`."""

    target: str  # a recipe's name, hf:ORG/NAME[@REVISION], or a path on the nodes; -e draft_target says another source
    donor: str  # whose mtp.* tensors it gets: hf:ORG/NAME[@REVISION], or a path on the nodes


class Requires(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a node must have. None: not known, so not checked."""

    driver: Positive = 580  # NVIDIA driver, major version at least; CUDA 13 needs 580
    disk_gb: Positive | None = None  # free for the checkpoint, 10^9 bytes
    memory_gib: Positive | None = None  # working set while serving


class Checkpoint(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the checkpoint's headers say. `visual` and `mtp` count tensors; None: not published."""

    download_gb: float
    tensors: int
    visual: int | None
    mtp: int
    weights_gib: float | None  # resident once loaded
    bytes_per_token: int | None = None  # read by one decode step


class Expect(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a start must show. `backend`, `log` and `benign` are pieces of one log line of the engine each.

    None: not known, so not checked.
    """

    backend: str | None = None  # the line that names the kernels in use; without it the copy counts as unhealthy
    log: list[str] = []  # more lines that must be seen
    benign: list[str] = []  # lines that look like trouble and mean no harm
    kv_cache_tokens: Positive | None = None  # as published; what a pinned pool comes to is computed where it is known
    concurrency: float | None = None  # requests of max_model_len that the KV pool holds
    ready_within: Positive = 900  # seconds from start to the first token, a first start with its compilations included


class Golden(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A question whose greedy answer is known: wrong kernels can give garbage without any error."""

    prompt: str
    answer: Annotated[str, Meta(min_length=1)]  # a piece that the generated text must have


class Figure(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A published measurement. Speeds are tokens a second of one stream; `source` says whose."""

    metric: Literal["decode", "prefill", "time_to_first_token", "weight_load", "startup"]
    value: float
    unit: Literal["tokens/s", "s"]
    prompt_tokens: Positive | None = None
    date: datetime.date  # of the measurement or of the recipe's verification
    conditions: str = ""


class Recipe(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A model, the engine that serves it and how. See `serving.command` for the command it means.

    A file that says `extends: NAME` need only hold what differs from that recipe (recipes/extends.py).
    """

    name: Name
    description: str
    model: str  # the checkpoint's name; its folder on a node is models_dir/<last part>
    model_source: str | None  # hf:ORG/NAME, a path on the nodes, or null where it is not published
    model_source_hint: str = ""  # what a user should know who must give one
    model_revision: Revision | None = None  # commit, tag or branch of model_source; null: its default branch
    draft: Draft | None = None  # where model_source is null: sparkops makes the checkpoint by grafting a draft in
    served_model_name: str
    engine: Name  # NAME-VERSION of a file in engines/, which has the locks
    patches: list[PatchUse] = []
    max_model_len: Positive
    kv_cache_memory_bytes: Positive | None = None  # null: sized by the engine
    gpu_memory_utilization: Annotated[float, Meta(gt=0, le=1)]
    host: Host = "127.0.0.1"  # where it listens, unless the inventory says otherwise
    port: Port = 8000
    args: list[str] = []  # more of `vllm serve`'s flags, one word an item
    env: dict[EnvName, str] = {}
    strict: bool = False  # true: a KV cache of another size than fits the pool is a failure, not a warning
    requires: Requires = Requires()
    checkpoint: Checkpoint | None = None  # null: not known
    expect: Expect = Expect()
    golden: Golden | None = None
    published: list[Figure] = []

    def source(self, given: str | None) -> str:
        """Where the checkpoint comes from: what the user gave, else what the recipe says. Raises InputError."""
        if given or self.model_source:
            return given or self.model_source or ""
        raise InputError(
            f"the recipe {self.name} has no model_source: {self.model} is not published, so you must say where it is",
            hint=f"-e model_source=/path/on/the/nodes/{self.directory}, or -e model_source=hf:ORG/NAME"
            + (f"; {self.model_source_hint}" if self.model_source_hint else ""),
        )

    @property
    def directory(self) -> str:
        """The checkpoint's folder in models_dir."""
        return self.model.rsplit("/", 1)[-1]

    def patch_names(self) -> list[str]:
        """The patches that its engine carries, in order."""
        return [patch.name for patch in self.patches if patch.when == "always"]


class Engine(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A serving engine: its lock for each architecture (`uname -m`), and how to tell that it is right."""

    name: Name
    version: str
    python: str | None  # the CPython that the lock was resolved for; null: any
    expect_cuda: str | None  # torch/version.py's `cuda`; null: not looked at
    disk_gb: float | None = None  # what an environment takes, 10^9 bytes; null: not known, so not checked
    locks: dict[str, str]  # requirements with hashes; relative to the file, absolute once loaded
    probe: list[str]  # must end with status 0, relative to the environment
    overrides: list[str] = []  # requirements that win over what packages ask for when a lock is resolved
    files: dict[str, str] = {}  # written beside the packages: path in site-packages (no package may own it) -> text

    @property
    def id(self) -> str:
        """What recipes call it: vllm-0.24.0."""
        return f"{self.name}-{self.version}"

    def lock(self, machine: str) -> str:
        """The lock's path for an architecture (`uname -m`). Raises InputError."""
        if machine not in self.locks:
            raise InputError(
                f"the engine {self.id} has no lock for {machine} (it has: {', '.join(sorted(self.locks))})",
                hint=f"add one to `locks` in engines/{self.id}.yml",
            )
        return self.locks[machine]


class PatchVersion(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The patched file's sha256 in one version of the engine, before and after."""

    engine: str
    before: Sha256
    after: Sha256


class PatchFile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A patch to one file of an installed package."""

    name: Name
    description: str
    license: str  # of the text that the diff quotes
    file: str  # relative to site-packages
    versions: Annotated[list[PatchVersion], Meta(min_length=1)]
    diff: str  # unified; the context must tell each place apart


class Wheel(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One file of a package index."""

    file: str
    sha256: Sha256


class Tool(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A program that nodes get from a pinned wheel."""

    name: Name
    version: str
    wheels: dict[str, Wheel]  # by architecture (`uname -m`)
