from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkops.errors import InputError, Position, UndefinedName
from sparkops.playbook.template import OMIT, Templar
from sparkops.project.values import Mapping
from sparkops.project.yaml import load, loads, position

VARS = """\
x: 3
s: "{{ x }}"
t: "v{{ x }}"
y: {b: 1, c: "{{ y.b + 1 }}", broken: "{{ undefd }}", position: here}
l: ["{{ x }}", "{{ y.c }}", 5]
cyc: "{{ cyc2 }}"
cyc2: "{{ cyc }}"
zero: "{{ 1 / 0 }}"
raw: !unsafe "{{ x }}"
cond: x == 3
empty: ""
mode: 0644
multi: |
  first
  {{ x }}
  and {{ undfd }}
r: {changed: true, failed: false}
"""


@pytest.fixture
def names(tmp_path: Path) -> Mapping:
    path = tmp_path / "vars.yml"
    path.write_text(VARS)
    value = load(path)
    assert isinstance(value, Mapping)
    return value


# What ansible-core 2.19.14 gives for the same variables.
RENDERED: list[tuple[str, Any]] = [
    ("plain", "plain"),
    ("{{ x }}", 3),
    ("{{ x }} ", "3 "),
    ("{{ x }}\n", 3),
    ("a{{ x }}\n", "a3\n"),
    ("{{ s }}", 3),
    ("{{ t }}", "v3"),
    ("{{ mode }}", 0o644),
    ("v{{ s }}{{ none }}", "v3"),
    ("{{ none }}", None),
    ("{% if false %}x{% endif %}", None),
    ("{{ '1' }}", "1"),
    ("{{ 1 }}", 1),
    ("{{ true }}", True),
    ("{{ [1, 'a'] }}", [1, "a"]),
    ("{{ '[1]' }}", "[1]"),
    ("{{ y.c }}", 2),
    ("{{ y['c'] }}", 2),
    ("{{ y.position }}", "here"),
    ("{{ l }}", [3, 2, 5]),
    ("{{ l[:2] + [1] }}", [3, 2, 1]),
    ("{{ [1] + l }}", [1, 3, 2, 5]),
    ("{{ 2 in l }}", True),
    ("{{ l == [3, 2, 5] }}", True),
    ("{{ l | sum }}", 10),
    ("{{ l | join('-') }}", "3-2-5"),
    ("{% for i in l %}{{ i }},{% endfor %}", "3,2,5,"),
    ("{{ l | map('string') | map('length') }}", [1, 1, 1]),
    ("{{ y.get('c') }}", 2),
    ("{{ nope | default('d') }}", "d"),
    ("{{ nope.a.b | default('d') }}", "d"),
    ("{{ empty | default('d', true) }}", "d"),
    ("{{ y.broken | default('d') }}", "d"),
    ("{{ y.broken is defined }}", False),
    ("{{ x is defined and x > 2 }}", True),
    ("{{ x | regex_replace('(3)', '\\1\\1') }}", "33"),
    ("{{ {'a': {'b': 1}} }}", {"a": {"b": 1}}),
    ("{{ [1, omit] }}", [1]),
    ("{{ {'a': omit, 'b': 2} }}", {"b": 2}),
    ("{{ omit is defined }}", True),
    ("{# note #}", None),
    ("{% set q = 5 %}{{ q }}", 5),
    ("{{ query('items', [1, 2]) }}", [1, 2]),
    ("{{ lookup('vars', 't') }}", "v3"),
]


@pytest.mark.parametrize(("template", "value"), RENDERED)
def test_native_values_as_ansible_gives_them(names: Mapping, template: str, value: Any) -> None:
    result = Templar().render(template, names)
    assert result == value and isinstance(result, type(value))


def test_containers_are_rendered_with_their_positions(names: Mapping) -> None:
    args = loads("path: '/x/{{ x }}'\nlist: ['{{ x }}', '{{ omit }}']\nmode: '{{ omit }}'\n", "play.yml")
    result = Templar().render(args, names)
    assert result == {"path": "/x/3", "list": [3]}
    assert position(result, "path") == Position("play.yml", 1, 7)


def test_omit_at_the_top(names: Mapping) -> None:
    assert Templar().render("{{ nope | default(omit) }}", names) is OMIT


def test_what_a_node_answered_is_never_a_template(names: Mapping) -> None:
    seen = {**names, "out": "{{ x }}", "result": {"stdout": "{{ lookup('env', 'HOME') }}"}}
    templar = Templar()
    assert templar.render("{{ out }}", seen) == "{{ x }}"
    assert templar.render("{{ result }}", seen) == seen["result"]
    assert templar.render("> {{ result.stdout }}", seen) == "> {{ lookup('env', 'HOME') }}"
    assert templar.render("{{ raw }}", seen) == "{{ x }}"
    assert templar.render(names["raw"], seen) == "{{ x }}"


