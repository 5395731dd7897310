"""A module's manual as text for a terminal."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping
from typing import Any

from sparkops.playbook.manual import Argument, Manual
from sparkops.playbook.wordbook import Word, places

WIDTH = 100


def listing(synopses: Mapping[str, str]) -> str:
    """One line a module."""
    widest = max(map(len, synopses))
    return "\n".join(f"{name:{widest}}  {line}" for name, line in synopses.items())


def page(manual: Manual) -> str:
    """The whole manual."""
    parts = [f"{manual.name}: {manual.synopsis}", *(_filled(text, "") for text in manual.description)]
    if not manual.on_node:
        parts.append("Done by the controller: nothing is sent to the node.")
    if manual.arguments:
        parts.append("\n".join(["Arguments (= is required):", *(_argument(one) for one in manual.arguments)]))
    parts += [_filled(text, "") for text in manual.notes]
    if manual.open_ended:
        parts.append("Any other name is taken too.")
    if manual.free_form:
        parts.append(f"Free text sets {manual.free_form}:  {manual.name}: ...")
    if manual.example:
        parts.append("Example:\n" + textwrap.indent(manual.example, "  "))
    # The keys in the source may not be all: what the module says of its result goes before.
    result = manual.result or ", ".join(manual.result_keys)
    if result:
        parts.append(f"Result:\n{_filled(result, '  ')}")
    return "\n\n".join(parts)


def word_page(name: str, word: Word) -> str:
    """The manual of a word of plays, blocks or tasks."""
    parts = [f"{name}: {word.meaning}", f"Takes: {word.kind.text}", f"Word of: {', '.join(places(name))}"]
    return "\n\n".join(_filled(part, "") for part in parts)


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
