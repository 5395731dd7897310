"""Collect what tells whether a recipe can be served here. Nothing is changed: always ok.

`preflight_verdict` judges the result. A leading `~` is the login user's home, also with become.

Example:
    - name: Look at the node
      serving_preflight:
        service: vllm
        home: /opt/sparkops
        model_path: ~/models/hf/Qwen3.6-35B-A3B-FP8
        engines: "{{ engine_locks }}"
      become: true
      register: seen
"""

from __future__ import annotations

import os

from sparkops.node import condition, releases, served, systemd, weights
from sparkops.node.api import Arguments, Failure, Node, Outcome, Patch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal

CUDA = "/usr/local/cuda/bin"
SHOWN = ("Id", "ActiveState", "UnitFileState", "MainPID")
# Of a release's recipe, what says how much memory it takes.
SAID = ("name", "kv_cache_memory_bytes", "gpu_memory_utilization", "requires", "checkpoint")


class Args(Arguments):
    service: str  # the service's name
    home: str  # sparkops_home
    model_path: str  # where the checkpoint is, or will be
    target_path: str | None = None  # of one that is made by a graft: where most of its files are from, or will be
    engines: dict[str, Any]  # by architecture (`uname -m`): id, lock (its sha256), packages (NAME==VERSION each)
    engine_path: str | None = None  # an environment to adopt; null: home/engines/ID, which sparkops builds
    python: str = "python3"  # the interpreter that one is built with
    expect_cuda: str | None = None  # what torch/version.py must say
    files: dict[str, str] = {}  # its further files, as python_venv takes them
    patches: list[Patch] = []  # what it must carry
    scope: Literal["system", "user"] = "system"
    port: int = 8000  # where the copy will listen


def apply(args: Args, node: Node) -> Outcome:
    """Always ok. The fields are those of sparkops.serving.preflight_evidence.Evidence."""
    home, model_path = at_home(args.home), at_home(args.model_path)
    manager = systemd.Manager(node, args.scope)
    services = deployed(home, manager, args.service)
    unit = releases.unit_of(args.service)
    main = next((one["pid"] for one in services if one["unit"] == unit), 0)
    version, error = condition.driver_version(node)
    engine = engine_state(args, home)
    return Outcome.ok(
        architecture=os.uname().machine,
        unit=unit,
        driver={"version": version, "error": error},
        engine=engine,
        checkpoint=checkpoint(model_path, args.target_path and at_home(args.target_path)),
        memory=condition.memory(),
        disks=[disk("checkpoint", model_path), disk("engine", engine["path"])],
        listeners=condition.holders(args.port, unit, main),
        services=services,
        in_sync=condition.in_sync(),
        tools=tools(args, engine["path"], node),
        reboot_required=os.path.exists("/run/reboot-required"),
        linger=condition.lingering(args.scope),
    )


def at_home(path: str) -> str:
    """A path whose `~` is the login user's home: sudo tells who that is."""
    user = os.environ.get("SUDO_UID", "")
    if not path.startswith("~/") or not user.isdigit():
        return os.path.expanduser(path)
    import pwd

    return pwd.getpwuid(int(user)).pw_dir + path[1:]


def checkpoint(path: str, target: str | None) -> dict[str, Any]:
    """What is there of the checkpoint; a target's files will be links in it, and take nothing more."""
    found = weights.look(path)
    if not found["present"] and target:
        whole = weights.look(target)
        found["held"] = max(found["held"], whole["resident"] or whole["held"])
    return found


