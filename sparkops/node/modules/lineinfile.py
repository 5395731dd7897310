"""Make sure that a line is in a file, or is not.

Example:
    - name: More connections
      lineinfile:
        path: /etc/app.ini
        regexp: '^max_connections\\s*='
        line: max_connections = 100
"""

from __future__ import annotations

import os

from sparkops.node.api import Arguments, Failure, Mode, Node, Outcome, Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from re import Match
    from typing import ClassVar, Literal


class Args(Arguments):
    """regexp, search_string: the line to replace, the last that matches, or with state absent the lines to remove.
    firstmatch: the first that matches. line: what it becomes, or is added as.

    insertafter, insertbefore: where it is added, EOF, BOF or an expression; at the end when none matches. backrefs: \\1
    in line is what regexp found, and nothing is added. create: make a file that is not there. backup: keep what is
    replaced, as path.PID.DATE~.
    """

    path: Path
    state: Literal["present", "absent"] = "present"
    line: str | None = None
    regexp: str | None = None
    search_string: str | None = None
    insertafter: str | None = None
    insertbefore: str | None = None
    backrefs: bool = False
    firstmatch: bool = False
    create: bool = False
    backup: bool = False
    mode: Mode | None = None
    owner: str | None = None
    group: str | None = None
    aliases: ClassVar[dict[str, str]] = {
        "dest": "path", "destfile": "path", "name": "path", "regex": "regexp", "value": "line",
    }  # fmt: skip


def apply(args: Args, node: Node) -> Outcome:
    """Result: dest, state, mode, owner, group, uid, gid, size, sha256; found with state absent; backup_file."""
    from io import BytesIO

    from sparkops.node import files, placing

    _check(args)
    # As in Ansible, a link is written through.
    path = os.path.realpath(args.path)
    there = os.path.exists(path)
    if args.state == "absent" and not there:
        return Outcome.ok("file not present", found=0)
    if not there and not args.create:
        raise Failure(f"{args.path} does not exist; create: true makes it", path=args.path)
    before = BytesIO(files.read(path)).readlines() if there else []
    after, msg = (without if args.state == "absent" else with_line)(before, args)
    folder = os.path.dirname(path)
    if not there and not node.check and folder:
        try:
            os.makedirs(folder, exist_ok=True)
        except OSError as error:
            raise files.refusal("make the folder", folder, error) from error
    wanted = placing.Content.of(b"".join(after))
    attributes = placing.Attributes(args.mode, args.owner, args.group)
    outcome = placing.place(path, wanted, attributes, node, backup=args.backup, force=True)
    if args.state == "absent":
        outcome.result["found"] = len(before) - len(after)
    outcome.msg = msg or outcome.msg
    return outcome


def with_line(lines: list[bytes], args: Args) -> tuple[list[bytes], str]:
    """The lines of a file with the wanted one among them, and what was done ("": nothing)."""
    wanted = _bytes(args.line)
    found = [(at, match) for at, line in enumerate(lines) if (match := _match(line, args))]
    if found:
        at, match = found[0 if args.firstmatch else -1]
        new = match.expand(wanted) if args.backrefs and not isinstance(match, bool) else wanted
        return _replaced(lines, at, new)
    same = [at for at, line in enumerate(lines) if line.rstrip(b"\r\n") == wanted]
    if same:
        return _replaced(lines, same[-1], wanted)
    if args.backrefs:
        # Without a match there is nothing that \1 could be.
        return lines, ""
    at = _place(lines, args)
    # A last line without its end would run into ours.
    head = [_ended(line) for line in lines[:at]]
    return [*head, _ended(wanted), *lines[at:]], "line added"


def without(lines: list[bytes], args: Args) -> tuple[list[bytes], str]:
    """The lines that stay, and how many do not."""
    wanted = _bytes(args.line)
    named = args.regexp is not None or args.search_string is not None
    kept = [line for line in lines if not (_match(line, args) if named else line.rstrip(b"\r\n") == wanted)]
    gone = len(lines) - len(kept)
    return kept, f"{gone} line(s) removed" if gone else ""


def _check(args: Args) -> None:
    for one, other in (("insertbefore", "insertafter"), ("regexp", "search_string"), ("backrefs", "search_string")):
        if getattr(args, one) not in (None, False) and getattr(args, other) is not None:
            raise Failure(f"lineinfile takes one of {one} and {other}", path=args.path)
    if os.path.isdir(args.path):
        raise Failure(f"{args.path} is a directory; name the file in it", path=args.path)
    if args.state == "absent" and (args.regexp, args.search_string, args.line) == (None, None, None):
        raise Failure("state absent needs one of line, search_string and regexp", path=args.path)
    if args.state == "present" and args.line is None:
        raise Failure("state present needs line", path=args.path)
    if args.state == "present" and args.backrefs and args.regexp is None:
        raise Failure("backrefs needs regexp", path=args.path)


def _match(line: bytes, args: Args) -> Match[bytes] | bool | None:
    if args.regexp is not None:
        return _search(args.regexp, line)
    return args.search_string is not None and _bytes(args.search_string) in line


def _search(expression: str, line: bytes) -> Match[bytes] | None:
    import re

    try:
        return re.search(_bytes(expression), line)
    except re.error as error:
        raise Failure(f"{expression!r} is no regular expression: {error}") from None


def _place(lines: list[bytes], args: Args) -> int:
    """Before which line a new one goes."""
    if "BOF" in (args.insertafter, args.insertbefore):
        return 0
    expression = args.insertafter or args.insertbefore
    if expression is None or expression == "EOF":
        return len(lines)
    found = [at for at, line in enumerate(lines) if _search(expression, line)]
    if not found:
        return len(lines)
    return found[0 if args.firstmatch else -1] + (1 if args.insertafter else 0)


def _replaced(lines: list[bytes], at: int, new: bytes) -> tuple[list[bytes], str]:
    if lines[at] == _ended(new):
        return lines, ""
    return [*lines[:at], _ended(new), *lines[at + 1 :]], "line replaced"


def _ended(line: bytes) -> bytes:
    return line if line.endswith((b"\n", b"\r")) else line + b"\n"


def _bytes(text: str | None) -> bytes:
    return (text or "").encode("utf-8", "surrogateescape")
