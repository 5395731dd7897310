"""Filters of text: regular expressions, base64, hashes, quoting, comments, URLs."""

from __future__ import annotations

import base64
import hashlib
import re
import shlex
import uuid
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote_plus, urlsplit

from sparkops.errors import InputError
from sparkops.playbook.passwords import password_hash
from sparkops.project.near import did_you_mean

_COMMENTS = {
    "plain": {"decoration": "# "},
    "erlang": {"decoration": "% "},
    "c": {"decoration": "// "},
    "cblock": {"beginning": "/*", "decoration": " * ", "end": " */"},
    "xml": {"beginning": "<!--", "decoration": " - ", "end": "-->"},
}
_URL_PARTS = ("fragment", "hostname", "netloc", "password", "path", "port", "query", "scheme", "username")


def flags(ignorecase: bool, multiline: bool) -> int:
    """The flags of a regular expression."""
    return (re.IGNORECASE if ignorecase else 0) | (re.MULTILINE if multiline else 0)


def _regex_replace(
    value: Any = "",
    pattern: str = "",
    replacement: str = "",
    ignorecase: bool = False,
    multiline: bool = False,
    count: int = 0,
    mandatory_count: int = 0,
) -> str:
    text, found = re.compile(pattern, flags(ignorecase, multiline)).subn(replacement, str(value), count=count)
    if mandatory_count and found != mandatory_count:
        raise InputError(f"{pattern!r} should match {mandatory_count} times and matches {found} times")
    return text


def _regex_search(value: Any, pattern: str, *groups: str, ignorecase: bool = False, multiline: bool = False) -> Any:
    r"""The match, or the groups that are asked for ('\\1', '\\g<name>') as a list; None when there is none."""
    wanted: list[Any] = []
    for group in groups:
        name = re.fullmatch(r"\\g<(\w+)>|\\(\d+)", group)
        if not name:
            raise InputError(rf"'regex_search' takes groups as '\1' or '\g<name>', not {group!r}")
        wanted.append(name[1] or int(name[2]))
    found = re.search(pattern, str(value), flags(ignorecase, multiline))
    if found is None:
        return None
    return [found.group(name) for name in wanted] if groups else found.group()


def _regex_findall(value: Any, pattern: str, multiline: bool = False, ignorecase: bool = False) -> list[Any]:
    return re.findall(pattern, str(value), flags(ignorecase, multiline))


def _regex_escape(value: Any, re_type: str = "python") -> str:
    if re_type == "python":
        return re.escape(str(value))
    if re_type == "posix_basic":
        return re.sub(r"([].[^$*\\])", r"\\\1", str(value))
    raise InputError(f"'regex_escape' has no re_type {re_type!r}", hint="python or posix_basic")


def _b64encode(value: Any, encoding: str = "utf-8", urlsafe: bool = False) -> str:
    encode = base64.urlsafe_b64encode if urlsafe else base64.b64encode
    return encode(str(value).encode(encoding)).decode("ascii")


def _b64decode(value: Any, encoding: str = "utf-8", urlsafe: bool = False) -> str:
    decode = base64.urlsafe_b64decode if urlsafe else base64.b64decode
    content = decode(str(value).encode("ascii"))
    try:
        return content.decode(encoding)
    except UnicodeDecodeError:
        raise InputError(f"what 'b64decode' reads is no text in {encoding}") from None


def _hash(value: Any, hashtype: str = "sha1") -> str:
    return hashlib.new(hashtype, str(value).encode()).hexdigest()


def _to_uuid(value: Any, namespace: str = "361e6d51-faec-444a-9079-341386da8e2e") -> str:
    """The default namespace is Ansible's, so that the same text gives the same id."""
    return str(uuid.uuid5(uuid.UUID(namespace), str(value)))


def _comment(text: str, style: str = "plain", *, newline: str = "\n", **given: Any) -> str:
    """The text as a comment: each line decorated, an empty one with the bare decoration.

    given: decoration, beginning, end, prefix, prefix_count, postfix, postfix_count.
    """
    if style not in _COMMENTS:
        hint = did_you_mean(style, _COMMENTS, f"one of {', '.join(_COMMENTS)}")
        raise InputError(f"'comment' has no style {style!r}", hint=hint)
    words: dict[str, Any] = {
        "beginning": "",
        "end": "",
        "prefix_count": 1,
        "postfix_count": 1,
        **_COMMENTS[style],
        **given,
    }
    decoration = str(words["decoration"])
    bare = decoration.rstrip()
    prefix, postfix = str(words.get("prefix", bare)), str(words.get("postfix", bare))
    *lines, last = [decoration + line for line in text.split(newline)]
    trimmed = [line.removesuffix(decoration) + bare if line.endswith(decoration) else line for line in lines]
    return "".join(
        (
            f"{words['beginning']}{newline}" if words["beginning"] else "",
            (newline if prefix == newline else f"{prefix}{newline}") * int(words["prefix_count"]) if prefix else "",
            newline.join([*trimmed, last]),
            f"{newline}{postfix}" * int(words["postfix_count"]),
            f"{newline}{words['end']}" if words["end"] else "",
        )
    )


def _urlsplit(value: str, query: str = "") -> Any:
    if not isinstance(value, str):
        raise InputError(f"'urlsplit' takes a text, not {value!r}")
    parts = urlsplit(value)
    if query and query not in _URL_PARTS:
        raise InputError(f"'urlsplit' has no part {query!r}", hint=f"one of {', '.join(_URL_PARTS)}")
    return getattr(parts, query) if query else {name: getattr(parts, name) for name in _URL_PARTS}


TEXT_FILTERS: dict[str, Callable[..., Any]] = {
    "regex_replace": _regex_replace, "regex_search": _regex_search, "regex_findall": _regex_findall,
    "regex_escape": _regex_escape, "b64encode": _b64encode, "b64decode": _b64decode,
    "hash": _hash, "checksum": _hash, "sha1": _hash, "md5": lambda value: _hash(value, "md5"), "to_uuid": _to_uuid,
    "password_hash": password_hash,
    "quote": lambda value: shlex.quote("" if value is None else str(value)),
    "split": lambda value, sep=None, maxsplit=-1: str.split(value, sep, maxsplit),
    "comment": _comment, "urlsplit": _urlsplit, "urldecode": unquote_plus,
}  # fmt: skip
