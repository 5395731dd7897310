"""Ansible's Jinja filters, as far as this field uses them; Jinja's own (map, join, replace ...) are there already."""

from __future__ import annotations

import glob
import itertools
import json
import ntpath
import os.path
from collections.abc import Callable
from functools import wraps
from typing import Any

import jinja2.filters
from jinja2 import Undefined, pass_environment

from sparkops.errors import InputError
from sparkops.playbook import yaml_text
from sparkops.playbook.containers import COLLECTION_FILTERS, once
from sparkops.playbook.quantities import QUANTITY_FILTERS
from sparkops.playbook.text_filters import TEXT_FILTERS
from sparkops.playbook.undefined import Broken, Missing


def _default(value: Any, default_value: Any = "", boolean: bool = False) -> Any:
    """`default(x)` replaces an undefined value, `default(x, true)` an empty one too."""
    if isinstance(value, Broken):
        value._fail_with_undefined_error()
    return default_value if isinstance(value, Missing) or (boolean and not value) else value


def _mandatory(value: Any, msg: str | None = None) -> Any:
    if isinstance(value, Undefined):
        if msg is not None:
            raise InputError(str(msg))
        value._fail_with_undefined_error()
    return value


def _bool(value: Any) -> bool:
    """yes, on, true and 1 are true; all else is false."""
    return str(value).lower() in ("yes", "on", "true", "1") if isinstance(value, (str, int)) else value == 1


def _ternary(value: Any, true_value: Any, false_value: Any, none_value: Any = None) -> Any:
    if value is None and none_value is not None:
        return none_value
    return true_value if value else false_value


def _from_json(value: str) -> Any:
    return json.loads(value)


@pass_environment
def _extract(environment: jinja2.Environment, key: Any, container: Any, morekeys: Any = None) -> Any:
    more = morekeys if isinstance(morekeys, list) else [] if morekeys is None else [morekeys]
    for step in (key, *more):
        container = environment.getitem(container, step)
    return container


@pass_environment
def _unique(
    environment: jinja2.Environment, items: Any, case_sensitive: bool | None = None, attribute: Any = None
) -> Any:
    try:
        return list(jinja2.filters.do_unique(environment, items, bool(case_sensitive), attribute))
    except TypeError:
        # Not hashable; Ansible compares such items one by one.
        if case_sensitive is False or attribute:
            raise
        return once(items)


def _list(items: Any) -> Any:
    """The items, or the first of them that is undefined."""
    found = list(items)
    return next((item for item in found if isinstance(item, Missing)), found)


def _path_join(parts: Any) -> str:
    return parts if isinstance(parts, str) else os.path.join(*_paths("path_join", parts))  # noqa: PTH118  (as text)


def _paths(name: str, parts: Any) -> list[str]:
    if not isinstance(parts, (list, tuple)):
        raise InputError(f"{name!r} takes a list of paths, not {parts!r}")
    return list(parts)


def _fileglob(pattern: str) -> list[str]:
    return [path for path in glob.glob(pattern) if os.path.isfile(path)]  # noqa: PTH113, PTH207  (names as given)


def _type_debug(value: Any) -> str:
    if isinstance(value, Missing):
        return "UndefinedMarker"
    kind: type = next((base for base in (bool, int, str, dict, list) if isinstance(value, base)), type(value))
    return kind.__name__


def _as_list(function: Callable[..., Any]) -> Callable[..., Any]:
    """A filter that gives a list where Jinja's gives a generator, which could be read only once."""

    @wraps(function)
    def listed(*args: Any, **kwargs: Any) -> list[Any]:
        return list(function(*args, **kwargs))

    return listed


def _cause(lines: list[str], recipe: dict[str, Any] | None = None) -> str:
    """What a served copy's journal says of why it did not start; not one of Ansible's filters."""
    from sparkops.serving.tail import cause_of

    return cause_of(map(str, lines), recipe)


def _kv_cache_tokens(config: dict[str, Any] | None, recipe: dict[str, Any]) -> int | None:
    """What a checkpoint's config.json and a recipe make of the KV cache; not one of Ansible's filters."""
    from sparkops.checkpoint.recipe import kv_cache_tokens

    return kv_cache_tokens(config, recipe)


def _environment_value(value: Any) -> str:
    """A value as systemd's EnvironmentFile has it; not one of Ansible's filters."""
    from sparkops.serving.command import environment_value

    return environment_value(str(value))


def _weights_fetcher(nodes: dict[str, Any]) -> str:
    """The node that is to fetch a checkpoint from a hub, "" for none; not one of Ansible's filters."""
    from sparkops.checkpoint.spread import fetcher

    return fetcher(nodes) or ""


def _weights_copies(nodes: dict[str, Any]) -> dict[str, Any]:
    """Which nodes copy a checkpoint from which in the next round; not one of Ansible's filters."""
    from sparkops.checkpoint.spread import copies

    return copies(nodes)


def _unit_word(value: Any) -> str:
    """A path as one word of a systemd unit's line; not one of Ansible's filters."""
    from sparkops.serving.command import unit_word

    return unit_word(str(value))


def _unit_path(value: Any) -> str:
    """A path that is all of a systemd unit's line; not one of Ansible's filters."""
    from sparkops.serving.command import unit_path

    return unit_path(str(value))


# What Ansible does not have.
OURS: dict[str, Callable[..., Any]] = {
    "environment_value": _environment_value,
    "unit_path": _unit_path,
    "unit_word": _unit_word,
    "kv_cache_tokens": _kv_cache_tokens,
    "serving_failure": _cause,
    "weights_copies": _weights_copies,
    "weights_fetcher": _weights_fetcher,
}
FILTERS: dict[str, Callable[..., Any]] = {
    **OURS,
    **{
        name: _as_list(jinja2.filters.FILTERS[name])
        for name in ("map", "select", "reject", "selectattr", "rejectattr", "batch", "slice")
    },
    **COLLECTION_FILTERS, **TEXT_FILTERS, **QUANTITY_FILTERS,
    "default": _default, "d": _default, "mandatory": _mandatory, "bool": _bool, "ternary": _ternary,
    "to_json": yaml_text.to_json, "to_nice_json": yaml_text.to_nice_json, "from_json": _from_json,
    "to_yaml": yaml_text.to_yaml, "to_nice_yaml": yaml_text.to_nice_yaml,
    "from_yaml": yaml_text.from_yaml, "from_yaml_all": yaml_text.from_yaml_all,
    "basename": os.path.basename, "dirname": os.path.dirname, "expanduser": os.path.expanduser,
    "expandvars": os.path.expandvars, "realpath": os.path.realpath, "normpath": os.path.normpath,
    "relpath": os.path.relpath, "path_join": _path_join,
    "commonpath": lambda parts: os.path.commonpath(_paths("commonpath", parts)),
    "splitext": lambda value: list(os.path.splitext(value)), "fileglob": _fileglob,  # noqa: PTH122
    "win_basename": ntpath.basename, "win_dirname": ntpath.dirname,
    "win_splitdrive": lambda value: list(ntpath.splitdrive(value)),
    "extract": _extract, "type_debug": _type_debug, "unique": _unique, "list": _list,
    "product": _as_list(itertools.product), "permutations": _as_list(itertools.permutations),
    "combinations": _as_list(itertools.combinations),
    "zip": _as_list(zip), "zip_longest": _as_list(itertools.zip_longest),
}  # fmt: skip
