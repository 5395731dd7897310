"""PyYAML's composed nodes -> `Mapping`, `Sequence` and `Text` with positions."""

from __future__ import annotations

from typing import Any

import yaml

from sparkops.errors import InputError, Position
from sparkops.project.values import Integer, Mapping, Sequence, Text, Unsafe

# Deeper than any file people write, and well inside Python's recursion limit.
MAX_DEPTH = 100
# Aliases may repeat a value, but not blow a small file up into a large one.
MAX_VALUES = 1_000_000

_CORE = "tag:yaml.org,2002:"
_MERGE = f"{_CORE}merge"
_SCALARS = frozenset(_CORE + name for name in ("str", "int", "float", "bool", "null", "timestamp"))


def construct(loader: Any, node: yaml.Node, name: str) -> Any:
    """The value of a document's root node; `loader` (a SafeLoader) converts the scalars. Raises InputError."""
    return _Builder(loader, name).value(node, 0)


class _Builder:
    def __init__(self, loader: Any, name: str) -> None:
        self.loader = loader
        self.name = name
        self.done: dict[yaml.Node, tuple[Any, int]] = {}
        self.open: set[yaml.Node] = set()
        self.count = 0

    def at(self, node: yaml.Node) -> Position:
        return Position(self.name, node.start_mark.line + 1, node.start_mark.column + 1)

    def value(self, node: yaml.Node, depth: int) -> Any:
        if node in self.done:
            value, size = self.done[node]
            self.count += size
        elif isinstance(node, yaml.ScalarNode):
            self.count += 1
            return self.scalar(node)
        else:
            before = self.count
            self.count += 1
            value = self.container(node, depth)
            self.done[node] = value, self.count - before
        if self.count > MAX_VALUES:
            raise InputError(f"the aliases make more than {MAX_VALUES} values", where=self.at(node))
        return value

    def container(self, node: yaml.Node, depth: int) -> Any:
        if node in self.open:
            raise InputError("this alias contains itself", where=self.at(node))
        if depth > MAX_DEPTH:
            raise InputError(f"the document is nested more than {MAX_DEPTH} levels deep", where=self.at(node))
        self.open.add(node)
        if isinstance(node, yaml.MappingNode) and node.tag == f"{_CORE}map":
            value: Any = self.mapping(node, depth)
        elif isinstance(node, yaml.SequenceNode) and node.tag == f"{_CORE}seq":
            value = self.sequence(node, depth)
        else:
            raise self.unknown_tag(node)
        self.open.discard(node)
        return value

    def sequence(self, node: yaml.SequenceNode, depth: int) -> Sequence:
        items = Sequence(position=self.at(node))
        for index, child in enumerate(node.value):
            items.append(self.value(child, depth + 1))
            items.items_at.append(self.at(child))
            if isinstance(child, yaml.ScalarNode) and not isinstance(items[-1], str):
                items.texts[index] = child.value
        return items

    def mapping(self, node: yaml.MappingNode, depth: int) -> Mapping:
        result = Mapping(position=self.at(node))
        merged: list[Mapping] = []
        for key_node, value_node in node.value:
            if key_node.tag == _MERGE:
                merged += self.merged(value_node, depth)
                continue
            key = self.key(key_node, depth)
            if key in result:
                first = result.keys_at[key]
                raise InputError(
                    f"the key {key!r} stands here a second time; the first is at {first}",
                    where=self.at(key_node),
                    hint="remove one of the two",
                )
            self.put(result, key, self.value(value_node, depth + 1), self.at(key_node), self.at(value_node))
            if isinstance(value_node, yaml.ScalarNode) and not isinstance(result[key], str):
                result.texts[key] = value_node.value
        for source in merged:
            for key in source:
                if key in result:
                    continue
                self.put(result, key, source[key], source.keys_at[key], source.values_at[key])
                if key in source.texts:
                    result.texts[key] = source.texts[key]
        return result

    @staticmethod
    def put(result: Mapping, key: Any, value: Any, key_at: Position, value_at: Position) -> None:
        result[key] = value
        result.keys_at[key] = key_at
        result.values_at[key] = value_at

    def merged(self, node: yaml.Node, depth: int) -> list[Mapping]:
        """The mappings that a `<<` names, the strongest first."""
        value = self.value(node, depth + 1)
        found = value if isinstance(value, list) else [value]
        if not all(isinstance(item, Mapping) for item in found):
            raise InputError("'<<' takes a mapping, or a list of mappings", where=self.at(node))
        return list(found)

    def key(self, node: yaml.Node, depth: int) -> Any:
        if isinstance(node, yaml.ScalarNode):
            return self.scalar(node)
        self.value(node, depth + 1)
        raise InputError(
            "a mapping or a list cannot be a key",
            where=self.at(node),
            hint='quote a value that starts with a template: "{{ name }}"',
        )

    def scalar(self, node: yaml.ScalarNode) -> Any:
        tag, text = node.tag, node.value
        if tag in (f"{_CORE}str", "!unsafe", f"{_CORE}value"):
            return (Unsafe if tag == "!unsafe" else Text)(text, self.at(node), node.style == "|")
        if tag not in _SCALARS:
            raise self.unknown_tag(node)
        try:
            value = self.loader.construct_object(node)
        except (ValueError, KeyError, yaml.YAMLError):
            kind = tag.removeprefix(_CORE)
            raise InputError(f"{text!r} is not a valid {kind}", where=self.at(node), hint="quote it") from None
        if isinstance(value, int) and not isinstance(value, bool) and str(value) != text:
            return Integer(value, text)
        return value

    def unknown_tag(self, node: yaml.Node) -> InputError:
        tag = node.tag.replace(_CORE, "!!")
        if tag in ("!vault", "!vault-encrypted"):
            return InputError(
                "encrypted with ansible-vault, which sparkops does not read",
                where=self.at(node),
                hint="keep the secret in the environment: {{ lookup('env', 'NAME') }}",
            )
        return InputError(
            f"the tag {tag} is not supported", where=self.at(node), hint="!unsafe is the only tag of our own"
        )
