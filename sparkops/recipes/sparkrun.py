"""Reads recipes of spark-vllm-docker and sparkrun: one container's `vllm serve`, as a recipe of ours.

Their format (recipe_version 1 and 2): model, container, mods, defaults, env and a command template whose `{names}` are
`defaults`. What means the same here is taken over; the rest is named with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sparkops.errors import InputError, Position
from sparkops.project import yaml
from sparkops.recipes import serve_line
from sparkops.recipes.checks import check_recipe
from sparkops.recipes.convert import convert, plain
from sparkops.recipes.memory import VISIBLE_GIB
from sparkops.recipes.schema import Recipe
from sparkops.recipes.serve_flags import Flags
from sparkops.recipes.show import yaml_lines

RUNTIMES = ("", "vllm", "eugr-vllm", "vllm-ray", "vllm-distributed")
# Read here, or without a meaning for one node.
READ = {"recipe_version", "runtime", "name", "description", "model", "model_revision", "command", "defaults", "env"}
ONE_NODE = {"solo_only", "cluster_only", "mode", "min_nodes", "max_nodes"}
REASONS = {
    "container": "the engine runs natively here, from its lock; see whether its version is the one meant",
    "containers": "the engine runs natively here, from its lock; see whether its version is the one meant",
    "build_args": "how a container is built",
    "mods": "a change to the container; where the engine needs it, it is a patch of ours (patches/NAME.yml)",
    "metadata": "sizes for an estimate; the checkpoint itself tells them",
    "benchmark": "see sparkops bench",
}
OTHERWISE = "nothing here means the same"


@dataclass(frozen=True)
class LeftOut:
    """A piece of the file that has no like here: its name, its value, why, and where it stands."""

    what: str
    value: str
    why: str
    where: str | None

    def __str__(self) -> str:
        return f"{self.what} {self.value}: {self.why}"


@dataclass(frozen=True)
class Imported:
    """A recipe of ours as plain data, and what of the file is not in it."""

    recipe: dict[str, Any]
    left_out: list[LeftOut] = field(default_factory=list)

    def text(self) -> str:
        """As a file of ours; what was left out stands above as comments."""
        notes = [f"# not mapped: {line}" for one in self.left_out for line in str(one).splitlines()]
        return "\n".join([*notes, *yaml_lines(self.recipe, {})]) + "\n"


def translate(
    document: Any, file: Path, *, name: str | None, engine: str, lock: str, max_model_len: int | None = None
) -> Imported:
    """The file's document as a recipe for `engine`, whose lock's text is `lock`.

    name and max_model_len: for files that give none. Raises InputError: it is no such recipe, needs more than one
    node, or serves with another engine than vLLM.
    """
    if not isinstance(document, dict) or ("model" not in document and "command" not in document):
        raise InputError(
            "this is no recipe of spark-vllm-docker or sparkrun", where=yaml.position(document) or str(file)
        )
    _one_node_of_vllm(document)
    left: list[LeftOut] = [
        _left(document, key, REASONS.get(key, OTHERWISE))
        for key, value in document.items()
        if key not in READ | ONE_NODE and value not in (None, "", [], {})
    ]
    line, where = _line(document, left)
    flags = Flags(line.flags, lock)
    left += [LeftOut(what, value, why, str(where) if where else None) for what, value, why in flags.left_out]
    model = str(document.get("model") or line.model or flags.model or "")
    environment = {str(key): serve_line.word(value) for key, value in (document.get("env") or {}).items()}
    if environment.pop("VLLM_API_KEY", None):
        left.append(LeftOut("env", "VLLM_API_KEY", "a secret: set api_key for the hosts", None))
    called = name or re.sub(r"[^a-z0-9._-]+", "-", str(document.get("name") or file.stem).lower()).strip("-._")
    length = flags.fields.pop("max_model_len", None) or max_model_len
    if length is None:
        raise InputError("the file gives no max_model_len", where=where or str(file), hint="give it: --max-model-len N")
    recipe = {
        "name": called,
        "description": _description(document, called),
        **_source(model),
        "model_revision": document.get("model_revision"),
        "served_model_name": model,
        "engine": engine,
        "max_model_len": length,
        "gpu_memory_utilization": 0.92,  # vLLM's default
        **flags.fields,
        "args": flags.args,
        "env": {**environment, **line.environment},
    }
    if "kv_cache_memory_bytes" not in recipe:
        # With the pool not pinned the engine takes all of its share.
        recipe["requires"] = {"driver": 580, "memory_gib": int(recipe["gpu_memory_utilization"] * VISIBLE_GIB)}
    recipe = plain({key: value for key, value in recipe.items() if value not in (None, [], {})})
    check_recipe(convert(recipe, Recipe, file), recipe)
    return Imported(recipe, left)


def _one_node_of_vllm(document: Mapping[str, Any]) -> None:
    runtime = str(document.get("runtime") or "")
    if runtime not in RUNTIMES:
        where = yaml.position(document, "runtime")
        raise InputError(f"it serves with {runtime}, and recipes of ours with vllm", where=where)
    for key, wanted in (("cluster_only", True), ("mode", "cluster")):
        if document.get(key) == wanted:
            raise _several(document, key)
    if isinstance(document.get("min_nodes"), int) and document["min_nodes"] > 1:
        raise _several(document, "min_nodes")


def _several(document: Mapping[str, Any], key: str) -> InputError:
    return InputError(
        f"{key}: {serve_line.word(document[key])} makes one copy out of several nodes, and here every node has its own",
        where=yaml.position(document, key),
    )


def _line(document: Mapping[str, Any], left: list[LeftOut]) -> tuple[serve_line.ServeLine, Position | None]:
    """The command that the file means, and where it stands; without a template it is made of `defaults`."""
    defaults = document.get("defaults") or {}
    template = document.get("command")
    if not template:
        return serve_line.ServeLine(None, {}, _from_defaults(defaults)), yaml.position(document, "defaults")
    used: set[str] = set()
    values = {**defaults, "model": document.get("model", "{model}")}
    values = {
        key: serve_line.filled(value, values, used) if isinstance(value, str) else value
        for key, value in values.items()
    }
    where = yaml.position(document, "command")
    command = serve_line.filled(template, values, used)
    left += [_left(defaults, key, "the command does not use it") for key in defaults if key not in used]
    return serve_line.read(command, where), where


def _from_defaults(defaults: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    """`max_num_seqs: 8` is --max-num-seqs 8; true is the flag alone, false none."""
    named = {"tensor_parallel": "tensor_parallel_size", "pipeline_parallel": "pipeline_parallel_size"}
    return [
        (f"--{named.get(str(key), str(key)).replace('_', '-')}", [] if value is True else [serve_line.word(value)])
        for key, value in defaults.items()
        if value is not False and value is not None
    ]


def _source(model: str) -> dict[str, str]:
    """model and model_source: an absolute path holds the weights already."""
    if model.startswith("/"):
        path = model.rstrip("/")
        return {"model": path.rsplit("/", 1)[-1], "model_source": path}
    return {"model": model, "model_source": f"hf:{model}"}


def _description(document: Mapping[str, Any], called: str) -> str:
    metadata = document.get("metadata")
    given = document.get("description") or (metadata.get("description") if isinstance(metadata, dict) else None)
    return " ".join(str(given or document.get("name") or called).split())


def _left(container: Mapping[str, Any], key: Any, why: str) -> LeftOut:
    where = yaml.key_position(container, key)
    return LeftOut(str(key), serve_line.word(plain(container[key])), why, str(where) if where else None)