@pytest.mark.parametrize(
    ("template", "kind", "says", "place"),
    [
        ("{{ undefined_name }}", UndefinedName, "'undefined_name' is undefined", None),
        ("{{ y.broken }}", UndefinedName, "'undefd' is undefined", (4, 43)),
        ("{{ y }}", UndefinedName, "'undefd' is undefined", (4, 43)),
        ("{{ multi }}", UndefinedName, "'undfd' is undefined", (16, 10)),
        ("{{ y.cc }}", UndefinedName, "no key 'cc'", None),
        ("{{ cyc }}", InputError, "cyc -> cyc2 -> cyc", (6, 6)),
        ("{{ zero }}", InputError, "division by zero", (8, 7)),
        ("{{ zero | default(1) }}", InputError, "division by zero", (8, 7)),
        ("{{ zero is defined }}", InputError, "division by zero", (8, 7)),
        ("{{ x | upcase }}", InputError, "No filter named 'upcase'", None),
        ("{{ ", InputError, "not valid", None),
        ("{% if %}", InputError, "not valid", None),
        ("{{ 'a' + 1 }}", InputError, "TypeError", None),
        ("{{ x.__class__ }}", InputError, "unsafe", None),
        ("{{ ''.__class__.__mro__ }}", InputError, "unsafe", None),
        ("{{ lookup('pipe', 'id') }}", InputError, "'pipe'", None),
        ("{{ undef(hint='set it') }}", UndefinedName, "set it", None),
        ("{{ range(10 ** 9) | list }}", InputError, "", None),
    ],
)
def test_errors(
    names: Mapping, tmp_path: Path, template: str, kind: type, says: str, place: tuple[int, int] | None
) -> None:
    with pytest.raises(kind) as caught:
        Templar().render(template, names)
    assert isinstance(caught.value, InputError) and says in caught.value.message
    assert caught.value.where == (Position(str(tmp_path / "vars.yml"), *place) if place else None)


@pytest.mark.parametrize(
    ("template", "hint"),
    [
        ("{{ multy }}", "did you mean 'multi'?"),
        ("{{ y.positio }}", "did you mean 'position'?"),
        ("{{ x | defalt(1) }}", "did you mean 'default'?"),
        ("{{ lookup('fle', 'x') }}", "did you mean 'file'?"),
    ],
)
def test_errors_have_near_names(names: Mapping, template: str, hint: str) -> None:
    with pytest.raises(InputError) as caught:
        Templar().render(template, names)
    assert caught.value.hint == hint


def test_an_error_stands_where_the_template_is(tmp_path: Path) -> None:
    path = tmp_path / "play.yml"
    path.write_text("- copy:\n    content: 'a {{ nope }}'\n    other: >-\n      a\n      {{ gone }}\n")
    args = load(path)[0]["copy"]
    for key, place in (("content", (2, 20)), ("other", (5, 10))):
        with pytest.raises(UndefinedName) as caught:
            Templar().render(args[key], {})
        assert caught.value.where == Position(str(path), *place)
    with pytest.raises(InputError) as wrong:
        Templar().render(loads("a: '{{ [1] | combine({}) }}'", "p.yml"), {})
    assert wrong.value.where == Position("p.yml", 1, 4)


TRUTHS = [
    ("x == 3", True),
    ("not x", False),
    ("nope is defined and nope.y", False),
    ("y.nope is defined", False),
    ("x is defined and y.b == 1", True),
    ("true or nope", True),
    ("r is changed", True),
    ("r is not failed", True),
    ("'}}' != ''", True),
    ("'a.b' is match('a\\.')", True),
    ("{{ x == 3 }}", True),
    ("{{ cond }}", True),
    ("  x == 3\n", True),
    (True, True),
    (False, False),
    (["x == 3", "x == 4", "nope"], False),
    ([], True),
]


@pytest.mark.parametrize(("condition", "value"), TRUTHS)
def test_conditions(names: Mapping, condition: Any, value: bool) -> None:
    assert Templar().truth(condition, names) is value


@pytest.mark.parametrize("condition", ["x", "cond", "empty", "l", "none", "'yes'", "", "  ", None, 1, "x ==", "x = 3"])
def test_conditions_that_are_neither_true_nor_false(names: Mapping, condition: Any) -> None:
    with pytest.raises(InputError):
        Templar().truth(condition, names)


def test_an_undefined_name_in_a_condition(names: Mapping) -> None:
    condition = loads("when: nope | bool", "play.yml")["when"]
    with pytest.raises(UndefinedName) as caught:
        Templar().truth(condition, names)
    assert caught.value.where == Position("play.yml", 1, 7)


def test_names_that_a_value_uses(names: Mapping) -> None:
    templar = Templar()
    assert templar.names({"a": ["{{ s }}", "{{ out.rc }}"], "b": "plain"}) == {"s", "out"}
    assert templar.names("{{ s }}", names) == {"s", "x"}
    assert templar.names("{{ cyc }}", names) == {"cyc", "cyc2"}
    assert templar.names("{% for i in l %}{{ i }}{{ lookup('env', 'X') }}{% endfor %}") == {"l"}
    assert templar.names("{{ answer }}", {"answer": "{{ x }}"}) == {"answer"}
    assert templar.condition_names("out is changed and s", names) == {"out", "s", "x"}
    assert templar.condition_names(["a", True, "{{ b }}"]) == {"a", "b"}
    assert templar.names(names["raw"]) == set()


def test_a_run_without_templates_needs_no_jinja() -> None:
    code = (
        "import sys; from sparkops.playbook.template import Templar;"
        "Templar().render({'a': ['plain', 1]}, {}); Templar().truth(True, {}); sys.exit('jinja2' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


plain_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet="ab {}%#'\"\\\n"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(alphabet="abk", max_size=2), inner, max_size=3),
    max_leaves=8,
)


@given(plain_values)
def test_data_goes_through_a_template_unchanged(value: Any) -> None:
    assert Templar().render("{{ value }}", {"value": value}) == value


@given(st.text(alphabet="{}%#x y|.'\"()[]-\\\n", max_size=20))
def test_any_text_renders_or_is_an_input_error(text: str) -> None:
    for act in (Templar().render, Templar().truth):
        try:
            act(text, {"x": 1, "y": {"x": 2}})
        except InputError:
            continue
