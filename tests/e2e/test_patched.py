"""The patch that bf16 declares: what it is for, what it leaves as it was, and an environment that is not ours."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.e2e.nodes import ROOT, Nodes, lab

pytestmark = pytest.mark.lab

FILE = "vllm/model_executor/models/qwen3_5.py"
NAME = "qwen3_5-language-only-guard"
MODEL = "Qwen/Qwen-AgentWorld-35B-A3B"
ENGINES = "opt/sparkops/engines"
MISSING = "Following weights were not initialized from checkpoint"
# A Spark would not hold both copies; the stand-in takes no memory.
TOO_MUCH = ("-e", "preflight_ignore=services")


@pytest.fixture(scope="module")
def defect(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    """A node whose engine has the defect that the recipe describes."""
    with lab(tmp_path_factory.mktemp("defect") / "lab", 1, SPARKOPS_LAB_DEFECT="seed001") as nodes:
        nodes.sparkops("provision", "spark-1", "--recipe", "bf16", "--recipe", "fp8")
        yield nodes


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def pristine(nodes: Nodes) -> bytes:
    """The file as its wheel has it."""
    (wheel,) = nodes.dir.glob("wheels/vllm-0.24.0-*.whl")
    return zipfile.ZipFile(wheel).read(FILE)


def test_patched_it_serves_and_the_original_is_kept(defect: Nodes) -> None:
    run = defect.sparkops("deploy", "bf16", "spark-1")
    assert run.count("failed") == {"spark-1": 0}
    assert defect.token("spark-1", MODEL)
    assert_engines(defect)


@pytest.mark.parametrize("extra", ["{}", '{"env": {"SPARKOPS_LAB_DEFECT": "seed001"}}'], ids=["the lab's", "-e"])
def test_unpatched_it_does_not_serve_and_the_journal_says_why(defect: Nodes, tmp_path: Path, extra: str) -> None:
    recipe = yaml.safe_load((ROOT / "sparkops/recipes/recipes/bf16.yml").read_text())
    recipe["patches"] = [{"name": NAME, "when": "never"}]
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes/bf16.yml").write_text(yaml.safe_dump(recipe))
    words = ("-C", str(tmp_path), "deploy", "bf16", "spark-1", "--service", "unpatched", "-e", "port=8222", *TOO_MUCH)
    try:
        run = defect.sparkops(*words, "-e", extra, rc=1)
    finally:
        defect.on(
            "spark-1", "sh", "-c", "systemctl disable --now sparkops-unpatched; rm -r /opt/sparkops/releases/unp*"
        )
    failed = run.failure("spark-1")
    # The last word is the playbook's; what failed first was rescued by going back.
    assert MISSING in failed["msg"] or "visual" in failed["msg"]
    (failed,) = [task for task in run.tasks("spark-1") if task["state"] == "rescued"]
    assert failed["module"] in ("systemd_unit", "http_ready")
    assert MISSING in failed["msg"]
    assert any(MISSING in line for line in failed["result"]["journal"])
    assert not defect.token("spark-1", MODEL, 8222)


def test_patched_it_serves_with_the_defect_in_its_release(nodes: Nodes, password_file: str) -> None:
    words = ("deploy", "bf16", "spark-2", "--service", "seed", "-e", "port=8222", *TOO_MUCH)
    try:
        defect = '{"env": {"SPARKOPS_LAB_DEFECT": "seed001"}}'
        run = nodes.sparkops(*words, "-e", defect, "--become-password-file", password_file)
        assert run.count("failed") == {"spark-2": 0}
        assert nodes.token("spark-2", MODEL, 8222)
    finally:
        nodes.on("spark-2", "sh", "-c", "systemctl disable --now sparkops-seed; rm -rf /opt/sparkops/releases/seed")
    assert_engines(nodes, "spark-2")


def assert_engines(nodes: Nodes, node: str = "spark-1") -> None:
    """One engine has the patch, with its .orig; the others and uv's cache have the file as it was."""
    before = pristine(nodes)
    patch = yaml.safe_load((nodes.dir / "patches" / f"{NAME}.yml").read_text())
    after = {version["after"] for version in patch["versions"]}
    root = nodes.root(node)
    files = [path.read_bytes() for path in root.glob(f"{ENGINES}/*/lib/python3*/site-packages/{FILE}")]
    originals = [path.read_bytes() for path in root.glob(f"{ENGINES}/*/lib/python3*/site-packages/{FILE}.orig")]
    assert sorted(sha256(file) == sha256(before) for file in files) == [False, True]
    assert {sha256(file) for file in files} - {sha256(before)} <= after
    assert [sha256(original) for original in originals] == [sha256(before)]
    cached = [path.read_bytes() for path in root.glob(f"opt/sparkops/cache/uv/archive-v0/*/{FILE}")]
    assert cached
    assert {sha256(file) for file in cached} == {sha256(before)}


