from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from sparkops.errors import InputError, Position
from sparkops.inventory import Inventory, load

HOSTS = """\
all:
  vars: {region: eu, depth: all}
  children:
    sparks:
      vars: {depth: sparks, engine: vllm}
      hosts:
        spark-[01:03]:
        other:2222: {ansible_host: 10.0.0.9, engine: own}
      children:
        lab:
          hosts: {spark-01: }
          vars: {depth: lab}
    zoo:
      hosts: {spark-01: , spark-02: {flag: yes}}
      vars: {engine: zoo}
"""


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def inventory(tmp_path: Path, text: str = HOSTS) -> Inventory:
    return load([str(written(tmp_path / "hosts.yml", text))])


def test_groups_children_ranges_and_ports(tmp_path: Path) -> None:
    found = inventory(tmp_path)
    assert list(found.hosts) == ["spark-01", "spark-02", "spark-03", "other"]
    assert found.members["sparks"] == ["spark-01", "spark-02", "spark-03", "other"]
    assert found.members["lab"] == ["spark-01"]
    assert found.members["ungrouped"] == []
    assert found.hosts["other"].vars["ansible_port"] == 2222
    assert found.hosts["spark-02"].vars["flag"] is True


def test_nearer_groups_win_and_equals_go_by_name(tmp_path: Path) -> None:
    found = inventory(tmp_path)
    assert [found.hosts[name].vars["depth"] for name in ("spark-01", "spark-02")] == ["lab", "sparks"]
    # sparks and zoo are as deep as each other: the later name is the stronger.
    assert found.hosts["spark-02"].vars["engine"] == "zoo"
    assert found.hosts["other"].vars["engine"] == "own"


def test_priority_beats_the_name(tmp_path: Path) -> None:
    text = HOSTS.replace("engine: vllm}", "engine: vllm, ansible_group_priority: 5}")
    host = inventory(tmp_path, text).hosts["spark-02"]
    assert host.vars["engine"] == "vllm"
    assert "ansible_group_priority" not in host.vars


def test_files_beat_inline_groups_and_hosts_beat_both(tmp_path: Path) -> None:
    written(tmp_path / "group_vars" / "all.yml", "region: file-all\ndepth: file-all\n")
    written(tmp_path / "group_vars" / "sparks" / "20.yml", "engine: dir-20\nextra: dir-20\n")
    written(tmp_path / "group_vars" / "sparks" / "10.json", '{"engine": "dir-10", "ten": 10}')
    written(tmp_path / "group_vars" / "sparks" / "note.txt", "not: read")
    written(tmp_path / "group_vars" / "sparks" / ".hidden.yml", "not: read")
    written(tmp_path / "group_vars" / "sparks" / "backup~", "not: read")
    written(tmp_path / "group_vars" / "zoo", "extra: zoo\n")
    written(tmp_path / "host_vars" / "other.yaml", "engine: host-file\n")
    hosts = inventory(tmp_path).hosts
    assert hosts["spark-01"].vars["region"] == "file-all"
    # As in Ansible: all that files say of `all` beats what the inventory says of any group.
    assert hosts["spark-01"].vars["depth"] == "file-all"
    assert (hosts["spark-03"].vars["engine"], hosts["spark-03"].vars["ten"]) == ("dir-20", 10)
    assert (hosts["spark-02"].vars["extra"], hosts["spark-03"].vars["extra"]) == ("zoo", "dir-20")
    assert hosts["other"].vars["engine"] == "host-file"
    assert "not" not in hosts["spark-03"].vars


def test_origins_are_the_places_of_the_winning_values(tmp_path: Path) -> None:
    file = written(tmp_path / "group_vars" / "all.yml", "depth: file\n")
    host = inventory(tmp_path).hosts["other"]
    where = str(tmp_path / "hosts.yml")
    assert host.origins["depth"] == Position(str(file), 1, 8)
    assert host.origins["engine"] == Position(where, 8, 54)
    assert host.origins["ansible_port"] == Position(where, 8, 9)
    assert "inventory_hostname" not in host.origins


def test_magic_variables(tmp_path: Path) -> None:
    found = load([str(written(tmp_path / "hosts.yml", HOSTS)), "lone.example.com,"])
    host, lone = found.hosts["spark-01"].vars, found.hosts["lone.example.com"].vars
    assert host["group_names"] == ["lab", "sparks", "zoo"]
    assert host["groups"]["zoo"] == ["spark-01", "spark-02"]
    assert (host["inventory_file"], host["inventory_dir"]) == (str(tmp_path / "hosts.yml"), str(tmp_path))
    assert (lone["inventory_hostname"], lone["inventory_hostname_short"]) == ("lone.example.com", "lone")
    assert (lone["group_names"], lone["inventory_dir"]) == (["ungrouped"], None)


def test_several_sources_later_ones_win(tmp_path: Path) -> None:
    first = written(tmp_path / "a" / "hosts.yml", "all: {hosts: {x: {v: 1, w: 1}, y: }}\n")
    second = written(tmp_path / "b" / "more.yml", "all: {hosts: {x: {v: 2}}}\n")
    written(tmp_path / "a" / "group_vars" / "all.yml", "g: a\n")
    written(tmp_path / "b" / "group_vars" / "all.yml", "g: b\n")
    found = load([str(first), str(second), "z:99,x"])
    assert (found.hosts["x"].vars["v"], found.hosts["x"].vars["w"], found.hosts["x"].vars["g"]) == (2, 1, "b")
    assert found.hosts["z"].vars["ansible_port"] == 99
    assert found.hosts["x"].vars["inventory_file"] == str(first)


