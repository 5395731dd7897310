"""Build a Python environment from a lock with hashes; once it is in place it is never changed again.

uv builds it beside its final name; it is checked, patched, renamed into place and then tried. The build goes on by
itself when the connection drops, and the next run joins it. A build that was killed leaves nothing under the final
name, or an environment that has yet to be tried: then the next run tries it.

Example:
    - name: The engine
      python_venv:
        path: /opt/sparkops/engines/vllm-0.24.0-0123456789ab
        lock: vllm-0.24.0.lock
        python: python3.12
        uv: /opt/sparkops/tools/uv-0.13.9/uv
        cache_dir: /opt/sparkops/cache/uv
        expect_cuda: "13.0"
        probe: [bin/vllm, --version]
"""

from __future__ import annotations

import os

from sparkops.node.api import Arguments, Failure, Outcome, Patch, Path, Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from sparkops.node.api import Node
    from sparkops.node.venv import Wanted


class Args(Arguments):
    path: Path  # the environment's final name
    lock: Source  # requirements with hashes, as `uv pip compile --generate-hashes` writes them
    uv: Path  # uv's program
    cache_dir: Path  # uv's cache; on the file system of `path` packages are hard links and a second venv costs seconds
    python: str = "python3"  # the interpreter: a name on the PATH (python3.12) or a path
    index_url: str = "https://pypi.org/simple"  # a simple index; credentials in it are not shown
    files: dict[str, str] = {}  # written beside the packages: path in site-packages (no package may own it) -> text
    expect_cuda: str | None = None  # what torch/version.py must say, "13.0"
    patches: list[Patch] = []  # put in while it is built, with .orig
    probe: list[str] = []  # a command that must end with status 0 at the final place, relative to `path`


def apply(args: Args, node: Node) -> Outcome:
    import glob

    from sparkops.node import venv
    from sparkops.node.venv import Wanted

    wanted = Wanted(args.path.rstrip("/"), args.lock.digest, args.patches, args.files)
    ready = wanted.state()
    if ready == "complete":
        return Outcome.ok(f"{args.path} is there", **wanted.facts())
    if ready == "missing" and not node.check and not os.path.isfile(args.uv):
        raise Failure(f"there is no uv at {args.uv} to build {args.path} with: provision this node first")
    if node.check:
        return Outcome.changed(f"{args.path} would be {'tried' if ready == 'untried' else 'built'}", path=args.path)
    lock = b"".join(args.lock.read(node)) if ready == "missing" else b""
    total = venv.package_count(lock)

    def work(job: Node) -> dict[str, Any]:
        # Named anew: this is another process.
        return build(args, lock, Wanted(wanted.path, wanted.lock, wanted.patches, wanted.files), job)

    def watch(seen: Node) -> None:
        if not total:
            return
        builds = glob.escape(wanted.path + venv.BUILDING) + "*"
        installed = venv.installed_count(builds)
        done = installed or venv.fetched_count(args.cache_dir, builds)
        doing = "fetching" if not installed else "installing" if installed < total else "compiling"
        seen.progress(min(done, total), total, "packages", doing)

    node.job(f"python_venv-{wanted.key}", work, watch)
    # A job that was joined may have been at work for another lock: `state` fails then.
    if wanted.state() != "complete":
        raise Failure(f"the build of {args.path} has ended without completing it; run again")
    return Outcome.changed(f"built {args.path}", **wanted.facts())


def build(args: Args, lock: bytes, wanted: Wanted, node: Node) -> dict[str, Any]:
    """The detached part: build beside, rename, try, note. Raises Failure."""
    from sparkops.node import patched, venv

    if not os.path.isdir(wanted.path):
        wanted.remove_leftovers()
        create(args, lock, wanted.building, node)
        folder = patched.site_packages(os.path.join(wanted.building, "lib", "python3*", "site-packages"))
        wanted.write_files(folder)
        if args.expect_cuda is not None:
            venv.check_cuda(folder, args.expect_cuda, args.lock.name)
        changed = [os.path.join(folder, name) for name in args.files if name.endswith(".py")]
        for patch in args.patches:
            change = patched.present(patch, folder)
            change.carry_out(keep=True)
            changed.append(change.path)
        if changed:
            # Compiled now: nothing writes into the environment later.
            node.run([f"{wanted.building}/bin/python", "-m", "py_compile", *changed], must=True)
        wanted.note(folder, tried=not args.probe)
        # The packages' bytes before the name that promises them. syncfs: `sync` alone would wait for every disk.
        node.run(["sync", "-f", wanted.building])
        os.rename(wanted.building, wanted.path)
    if args.probe:
        probe(args.probe, wanted, node)
        wanted.note_tried()
    # Once more: a uv that outlived its own build may have gone on writing.
    wanted.remove_leftovers()
    return {}


def create(args: Args, lock: bytes, building: str, node: Node) -> None:
    """A relocatable venv with what the lock says, by uv. Raises Failure with the end of uv's output."""
    from sparkops.node import files, simple_index

    env = {
        "UV_CACHE_DIR": args.cache_dir,
        # By the environment: an index's password does not belong in an argv that every user can list.
        "UV_DEFAULT_INDEX": args.index_url,
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_NO_PROGRESS": "1",
    }
    steps = [
        ["venv", "--relocatable", "--prompt", os.path.basename(args.path), "--python", args.python, building],
        ["pip", "sync", "--python", f"{building}/bin/python", "--require-hashes", "--no-build", "--compile-bytecode"],
    ]
    try:
        os.makedirs(os.path.dirname(building), exist_ok=True)
        os.makedirs(args.cache_dir, exist_ok=True)
    except OSError as error:
        raise files.refusal("make", error.filename, error) from error
    for step in steps:
        if step[0] == "pip":
            # Kept: it says what the environment is made of.
            files.write(f"{building}/requirements.lock", lock, 0o644)
            step.append(f"{building}/requirements.lock")
        done = node.run([args.uv, "--no-config", *step], env=env)
        if done.rc:
            said = done.err + done.out
            for secret in simple_index.secrets(args.index_url):
                said = said.replace(secret, "****")
            raise Failure(
                f"uv {' '.join(step[:2])} ended with status {done.rc} (index {simple_index.redacted(args.index_url)}, "
                f"python {args.python}):\n{tail(said)}",
                rc=done.rc,
            )


def probe(command: list[str], wanted: Wanted, node: Node) -> None:
    """Try the environment at its final place; one that fails is moved away. Raises Failure."""
    program = os.path.join(wanted.path, command[0])
    done = node.run([program, *command[1:]])
    if done.rc:
        wanted.move_away()
        raise Failure(
            f"{' '.join([program, *command[1:]])} ended with status {done.rc}, so {wanted.path} is not in place (it is "
            f"kept as {wanted.failed} until the next build):\n{tail(done.out + done.err)}",
            rc=done.rc,
        )


def tail(said: str, lines: int = 15) -> str:
    """The last lines of an output."""
    return "\n".join(said.strip().splitlines()[-lines:])
