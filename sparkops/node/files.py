"""Files on the node: written beside, fsynced and renamed, so that a kill leaves the old file or the new one.

Every OSError that a user can cause comes out as a `Failure` that names the path.
"""

from __future__ import annotations

import _thread
import os

from sparkops.node.api import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

PIECE = 1 << 20
# Ansible's max_diff_size: larger texts are not compared line by line.
DIFF_LIMIT = 104448
# Bytes that wait for the disk while a file comes in.
SYNC_EVERY = 64 << 20
# Names found in this run: each look reads both files again. One that is not there yet may be made by a later task.
_users: dict[int, str] = {}
_groups: dict[int, str] = {}


def refusal(doing: str, path: str, error: OSError) -> Failure:
    """The Failure for an OSError met while `doing` ("write", "remove") a path."""
    hint = "; become: true may be needed" if isinstance(error, PermissionError) and os.geteuid() else ""
    return Failure(f"cannot {doing} {path}: {error.strerror or error}{hint}", path=path)


def write(path: str, data: bytes, mode: int | None = None, owner: str | None = None, group: str | None = None) -> None:
    """Put `data` at `path` by temp file, fsync and rename; a link there is replaced, not followed.

    mode, owner, group: None keeps those of an existing file; a new one gets 0666 less the umask. Raises Failure.
    """
    write_pieces(path, [data], mode, owner, group)


def write_pieces(
    path: str,
    pieces: Iterable[bytes],
    mode: int | None = None,
    owner: str | None = None,
    group: str | None = None,
    digest: str | None = None,
) -> None:
    """`write` for content that comes in pieces; with `digest` (sha256) other content never reaches `path`."""
    path = os.path.abspath(path)
    there = regular(path)
    uid, gid = owner_id(owner), group_id(group)
    temp = os.path.join(os.path.dirname(path), f".sparkops-{os.urandom(6).hex()}")
    try:
        with open(temp, "xb", opener=private) as file:
            with Syncing(file.fileno()) as syncing:
                for piece in pieces if digest is None else _compared(path, pieces, digest):
                    file.write(piece)
                    syncing.wrote(len(piece))
            own(file.fileno(), there, uid, gid)
            # After the last write and chown: both clear the setuid bits, the write for all but root.
            file.flush()
            os.fchmod(file.fileno(), mode if mode is not None else there.st_mode & 0o7777 if there else new_mode())
            os.fsync(file.fileno())
        os.rename(temp, path)
        sync_folder(os.path.dirname(path))
    except OSError as error:
        raise refusal("write", path, error) from error
    finally:
        discard(temp)


class Syncing:
    """Has a large file's bytes on the disk while more of them come: to wait for all at the end doubles the time."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._new = 0
        self._error: OSError | None = None
        self._working = _thread.allocate_lock()

    def __enter__(self) -> Syncing:
        return self

    def wrote(self, size: int) -> None:
        """So many bytes more; never waits."""
        self._new += size
        if self._new >= SYNC_EVERY and self._working.acquire(blocking=False):
            self._new = 0
            try:
                _thread.start_new_thread(self._sync, ())
            except RuntimeError:
                # No more threads for this user: the last sync takes it all.
                self._working.release()

    def _sync(self) -> None:
        try:
            os.fdatasync(self._fd)
        except OSError as error:
            # The kernel says it once for each descriptor: a later sync would find all well.
            self._error = error
        finally:
            self._working.release()

    def __exit__(self, *_: object) -> None:
        # The descriptor may be another file's soon.
        with self._working:
            if self._error is not None:
                raise self._error


def _compared(path: str, pieces: Iterable[bytes], digest: str) -> Iterable[bytes]:
    from hashlib import sha256 as new_hash

    seen = new_hash()
    for piece in pieces:
        seen.update(piece)
        yield piece
    if seen.hexdigest() != digest:
        raise Failure(f"{path}: the content that came has sha256 {seen.hexdigest()}, not {digest}; run again")


def private(path: str, flags: int) -> int:
    """An opener: nobody else reads a file before it has its own mode."""
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)


def regular(path: str) -> os.stat_result | None:
    """The stat of a regular file, None for anything else (a link is not followed)."""
    import stat

    try:
        found = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise refusal("read", path, error) from error
    return found if stat.S_ISREG(found.st_mode) else None


def own(fd: int, there: os.stat_result | None, uid: int, gid: int) -> None:
    """Give an open file the wanted owner, else that of the file it replaces, where that is allowed."""
    if uid != -1 or gid != -1:
        os.fchown(fd, uid, gid)
    if there:
        try:
            os.fchown(fd, there.st_uid if uid == -1 else -1, there.st_gid if gid == -1 else -1)
        except PermissionError:
            # As Ansible does: who may write the folder but not give files away becomes the owner.
            return


def sync_folder(folder: str) -> None:
    """Make a rename or an unlink in `folder` durable."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def discard(path: str) -> None:
    """Remove a temp file if it is there."""
    try:
        os.unlink(path)
    # A folder that may not be written, or is none, never had it.
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return


