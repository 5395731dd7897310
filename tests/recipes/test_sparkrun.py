"""Recipes in the format of spark-vllm-docker (version 1) and sparkrun (version 2), written for these tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml as pyyaml

from sparkops.errors import InputError
from sparkops.project import yaml
from sparkops.recipes.load import Catalogue
from sparkops.recipes.serve_flags import count
from sparkops.recipes.sparkrun import Imported, translate

FIRST = r"""
recipe_version: "1"
name: Little Model (FP8)
description: >
  A little
  model
model: org/little
container: some-image
solo_only: true
build_args: []
mods: [mods/some-fix]
env: {VLLM_A: 1, B: "no", VLLM_API_KEY: hush}
defaults:
  port: 8010
  host: 0.0.0.0
  tensor_parallel: 2
  gpu_memory_utilization: 0.7
  max_model_len: 32K
  draft: '{"method": "mtp", "num_speculative_tokens": {k}}'
  k: 3
  forgotten: 1
command: |
  # a comment
  export C=3
  vllm serve org/little \
    --max-model-len {max_model_len} --port {port} --host {host} \
    --gpu_memory_utilization {gpu_memory_utilization} \
    --speculative-config '{draft}' --hf-overrides '{{"a": {{"b": 1}}}}' \
    --served-model-name little other \
    --reasoning-parser-plugin my_parser.py --load-format runai_streamer --kv-cache-dtype=fp8 \
    -tp {tensor_parallel} --distributed-executor-backend ray --api-key whisper
"""


def imported(text: str, **options: Any) -> Imported:
    name = options.pop("name", None)
    return translate(yaml.loads(text, "f.yaml"), Path("f.yaml"), name=name, engine="vllm-0.24.0", lock="", **options)


def test_version_1() -> None:
    found = imported(FIRST)
    assert found.recipe == {
        "name": "little-model-fp8",
        "description": "A little model",
        "model": "org/little",
        "model_source": "hf:org/little",
        "served_model_name": "little",
        "engine": "vllm-0.24.0",
        "max_model_len": 32768,
        "gpu_memory_utilization": 0.7,
        "port": 8010,
        "args": [
            "--speculative-config",
            '{"method": "mtp", "num_speculative_tokens": 3}',
            "--hf-overrides",
            '{"a": {"b": 1}}',
            "--kv-cache-dtype",
            "fp8",
        ],
        "env": {"VLLM_A": "1", "B": "no", "C": "3"},
        "requires": {"driver": 580, "memory_gib": 85},
    }
    assert [one.what for one in found.left_out] == [
        "container",
        "mods",
        "forgotten",
        "--host",
        "--served-model-name",
        "--reasoning-parser-plugin",
        "--load-format",
        "-tp",
        "--distributed-executor-backend",
        "--api-key",
        "env",
    ]
    assert found.left_out[0].where == "f.yaml:8:1"


def test_a_secret_is_not_repeated() -> None:
    assert "hush" not in imported(FIRST).text()
    assert "whisper" not in imported(FIRST).text()


def test_version_2_without_a_command() -> None:
    found = imported(
        "model: org/m\nmodel_revision: abc\nruntime: vllm-distributed\nmetadata: {description: hello}\nmin_nodes: 1\n"
        "defaults: {max_model_len: 4096, tensor_parallel: 1, enable_prefix_caching: true, trust_remote_code: false,\n"
        "  kv_cache_memory_bytes: 8589934592, speculative_config: {method: mtp}}\nbenchmark: {timeout: 1}\n",
        name="m",
    )
    assert found.recipe["args"] == ["--enable-prefix-caching", "--speculative-config", '{"method": "mtp"}']
    assert found.recipe["kv_cache_memory_bytes"] == 8589934592
    assert (found.recipe["model_revision"], found.recipe["description"]) == ("abc", "hello")
    assert "requires" not in found.recipe
    assert [one.what for one in found.left_out] == ["metadata", "benchmark"]


def test_plain_json_in_a_template_without_doubled_braces() -> None:
    text = """model: org/m\ndefaults: {n: 2, max_model_len: 1}
command: vllm serve {model} --max-model-len {max_model_len} --c '{"a":{"b":{n}}}' --d '{unknown}'\n"""
    assert imported(text).recipe["args"] == ["--c", '{"a":{"b":2}}', "--d", "{unknown}"]


def test_weights_that_are_there_already() -> None:
    found = imported("model: /nfs/models/qwen/\ndefaults: {max_model_len: 1}\n", name="x").recipe
    assert (found["model"], found["model_source"]) == ("qwen", "/nfs/models/qwen")


def test_the_text_is_a_recipe(tmp_path: Path) -> None:
    found = imported(FIRST)
    path = tmp_path / "little-model-fp8.yml"
    path.write_text(found.text())
    assert Catalogue().load_recipe(path).recipe.served_model_name == "little"
    assert pyyaml.safe_load(found.text()) == found.recipe
    notes = [line for line in found.text().splitlines() if line.startswith("# not mapped: ")]
    assert len(notes) == len(found.left_out)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "no recipe of spark-vllm-docker or sparkrun"),
        ("name: x\nengine: y\n", "no recipe of spark-vllm-docker or sparkrun"),
        ("model: a\nruntime: sglang\n", "serves with sglang"),
        ("model: a\ncluster_only: true\n", "makes one copy out of several nodes"),
        ("model: a\nmin_nodes: 2\n", "makes one copy out of several nodes"),
        ("model: a\nmode: cluster\n", "makes one copy out of several nodes"),
        ("model: a\n", "gives no max_model_len"),
        ("model: a\ncommand: vllm serve a --max-model-len auto\n", "gives no max_model_len"),
        ("model: a\ncommand: llama-server -m a\n", "it starts with 'llama-server -m'"),
        ("model: a\ncommand: vllm serve a --x $HOME\n", "it has $HOME"),
        ('model: a\ncommand: vllm serve a --x "$(id)"\n', "it has $("),
        ("model: a\ncommand: cd /x && vllm serve a\n", "it has &&"),
        ("model: a\ncommand: vllm serve a > log\n", "it has >"),
        ("model: a\ncommand: vllm serve a --x 'y\n", "cannot be read: No closing quotation"),
        ("model: a\ncommand: |\n  vllm serve a\n  vllm serve b\n", "2 commands"),
        ("model: a b\ndefaults: {max_model_len: 1}\n", "no place that a checkpoint can come from"),
        ("model: a\ndefaults: {max_model_len: 1, port: 70000}\n", "<= 65535"),
    ],
)
def test_what_cannot_be_read(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        imported(text, name="x")
    assert message in caught.value.message


def test_quotes_keep_the_shell_out() -> None:
    text = """model: a\ncommand: "vllm serve a --max-model-len 1 --x '$HOME;`' --y \\"a;b\\""\n"""
    assert imported(text).recipe["args"] == ["--x", "$HOME;`", "--y", "a;b"]


@pytest.mark.parametrize(
    ("text", "number"),
    [("32768", 32768), ("32k", 32000), ("32K", 32768), ("1.5k", 1500), ("2G", 2**31), ("auto", None), ("-1", None)],
)
def test_counts(text: str, number: int | None) -> None:
    assert count(text) == number