def test_a_directory_of_sources(tmp_path: Path) -> None:
    written(tmp_path / "01.yml", "all: {hosts: {x: {v: 1}}}\n")
    written(tmp_path / "02.yml", "all: {hosts: {x: {v: 2}}}\n")
    written(tmp_path / "group_vars" / "all.yml", "g: 1\n")
    for ignored in ("readme.md", "old.bak", ".hidden.yml", "x.yml~", "ansible.cfg"):
        written(tmp_path / ignored, "{ not yaml")
    found = load([str(tmp_path)])
    assert (found.hosts["x"].vars["v"], found.hosts["x"].vars["g"]) == (2, 1)


def test_folders_of_a_playbook_count_too(tmp_path: Path) -> None:
    source = written(tmp_path / "inv" / "hosts.yml", "all: {hosts: {x: }}\n")
    written(tmp_path / "inv" / "group_vars" / "all.yml", "v: inventory\n")
    written(tmp_path / "play" / "group_vars" / "all.yml", "v: playbook\n")
    assert load([str(source)], also=[tmp_path / "play"]).hosts["x"].vars["v"] == "playbook"


def test_hosts_can_be_pickled(tmp_path: Path) -> None:
    host = inventory(tmp_path).hosts["spark-01"]
    again = pickle.loads(pickle.dumps(host))
    assert again.vars == host.vars and again.origins == host.origins


@pytest.mark.parametrize(
    ("text", "line", "column", "says", "hint"),
    [
        ("all:\n  host: {x: }\n", 2, 3, "'host'", "did you mean 'hosts'?"),
        ("all:\n  hosts: [x, y]\n", 2, 10, "mapping", None),
        ("all:\n  vars: [x]\n", 2, 9, "mapping", None),
        ("all:\n  children: {a: {children: {all: }}}\n", 2, 29, "circle", None),
        ("all:\n  children: {a: {children: {b: {children: {a: }}}}}\n", 2, 44, "circle", None),
        ("all:\n  children: {a: {children: {a: }}}\n", 2, 29, "itself", None),
        ("a: {children: {all: }}\n", 1, 16, "'all'", None),
        ("all:\n  hosts:\n    w[3:1]:\n", 3, 5, "after", None),
        ("all:\n  hosts:\n    10:\n", 3, 5, "10", "quote it"),
        ("all:\n  hosts:\n    -x:\n", 3, 5, "'-x'", None),
        ("all:\n  hosts:\n    ../x:\n", 3, 5, "'../x'", None),
        ("all:\n  hosts:\n    x: text\n", 3, 8, "mapping", None),
        ("all: text\n", 1, 6, "mapping", None),
        ("hosts: {x: }\n", 1, 1, "groups", None),
        ("plugin: aws\n", 1, 1, "plugin", None),
        ("- x\n", 1, 1, "mapping", None),
        ("all:\n  vars: {ansible_group_priority: high}\n", 2, 34, "priority", None),
    ],
)
def test_wrong_inventories_have_a_position(
    tmp_path: Path, text: str, line: int, column: int, says: str, hint: str | None
) -> None:
    with pytest.raises(InputError) as caught:
        inventory(tmp_path, text)
    assert caught.value.where == Position(str(tmp_path / "hosts.yml"), line, column)
    assert says in caught.value.message
    if hint:
        assert caught.value.hint == hint


def test_sources_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such inventory") as caught:
        load(["spark-1"])
    assert caught.value.hint and "spark-1," in caught.value.hint
    assert not inventory(tmp_path, "").hosts
    with pytest.raises(InputError, match="TOML"):
        load([str(written(tmp_path / "hosts.toml", "[a]\n"))])
    with pytest.raises(InputError, match="host name"):
        load(["-oProxyCommand=x,"])


def test_wrong_vars_files_have_a_position(tmp_path: Path) -> None:
    file = written(tmp_path / "group_vars" / "all.yml", "- a\n")
    with pytest.raises(InputError, match="mapping") as caught:
        inventory(tmp_path)
    assert caught.value.where == Position(str(file), 1, 1)


def test_this_machine_has_the_variables_of_all(tmp_path: Path) -> None:
    source = written(
        tmp_path / "hosts.yml", "all: {hosts: {x: }, vars: {a: inline, b: inline, ansible_connection: ssh}}\n"
    )
    written(tmp_path / "group_vars" / "all.yml", "b: file\nc: file\n")
    written(tmp_path / "group_vars" / "ungrouped.yml", "not: read\n")
    written(tmp_path / "host_vars" / "localhost.yml", "c: host\n")
    host = load([str(source)]).host("localhost")
    assert [host.vars.get(name) for name in "abc"] == ["inline", "file", "host"]
    assert (host.vars["ansible_connection"], host.vars["group_names"]) == ("local", [])
    assert "not" not in host.vars


def test_folders_that_cannot_be_read_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "inv").mkdir()

    def refuse(self: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", refuse)
    with pytest.raises(InputError, match="Permission denied") as caught:
        load([str(tmp_path / "inv")])
    assert caught.value.where == str(tmp_path / "inv")
