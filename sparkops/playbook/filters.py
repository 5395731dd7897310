"""Ansible's Jinja filters, as far as this field uses them; Jinja's own (map, join, replace ...) are there already."""

from __future__ import annotations

import base64
import glob
import hashlib
import itertools
import json
import math
import os.path
import random
import re
import shlex
import uuid
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

import jinja2.filters
from jinja2 import Undefined, pass_environment

from sparkops.errors import InputError
from sparkops.playbook import yaml_text
from sparkops.playbook.containers import COLLECTION_FILTERS


def _default(value: Any, default_value: Any = "", boolean: bool = False) -> Any:
    """`default(x)` replaces an undefined value, `default(x, true)` an empty one too."""
    from sparkops.playbook.jinja import Broken

    if isinstance(value, Broken):
        value._fail_with_undefined_error()
    return default_value if isinstance(value, Undefined) or (boolean and not value) else value


def _mandatory(value: Any, msg: str | None = None) -> Any:
    if isinstance(value, Undefined):
        if msg is not None:
            raise InputError(msg)
        value._fail_with_undefined_error()
    return value


def _bool(value: Any) -> bool:
    """yes, on, true and 1 are true; no, off, false and 0 are not."""
    text = str(value).lower()
    if isinstance(value, (str, int, bool)):
        if text in ("yes", "on", "true", "1"):
            return True
        if text in ("no", "off", "false", "0"):
            return False
    raise InputError(f"'bool' takes true, false, yes, no, on, off, 1 or 0, not {value!r}")


def _ternary(value: Any, true_value: Any, false_value: Any, none_value: Any = None) -> Any:
    if value is None and none_value is not None:
        return none_value
    return true_value if value else false_value


def _flags(ignorecase: bool, multiline: bool) -> int:
    return (re.IGNORECASE if ignorecase else 0) | (re.MULTILINE if multiline else 0)


def _regex_replace(
    value: Any,
    pattern: str,
    replacement: str = "",
    ignorecase: bool = False,
    multiline: bool = False,
    count: int = 0,
    mandatory_count: int = 0,
) -> str:
    text, found = re.compile(pattern, _flags(ignorecase, multiline)).subn(replacement, str(value), count=count)
    if mandatory_count and found != mandatory_count:
        raise InputError(f"{pattern!r} should match {mandatory_count} times and matches {found} times")
    return text


def _regex_search(value: Any, pattern: str, *groups: str, ignorecase: bool = False, multiline: bool = False) -> Any:
    r"""The match, or the groups that are asked for ('\\1', '\\g<name>') as a list; None when there is none."""
    found = re.search(pattern, str(value), _flags(ignorecase, multiline))
    if found is None:
        return None
    wanted: list[Any] = []
    for group in groups:
        name = re.fullmatch(r"\\g<(\w+)>|\\(\d+)", group)
        if not name:
            raise InputError(rf"'regex_search' takes groups as '\1' or '\g<name>', not {group!r}")
        wanted.append(name[1] or int(name[2]))
    return [found.group(name) for name in wanted] if groups else found.group()


def _regex_findall(value: Any, pattern: str, multiline: bool = False, ignorecase: bool = False) -> list[Any]:
    return re.findall(pattern, str(value), _flags(ignorecase, multiline))


def _b64encode(value: str, encoding: str = "utf-8", urlsafe: bool = False) -> str:
    encode = base64.urlsafe_b64encode if urlsafe else base64.b64encode
    return encode(value.encode(encoding)).decode("ascii")


def _b64decode(value: str, encoding: str = "utf-8", urlsafe: bool = False) -> str:
    decode = base64.urlsafe_b64decode if urlsafe else base64.b64decode
    return decode(value.encode("ascii")).decode(encoding)


def _hash(value: str, hashtype: str = "sha1") -> str:
    return hashlib.new(hashtype, value.encode()).hexdigest()


def _from_json(value: str) -> Any:
    return json.loads(value)


def _to_uuid(value: str, namespace: str = "361e6d51-faec-444a-9079-341386da8e2e") -> str:
    """The default namespace is Ansible's, so that the same text gives the same id."""
    return str(uuid.uuid5(uuid.UUID(namespace), value))


