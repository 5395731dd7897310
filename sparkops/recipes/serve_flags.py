"""Sorts the flags of a foreign `vllm serve`: those that are fields of a recipe, those that stay, those that go."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

FIELDS = {
    "--max-model-len": "max_model_len",
    "--gpu-memory-utilization": "gpu_memory_utilization",
    "--kv-cache-memory-bytes": "kv_cache_memory_bytes",
    "--served-model-name": "served_model_name",
    "--port": "port",
    "--revision": "model_revision",
}
COUNTS = {"max_model_len", "kv_cache_memory_bytes", "port"}
SPREADING = {"-tp", "--tensor-parallel-size", "-pp", "--pipeline-parallel-size", "-dp", "--data-parallel-size"}
CLUSTER = {
    "--distributed-executor-backend", "--nnodes", "--node-rank", "--master-addr", "--master-port", "--headless",
}  # fmt: skip
# Flags that name a file, which there lies in the container or comes with a mod.
FILES = {"--reasoning-parser-plugin", "--tool-parser-plugin", "--chat-template"}
# A value of --load-format that needs a package.
LOADERS = {"fastsafetensors": "fastsafetensors", "runai_streamer": "runai-model-streamer", "tensorizer": "tensorizer"}
UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "K": 2**10, "M": 2**20, "G": 2**30}


class Flags:
    """fields: a recipe's fields. args: words that stay. left_out: (flag, its value, why)."""

    def __init__(self, flags: Iterable[tuple[str, list[str]]], lock: str) -> None:
        self.fields: dict[str, Any] = {}
        self.args: list[str] = []
        self.left_out: list[tuple[str, str, str]] = []
        self.model: str | None = None
        for flag, words in flags:
            if not self._taken(flag, words):
                why = _why_not(flag, words, lock)
                if why is None:
                    self.args += [flag, *words]
                elif why:
                    self.left_out.append((flag, "..." if flag == "--api-key" else " ".join(words), why))

    def _taken(self, flag: str, words: list[str]) -> bool:
        """Whether the flag is a field of ours; the value is kept."""
        if flag == "--model" and words:
            self.model = words[0]
            return True
        name = FIELDS.get(flag)
        value = _value(name, words[0]) if name and words else None
        if name is None or value is None:
            return False
        self.fields[name] = value
        self.left_out += [(flag, other, "a copy has one served name") for other in words[1:]]
        return True


def count(text: str) -> int | None:
    """vLLM's numbers: 32768, 32k (10^3), 32K (2^10); None for `auto` and the like."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([kmgKMG]?)", text)
    return int(float(found[1]) * UNITS[found[2]]) if found else None


def _value(name: str, text: str) -> Any:
    if name in COUNTS:
        return count(text)
    if name == "gpu_memory_utilization":
        return float(text) if re.fullmatch(r"\d*\.?\d+", text) else None
    return text


def _why_not(flag: str, words: list[str], lock: str) -> str | None:
    """Why a flag goes; None: it stays; "": it goes and nothing is lost."""
    value = words[0] if words else ""
    if flag in FIELDS:
        return "not a value that a recipe can have"
    if flag == "--host":
        return "" if value == "127.0.0.1" else "a copy listens on 127.0.0.1 unless the inventory sets `host`"
    if flag == "--api-key":
        return "a secret: set api_key for the hosts"
    if flag in SPREADING:
        return "" if value == "1" else "every node serves its own whole copy; see that it fits one"
    if flag in CLUSTER:
        return "" if value in ("mp", "uni") else "every node serves its own whole copy"
    if flag in FILES and not value.startswith(("/", "{")):
        return "a file that is in the container; put it on the nodes and add the flag with its path"
    if flag == "--load-format" and value in LOADERS and f"\n{LOADERS[value]}==" not in f"\n{lock}":
        return f"needs the package {LOADERS[value]}, which the engine's lock has not"
    return None
