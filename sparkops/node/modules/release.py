"""Write a release: one deploy, whole, beside the ones before, and point `current` at it by one rename.

Example:
    - name: What is to be served
      release:
        home: /opt/sparkops
        service: vllm
        files:
          run: {content: "{{ command }}", mode: "0755"}
          env: {content: "{{ environment }}", mode: "0600"}
        meta: {recipe: fp8}
"""

from __future__ import annotations

import json
import os

from sparkops.node import files, releases
from sparkops.node.api import Arguments, Failure, Node, Outcome, Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal


# Seconds that a copy whose trial is over may take to end, as a stop of its unit gives it by default.
STOP_WITHIN = 120.0


class Args(Arguments):
    """home: sparkops' folder on the node; releases lie in its releases/SERVICE. service: whose release it is.

    files: {name: {content, mode}}, mode "0644" when left out; a file that only its owner reads is never shown.

    meta: who, when, why: written to release.json, with the node's kernel and driver, and not compared. A release is
    new when a file of it is. What its files were stands in SHA256SUMS, for its owner alone.
    confirm_within: seconds in which release_confirm must come, or the node goes back to the last confirmed release by
    itself (unit, scope: whose process is ended then). The first release of a service has nothing to go back to.
    """

    home: Path
    service: str
    files: dict[str, Any]
    meta: dict[str, Any] = {}
    confirm_within: float | None = None
    unit: str | None = None
    scope: Literal["system", "user"] = "system"


class File:
    """A file of a release: bytes and mode bits."""

    def __init__(self, data: bytes, mode: int) -> None:
        self.data = data
        self.mode = mode

    @property
    def secret(self) -> bool:
        """Whether only its owner may read it."""
        return not self.mode & 0o077


def apply(args: Args, node: Node) -> Outcome:
    """Result: service, release (its number), path, current (the link), previous (the release before, or None),
    confirmed (the one to go back to, or None).
    """
    releases.check_name("service", args.service)
    wanted = {name: wanted_file(name, said) for name, said in args.files.items()}
    folder = os.path.join(args.home, "releases", args.service)
    try:
        return bring(folder, wanted, args, node)
    except OSError as error:
        raise files.refusal("write", error.filename or folder, error) from error


def bring(folder: str, wanted: dict[str, File], args: Args, node: Node) -> Outcome:
    """Make a release of these files unless the current one is that."""
    previous = releases.linked(folder)
    now = read(os.path.join(folder, str(previous))) if previous else {}
    said: dict[str, Any] = {"service": args.service, "current": os.path.join(folder, "current"), "previous": previous}
    said["confirmed"] = releases.linked(folder, "confirmed")
    if previous and same(now, wanted):
        path = os.path.join(folder, str(previous))
        if args.confirm_within is None or releases.deadline(folder, previous) is None:
            return Outcome.ok(f"release {previous}", release=previous, path=path, **said)
        # A run before this one was stopped in its trial: this one has the whole of it again, and may undo it.
        if not node.check:
            releases.begin_trial(path, args.confirm_within)
            watch(folder, previous, args, node)
        return Outcome.changed(f"release {previous} is still on trial", release=previous, path=path, **said)
    number = max(releases.numbers(folder), default=0) + 1
    path = os.path.join(folder, str(number))
    if not node.check:
        os.makedirs(folder, exist_ok=True)
        releases.clean(folder)
        trial = args.confirm_within if releases.linked(folder, "confirmed") else None
        write(folder, number, wanted, {**args.meta, **beneath(node)}, trial)
        # The watchdog first: a run that is killed between the two leaves no release that nobody watches.
        if trial is not None:
            watch(folder, number, args, node)
        releases.point(folder, number)
    return Outcome.changed(f"release {number}", difference(now, wanted), release=number, path=path, **said)


def wanted_file(name: str, said: Any) -> File:
    """A file as the task gives it. Raises Failure."""
    from sparkops.node.modes import mode_bits

    releases.check_name("files", name)
    if name in (releases.META, releases.SUMS):
        raise Failure(f"files: {name} is written by this module")
    if not isinstance(said, dict) or not isinstance(said.get("content"), str) or set(said) - {"content", "mode"}:
        raise Failure(f"files: {name} must be {{content: TEXT, mode: MODE}}")
    mode = said.get("mode", "0644")
    if not isinstance(mode, str):
        raise Failure(f'files: {name}: mode {mode!r} is a number; quote it, as in "0644"')
    return File(said["content"].encode("utf-8", "surrogateescape"), mode_bits(mode, 0o644, False, files.umask()))


