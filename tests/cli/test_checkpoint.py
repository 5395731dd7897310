"""`sparkops checkpoint` as a user meets it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sparkops.lab.standin import checkpoints

BF16 = "Qwen-AgentWorld-35B-A3B"
MTP = "Qwen-AgentWorld-35B-A3B-NVFP4-MTP"
FP8 = "Qwen3.6-35B-A3B-FP8"
INSPECTED = {
    *("tensors", "visual_tensors", "mtp_tensors", "file_bytes", "resident_bytes", "decode_bytes", "ceiling_tok_s"),
    *("dtypes", "categories", "advice"),
}
FITTED = {
    *("block_tokens", "blocks", "need_blocks", "need_bytes", "pool_bytes", "kv_tokens", "concurrency", "max_context"),
    *("weights_bytes", "headroom_bytes", "flags"),
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the checkpoints, and an inventory whose node is this machine."""
    folder = tmp_path_factory.mktemp("project")
    checkpoints.seed(folder / "models")
    node = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    hosts = {"spark-1": {**node, "models_dir": str(folder / "models")}, "spark-2": node}
    (folder / "hosts.yml").write_text(json.dumps({"all": {"hosts": hosts}}))
    return folder


def sparkops(*words: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "sparkops.cli.main", "checkpoint", *words]
    return subprocess.run(argv, cwd=cwd, capture_output=True, text=True, timeout=60, env={**os.environ, **env})


def answer(*words: str, cwd: Path) -> dict[str, Any]:
    ran = sparkops(*words, "--json", cwd=cwd)
    assert ran.returncode == 0, ran
    document: dict[str, Any] = json.loads(ran.stdout)
    return document


def test_inspect(project: Path) -> None:
    found = answer("inspect", f"models/{MTP}", cwd=project)
    assert set(found) == INSPECTED
    assert (found["tensors"], found["visual_tensors"], found["mtp_tensors"]) == (124_775, 333, 19)
    assert set(found["categories"]["routed_experts"]) == {"tensors", "bytes", "decode_bytes"}
    slower = answer("inspect", f"models/{MTP}", "--bandwidth", "136.5", cwd=project)
    assert slower["ceiling_tok_s"] == pytest.approx(found["ceiling_tok_s"] / 2)
    told = sparkops("inspect", f"models/{MTP}", cwd=project).stdout
    assert "124,775 tensors in 2 files of 23.6 GB" in told
    assert "reads 2.42 GB: at most 113 tok/s at 273 GB/s" in told
    assert "256 experts a layer, of which a token takes 8" in told


def test_fit_a_source(project: Path) -> None:
    found = answer("fit", f"models/{BF16}", cwd=project)
    assert set(found) == FITTED
    assert (found["block_tokens"], found["blocks"], found["need_blocks"]) == (1056, 397, 252)
    assert (found["kv_tokens"], found["concurrency"]) == (412_980, 397 / 252)
    assert found["flags"] == ["--kv-cache-memory-bytes", "8589934592", "--gpu-memory-utilization", "0.68"]
    found = answer("fit", f"models/{BF16}", "--speculative", "3", "--kv-gib", "6.5", "--context", "1000", cwd=project)
    assert (found["block_tokens"], found["need_blocks"], found["pool_bytes"]) == (1072, 13, 13 << 29)
    smaller = answer("fit", f"models/{BF16}", "--memory", "80", cwd=project)
    larger = answer("fit", f"models/{BF16}", "--memory", "90.5", cwd=project)
    assert larger["headroom_bytes"] - smaller["headroom_bytes"] == 21 << 29
    assert smaller["headroom_bytes"] < 0 < larger["headroom_bytes"]


def test_fit_a_recipe(project: Path) -> None:
    found = answer("fit", "nvfp4-mtp", "--source", f"models/{MTP}", cwd=project)
    assert (found["block_tokens"], found["kv_tokens"]) == (1072, 362_105)
    assert found["flags"] == ["--kv-cache-memory-bytes", "8589934592", "--gpu-memory-utilization", "0.5"]
    found = answer("fit", "fp8", "--source", f"models/{FP8}", "--kv-gib", "4", cwd=project)
    assert (found["blocks"], found["max_context"], found["flags"][-1]) == (198, 205_920, "0.6")


