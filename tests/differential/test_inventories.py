"""Inventories through ansible-core and through sparkops: equal `--list`, graph, groups and places of hosts.

Differences on purpose stand in differences.yml under `inventories`; ADR 006 says why.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparkops.errors import InputError
from sparkops.inventory import load
from sparkops.inventory.listing import document, graph
from tests.differential.bundles import Case, cases
from tests.differential.conftest import Ansible

HERE = Path(__file__).parent
DIFFERENCES: dict[str, dict[str, str]] = yaml.safe_load((HERE / "differences.yml").read_text("utf-8"))["inventories"]
MAGIC = ("inventory_file", "inventory_dir", "inventory_hostname_short", "group_names")
CASES = cases()


def ours(sources: list[str], folder: Path) -> dict[str, Any]:
    """What the worker answers for Ansible, from sparkops."""
    try:
        inventory = load(sources, also=[folder])
    except InputError as error:
        return {"error": f"{error} {error.hint}"}
    magic = {name: {key: inventory.hosts[name].vars[key] for key in MAGIC} for name in inventory.members["all"]}
    listed = json.loads(json.dumps(document(inventory)))
    return {"list": listed, "magic": magic, "graph": graph(inventory, "all", with_vars=True)}


def both(ansible: Ansible, sources: list[str], folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """(ours, Ansible's), but for where hosts come from when Ansible does not know."""
    found, expected = ours(sources, folder), ansible.inventory(sources, folder)
    expected.pop("patterns", None)
    for name, values in expected.get("magic", {}).items():
        # The folder of a list of hosts is the text "None", and a group's name hides the file of its host.
        if values["inventory_dir"] in ("None", None) and name in found.get("magic", {}):
            values |= {key: found["magic"][name][key] for key in ("inventory_dir", "inventory_file")}
    return found, expected


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Equal as JSON: 1, 1.0 and true are three values; NaN is NaN."""
    if "error" in one or "error" in other:
        return "error" in one and "error" in other
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def test_there_are_enough() -> None:
    assert len(CASES) >= 60
    assert len({case.name for case in CASES}) == len(CASES)
    assert set(DIFFERENCES) <= {case.name for case in CASES}


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_equal(ansible: Ansible, tmp_path: Path, case: Case) -> None:
    sources = case.write(tmp_path)
    found, expected = both(ansible, sources, tmp_path)
    if case.name in DIFFERENCES:
        assert not same(expected, found), "no difference any more: take it off the list"
        assert DIFFERENCES[case.name]["ours"] in found.get("error", json.dumps(found))
    elif "error" in expected:
        assert "error" in found, "Ansible refuses this"
    else:
        assert found == expected
        assert same(found, expected), "equal but for a type"


WORDS = ["a", "b", "c", "web", "db", "g1"]
word = st.sampled_from(WORDS)
host = st.sampled_from(["h1", "h2", "h3", "web", "n[1:3]", "n[01:03]:2222", "x-[a:c]", "10.0.0.1:22"])
variable = st.sampled_from(["x", "y", "z"])
plain = st.sampled_from(
    ["1", "1.0", "true", "True", "yes", "None", "0644", "a b", "[1, 'a']", "{'k': (1,)}", "'q'", ""]
)
scalar = st.one_of(st.none(), st.booleans(), st.integers(-9, 99), st.text("ab:{}#' ", max_size=6))
value = st.recursive(scalar, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(word, inner, max_size=2))


@st.composite
def ini(draw: st.DrawFn) -> str:
    """Sections in any order; now and then a child is declared nowhere, or in a circle."""
    lines = []
    tidy = draw(st.integers(0, 4)) > 0
    for _ in range(draw(st.integers(1, 6))):
        kind = draw(st.sampled_from(["", "", ":vars", ":children"]))
        name = draw(st.sampled_from(["all", *WORDS]))
        lines.append(f"[{name}{kind}]")
        below = WORDS[WORDS.index(name) + 1 :] if tidy and name != "all" else WORDS
        for _ in range(draw(st.integers(0, 3))):
            if kind == ":vars":
                lines.append(f"{draw(variable)}={draw(plain)}")
            elif kind == ":children":
                lines += [draw(st.sampled_from(below))] if below else []
            else:
                pairs = draw(st.dictionaries(variable, plain, max_size=2))
                lines.append(" ".join([draw(host), *(f'{name}="{text}"' for name, text in pairs.items())]))
    lines += [f"[{name}]" for name in WORDS] if tidy else []
    return "\n".join(lines) + "\n"


variables = st.dictionaries(st.one_of(variable, st.just("ansible_group_priority")), st.integers(0, 9), max_size=2)
host_variables = st.one_of(st.none(), st.dictionaries(variable, value, max_size=2))
leaf = st.fixed_dictionaries(
    {}, optional={"hosts": st.dictionaries(host, host_variables, max_size=3), "vars": variables}
)
group = st.recursive(
    leaf, lambda inner: st.fixed_dictionaries({"children": st.dictionaries(word, inner, max_size=2)}), max_leaves=5
)
groups = st.dictionaries(st.one_of(word, st.just("all")), group, min_size=1, max_size=4)
together = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@together
@given(st.lists(st.one_of(ini(), groups), min_size=1, max_size=2), st.dictionaries(word, variables, max_size=2))
def test_generated_ones_are_equal(
    ansible: Ansible, tmp_path_factory: pytest.TempPathFactory, texts: list[Any], files: dict[str, dict[str, int]]
) -> None:
    folder = tmp_path_factory.mktemp("generated")
    (folder / "group_vars").mkdir()
    for name, content in files.items():
        (folder / "group_vars" / f"{name}.yml").write_text(yaml.safe_dump(content))
    sources = []
    for number, text in enumerate(texts):
        path = folder / f"{number}{'.ini' if isinstance(text, str) else '.yml'}"
        path.write_text(text if isinstance(text, str) else yaml.safe_dump(text, sort_keys=False))
        sources.append(str(path))
    found, expected = both(ansible, sources, folder)
    assert same(found, expected), f"ours {found}\nAnsible's {expected}"


def test_a_thousand_hosts_load_in_well_under_a_second(tmp_path: Path) -> None:
    lines = "".join(
        f"    n{number:04}: {{ansible_host: 10.0.{number // 250}.{number % 250}}}\n" for number in range(1000)
    )
    (tmp_path / "hosts.yml").write_text(f"sparks:\n  vars: {{ansible_user: spark}}\n  hosts:\n{lines}")
    (tmp_path / "more.ini").write_text(
        "".join(f"[rack{rack}]\nn[{rack * 25:04}:{rack * 25 + 24:04}] rack_no={rack}\n" for rack in range(40))
    )
    start = time.process_time()
    inventory = load([str(tmp_path / "hosts.yml"), str(tmp_path / "more.ini")])
    assert time.process_time() - start < 0.8
    assert len(inventory.hosts) == 1000