def read(path: str) -> dict[str, File]:
    """The files of a release that release.json names; markers that came later are not of it."""
    try:
        names = json.loads(files.read(os.path.join(path, releases.META)))["files"]
    except (ValueError, KeyError, TypeError):
        names = []
    found = {}
    for name in names:
        file = os.path.join(path, name)
        if os.path.isfile(file):
            found[name] = File(files.read(file), os.stat(file).st_mode & 0o7777)
    return found


def same(now: dict[str, File], wanted: dict[str, File]) -> bool:
    """Whether two releases have the same files with the same modes."""
    return {name: (file.data, file.mode) for name, file in now.items()} == {
        name: (file.data, file.mode) for name, file in wanted.items()
    }


def beneath(node: Node) -> dict[str, Any]:
    """What the release is deployed on."""
    from sparkops.node import nvidia

    return {"kernel": os.uname().release, "driver": nvidia.gpu(node)["driver"]}


def write(folder: str, number: int, wanted: dict[str, File], meta: dict[str, Any], trial: float | None) -> None:
    """Write a release beside and give it its number; with a `trial` (seconds) it is unconfirmed from the start."""
    from hashlib import sha256

    temp = os.path.join(folder, releases.TEMP + os.urandom(6).hex())
    os.mkdir(temp)
    for name, file in wanted.items():
        files.write(os.path.join(temp, name), file.data, file.mode)
    sums = "".join(f"{sha256(file.data).hexdigest()}  {name}\n" for name, file in sorted(wanted.items()))
    # They are of secrets too.
    files.write(os.path.join(temp, releases.SUMS), sums.encode(), 0o600)
    about = {**meta, "release": number, "files": sorted(wanted)}
    files.write(os.path.join(temp, releases.META), (json.dumps(about, indent=2, sort_keys=True) + "\n").encode(), 0o644)
    if trial is not None:
        releases.begin_trial(temp, trial)
    os.rename(temp, os.path.join(folder, str(number)))
    files.sync_folder(folder)


def watch(folder: str, number: int, args: Args, node: Node) -> None:
    """Leave a watchdog: when the trial is over and nobody has confirmed, it goes back, and has the service restart.

    The service runs as this user, so no root is needed to end it; its unit starts it again, on what `current` is then.
    """

    def work(job: Node) -> dict[str, Any]:
        import time

        while (limit := releases.deadline(folder, number)) is not None and time.time() < limit:
            job.pause(1.0)
        good = releases.linked(folder, "confirmed")
        if limit is None or good is None or releases.linked(folder) != number:
            return {"back": None}
        releases.point(folder, good)
        end_service(args, job)
        return {"back": good}

    node.start_job(f"trial-{args.service}-{number}", work)


def end_service(args: Args, node: Node) -> None:
    """End the unit's process, by SIGKILL when it hangs; Restart=always brings it back."""
    import signal
    import time

    from sparkops.node import jobs, systemd

    if args.unit is None:
        return
    shown = systemd.Manager(node, args.scope).show(systemd.unit_name(args.unit))
    pid = systemd.number(shown, "MainPID")
    began = jobs.start_time(pid) if pid else None
    if began is None:
        return
    try:
        os.kill(pid, signal.SIGTERM)
        limit = time.monotonic() + STOP_WITHIN
        while jobs.start_time(pid) == began:
            if time.monotonic() > limit:
                os.kill(pid, signal.SIGKILL)
                return
            node.pause(0.5)
    except ProcessLookupError:
        return


def difference(now: dict[str, File], wanted: dict[str, File]) -> str:
    """The diff of all files; of those that only their owner reads it shows names, no values."""
    shown = []
    for name in sorted({*now, *wanted}):
        old, new = now.get(name), wanted.get(name)
        before, after = (file.data if file else b"" for file in (old, new))
        if (old and old.secret) or (new and new.secret):
            before, after = masked(before, {}), masked(after, values(before))
        shown.append(files.diff(before, after, name))
        if old and new and old.mode != new.mode:
            shown.append(files.changes_diff(name, [f"mode {old.mode:04o} -> {new.mode:04o}"]))
    return "".join(shown)


def values(data: bytes) -> dict[bytes, bytes]:
    """The KEY=value lines of a file."""
    pairs = (line.partition(b"=") for line in data.splitlines())
    return {key: value for key, _, value in pairs}


def masked(data: bytes, before: dict[bytes, bytes]) -> bytes:
    """The lines of a file without their values; one whose value is another than `before` says so."""
    lines = []
    for line in data.splitlines():
        key, equals, value = line.partition(b"=")
        if not equals:
            lines.append(b"(hidden)\n")
        elif before.get(key, value) != value:
            lines.append(key + b"=(hidden, another value)\n")
        else:
            lines.append(key + b"=(hidden)\n")
    return b"".join(lines)