def test_what_does_not_fit_is_said(project: Path) -> None:
    ran = sparkops("fit", f"models/{BF16}", "--kv-gib", "4", "--speculative", "3", "--memory", "40", cwd=project)
    assert ran.returncode == 0
    assert "the pool does not hold one request of 262,144 tokens" in ran.stderr
    assert "--kv-gib 5.79 or more" in ran.stderr
    assert "no mtp tensor is there to draft with" in ran.stderr
    assert "it does not fit: 38.6 GiB more" in ran.stderr
    assert not sparkops("fit", f"models/{BF16}", "--kv-gib", "5.79", cwd=project).stderr


def test_on_a_node(project: Path) -> None:
    here = answer("inspect", f"models/{FP8}", cwd=project)
    node = ("--node", "spark-1", "-i", "hosts.yml")
    assert answer("inspect", str(project / "models" / FP8), *node, cwd=project) == here
    assert answer("fit", "fp8", *node, cwd=project)["kv_tokens"] == 308_955
    shard = project / "models" / FP8 / "model-00001-of-00010.safetensors"
    found = answer("inspect", str(shard), *node, cwd=project)
    assert found == answer("inspect", str(shard), cwd=project)
    assert 0 < found["tensors"] < here["tensors"]
    (project / "short").mkdir(exist_ok=True)
    for name in ("a.safetensors", "b.safetensors"):
        (project / "short" / name).write_bytes(b"\x60" + bytes(7) + b"{}")
    ran = sparkops("inspect", str(project / "short"), *node, cwd=project)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert all(f"{name}: truncated" in ran.stderr for name in ("a.safetensors", "b.safetensors"))
    ran = sparkops("inspect", "/gone", *node, cwd=project)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "spark-1: cannot read /gone: No such file" in ran.stderr
    ran = sparkops("inspect", "/gone", "--node", "all", "-i", "hosts.yml", cwd=project)
    assert (ran.returncode, "means 2 nodes" in ran.stderr) == (2, True)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["inspect", "gone"], "no such folder or file"),
        (["inspect", "hosts.yml"], "not a safetensors file"),
        (["inspect", "hf:x"], "names no model"),
        (["inspect", "hf:a/b", "--endpoint", "nowhere"], "no address of a hub"),
        (["inspect", "hf:a/b", "--node", "spark-1"], "leave --node out"),
        (["inspect", f"models/{BF16}", "--bandwidth", "0"], "bandwidth"),
        (["inspect", f"models/{BF16}", "--bandwidth", "nan"], "no number"),
        (["fit", "nvfp5"], "did you mean 'nvfp4'?"),
        (["fit", "nvfp4"], "--source FOLDER"),
        (["fit", f"models/{BF16}", "--source", "x"], "goes with a recipe"),
        (["fit", f"models/{BF16}", "--kv-gib", "-1"], "kv-gib"),
        (["fit", f"models/{BF16}", "--kv-gib", "nan"], "no number"),
        (["fit", f"models/{BF16}", "--context", "262145"], "the model's own is 262,144"),
        (["fit", f"models/{BF16}", "--speculative", "-1"], "speculative"),
        (["fit", f"models/{BF16}/model-00001-of-00014.safetensors", "--context", "0"], "context"),
    ],
)
def test_wrong_input(project: Path, words: list[str], message: str) -> None:
    ran = sparkops(*words, cwd=project)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert message in ran.stderr
    assert "Traceback" not in ran.stderr


def test_the_token_is_never_shown(project: Path) -> None:
    # Nothing listens there.
    ran = sparkops("inspect", "hf:a/b", "--endpoint", "http://127.0.0.1:9", cwd=project, HF_TOKEN="hf_secretsecret")
    assert ran.returncode == 2
    assert "hf_secret" not in ran.stdout + ran.stderr
