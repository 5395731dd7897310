"""Jinja's errors in our words: what, and the file and line of the template that is to blame."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import jinja2
import jinja2.filters
import jinja2.tests
from jinja2.utils import missing

from sparkops.errors import InputError, Position, UndefinedName
from sparkops.playbook.refused import instead
from sparkops.project.near import did_you_mean
from sparkops.project.values import Text


def blame(error: BaseException, source: str | Path, names: Iterable[str] = ()) -> InputError:
    """The error of a template: a `Text` with its position, or a file. `names`: the variables there are."""
    if isinstance(error, jinja2.UndefinedError) and hasattr(error, "obj"):
        return _undefined(error, error.obj, place_of(error, source), names, _is_exact(error, source))
    place = place_of(error, source)
    if isinstance(error, jinja2.UndefinedError):
        return UndefinedName(str(error.message), where=place)
    if isinstance(error, jinja2.TemplateNotFound):
        return InputError(f"there is no template {error.name!r}", where=place)
    if isinstance(error, jinja2.TemplateSyntaxError):
        return InputError(f"the template is not valid: {error.message}", where=place, hint=_near_plugin(error.message))
    if isinstance(error, RecursionError):
        return InputError("the template is nested too deeply", where=place)
    if isinstance(error, UnicodeDecodeError) and isinstance(source, Path):
        return InputError("the file is not UTF-8", where=place, hint="save it as UTF-8")
    kind = "" if isinstance(error, jinja2.TemplateError) else f"{type(error).__name__}: "
    return InputError(f"the template failed: {kind}{error}", where=place, hint=_near_plugin(str(error)))


def _near_plugin(message: str | None) -> str | None:
    """A near name, or what to write instead, for "No filter named 'defalt'."."""
    from sparkops.playbook.filters import FILTERS
    from sparkops.playbook.tests import TESTS

    found = re.match(r"No (filter|test) named '(.*)'", message or "")
    if not found:
        return None
    known = (*FILTERS, *jinja2.filters.FILTERS) if found[1] == "filter" else (*TESTS, *jinja2.tests.TESTS)
    return instead(found[2]) or did_you_mean(found[2], known)


def _undefined(error: Any, obj: Any, place: Position | None, names: Iterable[str], exact: bool) -> InputError:
    name = error.name
    if name is None or (obj is missing and error.message != f"{name!r} is undefined"):
        return UndefinedName(str(error.message), where=place)
    place = _sharpened(place, str(name), exact)
    if obj is missing:
        known = [known for known in names if isinstance(known, str)]
        return UndefinedName(f"{name!r} is undefined", where=place, hint=did_you_mean(str(name), known))
    if isinstance(obj, Mapping):
        keys = [str(key) for key in obj]
        some = f"its keys: {', '.join(keys[:12])}" if keys else "it is empty"
        return UndefinedName(f"the mapping has no key {name!r}", where=place, hint=did_you_mean(str(name), keys, some))
    return UndefinedName(str(error.message), where=place)


def place_of(error: BaseException, source: str | Path) -> Position | None:
    """Where the template is that an error came from."""
    line, file = _line(error)
    if file and file != "<template>":
        return Position(file, line or 1, 1)
    if isinstance(source, Path):
        return Position(str(source), line or 1, 1)
    if not isinstance(source, Text):
        return None
    return source.at_line(line) if line else source.position


def _line(error: BaseException) -> tuple[int | None, str | None]:
    """The template's line and file: a syntax error knows them, others tell by the innermost template frame."""
    if isinstance(error, jinja2.TemplateSyntaxError):
        return error.lineno, error.filename
    found: tuple[int | None, str | None] = None, None
    trace = error.__traceback__
    while trace is not None:
        template = trace.tb_frame.f_globals.get("__jinja_template__")
        if isinstance(template, jinja2.Template):
            found = template.get_corresponding_lineno(trace.tb_lineno), template.filename
        trace = trace.tb_next
    return found


def _is_exact(error: BaseException, source: str | Path) -> bool:
    """Whether the line of an error is known; a text that the file folds or quotes may run over several."""
    return not isinstance(source, Text) or (source.block and _line(error)[0] is not None)


def _sharpened(place: Position | None, word: str, exact: bool) -> Position | None:
    """The place with the column of a word, and unless `exact` its line, when the file has it in that value."""
    if place is None:
        return None
    try:
        lines = Path(place.file).read_text(encoding="utf-8-sig").split("\n")[place.line - 1 :]
    except (OSError, ValueError):
        return place
    pattern = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)")
    for number, line in enumerate(lines[:1] if exact else _value_lines(lines)):
        found = pattern.search(line, place.column - 1 if number == 0 else 0)
        if found:
            return Position(place.file, place.line + number, found.start() + 1)
    return place


def _value_lines(lines: list[str]) -> list[str]:
    """The first line and those below that belong to its value: empty ones, and ones indented deeper."""
    indents = [len(line) - len(line.lstrip()) for line in lines]
    end = next((n for n in range(1, len(lines)) if lines[n].strip() and indents[n] <= indents[0]), len(lines))
    return lines[:end]
