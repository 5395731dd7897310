"""Say what is at a path.

Example:
    - name: Is there an engine already
      stat:
        path: /opt/sparkops/engines/current
      register: engine
"""

from __future__ import annotations

import os

from sparkops.node import files
from sparkops.node.api import Arguments, Node, Outcome, Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar, Literal


class Args(Arguments):
    """follow: what a link points to. get_checksum: of a regular file that can be read."""

    path: Path
    follow: bool = False
    get_checksum: bool = True
    checksum_algorithm: Literal["md5", "sha1", "sha224", "sha256", "sha384", "sha512"] = "sha1"  # of get_checksum
    aliases: ClassVar[dict[str, str]] = {"dest": "path", "name": "path", "checksum": "checksum_algorithm"}


def apply(args: Args, _: Node) -> Outcome:
    """Result: stat, with Ansible's keys; {"exists": False} alone when nothing is there. Always ok."""
    try:
        found = os.stat(args.path, follow_symlinks=args.follow)
    except (FileNotFoundError, NotADirectoryError):
        return Outcome.ok(stat={"exists": False})
    except OSError as error:
        raise files.refusal("look at", args.path, error) from error
    said = {"exists": True, "path": str(args.path), **kinds(found), **permissions(found), **numbers(found)}
    for name, flag in (("readable", os.R_OK), ("writeable", os.W_OK), ("executable", os.X_OK)):
        said[name] = os.access(args.path, flag)
    if said["islnk"]:
        said["lnk_source"] = os.path.realpath(args.path)
        said["lnk_target"] = os.readlink(args.path)
    if args.get_checksum and said["isreg"] and said["readable"]:
        said["checksum"] = files.checksum(args.path, args.checksum_algorithm)
    return Outcome.ok(stat=said)


def kinds(found: os.stat_result) -> dict[str, bool]:
    """What sort of thing it is."""
    import stat

    return {
        "isdir": stat.S_ISDIR(found.st_mode),
        "isreg": stat.S_ISREG(found.st_mode),
        "islnk": stat.S_ISLNK(found.st_mode),
        "isblk": stat.S_ISBLK(found.st_mode),
        "ischr": stat.S_ISCHR(found.st_mode),
        "isfifo": stat.S_ISFIFO(found.st_mode),
        "issock": stat.S_ISSOCK(found.st_mode),
        "isuid": bool(found.st_mode & stat.S_ISUID),
        "isgid": bool(found.st_mode & stat.S_ISGID),
    }


def permissions(found: os.stat_result) -> dict[str, Any]:
    """The mode ("0644"), the permission bits one by one, and the owner."""
    bits = {
        letter + who: bool(found.st_mode >> shift & value)
        for who, shift in (("usr", 6), ("grp", 3), ("oth", 0))
        for letter, value in (("r", 4), ("w", 2), ("x", 1))
    }
    owner = {"pw_name": files.user_name(found.st_uid), "gr_name": files.group_name(found.st_gid)}
    return {"mode": f"{found.st_mode & 0o7777:04o}", "uid": found.st_uid, "gid": found.st_gid, **owner, **bits}


def numbers(found: os.stat_result) -> dict[str, Any]:
    """Size in bytes, times in seconds since 1970, and the kernel's numbers."""
    return {
        "size": found.st_size,
        "atime": found.st_atime,
        "mtime": found.st_mtime,
        "ctime": found.st_ctime,
        "inode": found.st_ino,
        "dev": found.st_dev,
        "nlink": found.st_nlink,
        "blocks": found.st_blocks,
        "block_size": found.st_blksize,
        "device_type": found.st_rdev,
    }
