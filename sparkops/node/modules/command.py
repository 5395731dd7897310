"""Run a program, without a shell.

Example:
    - name: Build the index once
      command:
        argv: [/usr/bin/mkindex, /srv/models]
        creates: /srv/models/index
"""

from __future__ import annotations

import os

from sparkops.node.api import Arguments, Failure, Node, Outcome, Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar


class Args(Arguments):
    """One of cmd, argv and free text (`command: uptime -p`); cmd is split as a shell would, and no more.

    cmd: the command as text. argv: the command as a list of words, taken as they are. chdir: the folder to run it in.
    creates / removes: a path or glob; skip when it exists / does not. stdin: text for its standard input.
    stdin_add_newline: end that text with a newline. strip_empty_ends: no newlines at the end of stdout and stderr in
    the result. expand_argument_vars: $NAME and ~ in words.
    """

    cmd: str | None = None
    argv: list[str] | None = None
    chdir: Path | None = None
    creates: Path | None = None
    removes: Path | None = None
    stdin: str | None = None
    stdin_add_newline: bool = True
    strip_empty_ends: bool = True
    expand_argument_vars: bool = True
    free_form: ClassVar[str] = "cmd"


def apply(args: Args, node: Node) -> Outcome:
    """changed with cmd, rc, stdout, stderr, their lines, start, end and delta; another rc than 0 is a Failure."""
    words = command(args, node)
    said: dict[str, Any] = {"cmd": words, "rc": 0, "stdout": "", "stderr": "", "stdout_lines": [], "stderr_lines": []}
    reason = not_needed(args)
    if reason:
        return Outcome.ok(reason, **said)
    if node.check:
        return Outcome.unknown("Command would have run if not in check mode", **said)
    if args.chdir is not None and not os.path.isdir(args.chdir):
        raise Failure(f"chdir: {args.chdir} is not a folder on this node", **said)
    import datetime

    stdin = args.stdin or ""
    if args.stdin is not None and args.stdin_add_newline:
        stdin += "\n"
    start = datetime.datetime.now()
    ended = node.run(words, stdin=stdin, cwd=args.chdir)
    end = datetime.datetime.now()
    said.update(rc=ended.rc, **output("stdout", ended.out, args), **output("stderr", ended.err, args))
    said.update(start=str(start), end=str(end), delta=str(end - start))
    if ended.rc:
        raise Failure(failure_message(ended.rc, said["stderr_lines"], words[0]), **said)
    return Outcome.changed(**said)


def command(args: Args, node: Node) -> list[str]:
    """The words to run. Raises Failure when there are none, or two sources of them."""
    if (args.cmd is None) == (args.argv is None):
        raise Failure("command takes one of cmd, argv and free text")
    words = list(args.argv) if args.argv is not None else split(args.cmd or "")
    if not words:
        raise Failure("no command given")
    return [expanded(word, node) for word in words] if args.expand_argument_vars else words


def split(text: str) -> list[str]:
    """The words as a shell would split them. Raises Failure."""
    if text.isascii() and text.isprintable() and not any(mark in text for mark in "\"'\\"):
        # As shlex does it, which takes a millisecond to import.
        return text.split()
    import shlex

    try:
        return shlex.split(text)
    except ValueError as error:
        raise Failure(f"cannot split {text!r} into words: {error}; argv takes them one by one") from error


def expanded(word: str, node: Node) -> str:
    """$NAME, ${NAME} of the task's environment, then ~; a name that is not set stays as it is."""
    if "$" in word:
        import re

        known = {**os.environ, **node.env}

        def value(found: re.Match[str]) -> str:
            return known.get(found.group(1) or found.group(2), found.group(0))

        word = re.sub(r"\$(?:(\w+)|\{(\w+)\})", value, word, flags=re.ASCII)
    if word == "~" or word.startswith("~/"):
        return node.home + word[1:]
    return os.path.expanduser(word)


def not_needed(args: Args) -> str:
    """Why `creates` or `removes` says that there is nothing to do, else ""."""
    if args.creates and exists(args.creates, args.chdir):
        return f"skipped, since {args.creates} exists"
    if args.removes and not exists(args.removes, args.chdir):
        return f"skipped, since {args.removes} does not exist"
    return ""


def exists(pattern: str, folder: str | None) -> bool:
    """Whether a path or a glob, seen from `folder`, names anything."""
    place = os.path.join(folder or "", pattern)
    if os.path.lexists(place) or not any(mark in place for mark in "*?["):
        return os.path.lexists(place)
    from glob import glob

    return bool(glob(place))


def output(name: str, text: str, args: Args) -> dict[str, Any]:
    """A stream's text and lines, without the line ends at its end."""
    if args.strip_empty_ends:
        text = text.rstrip("\r\n")
    return {name: text, name + "_lines": text.splitlines()}


def failure_message(rc: int, lines: list[str], program: str) -> str:
    """Ansible's words, with the program's last ones."""
    if rc == 127 and not lines:
        return f"non-zero return code: {program} was not found"
    last = f": {lines[-1]}" if lines else ""
    return f"non-zero return code {rc}{last}" if rc > 0 else f"{program} was ended by signal {-rc}{last}"
