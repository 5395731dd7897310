"""hostvars and vars: mappings that are asked when they are used, and templates that see their own host's names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from sparkops.errors import InputError, UndefinedName
from sparkops.playbook.template import Templar
from sparkops.project.yaml import loads

ONE = loads("name: one\nport: 1\nurl: 'http://{{ name }}:{{ port }}'\nlist: ['{{ name }}']\n", "one.yml")
TWO = loads("name: two\nport: 2\nurl: 'http://{{ name }}:{{ port }}'\nbroken: '{{ gone }}'\n", "two.yml")


class Asked(Mapping[str, Any]):
    """A mapping that is no dict, and remembers what was asked of it."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values_ = values
        self.asked: list[str] = []

    def __getitem__(self, key: str) -> Any:
        self.asked.append(key)
        return self.values_[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.values_)

    def __len__(self) -> int:
        return len(self.values_)


def names() -> dict[str, Any]:
    return {**ONE, "hostvars": Asked({"one": ONE, "two": Asked(TWO)}), "hosts": ["one", "two"]}


@pytest.mark.parametrize(
    ("template", "value"),
    [
        ("{{ hostvars['two'].url }}", "http://two:2"),
        ("{{ hostvars.two['url'] }}", "http://two:2"),
        ("{{ hosts | map('extract', hostvars, 'url') }}", ["http://one:1", "http://two:2"]),
        ("{% for h in hosts %}{{ hostvars[h].port }},{% endfor %}", "1,2,"),
        ("{{ hostvars | list }}", ["one", "two"]),
        ("{{ 'two' in hostvars }}", True),
        ("{{ hostvars['two'].get('nope', 'x') }}", "x"),
        ("{{ hostvars['two'].nope is defined }}", False),
        ("{{ hostvars['three'].port | default(9) }}", 9),
        ("{{ hostvars['two'].broken is defined }}", False),
        ("{{ hostvars['one'] }}", {"name": "one", "port": 1, "url": "http://one:1", "list": ["one"]}),
        ("{{ hostvars['one'] | to_json | from_json | length }}", 4),
        ("{{ hostvars.values() | map(attribute='port') | sum }}", 3),
        ("{{ vars['url'] }}", "http://one:1"),
        ("{{ vars.port }}", 1),
        ("{{ lookup('vars', 'url') }}", "http://one:1"),
    ],
)
def test_values(template: str, value: Any) -> None:
    assert Templar().render(template, names()) == value


def test_only_what_is_used_is_asked() -> None:
    given = names()
    Templar().render("{{ hostvars['two'].port }}", given)
    assert given["hostvars"].asked == ["two"] and set(given["hostvars"].values_["two"].asked) == {"port"}


def test_all_names_may_be_a_mapping() -> None:
    given = Asked({**ONE, "other": Asked({"deep": loads("x: '{{ port }}'", "o.yml")})})
    assert Templar().render("{{ url }} {{ other.deep.x }}", given) == "http://one:1 1"
    assert Templar().truth("other.deep is mapping", given)
    assert "list" not in given.asked


def test_hosts_that_ask_each_other_end_in_an_error() -> None:
    hosts: dict[str, Any] = {}
    for me, other in (("a", "b"), ("b", "a")):
        hosts[me] = {**loads(f"x: \"{{{{ hostvars['{other}'].x }}}}\"", "x.yml"), "hostvars": hosts}
    with pytest.raises(InputError, match=r"circle|nested too deeply"):
        Templar().render("{{ x }}", hosts["a"])


def test_an_undefined_name_of_another_host_is_an_error_there() -> None:
    with pytest.raises(UndefinedName, match="'gone' is undefined") as caught:
        Templar().render("{{ hostvars['two'].broken }}", names())
    assert str(caught.value.where).startswith("two.yml:4:")


@pytest.mark.parametrize(
    ("template", "mentioned"),
    [
        ("{{ hostvars['two'].url }}", {"hostvars"}),
        ("{{ hosts | map('extract', hostvars) }}", {"hosts", "hostvars"}),
        ("{{ vars['url'] }}", {"vars"}),
        ("{{ lookup('vars', 'url') }}", {"url", "name", "port"}),
        ("{{ lookup('vars', 'u' ~ name) }}", {"vars", "name"}),
        ("{{ query('ansible.builtin.vars', 'url', name) }}", {"vars", "name"}),
        ("{{ lookup('env', 'HOME') }}", set()),
    ],
)
def test_what_a_template_mentions(template: str, mentioned: set[str]) -> None:
    assert Templar().names(template, names()) == mentioned
