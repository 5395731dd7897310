"""`client.py RUN TOOL ARGUMENT...`: has a node's server process carry out a systemctl, journalctl or loginctl.

Run as a script, by itself: standard library only, and little of it.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time

SOCKET = "manager"
# Seconds between two looks of journalctl -f.
PAUSE = 0.1


def ask(run: str, tool: str, arguments: list[str]) -> tuple[int, str, str]:
    """The exit status, output and error output of a tool. OSError when nobody answers.

    A socket's path may have no more than some hundred bytes; Linux has a short way to any open folder.
    """
    folder = os.open(run, os.O_RDONLY)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            connection.connect(f"/proc/self/fd/{folder}/{SOCKET}" if sys.platform == "linux" else f"{run}/{SOCKET}")
        finally:
            os.close(folder)
        with connection.makefile("rwb") as stream:
            stream.write(json.dumps([tool, arguments]).encode() + b"\n")
            stream.flush()
            answer = stream.readline()
    if not answer:
        raise ConnectionResetError("the node went down")
    rc, out, err = json.loads(answer)
    return rc, out, err


def follow(run: str, arguments: list[str]) -> tuple[int, str, str]:
    """journalctl -f: prints what comes, until it is ended. The answer that was none, as `ask` gives it."""
    rest = [word for word in arguments if word not in ("-f", "--follow")]
    limited = {"--no-tail"}.union(word[:2] for word in rest).isdisjoint(("-n", "--no-tail"))
    first = rest + (["-n", "10"] if limited else [])
    while True:
        rc, out, err = ask(run, "journalctl", [*first, "--show-cursor"])
        text, mark, cursor = out.rpartition("-- cursor: ")
        if not mark:
            return rc, out, err
        sys.stdout.write(text)
        sys.stdout.flush()
        time.sleep(PAUSE)
        first = [*rest, "-q", "-n", "all", f"--after-cursor={cursor.strip()}"]


def main() -> int:
    """Print what the tool prints and end as it ends."""
    run, tool, *arguments = sys.argv[1:]
    try:
        if tool == "journalctl" and not {"-f", "--follow"}.isdisjoint(arguments):
            rc, out, err = follow(run, arguments)
            sys.stderr.write(err)
            return rc
        rc, out, err = ask(run, tool, arguments)
    except OSError as error:
        sys.stderr.write(f"Failed to connect to bus: {error.strerror or error}\n")
        return 1
    sys.stderr.buffer.write(err.encode())
    sys.stderr.flush()
    sys.stdout.buffer.write(out.encode())
    return rc


if __name__ == "__main__":
    sys.exit(main())
