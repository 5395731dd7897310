"""The `vllm serve` that a recipe means. Pure: data in, words out; host, port and the model's path are the node's.

templates/run.j2 and env.j2 write the same on a node, which a test holds.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from sparkops.recipes.schema import Recipe

# A stop lets running requests end for this long; the unit's TimeoutStopSec is longer. vLLM's own default, 0, cuts
# streams short in a way that clients can't tell from an end.
SHUTDOWN_TIMEOUT_S = 60

DEFAULTS = {
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
}

# FlashInfer compiles kernels with nvcc and ninja, which systemd's own PATH lacks.
SEARCHED = "/usr/local/cuda/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Place:
    """What of a command is the node's: paths of the engine's venv and of the checkpoint, and where it listens."""

    engine_path: str
    model_path: str
    host: str
    port: int


def serve_command(recipe: Recipe, place: Place) -> list[str]:
    """The whole argv."""
    where = ["--host", place.host, "--port", str(place.port)]
    return [f"{place.engine_path}/bin/vllm", "serve", place.model_path, *where, *serve_args(recipe)]


def serve_environment(recipe: Recipe, place: Place) -> dict[str, str]:
    """The whole environment, in the order of the release's env file."""
    named = sorted(environment(recipe).items(), key=lambda item: item[0].lower())
    return {"PATH": f"{place.engine_path}/bin:{SEARCHED}", **dict(named)}


def shell_line(argv: list[str]) -> str:
    """The command as a release's `run` has it: --host and --port, then one flag with its value a line."""
    program, verb, model, *where = map(_quoted, argv[:7])
    text = f"exec {program} {verb} {model} \\\n  {' '.join(where)}"
    return text + "".join((" \\\n  " if word.startswith("-") else " ") + shlex.quote(word) for word in argv[7:])


def env_lines(variables: Mapping[str, str]) -> list[str]:
    """The environment as a release's `env` has it: systemd's EnvironmentFile."""
    path, *rest = [(name, value) for name, value in variables.items()]
    return [f"{path[0]}={path[1]}", *(f"{name}={environment_value(value)}" for name, value in rest)]


def environment_value(value: str) -> str:
    """In double quotes, with a backslash before what systemd.exec(5) gives a meaning there; newlines stay."""
    return '"' + "".join(f"\\{one}" if one in '\\"$`' else one for one in value) + '"'


def unit_word(value: str) -> str:
    """A path as one word of a systemd unit's line (systemd.service(5)): quoted where it must be, % doubled."""
    text = unit_path(value)
    if not set(text) & set(" \t'\"\\"):
        return text
    return '"' + "".join(f"\\{one}" if one in '\\"' else one for one in text) + '"'


def unit_path(value: str) -> str:
    """A path that is all of a unit's line, which may hold spaces as they are: % doubled."""
    return value.replace("%", "%%")


def _quoted(word: str) -> str:
    """A word for the shell; a leading `~/` stays the home folder of whoever runs it."""
    return f"~/{shlex.quote(word[2:])}" if word.startswith("~/") else shlex.quote(word)


def serve_args(recipe: Recipe) -> list[str]:
    """The flags after the model's path, without --host and --port."""
    args = [
        *("--served-model-name", recipe.served_model_name),
        *("--max-model-len", str(recipe.max_model_len)),
        # With the KV pool pinned it only feeds the start-up check of free memory, which runs all the same.
        *("--gpu-memory-utilization", f"{recipe.gpu_memory_utilization:g}"),
    ]
    if recipe.kv_cache_memory_bytes is not None:
        args += ["--kv-cache-memory-bytes", str(recipe.kv_cache_memory_bytes)]
    return [*args, "--shutdown-timeout", str(SHUTDOWN_TIMEOUT_S), *recipe.args]


def shutdown_timeout(recipe: Recipe) -> int:
    """Seconds that requests in flight have to end once the server was told to stop; the unit gives it a minute more.

    A recipe's own --shutdown-timeout wins, as it does for vLLM. One that is no number is left for vLLM to refuse.
    """
    given = SHUTDOWN_TIMEOUT_S
    words = [part for word in serve_args(recipe) for part in (word.split("=", 1) if word[:1] == "-" else [word])]
    for flag, value in pairwise(words):
        if flag.replace("_", "-") == "--shutdown-timeout" and value.isdecimal():
            given = int(value)
    return given


def environment(recipe: Recipe) -> dict[str, str]:
    """The server's environment but for PATH, which is the node's (templates/env.j2).

    The engine gives up on its core after VLLM_ENGINE_READY_TIMEOUT_S (600): here that is `expect.ready_within`.
    """
    return {
        **DEFAULTS,
        "VLLM_ENGINE_READY_TIMEOUT_S": str(recipe.expect.ready_within),
        **recipe.env,
    }
