"""A module's manual as text for a terminal."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping
from typing import Any

from sparkops.playbook.manual import Argument, Manual

WIDTH = 100


def listing(synopses: Mapping[str, str]) -> str:
    """One line a module."""
    widest = max(map(len, synopses))
    return "\n".join(f"{name:{widest}}  {line}" for name, line in synopses.items())


def page(manual: Manual) -> str:
    """The whole manual."""
    parts = [f"{manual.name}: {manual.synopsis}", *(_filled(text, "") for text in manual.description)]
    if manual.arguments:
        parts.append("\n".join(["Arguments (= is required):", *(_argument(one) for one in manual.arguments)]))
    parts += [_filled(text, "") for text in manual.notes]
    if manual.free_form:
        parts.append(f"Free text sets {manual.free_form}:  {manual.name}: ...")
    if manual.example:
        parts.append("Example:\n" + textwrap.indent(manual.example, "  "))
    # The keys in the source may not be all: what the module says of its result goes before.
    result = manual.result or ", ".join(manual.result_keys)
    if result:
        parts.append(f"Result:\n{_filled(result, '  ')}")
    return "\n\n".join(parts)


def _argument(one: Argument) -> str:
    head = f"{'=' if one.required else '-'} {one.name} ({one.type})"
    if one.choices:
        head = f"{'=' if one.required else '-'} {one.name}: {', '.join(map(str, one.choices))}"
    if not one.required and one.default is not None:
        head += f"  [default: {_value(one.default)}]"
    if one.aliases:
        head += f"  [also: {', '.join(one.aliases)}]"
    return head if not one.explanation else f"{head}\n{_filled(one.explanation, '      ')}"


def _value(value: Any) -> str:
    return str(value) if isinstance(value, str) and value else json.dumps(value)


def _filled(text: str, indent: str) -> str:
    return textwrap.fill(text, WIDTH, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)
