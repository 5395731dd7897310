from __future__ import annotations

import pytest
from msgspec.structs import replace

from sparkops.recipes.load import Catalogue
from sparkops.serving.command import environment, serve_args


def flags(args: list[str]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for word in args:
        if word.startswith("--"):
            pairs[word] = ""
            last = word
        else:
            pairs[last] = word
    return pairs


COMMON = {"--max-model-len": "262144", "--shutdown-timeout": "60"}
NVFP4 = {
    **COMMON,
    "--served-model-name": "Qwen-AgentWorld-35B-A3B-NVFP4",
    "--gpu-memory-utilization": "0.5",
    "--kv-cache-memory-bytes": "8589934592",
}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "bf16",
            {
                **COMMON,
                "--served-model-name": "Qwen/Qwen-AgentWorld-35B-A3B",
                "--gpu-memory-utilization": "0.8",
                "--kv-cache-memory-bytes": "8589934592",
                "--language-model-only": "",
            },
        ),
        ("nvfp4", NVFP4),
        ("nvfp4-mtp", {**NVFP4, "--speculative-config": '{"method":"mtp","num_speculative_tokens":3}'}),
        (
            "fp8",
            {
                **COMMON,
                "--served-model-name": "Qwen/Qwen3.6-35B-A3B-FP8",
                "--gpu-memory-utilization": "0.6",
                "--kv-cache-memory-bytes": "6442450944",
            },
        ),
    ],
)
def test_the_published_flags(name: str, expected: dict[str, str]) -> None:
    assert flags(serve_args(Catalogue().recipe(name))) == expected


def test_without_a_pinned_pool() -> None:
    recipe = replace(Catalogue().recipe("fp8"), kv_cache_memory_bytes=None)
    assert "--kv-cache-memory-bytes" not in serve_args(recipe)


def test_hostile_words_stay_one_word() -> None:
    recipe = replace(Catalogue().recipe("fp8"), served_model_name="a b; whoami", args=["--x", "$(id)\n"])
    args = serve_args(recipe)
    assert "a b; whoami" in args
    assert args[-2:] == ["--x", "$(id)\n"]


def test_environment() -> None:
    recipe = Catalogue().recipe("fp8")
    env = environment(recipe)
    assert env["HF_HUB_OFFLINE"] == env["VLLM_NO_USAGE_STATS"] == "1"
    assert env["VLLM_ENGINE_READY_TIMEOUT_S"] == str(recipe.expect.ready_within)
    assert environment(replace(recipe, env={"HF_HUB_OFFLINE": "0", "X": "y"})) | {"X": "y"} == {
        **environment(recipe),
        "HF_HUB_OFFLINE": "0",
        "X": "y",
    }