def engine_state(args: Args, home: str) -> dict[str, Any]:
    """path, adopted, state (missing | untried | complete | other | no_lock), problems, and whether another engine of
    the same version is there (`kin`): its files are hard links of a cache that saves the download and the disk.
    """
    from sparkops.node import installed
    from sparkops.node.venv import Wanted

    locked = args.engines.get(os.uname().machine)
    # One to adopt is taken as it is written, since units will have it so.
    path = args.engine_path or os.path.join(home, "engines", (locked or {}).get("id", ""))
    said = {"path": path, "adopted": bool(args.engine_path), "state": "no_lock", "problems": [], "kin": False}
    if locked is None:
        return said
    look = (path, locked["packages"], args.expect_cuda, args.patches)
    if args.engine_path:
        state = "complete" if os.path.isdir(path) else "missing"
        return {**said, "state": state, "problems": installed.problems(*look)}
    try:
        state = Wanted(path, locked["lock"], args.patches, args.files).state()
    except Failure as other:
        return {**said, "state": "other", "problems": [other.msg]}
    kin = state == "missing" and has_kin(os.path.dirname(path), locked["id"])
    return {**said, "state": state, "problems": [] if state == "missing" else installed.problems(*look), "kin": kin}


def has_kin(folder: str, name: str) -> bool:
    """Whether there is an engine NAME-VERSION-* of the same name and version."""
    try:
        names = os.listdir(folder)
    except OSError:
        return False
    start = name.rpartition("-")[0] + "-"
    # Not the leftovers of a build: ID.building-PID, ID.failed.
    return any(one.startswith(start) and one[len(start) :].isalnum() for one in names)


def deployed(home: str, manager: systemd.Manager, service: str) -> list[dict[str, Any]]:
    """The services that have a release here, `service` among them if it has one."""
    found: list[dict[str, Any]] = []
    for name in releases.services(home):
        release = condition.released(os.path.join(releases.service_folder(home, name), "current"))
        if release["number"] is None:
            continue
        words = release["words"]
        recipe = release["recipe"] if isinstance(release["recipe"], dict) else {}
        port = condition.option(words, "--port", "8000")
        path = served.checkpoint_path(words)
        found.append(
            {
                "name": name,
                "unit": releases.unit_of(name),
                "own": name == service,
                "recipe": {key: recipe.get(key) for key in SAID},
                "host": condition.option(words, "--host", "127.0.0.1"),
                "port": int(port) if port.isdigit() else 0,
                "resident": weights.look(path)["resident"] if path else None,
            }
        )
    states = shown(manager, [one["unit"] for one in found])
    for one in found:
        state = states.get(one["unit"], {})
        one["pid"] = systemd.number(state, "MainPID")
        one["active"] = systemd.running(state)
        one["enabled"] = state.get("UnitFileState") == "enabled"
    return found


def shown(manager: systemd.Manager, units: list[str]) -> dict[str, dict[str, str]]:
    """The states of units, by their names; one question for all."""
    if not units:
        return {}
    done = manager.call("show", "-p", ",".join(SHOWN), "--", *units)
    blocks = [systemd.properties(block) for block in done.out.split("\n\n")]
    return {block.get("Id", ""): block for block in blocks}


def disk(name: str, path: str) -> dict[str, Any]:
    """Free bytes where `path` is or would be, and which file system that is."""
    said = condition.disk(name, path)
    at = path
    while not os.path.exists(at) and at not in ("/", ""):
        at = os.path.dirname(at)
    return {**said, "device": os.stat(at or "/").st_dev}


def tools(args: Args, engine: str, node: Node) -> dict[str, Any]:
    """What the engine compiles its kernels with: nvcc, ninja and Python.h, as the unit's PATH finds them."""
    locked = args.engines.get(os.uname().machine) or {}
    comes_with_it = any(pin.startswith("ninja==") for pin in locked.get("packages", []))
    return {
        "nvcc": any(os.access(f"{folder}/nvcc", os.X_OK) for folder in (CUDA, "/usr/local/bin", "/usr/bin")),
        "ninja": comes_with_it or os.path.exists(f"{engine}/bin/ninja") or node.which("ninja") is not None,
        "headers": has_headers(f"{engine}/bin/python", node.which(args.python)),
    }


def has_headers(*interpreters: str | None) -> bool:
    """Whether the first of the interpreters that there is has its Python.h."""
    for program in interpreters:
        if program and os.path.exists(program):
            real = os.path.realpath(program)
            prefix = os.path.dirname(os.path.dirname(real))
            return os.path.exists(f"{prefix}/include/{os.path.basename(real)}/Python.h")
    return False
