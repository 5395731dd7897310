from __future__ import annotations

from pathlib import Path

import pytest

from sparkops.recipes.crosscheck import findings
from sparkops.recipes.findings import Warned
from sparkops.recipes.load import Catalogue


def found(folder: Path, text: str) -> list[tuple[str, bool, str]]:
    """(message, whether it is a warning, line:column) of the findings in recipes/mine.yml."""
    (folder / "recipes").mkdir(exist_ok=True)
    path = folder / "recipes" / "mine.yml"
    path.write_text(text)
    catalogue = Catalogue([folder])
    return [
        (one.message, isinstance(one, Warned), f"{one.where}".removeprefix(f"{path}:"))
        for one in findings(catalogue, catalogue.load_recipe(path))
    ]


@pytest.mark.parametrize("name", Catalogue().names("recipes"))
def test_the_shipped_ones_hold_together(name: str) -> None:
    catalogue = Catalogue()
    assert findings(catalogue, catalogue.load_recipe(catalogue.path("recipes", name))) == []


WRONG = [
    ("fp8", "engine: vllm-0.25.0", "there is no engine 'vllm-0.25.0'", "2:9"),
    ("fp8", "patches: [{name: qwen, when: never}]", "there is no patch 'qwen'", "2:18"),
    ("bf16", "engine: vllm-9", "there is no engine 'vllm-9'", "2:9"),
    ("fp8", "args: [--x, '1', --tensor-parallel-size, '2']", "--tensor-parallel-size 2: a Spark has one GPU", "2:18"),
    ("fp8", "args: [-tp=2]", "-tp 2: a Spark has one GPU", "2:8"),
    ("fp8", "args: [model, --x]", "'model' follows no flag", "2:8"),
    ("fp8", "args: [--x=1, '2']", "'2' follows no flag", "2:15"),
    ("fp8", "args: [--speculative-config, '{method: mtp}']", "--speculative-config takes JSON", "2:8"),
    ("fp8", """args: ['--speculative-config={"method":"mtp"}']""", "no mtp tensors to draft with", "2:8"),
    ("fp8", "requires: {memory_gib: 122}", "122 GiB are more than the 121.7 a Spark has", "2:24"),
    ("fp8", "requires: {memory_gib: 40}", "weights (35.28 GiB) and KV pool (6 GiB) alone need more than 40", "2:24"),
    ("fp8", "requires: {disk_gb: 35}", "35 GB of disk do not hold the checkpoint's 36", "2:21"),
    (
        "fp8",
        "kv_cache_memory_bytes: null\ngpu_memory_utilization: 0.2",
        "0.2 is 24.3 GiB, less than the weights",
        "3:25",
    ),
    ("fp8", "expect: {kv_cache_tokens: 198000}", "does not hold one request of max_model_len (262144)", "2:27"),
    ("fp8", "expect: {kv_cache_tokens: 412980}", "hold 1.58 requests of 262144, not 1.18", "1:1"),
    ("fp8", "draft: {target: nope, donor: hf:a/b}\nmodel_source: null", "there is no recipe 'nope'", "2:17"),
    ("fp8", "draft: {target: nvfp4-mtp, donor: hf:a/b}", "nvfp4-mtp has a draft already", "2:17"),
    ("fp8", "draft: {target: nvfp4, donor: hf:a/b}", "makes has mtp tensors", "2:8"),
    ("nvfp4-mtp", "draft: {target: fp8}\nmodel: a/Qwen3.6-35B-A3B-FP8", "have the same folder", "2:17"),
    ("bf16", "requires: null\nkv_cache_memory_bytes: 64424509440\ngpu_memory_utilization: 0.9", "114 usable", "3:24"),
]


@pytest.mark.parametrize(("base", "text", "message", "place"), WRONG, ids=[case[2] for case in WRONG])
def test_what_is_wrong(tmp_path: Path, base: str, text: str, message: str, place: str) -> None:
    errors = [(said, where) for said, warning, where in found(tmp_path, f"extends: {base}\n{text}\n") if not warning]
    assert [said for said, _ in errors if message in said], errors
    if place != "1:1":  # the figure that it disagrees with stands in the base's file
        assert place in [where for _, where in errors]


DOUBTFUL = [
    ("fp8", "port: 80", "port 80: a server that is not root", "2:7"),
    ("fp8", "host: 0.0.0.0", "host 0.0.0.0: every network", "2:7"),
    ("fp8", "args: [--x, --x]", "--x stands here twice", "2:13"),
    ("nvfp4", "args: [--language-model-only]", "333 visual tensors", "2:8"),
    ("fp8", "gpu_memory_utilization: 0.3", "0.3 is 36.5 GiB, less than", "2:25"),
    ("fp8", "gpu_memory_utilization: 0.95", "wants 115.6 GiB free", "2:25"),
    ("fp8", "requires: {memory_gib: 115}", "more than the 114 that count as usable", "2:24"),
    ("fp8", "args: [--kv-cache-dtype, fp8]", "(308955) is that of another args", "2:7"),
    ("nvfp4-mtp", "model_source: hf:a/b\ndraft: {target: nvfp4}", "nothing is grafted", "3:8"),
    ("fp8", "kv_cache_memory_bytes: 8589934592", "(308955) is that of another kv_cache_memory_bytes", "2:24"),
]


@pytest.mark.parametrize(("base", "text", "message", "place"), DOUBTFUL, ids=[case[2] for case in DOUBTFUL])
def test_what_is_doubtful(tmp_path: Path, base: str, text: str, message: str, place: str) -> None:
    seen = found(tmp_path, f"extends: {base}\n{text}\n")
    assert [where for said, warning, where in seen if warning and message in said] == [place], seen
    assert all(warning for _, warning, _ in seen)


def test_a_patch_must_know_the_engine_that_carries_it(tmp_path: Path) -> None:
    (tmp_path / "engines").mkdir()
    (tmp_path / "engines" / "a.lock").write_text("vllm==0.27.0 --hash=sha256:00\n")
    (tmp_path / "engines" / "vllm-0.27.0.yml").write_text(
        "name: vllm\nversion: 0.27.0\npython: null\nexpect_cuda: null\nlocks: {x86_64: a.lock}\nprobe: [bin/vllm]\n"
    )
    always = "extends: bf16\nengine: vllm-0.27.0\npatches:\n  - {name: qwen3_5-language-only-guard, when: always}\n"
    assert found(tmp_path, always) == [
        ("the patch qwen3_5-language-only-guard does not know vllm-0.27.0", False, "4:5")
    ]
    assert found(tmp_path, always.replace("always", "never")) == []
    twice = always.replace("vllm-0.27.0", "vllm-0.26.0") + "  - {name: qwen3_5-language-only-guard, when: never}\n"
    assert found(tmp_path, twice) == [("the patch qwen3_5-language-only-guard stands here twice", False, "5:5")]


def test_figures_of_its_own_are_not_doubted(tmp_path: Path) -> None:
    own = "expect: {kv_cache_tokens: 412980, concurrency: 1.58}"
    assert found(tmp_path, f"extends: fp8\nkv_cache_memory_bytes: 8589934592\n{own}\n") == []
    assert found(tmp_path, "extends: fp8\nkv_cache_memory_bytes: 8589934592\nexpect: null\n") == []
