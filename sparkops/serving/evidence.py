"""What is known of a served copy on a node: the result of the module serving_evidence, typed. Sizes are bytes."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, convert, field


class Release(Struct, frozen=True):
    """What `current` points to. number: None when nothing is deployed; words: the serve command."""

    number: int | None = None
    recipe: dict[str, Any] | None = None
    words: list[str] = []
    program: bool = False  # whether the command's program is there


class Journal(Struct, frozen=True):
    """Lines of the unit's last run and of the run before; whole: the start of the run is among them."""

    run: list[str] = []
    before: list[str] = []
    whole: bool = True


class Listener(Struct, frozen=True):
    """A process that listens on the port. pid None: not to be seen; unit "": of none."""

    address: str
    pid: int | None
    command: str
    unit: str
    ours: bool = False


class Token(Struct, frozen=True):
    """Whether an idle server generated a token when asked for one."""

    generated: bool
    error: str = ""


class Http(Struct, frozen=True):
    """What the server says. health: a status, None: no answer; models: {name: max_model_len}, None: not told.

    metrics: looks at vLLM's series, by name without `vllm:`, each with `at` in seconds.
    """

    health: int | None = None
    error: str = ""
    models: dict[str, int | None] | None = None
    metrics: list[dict[str, float]] = []
    token: Token | None = None


class Memory(Struct, frozen=True):
    """Of /proc/meminfo."""

    total: int = 0
    available: int = 0
    free: int = 0


class Disk(Struct, frozen=True):
    """What the login user may still use at a path; None: not known, or without limit."""

    name: str
    path: str
    free: int | None = None
    inodes: int | None = None


class Driver(Struct, frozen=True):
    """version None: the driver does not answer, and `error` says what nvidia-smi said."""

    version: str | None = None
    error: str = ""
    processes: list[str] = []


class Clock(Struct, frozen=True):
    """None: can't be told."""

    synchronized: bool | None = None
    ntp: bool | None = None


class Checkpoint(Struct, frozen=True):
    """The checkpoint on the disk. revision: the commit it was fetched at, None: unknown."""

    path: str
    problems: list[str] = []
    tensors: int = 0
    visual: int = 0
    revision: str | None = None


class Evidence(Struct, frozen=True):
    """All of it. properties: systemd's of the unit. kernel: lines of its log, None: not to be read."""

    service: str = "vllm"
    unit: str = "sparkops-vllm.service"
    scope: str = "system"
    host: str = "127.0.0.1"
    port: int = 8000
    properties: dict[str, str] = {}
    uptime: float | None = None
    linger: bool | None = None
    release: Release = field(default_factory=Release)
    journal: Journal = field(default_factory=Journal)
    kernel: list[str] | None = None
    listeners: list[Listener] = []
    memory: Memory = field(default_factory=Memory)
    disks: list[Disk] = []
    driver: Driver | None = None
    clock: Clock = field(default_factory=Clock)
    reboot_required: bool = False
    checkpoint: Checkpoint | None = None
    http: Http = field(default_factory=Http)

    @classmethod
    def of(cls, result: dict[str, Any]) -> Evidence:
        """From the module's result. Raises msgspec.ValidationError for what is none."""
        return convert(result, cls)

    @property
    def recipe(self) -> dict[str, Any]:
        """The recipe that is deployed; {} when that is not known."""
        return self.release.recipe or {}

    @property
    def expected(self) -> dict[str, Any]:
        """What a start must show, by the recipe."""
        return dict(self.recipe.get("expect") or {})

    @property
    def ready_within(self) -> float | None:
        """Seconds that a start may take, by the recipe."""
        within = self.expected.get("ready_within")
        return float(within) if within else None

    def number(self, name: str) -> int:
        """A numeric property of the unit; 0 when it has none."""
        value = self.properties.get(name, "")
        return int(value) if value.isdigit() else 0

    @property
    def active(self) -> bool:
        """Whether the unit's process runs, or is about to."""
        return self.properties.get("ActiveState") in ("active", "activating", "reloading")

    @property
    def running(self) -> bool:
        """Whether its process runs now."""
        return self.active and self.number("MainPID") > 0

    @property
    def serving(self) -> bool:
        """Whether this unit's server answers that it is well."""
        foreign = [one for one in self.listeners if not one.ours]
        own = [one for one in self.listeners if one.ours]
        return self.running and self.http.health == 200 and (bool(own) or not foreign)

    def option(self, name: str) -> str | None:
        """The value of a flag of the serve command."""
        words = self.release.words
        return words[words.index(name) + 1] if name in words[:-1] else None
