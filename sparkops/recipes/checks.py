"""What a catalogue's files must hold beyond their types. Each check raises InputError at the place."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Any

from sparkops.errors import InputError
from sparkops.node import patching
from sparkops.project import yaml
from sparkops.recipes.schema import Engine, PatchFile, Recipe

# Flags of `vllm serve` that come from a field or from the host, and where.
OWNED = {
    "--host": "the inventory's `host`",
    "--port": "`port`, or the inventory",
    "--api-key": "VLLM_API_KEY in the release's environment, which only its owner can read",
    "--model": "`model`",
    "--served-model-name": "`served_model_name`",
    "--max-model-len": "`max_model_len`",
    "--kv-cache-memory-bytes": "`kv_cache_memory_bytes`",
    "--gpu-memory-utilization": "`gpu_memory_utilization`",
    "--shutdown-timeout": "the service's unit, whose stop timeout must be longer",
}


def check_recipe(recipe: Recipe, document: Any) -> None:
    """No flag twice, no secret in env."""
    args = document.get("args")
    for index, arg in enumerate(recipe.args):
        flag = arg.partition("=")[0].replace("_", "-")
        if flag in OWNED:
            raise InputError(
                f"{flag} does not belong in args", where=yaml.position(args, index), hint=f"it comes from {OWNED[flag]}"
            )
    if "VLLM_API_KEY" in recipe.env:
        raise InputError(
            "an API key does not belong in a recipe",
            where=yaml.position(document.get("env"), "VLLM_API_KEY"),
            hint="set api_key for the host, from the environment or another secret store",
        )


def check_engine(engine: Engine, document: Any, folder: Path) -> None:
    """Its locks exist."""
    for machine, lock in engine.locks.items():
        if not (folder / lock).is_file():
            raise InputError(
                f"there is no lock {folder / lock}",
                where=yaml.position(document.get("locks"), machine),
                hint="make it with `uv pip compile --generate-hashes`",
            )


def check_patch(patch: PatchFile, document: Any) -> None:
    """The file lies inside site-packages, and the diff is one."""
    path = PurePosixPath(patch.file)
    if path.is_absolute() or ".." in path.parts:
        raise InputError(
            f"{patch.file} is not a path inside site-packages",
            where=yaml.position(document, "file"),
            hint="for example vllm/model_executor/models/qwen3_5.py",
        )
    try:
        patching.parse(patch.diff)
    except patching.BadDiff as error:
        raise InputError(f"not a unified diff of one file: {error}", where=yaml.position(document, "diff")) from None
