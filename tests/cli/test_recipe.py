"""`sparkops recipe` and `sparkops engine` as a user meets them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

MINE = """\
extends: fp8
port: 8100
expect: {backend: Using X}
"""


def sparkops(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "sparkops.cli.main", *words]
    return subprocess.run(argv, cwd=cwd, env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
                          capture_output=True, text=True, timeout=60)  # fmt: skip


def answer(*words: str, cwd: Path) -> Any:
    ran = sparkops(*words, "--json", cwd=cwd)
    assert ran.returncode == 0, ran
    return json.loads(ran.stdout)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes" / "mine.yml").write_text(MINE)
    return tmp_path


def test_list(project: Path) -> None:
    rows = {row["name"]: row for row in answer("recipe", "list", cwd=project)["recipes"]}
    assert list(rows) == ["bf16", "fp8", "mine", "nvfp4", "nvfp4-mtp"]
    assert (rows["mine"]["extends"], rows["mine"]["port"]) == (["fp8"], 8100)
    lines = sparkops("recipe", "list", cwd=project).stdout.splitlines()
    assert lines[0].split() == ["NAME", "MODEL", "ENGINE", "CONTEXT", "KV", "POOL", "PATCHES", "FROM"]
    assert lines[2].split()[0:7] == ["fp8", "Qwen/Qwen3.6-35B-A3B-FP8", "vllm-0.24.0", "262,144", "6", "GiB", "-"]


def test_list_shows_a_wrong_one_too(project: Path) -> None:
    (project / "recipes" / "bad.yml").write_text("extends: fp9\n")
    ran = sparkops("recipe", "list", cwd=project)
    assert ran.returncode == 0
    assert "there is no recipe 'fp9'" in ran.stdout
    assert "nvfp4-mtp" in ran.stdout


def test_show(project: Path) -> None:
    ran = sparkops("recipe", "show", "mine", cwd=project)
    assert ran.returncode == 0, ran
    assert "port: 8100  # recipes/mine.yml:2:7" in ran.stdout.splitlines()
    assert yaml.safe_load(ran.stdout)["expect"]["backend"] == "Using X"
    assert "#" not in sparkops("recipe", "show", "fp8", cwd=project).stdout
    found = answer("recipe", "show", "mine", cwd=project)
    assert found["extends"] == ["fp8"]
    assert found["recipe"]["port"] == 8100
    assert found["from"]["port"] == "recipes/mine.yml:2:7"


def test_validate_all(project: Path) -> None:
    ran = sparkops("recipe", "validate", cwd=project)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.splitlines() == ["bf16: ok", "fp8: ok", "mine: ok", "nvfp4: ok", "nvfp4-mtp: ok"]


def test_validate_names_what_is_wrong(project: Path) -> None:
    (project / "recipes" / "a.yml").write_text("extends: fp8\nprot: 1\n")
    (project / "recipes" / "b.yml").write_text("extends: fp8\nargs: [-tp, '2']\nhost: 0.0.0.0\nengine: vllm-0.25.0\n")
    ran = sparkops("recipe", "validate", "a", "recipes/b.yml", "mine", cwd=project)
    assert ran.returncode == 2
    assert ran.stdout.splitlines() == ["a: wrong", "recipes/b.yml: wrong", "mine: ok"]
    assert f"{project}/recipes/a.yml:2:1: object contains unknown field `prot`" in ran.stderr
    assert "did you mean 'port'?" in ran.stderr
    assert f"{project}/recipes/b.yml:2:8: -tp 2: a Spark has one GPU" in ran.stderr
    assert f"{project}/recipes/b.yml:4:9: there is no engine 'vllm-0.25.0'" in ran.stderr
    assert f"warning: {project}/recipes/b.yml:3:7: host 0.0.0.0" in ran.stderr
    ran = sparkops("--json", "recipe", "validate", "a", "recipes/b.yml", "mine", cwd=project)
    a, b, mine = json.loads(ran.stdout)["recipes"]
    assert (ran.returncode, ran.stderr) == (2, "")
    assert (a["ok"], b["ok"], mine["ok"]) == (False, False, True)
    assert a["errors"][0]["where"] == f"{project}/recipes/a.yml:2:1"
    assert (len(b["errors"]), len(b["warnings"])) == (2, 1)
    assert sparkops("recipe", "validate", "nothing", cwd=project).returncode == 2
    assert sparkops("recipe", "validate", "./nothing.yml", cwd=project).returncode == 2


def test_a_warning_alone_is_no_failure(project: Path) -> None:
    (project / "recipes" / "mine.yml").write_text("extends: fp8\nhost: 0.0.0.0\n")
    ran = sparkops("recipe", "validate", "mine", cwd=project)
    assert (ran.returncode, ran.stdout) == (0, "mine: ok\n")
    assert "every network" in ran.stderr


def test_command(project: Path) -> None:
    words = ("recipe", "command", "mine", "--engine-path", "/e", "--model-path", "/m x")
    ran = sparkops(*words, cwd=project)
    assert ran.stdout.splitlines() == [
        "PATH=/e/bin:/usr/local/cuda/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        'HF_HUB_OFFLINE="1"',
        'VLLM_ENGINE_READY_TIMEOUT_S="900"',
        'VLLM_NO_USAGE_STATS="1"',
        "exec /e/bin/vllm serve '/m x' \\",
        "  --host 127.0.0.1 --port 8100 \\",
        "  --served-model-name Qwen/Qwen3.6-35B-A3B-FP8 \\",
        "  --max-model-len 262144 \\",
        "  --gpu-memory-utilization 0.6 \\",
        "  --kv-cache-memory-bytes 6442450944 \\",
        "  --shutdown-timeout 60",
    ]
    found = answer(*words, "--host", "::1", "--port", "9", cwd=project)
    assert found["argv"][:7] == ["/e/bin/vllm", "serve", "/m x", "--host", "::1", "--port", "9"]
    assert found["environment"]["HF_HUB_OFFLINE"] == "1"


def test_command_for_a_spark_as_it_is_provisioned(project: Path) -> None:
    argv = answer("recipe", "command", "bf16", cwd=project)["argv"]
    assert argv[0].startswith("/opt/sparkops/engines/vllm-0.24.0-")
    assert argv[0] != answer("recipe", "command", "fp8", cwd=project)["argv"][0]  # bf16's is patched
    assert argv[2] == "~/models/hf/Qwen-AgentWorld-35B-A3B"
    assert argv[-1] == "--language-model-only"


def test_command_with_templates_of_one_s_own(project: Path) -> None:
    assert sparkops("recipe", "command", "fp8", cwd=project).stderr == ""
    (project / "templates").mkdir()
    (project / "templates" / "run.j2").write_text("#!/bin/sh\n")
    ran = sparkops("recipe", "command", "fp8", cwd=project)
    assert ran.returncode == 0
    assert ran.stderr == f"warning: {project}/templates/run.j2 is the project's own, and may write something else\n"


def test_unknown_names(project: Path) -> None:
    for verb in ("show", "command", "validate"):
        ran = sparkops("recipe", verb, "fp9", cwd=project)
        assert ran.returncode == 2
        assert "there is no recipe 'fp9'" in ran.stderr
        assert "did you mean fp8" in ran.stderr


def test_import(project: Path) -> None:
    (project / "theirs.yaml").write_text(
        "name: Little\nmodel: org/little\ncontainer: image\ndefaults: {port: 8000, max_model_len: 4096}\n"
        "command: vllm serve {model} --port {port} --max-model-len {max_model_len} --enable-prefix-caching\n"
    )
    ran = sparkops("recipe", "import", "theirs.yaml", cwd=project)
    assert ran.returncode == 0, ran
    assert ran.stderr.startswith("not mapped: container image: ")
    (project / "recipes" / "little.yml").write_text(ran.stdout)
    assert sparkops("recipe", "validate", "little", cwd=project).returncode == 0
    assert answer("recipe", "command", "little", cwd=project)["argv"][-1] == "--enable-prefix-caching"
    found = answer("recipe", "import", "theirs.yaml", "--name", "x", cwd=project)
    assert found["recipe"]["name"] == "x"
    assert found["not_mapped"][0]["where"].endswith("theirs.yaml:3:1")


def test_engine_list(project: Path) -> None:
    rows = {row["name"]: row for row in answer("engine", "list", cwd=project)["engines"]}
    assert rows["vllm-0.24.0"]["packages"] == {"aarch64": 189, "x86_64": 189}
    assert rows["vllm-0.24.0"]["recipes"] == ["bf16", "fp8", "mine", "nvfp4", "nvfp4-mtp"]
    assert rows["vllm-0.26.0"]["recipes"] == []
    lines = sparkops("engine", "list", cwd=project).stdout.splitlines()
    assert lines[0].split() == ["NAME", "PYTHON", "CUDA", "PACKAGES", "RECIPES", "FROM"]
    assert lines[1].split()[:3] == ["vllm-0.24.0", "3.12", "13.0"]


def test_engine_lock_refuses_what_it_cannot_mean(project: Path) -> None:
    assert sparkops("engine", "lock", "vllm", cwd=project).returncode == 2
    assert sparkops("engine", "lock", "vllm-0.24.0", "--architecture", "sparc", cwd=project).returncode == 2
    assert not (project / "engines").exists()


@pytest.mark.network
def test_engine_lock(project: Path) -> None:
    index = os.environ.get("PIP_INDEX_URL", "https://pypi.org/simple")
    words = ("engine", "lock", "idna-3.10", "--architecture", "aarch64", "--index-url", index)
    ran = sparkops(*words, cwd=project)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout == f"{project}/engines/idna-3.10.lock: 1 packages for aarch64\n"
    assert (project / "engines" / "idna-3.10.lock").read_text().startswith("idna==3.10 \\\n    --hash=sha256:")
    assert "idna-3.10" in sparkops("engine", "list", cwd=project).stdout
