"""Running a command on the node: its own process group, all output kept, ended when the controller goes away."""

from __future__ import annotations

import os

from sparkops.node.api import Completed, Failure
from sparkops.node.frames import Closed

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

# How long a command may take to end after SIGTERM before SIGKILL, and how long its output is read on after it has
# ended (a daemon that it left behind may hold the pipe open for ever).
GRACE = 5.0
DRAIN = 0.2


def end(process: subprocess.Popen[bytes]) -> None:
    """End a whole process group: TERM, then KILL for those that are left of it."""
    import signal
    import subprocess
    import time

    limit = time.monotonic() + GRACE
    try:
        os.killpg(process.pid, signal.SIGTERM)
        while time.monotonic() < limit:
            # Reaped, or the group would never be empty.
            process.poll()
            os.killpg(process.pid, 0)
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(GRACE)
    # Nobody is left; who is left is another user's (sudo); the kernel holds it.
    except (ProcessLookupError, PermissionError, subprocess.TimeoutExpired):
        return


def run(
    argv: list[str],
    *,
    stdin: str,
    cwd: str | None,
    env: dict[str, str],
    timeout: float | None,
    check: Callable[[], None],
    wake: int | None,
    each: Callable[[list[str]], None] | None = None,
) -> Completed:
    """Run `argv`; `each` is given stdout's lines as they come.

    `check` raises Closed when the controller has gone, and is called when `wake` becomes readable.

    Raises Failure after `timeout` seconds. A program that does not exist gives rc 127, one that may not run 126.
    """
    import subprocess

    try:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd,
            env=env,
            start_new_session=True,
        )
    except FileNotFoundError:
        if cwd is not None and not os.path.isdir(cwd):
            raise Failure(f"no folder {cwd} to run {argv[0]} in") from None
        return Completed(argv, 127, "", f"{argv[0]}: not found")
    except PermissionError:
        return Completed(argv, 126, "", f"{argv[0]}: permission denied")
    try:
        out, err = _talk(process, argv[0], stdin.encode("utf-8", "surrogateescape"), timeout, check, wake, each)
    except (Closed, Failure):
        end(process)
        raise
    return Completed(argv, process.wait(), out.decode("utf-8", "replace"), err.decode("utf-8", "replace"))


def _hand_on(said: bytearray, each: Callable[[list[str]], None]) -> None:
    """Give `each` the whole lines of what was said; the last, unfinished one stays."""
    end = said.rfind(b"\n") + 1
    if end:
        lines = bytes(said[:end]).decode("utf-8", "replace").split("\n")[:-1]
        del said[:end]
        each(lines)


def _talk(
    process: subprocess.Popen[bytes],
    name: str,
    pending: bytes,
    timeout: float | None,
    check: Callable[[], None],
    wake: int | None,
    each: Callable[[list[str]], None] | None,
) -> tuple[bytes, bytes]:
    import select
    import time

    assert process.stdin and process.stdout and process.stderr
    pipes = {process.stdout.fileno(): bytearray(), process.stderr.fileno(): bytearray()}
    out, err = pipes.values()
    sink: int | None = process.stdin.fileno()
    os.set_blocking(process.stdin.fileno(), False)
    limit = None if timeout is None else time.monotonic() + timeout
    quiet_until: float | None = None
    nap = 0.0005
    # A program may close both pipes and run on.
    while pipes or process.poll() is None:
        if sink is not None and not pending:
            process.stdin.close()
            sink = None
        sources = [*pipes, *([] if wake is None else [wake])]
        ready, writable, _ = select.select(sources, [] if sink is None else [sink], [], 0.2 if pipes else nap)
        nap = nap if pipes else min(2 * nap, 0.2)
        if wake in ready or not ready:
            check()
        for fd in [fd for fd in ready if fd in pipes]:
            data = os.read(fd, 65536)
            if data:
                pipes[fd] += data
            else:
                del pipes[fd]
            if each and pipes.get(fd) is out:
                _hand_on(out, each)
        if writable and sink is not None:
            try:
                pending = pending[os.write(sink, pending[:65536]) :]
            except BrokenPipeError:
                pending = b""
        now = time.monotonic()
        if limit is not None and now > limit:
            raise Failure(f"{name} did not end within {timeout:g} s")
        if process.poll() is None:
            continue
        if any(fd in ready for fd in pipes) or quiet_until is None:
            quiet_until = now + DRAIN
        elif now > quiet_until:
            break
    if sink is not None:
        process.stdin.close()
    process.stdout.close()
    process.stderr.close()
    return bytes(out), bytes(err)