ADOPTED = "/home/spark/adopted"
PLAY = f"""
- hosts: spark-1
  gather_facts: false
  tasks:
    - pinned_patch:
        name: {NAME}
        root: ~/adopted/lib/python3*/site-packages
        state: "{{{{ state | default('present') }}}}"
"""


@pytest.fixture
def adopted(nodes: Nodes, tmp_path: Path) -> Iterator[Path]:
    """A venv that somebody made by hand on spark-1; gives a playbook that patches it."""
    script = (
        f"for engine in /{ENGINES}/vllm-*; do [ -e $engine/lib/python3*/site-packages/{FILE}.orig ] || "
        f"cp -a $engine {ADOPTED}; done; rm {ADOPTED}/sparkops.json"
    )
    nodes.on("spark-1", "runuser", "-u", "spark", "--", "sh", "-c", script)
    (tmp_path / "patch.yml").write_text(PLAY)
    yield tmp_path / "patch.yml"
    nodes.on("spark-1", "rm", "-rf", ADOPTED)


def tree(nodes: Nodes) -> str:
    """Every file of the adopted venv with mode, size, mtime, and hash."""
    find = f"find {ADOPTED} -printf '%p %m %s %T@ %l\\n' | sort; find {ADOPTED} -type f -exec sha256sum {{}} + | sort"
    return nodes.on("spark-1", "sh", "-c", find)


def test_an_adopted_venv_is_patched_once_and_taken_back(nodes: Nodes, adopted: Path) -> None:
    before = sha256(pristine(nodes))
    (file,) = nodes.root("spark-1").glob(f"{ADOPTED[1:]}/lib/python3*/site-packages/{FILE}")
    assert nodes.sparkops("play", str(adopted)).count("changed") == {"spark-1": 1}
    assert sha256(file.read_bytes()) != before
    assert sha256(file.with_name("qwen3_5.py.orig").read_bytes()) == before
    patched = tree(nodes)
    assert nodes.sparkops("play", str(adopted)).count("changed") == {"spark-1": 0}
    assert tree(nodes) == patched
    assert nodes.sparkops("play", str(adopted), "-e", "state=absent").count("changed") == {"spark-1": 1}
    assert sha256(file.read_bytes()) == before
    assert nodes.sparkops("play", str(adopted), "-e", "state=absent").count("changed") == {"spark-1": 0}


def test_a_file_that_someone_edited_is_left_as_it_is(nodes: Nodes, adopted: Path) -> None:
    (file,) = nodes.root("spark-1").glob(f"{ADOPTED[1:]}/lib/python3*/site-packages/{FILE}")
    edit = f"sed -i '0,/self.visual = /s//self.visual = self.tower = /' {ADOPTED}/lib/python3*/site-packages/{FILE}"
    nodes.on("spark-1", "sh", "-c", edit)
    before = tree(nodes)
    for words in ((), ("--check",), ("-e", "state=absent")):
        failed = nodes.sparkops("play", str(adopted), *words, rc=1).failure("spark-1")
        assert FILE in failed["msg"]
        assert sha256(file.read_bytes()) in failed["msg"]
        assert "Traceback" not in str(failed)
        assert tree(nodes) == before
