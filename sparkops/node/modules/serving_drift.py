"""What of a deployed service is not as it was deployed, and what it and its node are made of. Changes nothing.

`verify` judges the result, `diff` compares the `items` of nodes.

Example:
    - name: Is it still what was deployed
      serving_drift:
        home: /opt/sparkops
        service: vllm
"""

from __future__ import annotations

import os

from sparkops.node import drift, nvidia, releases, served, systemd, venv_contents
from sparkops.node.api import Arguments, Node, Outcome, Path
from sparkops.node.facts import read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

# Of a checkpoint, files up to this many bytes are hashed (config, tokenizer, index); of weights only the sizes count.
SMALL = 64 * 1024 * 1024

# What of a recipe is compared; the rest of it shows in the command, the environment, the engine and its patches.
RECIPE = {"recipe": "name", "model": "model", "model revision": "model_revision"}


class Args(Arguments):
    """salt: any text; values of the environment are given as digests with it, so that nodes can be compared and no
    value is told. login_home: what ~ stands for in items; left out, this user's.
    """

    home: Path
    service: str
    scope: Literal["system", "user"] = "system"
    salt: str = ""
    login_home: Path | None = None


def apply(args: Args, node: Node) -> Outcome:
    """Always ok. None: not known, or not there.

    Result: release, confirmed, recipe (recipe.json), drift, patches, engine, adopted, deployed, contents (packages,
    problems), checkpoint (path, revision), unit (its name), items ({what: value as text}).
    """
    folder = releases.service_folder(args.home, args.service)
    current = os.path.join(folder, "current")
    unit = releases.unit_of(args.service)
    shown = systemd.Manager(node, args.scope).show(unit)
    found = drift.look(args.home, args.service, shown)
    recipe = drift.document(os.path.join(current, "recipe.json")) or None
    words = served.command(current)
    number = releases.linked(folder)
    path = served.checkpoint_path(words)
    engine = os.path.join(args.home, "engines", found["engine"]) if found["engine"] else None
    contents = venv_contents.contents(engine, node) if engine and os.path.isdir(engine) else None
    checkpoint = {"path": path, "revision": served.revision(path, node.state_dir) if path else None}
    home = args.login_home or node.home
    items = {
        **system(node),
        **unit_items(read(shown.get("FragmentPath", "")), args.salt),
        **{"unit drop-ins": shown.get("DropInPaths") or None, "engine": found["engine"] or found["adopted"]},
        **{"engine contents": None if contents is None else "; ".join(contents["problems"]) or "as locked"},
        **(patch_items(engine) if engine else {}),
        **{name: (recipe or {}).get(key) for name, key in RECIPE.items()},
        **command_items(words, args.salt),
        **{
            f"env {key}": hidden(args.salt, key, str(at_home(value, args.home, home)))
            for key, value in environment(read(current + "/env")).items()
        },
        **({"checkpoint revision": checkpoint["revision"], **checkpoint_items(path)} if path else {}),
    }
    return Outcome.ok(
        release=number,
        confirmed=releases.confirmed(folder, number),
        recipe=recipe,
        contents=contents,
        checkpoint=checkpoint,
        unit=unit,
        items={name: at_home(value, args.home, home) for name, value in items.items()},
        **found,
    )


def at_home(value: str | None, ours: str, home: str) -> str | None:
    """A value with the folders that may differ between users by name: sparkops_home and ~."""
    return value and value.replace(ours, "sparkops_home").replace(home, "~")


def unit_items(text: str, salt: str) -> dict[str, str | None]:
    """The settings of a unit's file; what it puts into the environment is not told."""
    found: dict[str, str | None] = {}
    for line in text.splitlines():
        key, equals, value = line.partition("=")
        if equals and not line.startswith(("#", ";")):
            value = hidden(salt, key, value) if key == "Environment" else value
            before = found.get(f"unit {key}")
            found[f"unit {key}"] = value if before is None else f"{before}; {value}"
    return found


def system(node: Node) -> dict[str, str | None]:
    """What the node itself is made of."""
    uname = os.uname()
    names = dict(line.partition("=")[::2] for line in read("/etc/os-release").splitlines())
    cuda = os.path.realpath("/usr/local/cuda")
    return {
        "driver": nvidia.gpu(node)["driver"],
        "kernel": uname.release,
        "OS": names.get("PRETTY_NAME", "").strip('"') or None,
        "architecture": uname.machine,
        "CUDA toolkit": os.path.basename(cuda) if os.path.isdir(cuda) else None,
    }


def patch_items(engine: str) -> dict[str, str | None]:
    """The state of each patch, and the sha256 of its file."""
    from glob import escape, glob

    states = drift.patch_states(engine) or {}
    found: dict[str, str | None] = {}
    for patch in drift.document(os.path.join(engine, "sparkops.json")).get("patches", ()):
        paths = glob(os.path.join(escape(engine), "lib", "python3*", "site-packages", escape(patch["file"])))
        data = drift.raw(paths[0]) if paths else None
        found[f"patch {patch['name']}"] = f"{states[patch['name']]} {digest(data) or ''}".strip()
    return found


def command_items(words: list[str], salt: str) -> dict[str, str | None]:
    """The serve command's flags with their values."""
    found: dict[str, str | None] = {}
    flag = ""
    for word in words:
        if word.startswith("--"):
            flag = word
            found[f"run {flag}"] = ""
        elif flag:
            found[f"run {flag}"] = f"{found[f'run {flag}']} {word}".strip()
    if words:
        found["run program"], found["run model"] = words[0], served.checkpoint_path(words)
    return {name: hidden(salt, name, value) if "key" in name and value else value for name, value in found.items()}


def checkpoint_items(path: str) -> dict[str, str | None]:
    """The sha256 of a checkpoint's small files, and the names and sizes of all others as one."""
    found: dict[str, str | None] = {}
    large = []
    try:
        entries = sorted((entry.name, entry) for entry in os.scandir(path) if entry.is_file())
    except OSError as error:
        return {"checkpoint": error.strerror}
    for name, entry in entries:
        size = entry.stat().st_size
        if size > SMALL or name.endswith(".safetensors"):
            large.append(f"{name} {size}")
        else:
            found[f"checkpoint {name}"] = digest(drift.raw(entry.path))
    return {**found, "checkpoint weights": f"{len(large)} files, {digest(chr(10).join(large))}"}


def environment(text: str) -> dict[str, str]:
    """The KEY=value lines of an environment file."""
    pairs = (line.partition("=") for line in text.splitlines() if not line.lstrip().startswith(("#", ";")))
    return {key.strip(): value for key, equals, value in pairs if equals}


def hidden(salt: str, key: str, value: str) -> str:
    """What stands for a value that is told nobody: the same for the same value, in one run."""
    return f"(hidden {digest(f'{salt}{key}={value}')})"


def digest(data: str | bytes | None) -> str | None:
    """The first digits of a sha256; None of nothing."""
    from hashlib import sha256

    if not data:
        return None
    return sha256(data.encode("utf-8", "surrogateescape") if isinstance(data, str) else data).hexdigest()[:12]
