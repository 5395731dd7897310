"""Filters and tests, each with what ansible-core 2.19.14 gives."""

from __future__ import annotations

from typing import Any

import pytest

from sparkops.errors import InputError
from sparkops.playbook.template import Templar
from sparkops.project.yaml import loads

NAMES = loads(
    "d: {b: 1, a: [1], n: {q: '{{ 1 + 2 }}'}}\nfailed: {failed: true}\nloop: {results: [{changed: yes}]}", "v"
)

FILTERED: list[tuple[str, Any]] = [
    ("'Yes' | bool", True),
    ("0 | bool", False),
    ("true | ternary('y', 'n')", "y"),
    ("none | ternary('y', 'n', 'z')", "z"),
    ("'x' | mandatory", "x"),
    ("d | to_json", '{"b": 1, "a": [1], "n": {"q": 3}}'),
    ("{'b': 1, 'a': 2} | to_nice_json", '{\n    "a": 2,\n    "b": 1\n}'),
    ("'{\"a\": [1]}' | from_json", {"a": [1]}),
    ("{'b': 'yes', 'a': [1]} | to_nice_yaml", "a:\n- 1\nb: 'yes'\n"),
    ("'a: [1, yes]' | from_yaml", {"a": [1, True]}),
    ("'a: \"{{ x }}\"' | from_yaml", {"a": "{{ x }}"}),
    ("d | combine({'b': 2}) | dict2items | length", 3),
    ("d | combine({'n': {'r': 1}}, recursive=true)", {"b": 1, "a": [1], "n": {"q": 3, "r": 1}}),
    ("(d | combine({'a': [2]}, list_merge='append')).a", [1, 2]),
    ("[{'key': 'a', 'value': 1}] | items2dict", {"a": 1}),
    ("'foobar' | regex_search('o+')", "oo"),
    ("'foobar' | regex_search('(f)(o+)', '\\1', '\\2')", ["f", "oo"]),
    ("'foobar' | regex_search('z')", None),
    ("'foobar' | regex_findall('o')", ["o", "o"]),
    ("'a.b' | regex_escape", "a\\.b"),
    ("'é' | b64encode", "w6k="),
    ("'w6k=' | b64decode", "é"),
    ("'/a/b.c' | basename", "b.c"),
    ("'/a/b.c' | dirname", "/a"),
    ("'/a/b.c' | splitext", ["/a/b", ".c"]),
    ("['a', 'b'] | path_join", "a/b"),
    ("'a' | hash('md5')", "0cc175b9c0f1b6a831c399e269772661"),
    ("'a' | hash", "86f7e437faa5a7fce15d1ddcb9eaeaea377667b8"),
    ("'my-service; whoami' | quote", "'my-service; whoami'"),
    ("none | quote", "''"),
    ("'abc' | to_uuid", "27dc713b-d72c-5825-88f3-9f240e739319"),
    ("'a,b' | split(',')", ["a", "b"]),
    ("[1, [2, [3, none]]] | flatten", [1, 2, 3]),
    ("[1, [2, [3]]] | flatten(1)", [1, 2, [3]]),
    ("[1, 2] | zip([3, 4])", [[1, 3], [2, 4]]),
    ("[3, 1, 3] | unique", [3, 1]),
    ("[1, 2] | union([2, 3])", [1, 2, 3]),
    ("[1, 2] | intersect([2, 3])", [2]),
    ("[1, 2] | difference([2, 3])", [1]),
    ("[1, 2] | symmetric_difference([2, 3])", [1, 3]),
    ("[{'u': 'a', 'g': ['x']}] | subelements('g')", [[{"u": "a", "g": ["x"]}, "x"]]),
    ("'b' | extract(d)", 1),
    ("[1, 2, 3] | select('gt', 1)", [2, 3]),
    ("[{'n': 1}, {'n': 2}] | selectattr('n', 'eq', 2)", [{"n": 2}]),
    ("[{'n': 1}] | map(attribute='n')", [1]),
    ("'580.95.05' is version('580', '>=')", True),
    ("'570.1' is version('580', '>=')", False),
    ("'1.0rc1' is version('1.0', 'lt', version_type='pep440')", True),
    ("'foobar' is match('foo')", True),
    ("'foobar' is match('bar')", False),
    ("'foobar' is search('bar')", True),
    ("failed is failed", True),
    ("failed is succeeded", False),
    ("loop is changed", True),
    ("failed is skipped", False),
    ("[1] is subset([1, 2])", True),
    ("'yes' is truthy", True),
    ("d is mapping", True),
    ("7 | random(seed='x') < 7", True),
]


@pytest.mark.parametrize(("expression", "value"), FILTERED)
def test_filters(expression: str, value: Any) -> None:
    result = Templar().render(f"{{{{ {expression} }}}}", NAMES)
    assert result == value and isinstance(result, type(value))


@pytest.mark.parametrize(
    "expression",
    [
        "range(3)",
        "'1.0' is version('1.0.0', version_type='semver')",
        "nope | mandatory",
        "nope | mandatory('set it')",
        "[1] | combine({})",
        "{} | combine({}, list_merge='x')",
        "[1] | dict2items",
        "[1] | items2dict",
        "'{' | from_json",
        "'a: b: c' | from_yaml",
        "'x' | regex_search('(')",
        "'x' | regex_search('x', 'y')",
        "'x' | hash('nope')",
        "'' is version('1')",
        "'1' is version('1', '~')",
        "'1.a' is version('1.0', '<')",
        "'x' is changed",
    ],
)
def test_filters_refuse_with_an_input_error(expression: str) -> None:
    with pytest.raises(InputError):
        Templar().render(f"{{{{ {expression} }}}}", NAMES)