def umask() -> int:
    """The process's umask, which can only be read by setting it."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def new_mode() -> int:
    """The mode of a new file: 0666 less the umask."""
    return 0o666 & ~umask()


def owner_id(name: str | None) -> int:
    """The uid of a user name or number, -1 for None (chown's `leave it`). Raises Failure when unknown."""
    if name is None:
        return -1
    import pwd

    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError:
        if name.isdigit():
            return int(name)
        raise Failure(f"there is no user {name!r} on this node; create it or name another owner") from None


def group_id(name: str | None) -> int:
    """The gid of a group name or number, -1 for None. Raises Failure when unknown."""
    if name is None:
        return -1
    import grp

    try:
        return grp.getgrnam(name).gr_gid
    except KeyError:
        if name.isdigit():
            return int(name)
        raise Failure(f"there is no group {name!r} on this node; create it or name another group") from None


def user_name(uid: int) -> str:
    """The name of a uid, or the number where it has none."""
    import pwd

    try:
        if uid not in _users:
            _users[uid] = pwd.getpwuid(uid).pw_name
        return _users[uid]
    except KeyError:
        return str(uid)


def group_name(gid: int) -> str:
    """The name of a gid, or the number where it has none."""
    import grp

    try:
        if gid not in _groups:
            _groups[gid] = grp.getgrgid(gid).gr_name
        return _groups[gid]
    except KeyError:
        return str(gid)


def sha256(path: str) -> str:
    """The sha256 of a file's bytes, in hex. Raises Failure when it can't be read."""
    return checksum(path, "sha256")


def checksum(path: str, algorithm: str) -> str:
    """The digest of a file's bytes by any of hashlib's algorithms, in hex. Raises Failure when it can't be read."""
    from sparkops.node import digest

    try:
        with open(path, "rb") as file:
            seen = digest.new(algorithm, os.fstat(file.fileno()).st_size)
            for piece in iter(lambda: file.read(PIECE), b""):
                seen.update(piece)
    except OSError as error:
        raise refusal("read", path, error) from error
    return seen.hexdigest()


def read(path: str) -> bytes:
    """A file's bytes. Raises Failure when it can't be read."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise refusal("read", path, error) from error


def set_attributes(
    path: str,
    mode: str | None,
    owner: str | None,
    group: str | None,
    check: bool,
    follow: bool = True,
) -> list[str]:
    """Give a path its mode, owner and group; returns what (in check mode: would) change, as "mode 0644 -> 0600".

    A symbolic mode starts from the present one, as chmod's does. Raises Failure.
    """
    import stat

    from sparkops.node.modes import mode_bits

    try:
        now = os.stat(path, follow_symlinks=follow)
        uid, gid = owner_id(owner), group_id(group)
        changes = []
        if uid not in (-1, now.st_uid):
            changes.append(f"owner {user_name(now.st_uid)} -> {user_name(uid)}")
        if gid not in (-1, now.st_gid):
            changes.append(f"group {group_name(now.st_gid)} -> {group_name(gid)}")
        if changes and not check:
            os.chown(path, uid, gid, follow_symlinks=follow)
            # chown may have cleared the setuid bits.
            now_mode = os.stat(path, follow_symlinks=follow).st_mode
        else:
            now_mode = now.st_mode
        if mode is not None and not stat.S_ISLNK(now.st_mode):
            wanted = mode_bits(mode, now.st_mode & 0o7777, stat.S_ISDIR(now.st_mode), umask())
            if wanted != now.st_mode & 0o7777:
                changes.append(f"mode {now.st_mode & 0o7777:04o} -> {wanted:04o}")
            if wanted != now_mode & 0o7777 and not check:
                os.chmod(path, wanted)
    except OSError as error:
        raise refusal("change", path, error) from error
    return changes


def path_info(path: str, follow: bool = False) -> dict[str, Any]:
    """What results say of a path: state (Ansible's words), mode ("0644"), owner, group, uid, gid, size."""
    import stat

    try:
        found = os.stat(path, follow_symlinks=follow)
    except (FileNotFoundError, NotADirectoryError):
        return {"state": "absent"}
    except OSError as error:
        raise refusal("look at", path, error) from error
    kind = "hard" if found.st_nlink > 1 else "file"
    return {
        "state": {stat.S_IFDIR: "directory", stat.S_IFLNK: "link"}.get(stat.S_IFMT(found.st_mode), kind),
        "mode": f"{found.st_mode & 0o7777:04o}",
        "owner": user_name(found.st_uid),
        "group": group_name(found.st_gid),
        "uid": found.st_uid,
        "gid": found.st_gid,
        "size": found.st_size,
    }


def changes_diff(path: str, changes: list[str]) -> str:
    """`set_attributes`' changes as a diff of lines such as `mode: 0644`."""
    lines = [f"--- before: {path}", f"+++ after: {path}"]
    for change in changes:
        name, _, values = change.partition(" ")
        old, _, new = values.partition(" -> ")
        lines += [f"-{name}: {old}", f"+{name}: {new}"]
    return "\n".join(lines) + "\n"


def diff(before: str | bytes, after: str | bytes, path: str) -> str:
    """A unified diff, "" when both are the same; one line for what is binary or too large to show."""
    if before == after:
        return ""
    old, new = text(before), text(after)
    if old is None or new is None:
        return f"Binary files differ: {path} ({len(before)} -> {len(after)} bytes)\n"
    if max(len(old), len(new)) > DIFF_LIMIT:
        return f"Files differ, too large to show: {path} ({len(before)} -> {len(after)} bytes)\n"
    from difflib import unified_diff

    lines = unified_diff(lines_of(old), lines_of(new), f"before: {path}", f"after: {path}")
    return "".join(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in lines)


def lines_of(content: str) -> list[str]:
    """Lines that end at "\\n" only: splitlines would also cut at form feeds and lone carriage returns."""
    lines = content.split("\n")
    return [line + "\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def text(data: str | bytes) -> str | None:
    """The data as text, None when it is binary."""
    if isinstance(data, str):
        return None if "\0" in data else data
    try:
        return None if b"\0" in data else data.decode()
    except UnicodeDecodeError:
        return None
