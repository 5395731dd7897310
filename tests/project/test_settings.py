from __future__ import annotations

import os
from pathlib import Path

import pytest

from sparkops.errors import InputError, Position
from sparkops.project.data import shipped
from sparkops.project.settings import Project


@pytest.fixture(autouse=True)
def no_inventory_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARKOPS_INVENTORY", raising=False)


def written(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_sources_in_order_of_strength(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = str(tmp_path)
    with pytest.raises(InputError, match="no inventory") as caught:
        Project.find(where).sources()
    assert caught.value.hint and "-i" in caught.value.hint and "SPARKOPS_INVENTORY" in caught.value.hint
    (tmp_path / "inventory").mkdir()
    assert Project.find(where).sources() == [str(tmp_path / "inventory")]
    written(tmp_path / "sparkops.yml", "inventory: [lab/hosts.yml, 'a,b,']\n")
    assert Project.find(where).sources() == [str(tmp_path / "lab/hosts.yml"), "a,b,"]
    monkeypatch.setenv("SPARKOPS_INVENTORY", "from-env.yml")
    assert Project.find(where).sources() == ["from-env.yml"]
    assert Project.find(where, ["x.yml", "y.yml"]).sources() == ["x.yml", "y.yml"]


def test_the_shipped_example_is_never_taken_for_an_inventory(monkeypatch: pytest.MonkeyPatch) -> None:
    example = shipped("inventory")
    if not example.is_dir():
        pytest.fail("there is no shipped inventory")
    with pytest.raises(InputError, match="example"):
        Project.find(str(example.parent)).sources()
    monkeypatch.chdir(example.parent)
    with pytest.raises(InputError, match="example"):
        Project.find().sources()


def test_files_are_the_projects_then_those_beside_the_inventory_then_the_shipped(tmp_path: Path) -> None:
    root, lab = tmp_path / "project", tmp_path / "lab"
    hosts = written(lab / "hosts.yml", "all:\n")
    root.mkdir()
    project = Project.find(str(root), [str(hosts), "a,b,"])
    assert project.roots() == [root, lab]
    assert project.find_file("playbooks", "provision.yml") == shipped("playbooks") / "provision.yml"
    theirs = written(lab / "playbooks" / "provision.yml")
    assert project.find_file("playbooks", "provision.yml") == theirs
    ours = written(root / "playbooks" / "provision.yml")
    assert project.find_file("playbooks", "provision.yml") == ours
    assert project.folders("playbooks") == [ours.parent, theirs.parent, shipped("playbooks")]
    assert project.folders("engines") == []


def test_an_unknown_file_has_a_near_name(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        Project.find(str(tmp_path)).find_file("playbooks", "provison.yml")
    assert caught.value.hint == "did you mean 'provision.yml'?"


def test_settings(tmp_path: Path) -> None:
    written(tmp_path / "sparkops.yml", "known_hosts: keys\nforks: 4\n")
    project = Project.find(str(tmp_path))
    assert (project.known_hosts, project.settings.forks) == (tmp_path / "keys", 4)
    assert Project.find(os.fspath(tmp_path / "..")).known_hosts is None


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("forks: 3\nknown_host: x\n", 2, "known_host"),
        ("forks: many\n", 1, "forks"),
        ("inventory: hosts.yml\n", 1, "inventory"),
        ("- a\n", 1, "mapping"),
    ],
)
def test_wrong_settings_have_a_position(tmp_path: Path, text: str, line: int, says: str) -> None:
    path = written(tmp_path / "sparkops.yml", text)
    with pytest.raises(InputError, match=says) as caught:
        Project.find(str(tmp_path))
    assert isinstance(caught.value.where, Position)
    assert (caught.value.where.file, caught.value.where.line) == (str(path), line)


def test_an_unknown_setting_has_a_near_name(tmp_path: Path) -> None:
    written(tmp_path / "sparkops.yml", "known_host: x\n")
    with pytest.raises(InputError) as caught:
        Project.find(str(tmp_path))
    assert caught.value.hint == "did you mean 'known_hosts'?"


def test_no_such_project(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such folder"):
        Project.find(str(tmp_path / "none"))