@pass_environment
def _extract(environment: jinja2.Environment, key: Any, container: Any, morekeys: Any = None) -> Any:
    more = morekeys if isinstance(morekeys, list) else [] if morekeys is None else [morekeys]
    for step in (key, *more):
        container = environment.getitem(container, step)
    return container


def _random(end: Any, start: int = 0, step: int = 1, seed: Any = None) -> Any:
    source: random.Random = random.SystemRandom() if seed is None else random.Random(seed)
    return source.randrange(start, end, step) if isinstance(end, int) else source.choice(list(end))


def _shuffle(items: Iterable[Any], seed: Any = None) -> list[Any]:
    shuffled = list(items)
    (random.SystemRandom() if seed is None else random.Random(seed)).shuffle(shuffled)
    return shuffled


def _comment(text: str, decoration: str = "# ") -> str:
    bare = decoration.rstrip()
    lines = [f"{decoration}{line}".rstrip() if not line else f"{decoration}{line}" for line in text.split("\n")]
    return "\n".join([bare, *lines, bare])


def _path_join(parts: Any) -> str:
    return parts if isinstance(parts, str) else os.path.join(*parts)  # noqa: PTH118  (as text)


def _fileglob(pattern: str) -> list[str]:
    return [path for path in glob.glob(pattern) if os.path.isfile(path)]  # noqa: PTH113, PTH207  (names as given)


def _type_debug(value: Any) -> str:
    kind: type = next((base for base in (bool, int, str, dict, list) if isinstance(value, base)), type(value))
    return kind.__name__


def _as_list(function: Callable[..., Any]) -> Callable[..., Any]:
    """A filter that gives a list where Jinja's gives a generator, which could be read only once."""

    @wraps(function)
    def listed(*args: Any, **kwargs: Any) -> list[Any]:
        return list(function(*args, **kwargs))

    return listed


def _text_filter(function: Callable[[str], Any]) -> Callable[[Any], Any]:
    return lambda value: function(str(value))


FILTERS: dict[str, Callable[..., Any]] = {
    **{
        name: _as_list(jinja2.filters.FILTERS[name])
        for name in ("map", "select", "reject", "selectattr", "rejectattr", "unique", "batch", "slice")
    },
    **COLLECTION_FILTERS,
    "default": _default, "d": _default, "mandatory": _mandatory, "bool": _bool, "ternary": _ternary,
    "to_json": yaml_text.to_json, "to_nice_json": yaml_text.to_nice_json, "from_json": _from_json,
    "to_yaml": yaml_text.to_yaml, "to_nice_yaml": yaml_text.to_nice_yaml,
    "from_yaml": yaml_text.from_yaml, "from_yaml_all": yaml_text.from_yaml_all,
    "regex_replace": _regex_replace, "regex_search": _regex_search, "regex_findall": _regex_findall,
    "regex_escape": _text_filter(re.escape),
    "b64encode": _b64encode, "b64decode": _b64decode,
    "hash": _hash, "checksum": _hash, "sha1": _hash, "md5": lambda value: _hash(value, "md5"), "to_uuid": _to_uuid,
    "quote": lambda value: shlex.quote("" if value is None else str(value)),
    "basename": _text_filter(os.path.basename), "dirname": _text_filter(os.path.dirname),
    "expanduser": _text_filter(os.path.expanduser), "expandvars": _text_filter(os.path.expandvars),
    "realpath": _text_filter(os.path.realpath), "normpath": _text_filter(os.path.normpath),
    "relpath": os.path.relpath, "commonpath": os.path.commonpath, "path_join": _path_join,
    "splitext": lambda value: list(os.path.splitext(str(value))), "fileglob": _fileglob,  # noqa: PTH122
    "split": lambda value, sep=None, maxsplit=-1: str(value).split(sep, maxsplit),
    "comment": _comment, "extract": _extract, "type_debug": _type_debug,
    "random": _random, "shuffle": _shuffle,
    "log": lambda value, base=math.e: math.log10(value) if base == 10 else math.log(value, base),
    "pow": math.pow, "root": lambda value, base=2: math.sqrt(value) if base == 2 else value ** (1 / base),
    "product": _as_list(itertools.product), "permutations": _as_list(itertools.permutations),
    "combinations": _as_list(itertools.combinations),
    "zip": _as_list(zip), "zip_longest": _as_list(itertools.zip_longest),
}  # fmt: skip
