from __future__ import annotations

import shlex
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from sparkops.cli.lab import lab as command
from sparkops.errors import LabError
from sparkops.lab.lab import Lab, NodeSpec, inventory, write_file


def test_a_lab_comes_back_from_disk(tmp_path: Path) -> None:
    lab = Lab.create(
        tmp_path / "lab", "process", 2, passwords={"spark-2": "geheim"}, environment={"SPARKOPS_LAB_TOKEN_RATE": "30.5"}
    )
    lab.place("spark-1", "127.0.0.1", 2201)
    lab.state = {"made": ["a"]}
    lab.save()
    again = Lab.load(tmp_path / "lab")
    assert again == lab
    assert again.nodes == [NodeSpec("spark-1", "127.0.0.1", 2201), NodeSpec("spark-2")]


def test_secrets_are_the_owners_alone(tmp_path: Path) -> None:
    lab = Lab.create(tmp_path / "lab", "process", 1, passwords={"spark-1": "geheim"})
    assert lab.key.stat().st_mode & 0o777 == 0o600
    assert (lab.dir / "lab.json").stat().st_mode & 0o777 == 0o600


def test_published_files(tmp_path: Path) -> None:
    lab = Lab.create(tmp_path / "lab", "process", 2, passwords={"spark-1": "geheim"})
    lab.place("spark-1", "10.0.0.1", 22)
    lab.place("spark-2", "127.0.0.1", 2202)
    lab.publish({"spark-1": "ssh-ed25519 AAAA1", "spark-2": "ssh-ed25519 AAAA2"}, {"index_url": "http://x/simple/"})
    known = (lab.dir / "known_hosts").read_text()
    assert known == "10.0.0.1 ssh-ed25519 AAAA1\n[127.0.0.1]:2202 ssh-ed25519 AAAA2\n"
    text = (lab.dir / "inventory.yml").read_text()
    assert "geheim" not in text
    assert yaml.safe_load(text) == {
        "sparks": {
            "hosts": {
                "spark-1": {"ansible_host": "10.0.0.1", "ansible_port": 22},
                "spark-2": {"ansible_host": "127.0.0.1", "ansible_port": 2202},
            },
            "vars": {
                "ansible_user": "spark",
                "ansible_ssh_private_key_file": f"{lab.dir}/id_ed25519",
                "ansible_ssh_common_args": f"-o UserKnownHostsFile={lab.dir}/known_hosts",
                "index_url": "http://x/simple/",
            },
        }
    }


def test_a_folder_with_blanks_stays_one_word_for_the_shell_and_for_ssh(tmp_path: Path) -> None:
    lab = Lab(tmp_path / "it's a lab", "process", [])
    words = shlex.split(yaml.safe_load(inventory(lab, {}))["sparks"]["vars"]["ansible_ssh_common_args"])
    assert words == ["-o", f'UserKnownHostsFile="{lab.dir}/known_hosts"']


def test_the_key_is_one_that_paramiko_reads(tmp_path: Path) -> None:
    import paramiko

    lab = Lab.create(tmp_path / "lab", "process", 1)
    key = paramiko.Ed25519Key.from_private_key_file(str(lab.key))
    assert lab.public_key.split()[:2] == ["ssh-ed25519", key.get_base64()]


@pytest.mark.parametrize("name", ["inventory.yml", "notes.txt"])
def test_create_takes_no_folder_with_something_in_it(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    with pytest.raises(LabError, match="not an empty folder"):
        Lab.create(tmp_path, "process", 1)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_create_takes_no_lab_that_is_there(tmp_path: Path) -> None:
    Lab.create(tmp_path, "process", 1)
    with pytest.raises(LabError, match="there is a lab") as error:
        Lab.create(tmp_path, "process", 1)
    assert "lab down --dir" in (error.value.hint or "")


def test_a_password_for_no_node_is_an_error_that_hides_it(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="spark-9") as error:
        Lab.create(tmp_path / "lab", "process", 2, passwords={"spark-9": "geheim"})
    assert "geheim" not in str(error.value)
    assert not (tmp_path / "lab").exists()


@pytest.mark.parametrize("text", ["", "[]", '{"nodes": 3}', '{"nodes": [], "driver": "process", "colour": 1}'])
def test_a_broken_description_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "lab.json").write_text(text)
    with pytest.raises(LabError) as error:
        Lab.load(tmp_path)
    assert str(tmp_path / "lab.json") in str(error.value)


def test_no_lab_and_no_such_node(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="no lab in"):
        Lab.load(tmp_path)
    with pytest.raises(LabError, match="no node 'spark-3'"):
        Lab.create(tmp_path / "lab", "process", 2).node("spark-3")


def test_remove_takes_only_what_is_the_labs(tmp_path: Path) -> None:
    lab = Lab.create(tmp_path / "lab", "process", 1)
    (lab.dir / "engines").mkdir()
    (lab.dir / "notes.txt").write_text("mine")
    lab.remove()
    assert [path.name for path in lab.dir.iterdir()] == ["notes.txt"]


def test_ids_differ_by_folder(tmp_path: Path) -> None:
    assert Lab(tmp_path / "a", "process", []).id != Lab(tmp_path / "b", "process", []).id


def test_write_file_leaves_the_old_text_when_it_fails(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_file(path, "old")
    with pytest.raises(UnicodeEncodeError):
        write_file(path, "\udc80")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("word", ["spark-1", "=x", "spark-1=", "spark-1=a\nb"])
def test_a_password_must_be_node_and_password(tmp_path: Path, word: str) -> None:
    argv = ["up", "--driver", "process", "--nodes", "1", "--dir", str(tmp_path / "lab"), "--sudo-password", word]
    done = CliRunner().invoke(command, argv)
    assert done.exit_code == 2
    assert "NODE=PASSWORD" in done.output
    assert not (tmp_path / "lab").exists()


def test_down_without_a_lab_is_no_error(tmp_path: Path) -> None:
    done = CliRunner().invoke(command, ["down", "--dir", str(tmp_path)])
    assert (done.exit_code, "No lab is up" in done.stderr) == (0, True)


def test_the_command_line_imports_nothing_heavy() -> None:
    import subprocess
    import sys

    script = "import sys, sparkops.cli.lab; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert not {"paramiko", "yaml", "cryptography", "sparkops.lab.lab", "platformdirs"} & set(loaded)
