"""Install uv's program from its pinned wheel: the sha256 is checked before anything of it is used.

Example:
    - name: uv
      uv:
        version: 0.13.9
        wheels:
          aarch64: {file: uv-0.13.9-py3-none-manylinux_2_28_aarch64.whl, sha256: ecb6028d...}
        index_url: https://pypi.org/simple
        dest: /opt/sparkops/tools/uv-0.13.9/uv
"""

from __future__ import annotations

import json
import os

from sparkops.node.api import Arguments, Failure, Outcome, Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sparkops.node.api import Node


class Args(Arguments):
    version: str  # of uv, as the wheels have it
    wheels: dict[str, dict[str, str]]  # by machine name (uname -m): the wheel's file name and its sha256
    dest: Path  # the program's path; DEST.json beside it says which wheel it came from
    index_url: str = "https://pypi.org/simple"  # a simple index; credentials in it are not shown


def apply(args: Args, node: Node) -> Outcome:
    wheel = wheel_for(args.wheels, os.uname().machine, args.version)
    if installed(args.dest, wheel["sha256"]):
        return Outcome.ok(f"uv {args.version}", path=args.dest, version=args.version)
    if not node.check:
        install(args.dest, program(download(args, wheel, node), wheel["file"]), wheel)
    return Outcome.changed(f"uv {args.version}", path=args.dest, version=args.version)


def wheel_for(wheels: dict[str, dict[str, str]], machine: str, version: str) -> dict[str, str]:
    """The wheel for a machine name. Raises Failure."""
    if machine not in wheels:
        known = ", ".join(sorted(wheels)) or "none"
        raise Failure(f"no wheel of uv {version} is pinned for {machine} (pinned: {known}); add its file and sha256")
    wheel = wheels[machine]
    for key in ("file", "sha256"):
        if not wheel.get(key):
            raise Failure(f"the wheel of uv {version} for {machine} has no {key}")
    return wheel


def installed(dest: str, wheel_sha256: str) -> bool:
    """Whether `dest` is, untouched, what was installed from that wheel."""
    try:
        with open(f"{dest}.json", encoding="utf-8") as file:
            noted = json.load(file)
        now = os.lstat(dest)
    except (OSError, ValueError):
        return False
    return bool(noted == note(wheel_sha256, now))


def note(wheel_sha256: str, program: os.stat_result) -> dict[str, str | int]:
    """What DEST.json holds: a changed program has another size or mtime, which costs no reading of its 50 MB."""
    return {"wheel": wheel_sha256, "size": program.st_size, "mtime_ns": program.st_mtime_ns, "mode": program.st_mode}


def download(args: Args, wheel: dict[str, str], node: Node) -> bytes:
    """The wheel's bytes, whose sha256 is the pinned one. Raises Failure."""
    from hashlib import sha256

    from sparkops.node import simple_index

    url = simple_index.find(args.index_url, "uv", wheel["file"])
    pieces: list[bytes] = []
    simple_index.fetch(url, pieces.append, lambda done, total: node.progress(done, total, "bytes", wheel["file"]))
    data = b"".join(pieces)
    found = sha256(data).hexdigest()
    if found != wheel["sha256"]:
        shown = simple_index.redacted(url)
        raise Failure(
            f"{shown} has sha256 {found}, expected {wheel['sha256']}; nothing was installed. "
            "The index serves another file than the pinned one",
            url=shown,
            expected=wheel["sha256"],
            found=found,
        )
    return data


def program(wheel: bytes, name: str) -> bytes:
    """The bytes of the program `uv` in a wheel. Raises Failure."""
    import io
    import zipfile

    try:
        with zipfile.ZipFile(io.BytesIO(wheel)) as archive:
            for member in archive.namelist():
                if member.endswith(".data/scripts/uv"):
                    return archive.read(member)
    except zipfile.BadZipFile as error:
        raise Failure(f"{name} is not a wheel: {error}") from None
    raise Failure(f"{name} has no program uv in it (*.data/scripts/uv)")


def install(dest: str, data: bytes, wheel: dict[str, str]) -> None:
    """Put the program and its note in place. Raises Failure."""
    from sparkops.node import files

    try:
        os.makedirs(os.path.dirname(dest), exist_ok=True)
    except OSError as error:
        raise files.refusal("make", os.path.dirname(dest), error) from error
    files.write(dest, data, 0o755)
    noted = json.dumps(note(wheel["sha256"], os.lstat(dest)))
    files.write(f"{dest}.json", noted.encode(), 0o644)
