from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest


def test_the_config_without_its_long_lists(tmp_path: Path, apply: Any) -> None:
    quantization = {"format": "x", "ignore": ["lm_head"] * 500, "kv_cache_scheme": {"num_bits": 8}}
    text = {"layer_types": ["full_attention"], "block_configs": [{}], "quantization_config": quantization}
    (tmp_path / "config.json").write_text(json.dumps({"text_config": text, "architectures": ["A"]}))
    kept = {**text, "quantization_config": {"format": "x", "kv_cache_scheme": {"num_bits": 8}}}
    for check in (True, False):
        done = apply("checkpoint_config", path=str(tmp_path), check=check)
        assert (done.state, done.result) == ("ok", {"config": {"text_config": kept, "architectures": ["A"]}})


@pytest.mark.parametrize("text", [None, "{", "[]"])
def test_no_config_is_no_failure(tmp_path: Path, apply: Any, text: str | None) -> None:
    if text is not None:
        (tmp_path / "config.json").write_text(text)
    done = apply("checkpoint_config", path=str(tmp_path))
    assert (done.state, done.result) == ("ok", {"config": None})
    assert done.msg
