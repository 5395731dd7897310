from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkops.errors import InputError
from sparkops.inventory import Inventory, NoMatch, load
from sparkops.inventory.patterns import match, split

HOSTS = """\
all:
  children:
    web: {hosts: {"w[1:4]": }}
    db: {hosts: {d1: , w4: , d.example.com: }}
    spares: {hosts: {}}
"""


@pytest.fixture(scope="module")
def inventory(tmp_path_factory: pytest.TempPathFactory) -> Inventory:
    path: Path = tmp_path_factory.mktemp("inventory") / "hosts.yml"
    path.write_text(HOSTS)
    return load([str(path)])


# What ansible-core 2.19.14 selects from the same inventory.
SELECTED = [
    ("all", "w1 w2 w3 w4 d1 d.example.com"),
    ("*", "w1 w2 w3 w4 d1 d.example.com"),
    ("web", "w1 w2 w3 w4"),
    ("web:db", "w1 w2 w3 w4 d1 d.example.com"),
    ("db,web", "d1 w4 d.example.com w1 w2 w3"),
    ("web:&db", "w4"),
    ("web:!db", "w1 w2 w3"),
    ("!db:web", "w1 w2 w3"),
    ("!web", "d1 d.example.com"),
    ("&db", "w4 d1 d.example.com"),
    ("web:db:&db:!w4", "d1 d.example.com"),
    ("w*", "w1 w2 w3 w4"),
    ("w?", "w1 w2 w3 w4"),
    ("*.example.com", "d.example.com"),
    ("~w[23]", "w2 w3"),
    ("~(d1|w1)", "w1 d1"),
    ("web[0]", "w1"),
    ("web[-1]", "w4"),
    ("web[1:2]", "w2 w3"),
    ("web[2:]", "w3 w4"),
    ("web[0]:db[0]", "w1 d1"),
    ("w3, w1", "w3 w1"),
    ("w1:w2:w1", "w1 w2"),
    ("web,nothing", "w1 w2 w3 w4"),
    ("localhost", "localhost"),
]


@pytest.mark.parametrize(("pattern", "names"), SELECTED)
def test_patterns(inventory: Inventory, pattern: str, names: str) -> None:
    assert [host.name for host in inventory.select(pattern)] == names.split()


def test_limit_narrows(inventory: Inventory, tmp_path: Path) -> None:
    assert [host.name for host in inventory.select("web", "w2,w4,d1")] == ["w2", "w4"]
    assert [host.name for host in inventory.select("web", "!w2")] == ["w1", "w3", "w4"]
    (tmp_path / "failed").write_text("w3\n\nw1\n")
    assert [host.name for host in inventory.select("web", f"@{tmp_path / 'failed'}")] == ["w1", "w3"]
    with pytest.raises(NoMatch, match="limit"):
        inventory.select("web", "d1")


@pytest.mark.parametrize(("pattern", "hint"), [("wbe", "did you mean 'web'?"), ("d1.:!web", None), ("spares", None)])
def test_no_host_is_an_error_with_a_near_name(inventory: Inventory, pattern: str, hint: str | None) -> None:
    with pytest.raises(NoMatch) as caught:
        inventory.select(pattern)
    assert caught.value.hint
    if hint:
        assert caught.value.hint == hint


def test_what_matches_nothing_is_told(inventory: Inventory) -> None:
    assert inventory.unmatched("web:nothing:!none") == ["nothing", "none"]
    assert inventory.unmatched("spares") == []


@pytest.mark.parametrize("pattern", ["~w(", "web[9]", "web[-5]"])
def test_patterns_that_are_wrong(inventory: Inventory, pattern: str) -> None:
    with pytest.raises(InputError):
        inventory.select(pattern)


def test_localhost_needs_no_inventory(inventory: Inventory) -> None:
    [host] = inventory.select("localhost")
    assert host.vars["ansible_connection"] == "local"
    [named] = load(["localhost,"]).select("localhost")
    assert "ansible_connection" not in named.vars


def test_split() -> None:
    assert split("a:b[1:2]:&c") == ["a", "b[1:2]", "&c"]
    assert split("web[1:2]") == ["web[1:2]"]
    assert split("fe80::1") == ["fe80::1"]
    assert split("a , b:c") == ["a", "b:c"]


class Names:
    def __init__(self, members: dict[str, list[str]]) -> None:
        self.members = {"all": [f"h{number}" for number in range(6)], **members}

    def host_names(self) -> list[str]:
        return self.members["all"]

    def group_members(self) -> dict[str, list[str]]:
        return self.members


groups = st.dictionaries(st.sampled_from("abc"), st.lists(st.sampled_from([f"h{n}" for n in range(6)]), unique=True))
part = st.sampled_from(["a", "b", "c", "all", "h1", "h5"])


@given(groups, st.lists(part, min_size=1), st.lists(part), st.lists(part), st.randoms())
def test_patterns_are_sets(
    members: dict[str, list[str]], plain: list[str], both: list[str], but: list[str], random: Random
) -> None:
    names = Names(members)
    patterns = [*plain, *(f"&{name}" for name in both), *(f"!{name}" for name in but)]
    random.shuffle(patterns)

    def of(name: str) -> set[str]:
        return set(names.members.get(name, [name] if name in names.members["all"] else []))

    expected = set().union(*map(of, plain))
    for name in both:
        expected &= of(name)
    for name in but:
        expected -= of(name)
    found, _ = match(patterns, names)
    assert set(found) == expected and len(found) == len(expected)


@given(st.text(alphabet="ab*~[]:,&!0-9.@ ", max_size=14))
def test_any_pattern_selects_or_is_an_input_error(pattern: str) -> None:
    with suppress(InputError):
        match(split(pattern), Names({"a": ["h1"]}))
