"""`sparkops inventory` as a user meets it, and as Ansible does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HOSTS = """\
all:
  children:
    sparks:
      vars: {region: eu}
      hosts:
        spark-1: {ansible_host: 10.0.0.1, ansible_port: 2222}
        spark-2: {region: us, note: !unsafe "{{ raw }}", day: 2024-02-29}
    gates: {hosts: {gate: }}
"""


def sparkops(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "sparkops.cli.main", *words]
    return subprocess.run(argv, cwd=cwd, capture_output=True, text=True, timeout=60)


def answer(*words: str, cwd: Path) -> Any:
    ran = sparkops(*words, cwd=cwd)
    assert ran.returncode == 0, ran
    return json.loads(ran.stdout)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "inventory" / "group_vars").mkdir(parents=True)
    (tmp_path / "inventory" / "hosts.yml").write_text(HOSTS)
    (tmp_path / "inventory" / "group_vars" / "all.yml").write_text('region: world\ngreeting: "hi {{ region }}"\n')
    return tmp_path


def test_list_has_the_shape_of_ansible(project: Path) -> None:
    found = answer("inventory", "list", "--json", cwd=project)
    assert found["all"] == {"children": ["ungrouped", "sparks", "gates"]}
    assert found["sparks"] == {"hosts": ["spark-1", "spark-2"]}
    assert found["_meta"] == {
        "hostvars": {
            "spark-1": {
                "ansible_host": "10.0.0.1", "ansible_port": 2222, "greeting": "hi {{ region }}", "region": "world",
            },
            "spark-2": {
                "day": "2024-02-29", "greeting": "hi {{ region }}", "note": {"__ansible_unsafe": "{{ raw }}"},
                "region": "us",
            },
            "gate": {"greeting": "hi {{ region }}", "region": "world"},
        }
    }  # fmt: skip


def test_options_stand_before_the_verb_between_and_after(project: Path) -> None:
    same = [
        ("--json", "-C", ".", "inventory", "list"),
        ("-C", ".", "inventory", "--json", "list"),
        ("inventory", "list", "--json", "-C", "."),
        ("inventory", "-i", "inventory/hosts.yml", "list", "--json"),
    ]
    first, *others = [answer(*words, cwd=project) for words in same]
    assert all(other == first for other in others)


def test_list_for_people_and_of_a_pattern(project: Path) -> None:
    ran = sparkops("inventory", "list", "sparks", cwd=project)
    assert ran.stdout == "spark-1  sparks  10.0.0.1:2222\nspark-2  sparks\n"
    assert answer("inventory", "list", "gate", "--json", cwd=project)["_meta"]["hostvars"].keys() == {"gate"}
    ran = sparkops("inventory", "list", "sprks", cwd=project)
    assert ran.returncode == 2 and "did you mean 'sparks'?" in ran.stderr


def test_graph(project: Path) -> None:
    ran = sparkops("inventory", "graph", cwd=project)
    assert ran.stdout.splitlines() == [
        "@all:", "  |--@ungrouped:", "  |--@sparks:", "  |  |--spark-1", "  |  |--spark-2", "  |--@gates:",
        "  |  |--gate",
    ]  # fmt: skip
    ran = sparkops("inventory", "graph", "gates", "--vars", cwd=project)
    assert ran.stdout.splitlines() == [
        "@gates:", "  |--gate", "  |  |--{greeting = hi {{ region }}}", "  |  |--{region = world}",
    ]  # fmt: skip
    ran = sparkops("inventory", "graph", "gate", cwd=project)
    assert ran.returncode == 2 and "did you mean 'gates'?" in ran.stderr


def test_explain(project: Path) -> None:
    hosts, file = f"{project}/inventory/hosts.yml", f"{project}/inventory/group_vars/all.yml"
    ran = sparkops("inventory", "explain", "spark-2", "region", cwd=project)
    assert ran.stdout.splitlines() == [
        'region = "us"', f"    {hosts}:7:27  host spark-2",
        '    beat "world"', f"        {file}:1:9  group_vars all",
        '    beat "eu"', f"        {hosts}:4:22  group sparks",
    ]  # fmt: skip
    told = answer("inventory", "explain", "spark-2", "region", "--json", cwd=project)
    assert told["host"] == "spark-2"
    assert told["variables"]["region"]["where"] == f"{hosts}:7:27"
    assert [one["value"] for one in told["variables"]["region"]["beat"]] == ["world", "eu"]
    assert set(answer("inventory", "explain", "gate", "--json", cwd=project)["variables"]) == {"greeting", "region"}
    for words, hint in ((("spark-3",), "spark-"), (("gate", "regoin"), "did you mean 'region'?")):
        ran = sparkops("inventory", "explain", *words, cwd=project)
        assert ran.returncode == 2 and hint in ran.stderr and "Traceback" not in ran.stderr


def test_variables_beside_a_playbook(project: Path) -> None:
    for folder in (project, project / "playbooks"):
        (folder / "group_vars").mkdir(parents=True)
        (folder / "group_vars" / "all.yml").write_text(f"region: {folder.name}\n")
    assert answer("inventory", "explain", "gate", "--json", cwd=project)["variables"]["region"]["value"] == project.name
    told = answer("inventory", "explain", "gate", "--json", "--playbook-dir", "playbooks", cwd=project)
    assert told["variables"]["region"]["value"] == "playbooks"


def test_what_a_script_says_on_stderr_is_shown(tmp_path: Path) -> None:
    script = tmp_path / "inv.sh"
    script.write_text('#!/bin/sh\necho soon >&2\necho \'{"w": ["h"], "_meta": {"hostvars": {}}}\'\n')
    script.chmod(0o755)
    ran = sparkops("inventory", "list", "--json", "-i", "inv.sh", cwd=tmp_path)
    assert json.loads(ran.stdout)["w"] == {"hosts": ["h"]}
    assert ran.stderr == "warning: inv.sh: soon\n"


def test_a_script_that_calls_it_is_an_inventory_of_ansible(project: Path) -> None:
    script = project / "spark-inventory"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m sparkops.cli.main -C "{project}" inventory list --json\n')
    script.chmod(0o755)
    elsewhere = project / "elsewhere"
    elsewhere.mkdir()
    environment = {**os.environ, "HOME": str(elsewhere), "ANSIBLE_HOME": str(elsewhere), "ANSIBLE_NOCOLOR": "1"}

    def ansible(program: str, *words: str) -> str:
        argv = [sys.executable, "-m", "ansible.cli." + program, "-i", *words]
        ran = subprocess.run(argv, cwd=elsewhere, env=environment, capture_output=True, text=True, timeout=120)
        assert ran.returncode == 0, ran
        return ran.stdout

    through, direct = (
        json.loads(ansible("inventory", at, "--list")) for at in (str(script), str(project / "inventory"))
    )
    assert through == direct
    assert ansible("adhoc", str(script), "sparks", "--list-hosts").split()[-2:] == ["spark-1", "spark-2"]
    told = ansible("adhoc", str(script), "spark-2", "-m", "debug", "-a", "var=greeting")
    assert '"greeting": "hi us"' in told
    told = ansible("adhoc", str(script), "spark-2", "-m", "debug", "-a", "var=note")
    assert '"note": "{{ raw }}"' in told
