"""What one file of a catalogue must hold beyond its types. Each check raises InputError at the place.

What files must hold together is `recipes.crosscheck`'s.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import Any

from sparkops.errors import InputError, Position
from sparkops.node import patching
from sparkops.node.hub import REPOSITORY
from sparkops.project import yaml
from sparkops.recipes.schema import Draft, Engine, PatchFile, Recipe

# A model on a hub, or a path on the nodes.
SOURCE = re.compile(rf"hf:{REPOSITORY}|[~/].*", re.ASCII)
# Flags of `vllm serve` that come from a field or from the host, and where.
OWNED = {
    "--host": "`host`, or the inventory",
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
    """No flag twice, no secret in env, nothing that is the node's; a source that can be one."""
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
    if "PATH" in recipe.env:
        raise InputError(
            "PATH does not belong in a recipe",
            where=yaml.position(document.get("env"), "PATH"),
            hint="it is the node's, with the engine and CUDA in front (templates/env.j2)",
        )
    if recipe.draft:
        _check_draft(recipe.draft, document["draft"])
    if recipe.model_source and not re.fullmatch(r"hf:[\w.-]+(/[\w.-]+)?|[~/].*", recipe.model_source):
        raise InputError(
            f"{recipe.model_source!r} is no place that a checkpoint can come from",
            where=yaml.position(document, "model_source"),
            hint=f"hf:ORG/NAME, or an absolute path on the nodes: /path/to/{recipe.directory}",
        )


def _check_draft(draft: Draft, document: Any) -> None:
    """Both are places; whether there is a recipe of the target's name, `recipe validate` and a deploy say."""
    if not SOURCE.fullmatch(draft.donor):
        raise InputError(
            f"{draft.donor!r} is no place that a draft can come from",
            where=yaml.position(document, "donor"),
            hint="hf:ORG/NAME[@REVISION], or an absolute path on the nodes",
        )
    if not SOURCE.fullmatch(draft.target) and not re.fullmatch(r"[A-Za-z0-9][\w.-]*", draft.target):
        raise InputError(
            f"{draft.target!r} is no checkpoint that can get a draft",
            where=yaml.position(document, "target"),
            hint="the name of a recipe, hf:ORG/NAME[@REVISION], or an absolute path on the nodes",
        )


def check_engine(engine: Engine, document: Any, folder: Path, locked: bool) -> None:
    """Its locks exist if it is to be `locked`, and its files lie inside site-packages."""
    for machine, lock in engine.locks.items():
        if locked and not (folder / lock).is_file():
            raise InputError(
                f"there is no lock {folder / lock}",
                where=yaml.position(document.get("locks"), machine),
                hint=f"make it: sparkops engine lock {engine.id} --architecture {machine}",
            )

    for file in engine.files:
        _inside(file, yaml.position(document.get("files"), file))


def check_patch(patch: PatchFile, document: Any) -> None:
    """The file lies inside site-packages, and the diff is one."""
    _inside(patch.file, yaml.position(document, "file"))
    try:
        patching.parse(patch.diff)
    except patching.BadDiff as error:
        raise InputError(f"not a unified diff of one file: {error}", where=yaml.position(document, "diff")) from None


def _inside(file: str, where: Position | None) -> None:
    path = PurePosixPath(file)
    if not path.parts or path.is_absolute() or ".." in path.parts:
        hint = "for example vllm/model_executor/models/qwen3_5.py"
        raise InputError(f"{file} is not a path inside site-packages", where=where, hint=hint)
