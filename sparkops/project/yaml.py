"""YAML 1.1 as Ansible reads it, from files people wrote: safe, and every value knows its position.

`yes` and `no` are bools, 0644 is 420 and 22:22 is 1342; `original` and `Integer.text` keep the text, for errors.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from sparkops.errors import InputError, Position
from sparkops.project.construct import construct
from sparkops.project.excerpt import caret, excerpt
from sparkops.project.values import (
    Integer,
    Mapping,
    Sequence,
    Text,
    Unsafe,
    key_position,
    original,
    position,
)

__all__ = [
    "Integer",
    "Mapping",
    "Sequence",
    "Text",
    "Unsafe",
    "excerpt",
    "key_position",
    "load",
    "loads",
    "original",
    "position",
]

# JSON writes a character beyond U+FFFF as two escapes, which YAML does not know.
_SURROGATES = re.compile(r"(?<!\\)((?:\\\\)*)\\u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})", re.IGNORECASE)


def load(path: Path) -> Any:
    """The one document of a YAML file; None when it is empty. Raises InputError."""
    return loads(read(path), str(path))


def read(path: Path) -> str:
    """A text file's content, in UTF-8, without a byte order mark. Raises InputError."""
    try:
        if path.is_char_device() or path.is_block_device():
            raise InputError("this is a device, not a file", where=str(path))
        content = path.read_bytes()
    except FileNotFoundError:
        raise InputError("there is no such file", where=str(path)) from None
    except IsADirectoryError:
        raise InputError("this is a directory, not a file", where=str(path)) from None
    except OSError as error:
        raise InputError(f"it cannot be read: {error.strerror}", where=str(path)) from None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start]
        place = Position(str(path), before.count(b"\n") + 1, error.start - (before.rfind(b"\n") + 1) + 1)
        raise InputError(
            f"the file is not UTF-8 (byte 0x{content[error.start]:02x})",
            where=place,
            hint=f"save it as UTF-8, for example: iconv -t UTF-8 {path}",
        ) from None


def loads(text: str, name: str) -> Any:
    """The one document in `text`; `name` is the file that positions give. Raises InputError."""
    if text.startswith("$ANSIBLE_VAULT;"):
        raise _vault(Position(name, 1, 1))
    if name.endswith(".json"):
        text = _SURROGATES.sub(_character, text)
    loader = None
    try:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)
        node = loader.get_single_node()
        return None if node is None else construct(loader, node, name)
    except yaml.MarkedYAMLError as error:
        raise _syntax_error(error, text, name) from None
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        place = Position(name, before.count("\n") + 1, error.position - (before.rfind("\n") + 1) + 1)
        raise InputError(f"YAML does not allow the character {chr(int(error.character))!a}", where=place) from None
    except RecursionError:
        raise InputError("the document is nested too deeply", where=Position(name, 1, 1)) from None
    except UnicodeEncodeError as error:
        raise InputError("this text is not UTF-8", where=name) from error
    finally:
        if loader is not None:
            loader.dispose()


def _character(found: re.Match[str]) -> str:
    return found[1] + bytes.fromhex(found[2] + found[3]).decode("utf-16-be")


def _vault(place: Position) -> InputError:
    return InputError(
        "encrypted with ansible-vault, which sparkops does not read",
        where=place,
        hint="decrypt it, or keep the secret in the environment: {{ lookup('env', 'NAME') }}",
    )


def _syntax_error(error: yaml.MarkedYAMLError, text: str, name: str) -> InputError:
    """PyYAML's error in our words: what, where, the line with a caret, and the usual cause."""
    mark = error.problem_mark or error.context_mark
    if error.context_mark and "end of stream" in f"{error.problem}":
        mark = error.context_mark  # where the quote that never closes was opened
    line, column = (mark.line, mark.column) if mark else (0, 0)
    lines = text.split("\n")
    source = lines[line] if line < len(lines) else ""
    problem, hint = error.problem or error.context or "not YAML", None
    if "expected a single document" in f"{error.context}":
        problem, hint = "a second document starts here; a file holds one", "put it in a file of its own"
    else:
        problem, hint = f"not valid YAML: {problem}", _cause(source, problem)
    place = Position(name, line + 1, column + 1)
    return InputError(f"{problem}\n{caret(source, column + 1)}", where=place, hint=hint)


def _cause(source: str, problem: str) -> str | None:
    """What people usually got wrong when libyaml reports `problem` on the line `source`."""
    indent = source[: len(source) - len(source.lstrip())]
    if "\t" in indent or ("cannot start any token" in problem and "\t" in source):
        return "indent with spaces; this line has a tab"
    if "cannot start any token" in problem:
        return "quote a value that starts with %, @ or `"
    if "mapping values are not allowed" in problem:
        return "quote a value that holds ': ', and check the indentation"
    if "}}" in source or "{{" in source:
        return 'quote a value that starts with a template: "{{ name }}"'
    if "end of stream" in problem:
        return "close the quote that opens here"
    if "did not find expected" in problem or "could not find expected" in problem:
        return "check the indentation and the quotes of this line and the one above"
    return None
