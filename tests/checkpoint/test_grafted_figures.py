"""The published draft, grafted into the published NVFP4 checkpoint from a hub: 1.7 GB of 71, and every figure."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sparkops.checkpoint.advice import advice, lacking
from sparkops.checkpoint.fit import fit
from sparkops.checkpoint.inspect import inspect
from sparkops.checkpoint.recipe import wanted
from sparkops.checkpoint.sources import headers
from sparkops.lab.standin.checkpoints import makeup
from sparkops.lab.standin.checkpoints.seeding import write_sharded
from sparkops.project.data import shipped
from sparkops.recipes.load import Catalogue

from .standin_hub import serving

NVFP4 = "Qwen-AgentWorld-35B-A3B-NVFP4"
MTP = "Qwen-AgentWorld-35B-A3B-NVFP4-MTP"


@pytest.mark.slow
def test_the_published_graft(models: Path, tmp_path: Path) -> None:
    hub, out = tmp_path / "hub", tmp_path / "grafted"
    hub.mkdir()
    write_sharded(hub, [*makeup.bf16_tensors(), *makeup.draft_tensors()], 14)
    with serving(hub) as server:
        words = ["checkpoint", "graft-mtp", str(models / NVFP4), "hf:org/model", str(out), "--endpoint", server.url]
        argv = [sys.executable, "-m", "sparkops.cli.main", *words]
        ran = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=250)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        # The headers of the shards that hold it, and the index, are the rest.
        assert 0 < server.sent - 1_689_281_536 < 1_500_000
    found, seeded = (inspect(headers(str(path))) for path in (out, models / MTP))
    recipe = Catalogue([shipped("recipes").parent]).recipe("nvfp4-mtp")
    assert recipe.checkpoint is not None
    assert (found.tensors, found.count("vision"), found.count("mtp")) == (
        *(recipe.checkpoint.tensors, recipe.checkpoint.visual, recipe.checkpoint.mtp),
    )
    assert f"{found.file_bytes / 1e9:.1f}" == f"{recipe.checkpoint.download_gb}"
    assert (found.parts, found.dtypes) == (seeded.parts, seeded.dtypes)
    assert found.config.document == seeded.config.document
    assert advice(found) == advice(seeded)
    assert any("a draft is there (19 mtp tensors)" in line for line in advice(found))
    capacity = fit(found, wanted(recipe)).capacity
    assert (capacity.layout.block_tokens, capacity.tokens) == (1072, 362_105)
    assert lacking(found, 3) == []
    assert (out / "model.safetensors").samefile(models / NVFP4 / "model.safetensors")
    # It is no sparse file.
    shutil.rmtree(out)
