"""The tiny Qwen3.5-MoE checkpoints that the real engine is tried with: all four makes, by their headers.

Their heads, head_dim and linear layers are those of the 35B models, so a block holds as many tokens; the rest is small.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sparkops.checkpoint.advice import advice
from sparkops.checkpoint.fit import GIB, Fit, Wanted, fit
from sparkops.checkpoint.geometry import Serving
from sparkops.checkpoint.inspect import Inspection, inspect
from sparkops.checkpoint.sources import headers
from sparkops.lab.standin.checkpoints import configs, geometry, makeup
from sparkops.lab.standin.checkpoints.headers import header, size, write_sparse
from sparkops.lab.standin.checkpoints.seeding import write_json
from sparkops.node import draft
from sparkops.node.donor import find
from sparkops.node.graft import Target, build

LAYERS = 4
TINY = {
    **{"LAYERS": LAYERS, "HIDDEN": 64, "VOCAB": 320, "EXPERTS": 8, "EXPERTS_PER_TOKEN": 2, "EXPERT_WIDTH": 32},
    **{"HEADS": 4, "VISION_BLOCKS": 2, "VISION_HIDDEN": 32, "VISION_WIDTH": 64, "VISION_POSITIONS": 64},
}
# The CPU build's attention takes blocks of 128 tokens, a GPU's of 16.
CPU, GPU = 128, 16


@dataclass(frozen=True)
class Tiny:
    """A checkpoint's folder, and the tensors that were put there."""

    folder: Path
    tensors: list[makeup.Tensor]

    def look(self) -> Inspection:
        return inspect(headers(str(self.folder)))


@pytest.fixture(params=[(False, False), (True, False), (False, True), (True, True)], ids=["", "visual", "mtp", "both"])
def tiny(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tiny:
    for name, value in TINY.items():
        monkeypatch.setattr(geometry, name, value)
    visual, mtp = request.param
    body = [*makeup.bf16_tensors(), *(makeup.vision_tower() if visual else ())]
    folder = tmp_path / "tiny"
    folder.mkdir()
    write_sparse(folder / "model.safetensors", header(body))
    write_json(folder / "config.json", configs.config())
    write_sparse(tmp_path / "draft.safetensors", header(list(makeup.draft_tensors())))
    if not mtp:
        return Tiny(folder, body)
    build(Target(str(folder)), find(str(tmp_path / "draft.safetensors"), "", None), str(tmp_path / "grafted"))
    return Tiny(tmp_path / "grafted", [*body, *makeup.draft_tensors()])


def planned(found: Inspection, **serving: Any) -> Fit:
    return fit(found, Wanted(context=4096, pool=GIB, serving=Serving(**serving)))


def test_inspect_finds_what_is_there(tiny: Tiny) -> None:
    found = tiny.look()
    names = [name for name, _, _ in tiny.tensors]
    assert found.tensors == len(tiny.tensors)
    assert found.resident_bytes == sum(map(size, tiny.tensors))
    assert found.dtypes == {"BF16": found.resident_bytes}
    assert found.count("vision") == len([name for name in names if "visual" in name])
    assert found.count("mtp") == len([name for name in names if draft.is_draft(name)]) in (0, 19)
    assert (found.experts, found.experts_per_token) == (8, 2)
    assert found.parts["routed_experts"].decode_bytes * 4 == found.parts["routed_experts"].bytes


def test_fit_agrees_with_it(tiny: Tiny) -> None:
    found = tiny.look()
    for block, tokens in ((CPU, 1152), (GPU, 1056)):
        result = planned(found, block_tokens=block)
        assert result.weights == found.resident_bytes
        assert result.capacity.layout.block_tokens == tokens
        # One full layer a group, beside three groups of a linear one.
        assert result.capacity.layout.block_bytes == tokens * 2048
        assert result.capacity.need_blocks == 4 + LAYERS - 1
        assert result.capacity.blocks == GIB // (tokens * 2048)


def test_a_draft_that_is_there_can_be_used(tiny: Tiny) -> None:
    found = tiny.look()
    told = "\n".join(advice(found))
    assert ("a draft is there (19 mtp tensors)" in told) == bool(found.count("mtp"))
    assert ("no draft: config.json declares 1 MTP layer" in told) == (not found.count("mtp"))
    result = planned(found, draft=3)
    # As the engine logged for such a checkpoint (FACTS: block 1072 at k = 3).
    assert result.capacity.layout.block_tokens == 1072
    assert result.draft == 3


def test_the_flag_follows_from_the_tensors(tiny: Tiny) -> None:
    found = tiny.look()
    told = "\n".join(["", *advice(found)])
    assert ("\npass --language-model-only" in told) == (not found.count("vision"))
    assert ("\ndo not pass --language-model-only" in told) == bool(found.count("vision"))
