from __future__ import annotations

from pathlib import Path

import pytest

from sparkops.errors import InputError, Position
from sparkops.inventory import load
from sparkops.inventory.explain import explain


def test_every_value_its_place_and_what_it_beat(tmp_path: Path) -> None:
    (tmp_path / "a.ini").write_text("[web]\nw1 x=1\nw1 x=2\n[web:vars]\nx=3\ny=4\n")
    (tmp_path / "b.yml").write_text("web: {hosts: {w1: {x: 5}}, vars: {x: 6}}\n")
    (tmp_path / "group_vars").mkdir()
    (tmp_path / "group_vars" / "all.yml").write_text("x: 7\nz: 8\n")
    a, b = str(tmp_path / "a.ini"), str(tmp_path / "b.yml")
    host = load([a, b], also=[tmp_path]).hosts["w1"]
    said = explain(host)
    assert list(said) == ["x", "y", "z"]
    assert [(one.value, one.by, one.where) for one in said["x"]] == [
        (5, "host w1", Position(b, 1, 23)),
        (2, "host w1", Position(a, 3, 4)),
        (1, "host w1", Position(a, 2, 4)),
        (7, "group_vars all", Position(str(tmp_path / "group_vars" / "all.yml"), 1, 4)),
        (6, "group web", Position(b, 1, 38)),
        (3, "group web", Position(a, 5, 1)),
    ]
    assert [one.value for one in said["y"]] == [4]
    assert host.vars["x"] == 5


def test_one_variable_a_magic_one_and_one_that_nothing_says(tmp_path: Path) -> None:
    host = load(["w1:22,"]).hosts["w1"]
    [port] = explain(host, "ansible_port")["ansible_port"]
    assert (port.value, port.where) == (22, "-i w1:22,")
    [name] = explain(host, "inventory_hostname")["inventory_hostname"]
    assert (name.value, name.by, name.where) == ("w1", "magic", None)
    assert list(explain(host)) == ["ansible_port"]
    with pytest.raises(InputError, match="ansible_prot") as caught:
        explain(host, "ansible_prot")
    assert caught.value.hint == "did you mean 'ansible_port'?"
