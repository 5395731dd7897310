"""Ansible's Jinja tests: `is changed`, `is version(...)`, `is match(...)`."""

from __future__ import annotations

import math
import os.path
import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlparse

from jinja2 import Undefined

from sparkops.errors import InputError
from sparkops.playbook.text_filters import flags
from sparkops.playbook.undefined import Broken
from sparkops.playbook.versions import version


def _flag(name: str) -> Callable[[Any], bool]:
    def test(result: Any) -> bool:
        if not isinstance(result, Mapping):
            raise InputError(f"'is {name}' asks a task's result, not {result!r}")
        return bool(result.get(name))

    return test


def _not(test: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda result: not test(result)


def _changed(result: Any) -> bool:
    """A loop's result changed when one of its items did."""
    items = result.get("results") if isinstance(result, Mapping) and "changed" not in result else None
    if isinstance(items, list):
        return any(isinstance(item, Mapping) and bool(item.get("changed")) for item in items)
    return _flag("changed")(result)


def _regex(method: str) -> Callable[..., bool]:
    def test(value: Any, pattern: str = "", ignorecase: bool = False, multiline: bool = False) -> bool:
        return getattr(re.compile(pattern, flags(ignorecase, multiline)), method)(str(value)) is not None

    return test


def _regex_any(
    value: Any, pattern: str = "", ignorecase: bool = False, multiline: bool = False, match_type: str = "search"
) -> bool:
    return _regex(match_type)(value, pattern, ignorecase, multiline)


def _boolean(value: Any, convert_bool: bool = False) -> bool:
    if convert_bool and isinstance(value, str):
        lowered = value.lower()
        if lowered in ("no", "off", "false", "0", "n", "f"):
            return False
    return bool(value)


def _defined(value: Any) -> bool:
    if isinstance(value, Broken):
        value._fail_with_undefined_error()
    return not isinstance(value, Undefined)


def _timed_out(result: Any) -> bool:
    _flag("timedout")(result)
    timeout = result.get("timedout")
    return bool(timeout and timeout["period"])


def _uri(value: Any, schemes: Any = None) -> bool:
    if not isinstance(value, str):
        return False
    try:
        scheme = urlparse(value).scheme
    except ValueError:
        return False
    return not schemes or scheme in schemes


def _url(value: Any, schemes: Any = None) -> bool:
    return _uri(value, schemes) and bool(urlparse(value).netloc or urlparse(value).scheme == "file")


def _not_a_number(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _named(test: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """A test of a path by its name; a number would be an open file's."""
    return lambda path: not isinstance(path, int) and test(path)


def _both(name: str, test: Callable[..., bool]) -> dict[str, Callable[..., bool]]:
    """A test of a path on the controller under its two names."""
    return {name: test, f"is_{name}": test}


TESTS: dict[str, Callable[..., Any]] = {
    "failed": _flag("failed"), "failure": _flag("failed"),
    "succeeded": _not(_flag("failed")), "success": _not(_flag("failed")), "successful": _not(_flag("failed")),
    "unreachable": _flag("unreachable"), "reachable": _not(_flag("unreachable")),
    "changed": _changed, "change": _changed, "skipped": _flag("skipped"), "skip": _flag("skipped"),
    "match": _regex("match"), "search": _regex("search"), "regex": _regex_any,
    "version": version, "version_compare": version,
    "any": any, "all": all,
    "truthy": _boolean, "falsy": lambda value, convert_bool=False: not _boolean(value, convert_bool),
    "subset": lambda a, b: set(a) <= set(b), "issubset": lambda a, b: set(a) <= set(b),
    "superset": lambda a, b: set(a) >= set(b), "issuperset": lambda a, b: set(a) >= set(b),
    "contains": lambda container, item: item in container,
    "defined": _defined, "undefined": lambda value: not _defined(value),
    "timedout": _timed_out,
    "nan": _not_a_number, "isnan": _not_a_number,
    "uri": _uri, "url": _url, "urn": lambda value: _uri(value, ("urn",)),
    **_both("file", _named(os.path.isfile)), **_both("link", os.path.islink), **_both("abs", os.path.isabs),
    **_both("mount", os.path.ismount), **_both("same_file", os.path.samefile),
    "directory": _named(os.path.isdir), "is_dir": _named(os.path.isdir),
    "exists": _named(os.path.exists), "link_exists": os.path.lexists,
}  # fmt: skip
