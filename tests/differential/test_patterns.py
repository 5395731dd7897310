"""Host patterns through ansible-core and through sparkops: equal lists of hosts.

Differences on purpose stand in differences.yml under `patterns`; ADR 006 says why. Where Ansible walks groups in the
order of their addresses in memory, two hosts may come either way round: there the sets are compared.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparkops.errors import InputError
from sparkops.inventory import Inventory, NoMatch, load
from tests.differential.conftest import Ansible

HERE = Path(__file__).parent
INVENTORIES: list[dict[str, Any]] = yaml.safe_load((HERE / "patterns.yml").read_text("utf-8"))
DIFFERENCES: dict[str, dict[str, str]] = yaml.safe_load((HERE / "differences.yml").read_text("utf-8"))["patterns"] or {}

Pair = tuple[str, str | None]
Folders = tuple[Path, dict[str, list[dict[str, Any]]]]


def pairs(inventory: dict[str, Any]) -> list[Pair]:
    return [(one, None) if isinstance(one, str) else (one[0], one[1]) for one in inventory["patterns"]]


def text(pair: Pair) -> str:
    return pair[0] if pair[1] is None else f"{pair[0]} | {pair[1]}"


CASES = [(inventory["name"], pair) for inventory in INVENTORIES for pair in pairs(inventory)]


def select(inventory: Inventory, pair: Pair) -> list[str] | str:
    """The hosts, none for a pattern without a match as in a play; or the error."""
    try:
        return [host.name for host in inventory.select(*pair)]
    except NoMatch:
        return []
    except InputError as error:
        return error.message


def same(ours: list[str] | str, theirs: dict[str, Any]) -> bool:
    if "error" in theirs or isinstance(ours, str):
        return "error" in theirs and isinstance(ours, str)
    return ours == theirs["hosts"] if theirs["ordered"] else sorted(ours) == sorted(theirs["hosts"])


@pytest.fixture(scope="session")
def folders(ansible: Ansible, tmp_path_factory: pytest.TempPathFactory) -> Folders:
    """(where the inventories are, what Ansible selects from each)"""
    root, answers = tmp_path_factory.mktemp("patterns"), {}
    for inventory in INVENTORIES:
        folder = root / inventory["name"]
        folder.mkdir()
        for name, content in {**inventory.get("files", {}), "hosts.ini": inventory["inventory"]}.items():
            (folder / name).write_text(content)
        answer = ansible.inventory([str(folder / "hosts.ini")], folder, pairs(inventory))
        answers[inventory["name"]] = answer["patterns"]
    return root, answers


@cache
def loaded(path: str) -> Inventory:
    return load([path])


def test_there_are_enough() -> None:
    assert len(CASES) >= 80
    assert set(DIFFERENCES) <= {text(pair) for _, pair in CASES}


@pytest.mark.parametrize(("name", "pair"), CASES, ids=[f"{name}: {text(pair)}" for name, pair in CASES])
def test_equal(folders: Folders, monkeypatch: pytest.MonkeyPatch, name: str, pair: Pair) -> None:
    root, answers = folders
    monkeypatch.chdir(root / name)
    [inventory] = [one for one in INVENTORIES if one["name"] == name]
    theirs = answers[name][pairs(inventory).index(pair)]
    ours = select(loaded(str(root / name / "hosts.ini")), pair)
    if text(pair) in DIFFERENCES:
        assert not same(ours, theirs), "no difference any more: take it off the list"
        found = ours if isinstance(ours, str) else " ".join(ours)
        assert DIFFERENCES[text(pair)]["ours"] in found
    else:
        assert same(ours, theirs), f"ours {ours}, Ansible's {theirs}"


name = st.sampled_from(["all", "a", "b", "c", "ab", "h1", "h2", "h12", "n.h1", "ungrouped", "x"])
glob = st.sampled_from(["*", "h*", "?", "h?", "[ab]", "h[!1]", "*.h1", "a*", "~h", "~[ab]$", "~.*1", "~h1|b"])
subscript = st.sampled_from(["[0]", "[-1]", "[1]", "[0:1]", "[1:]", "[1:0]", "[9:]", "[2:1]"])
single = st.one_of(name, glob, st.builds("{}{}".format, st.one_of(name, st.just("h*")), subscript))
marked = st.builds("{}{}".format, st.sampled_from(["", "", "&", "!"]), single)
pattern = st.builds(
    lambda between, parts: between.join(parts), st.sampled_from([":", ",", ", "]), st.lists(marked, min_size=1)
)
hosts = st.lists(st.sampled_from(["h1", "h2", "h12", "n.h1", "a"]), unique=True, max_size=4)
groups = st.dictionaries(st.sampled_from(["a", "b", "c", "ab", "ungrouped"]), hosts, min_size=1)
many = st.lists(st.tuples(pattern, st.one_of(st.none(), pattern)), min_size=1, max_size=12)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(groups, many)
def test_generated_ones_are_equal(
    ansible: Ansible, tmp_path_factory: pytest.TempPathFactory, members: dict[str, list[str]], wanted: list[Pair]
) -> None:
    folder = tmp_path_factory.mktemp("generated")
    path = folder / "hosts.ini"
    path.write_text("".join(f"[{group}]\n" + "".join(f"{host}\n" for host in members[group]) for group in members))
    answer = ansible.inventory([str(path)], folder, wanted)
    inventory = load([str(path)])
    for pair, theirs in zip(wanted, answer["patterns"], strict=True):
        assert same(select(inventory, pair), theirs), f"{pair}: ours {select(inventory, pair)}, Ansible's {theirs}"
