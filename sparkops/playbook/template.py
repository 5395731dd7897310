"""Templates: `Templar` renders the values of tasks and variables as Ansible 2.19 does.

Only text that somebody wrote in a file (`Text`) is a template; what a node answered never is. Variables resolve
lazily, each when it is used. jinja2 is imported when the first template is met.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparkops.errors import InputError
from sparkops.project.values import Mapping as YamlMapping
from sparkops.project.values import Sequence as YamlSequence
from sparkops.project.values import Text, Unsafe, position

if TYPE_CHECKING:
    from sparkops.playbook.jinja import Engine


class Omit:
    """`omit`: the argument, item or key that has this value is left out."""

    def __repr__(self) -> str:
        return "omit"

    def __str__(self) -> str:
        raise TypeError("'omit' leaves an argument out; it cannot be part of a text")

    def __reduce__(self) -> str:
        return "OMIT"


OMIT = Omit()


def is_template(value: object) -> bool:
    """Whether a value is text with a Jinja expression, statement or comment; `!unsafe` text never is."""
    if not isinstance(value, str) or isinstance(value, Unsafe):
        return False
    if "{" in value and ("{{" in value or "{%" in value or "{#" in value):
        return True
    return value.startswith("#jinja2:")


class Templar:
    """Renders templates. `search`: folders of the files that lookups and includes name (the playbook's first).

    Safe to share between threads; a render's variables belong to that render.
    """

    def __init__(self, search: Sequence[Path] = ()) -> None:
        self.search = tuple(search)
        # What arguments mention, by their identity: a task's are looked at for every host.
        self._written: dict[int, tuple[Any, frozenset[str]]] = {}

    @cached_property
    def _engine(self) -> Engine:
        from sparkops.playbook.jinja import Engine

        return Engine(self.search)

    def render(self, value: Any, names: Mapping[str, Any]) -> Any:
        """The value with every template in it rendered. A text that is one expression gives the native value.

        Keys and items that render to `omit` are left out. Raises UndefinedName and InputError.
        """
        return self._rendered(value, names)

    def _rendered(self, value: Any, names: Mapping[str, Any]) -> Any:
        if is_template(value):
            return self._engine.render(value, names)
        if isinstance(value, dict):
            pairs = ((key, self._rendered(item, names)) for key, item in value.items())
            return _like(value, {key: item for key, item in pairs if item is not OMIT})
        if isinstance(value, list):
            items = [self._rendered(item, names) for item in value]
            kept = [item for item in items if item is not OMIT]
            return _like(value, kept) if len(kept) == len(items) else kept
        return value

    def truth(self, expression: Any, names: Mapping[str, Any]) -> bool:
        """A condition (`when`, `that`): a bare expression, a bool, or a list of them that must all hold.

        Raises UndefinedName, and InputError when the result is no bool, as ansible-core 2.19 does.
        """
        if isinstance(expression, list):
            return all(self.truth(item, names) for item in expression)
        if isinstance(expression, bool):
            return expression
        where = position(expression)
        if not isinstance(expression, str) or not expression.strip():
            raise InputError(f"a condition is an expression, not {expression!r}", where=where)
        text = expression.strip()
        if text.startswith("{{") and text.endswith("}}"):
            result = self._engine.render(expression, names)
            if isinstance(result, Text):
                result = self._engine.evaluate(result, names)
        else:
            result = self._engine.evaluate(expression, names)
        if isinstance(result, bool):
            return result
        raise InputError(
            f"the condition gives {result!r} ({_kind(result)}), not true or false",
            where=where,
            hint="compare it, or convert it with '| bool'; '| length > 0' tells whether a list or text is empty",
        )

    def expression(self, text: str, names: Mapping[str, Any]) -> Any:
        """The value of a bare expression. Raises UndefinedName and InputError."""
        return self._engine.evaluate(text, names)

    def render_file(self, path: Path, names: Mapping[str, Any]) -> str:
        """A template file's text (trim_blocks; the file's last newline kept, an included file's not).

        Included files are looked for beside it first.

        Raises UndefinedName and InputError, with the file and line.
        """
        result = self._engine.render_file(path, names)
        return "" if result is None or result is OMIT else str(result)

    def query(self, name: str, terms: list[Any], names: Mapping[str, Any], **options: Any) -> list[Any]:
        """What `with_<name>: terms` loops over: the values of that lookup. `terms` are rendered.

        options: those of the lookup; for first_found `folder`, where the module's files lie (files, templates, vars).
        Raises InputError.
        """
        return self._engine.look_up(name, terms, names, options)

    def names(self, value: Any, names: Mapping[str, Any] | None = None) -> set[str]:
        """The names that rendering `value` may use; with `names`, also those that their templates use in turn."""
        kept = self._written.get(id(value))
        if kept is None or kept[0] is not value:
            found = frozenset(self._mentioned(value, written=True))
            # Only what a file holds stays as it is.
            kept = value, found
            if isinstance(value, (Text, YamlMapping, YamlSequence)):
                self._written[id(value)] = kept
        return self._closure(set(kept[1]), names or {})

    def condition_names(self, expression: Any, names: Mapping[str, Any] | None = None) -> set[str]:
        """The same for a condition."""
        if isinstance(expression, list):
            return set().union(*(self.condition_names(item, names) for item in expression))
        if not isinstance(expression, str):
            return set()
        found = self.names(expression, names) if is_template(expression) else self._engine.names(expression, bare=True)
        return self._closure(found, names or {})

    def file_names(self, path: Path, names: Mapping[str, Any] | None = None) -> set[str]:
        """The same for a template file and the files that it includes by a constant name."""
        return self._closure(self._engine.file_names(path), names or {})

    def _closure(self, found: set[str], names: Mapping[str, Any]) -> set[str]:
        waiting = list(found)
        while waiting:
            name = waiting.pop()
            new = self._mentioned(names[name], written=False) - found if name in names else set()
            found |= new
            waiting += new
        return found

    def _mentioned(self, value: Any, written: bool) -> set[str]:
        """Names in the templates of a value. A variable's plain str is data; an argument's (`written`) is not."""
        if isinstance(value, str):
            trusted = written or isinstance(value, Text)
            return set(self._engine.names(value)) if trusted and is_template(value) else set()
        items: Iterable[Any] = ()
        if isinstance(value, dict):
            items = value.values()
        elif isinstance(value, list):
            items = value
        return set().union(*(self._mentioned(item, written) for item in items))


def _like(source: Any, result: Any) -> Any:
    """`result` with the positions of the value it was rendered from."""
    if isinstance(source, YamlMapping):
        mapping = YamlMapping(result, position=source.position)
        mapping.keys_at, mapping.values_at, mapping.texts = source.keys_at, source.values_at, source.texts
        return mapping
    if isinstance(source, YamlSequence):
        items = YamlSequence(result, position=source.position)
        items.items_at, items.texts = source.items_at, source.texts
        return items
    return result


def _kind(value: Any) -> str:
    names = {str: "text", int: "a number", float: "a number", list: "a list", dict: "a mapping", type(None): "nothing"}
    return next((name for kind, name in names.items() if isinstance(value, kind)), type(value).__name__)
