"""Read what a checkpoint's config.json declares: it decides what a token costs in the KV cache.

Example:
    - name: Read what the checkpoint declares
      checkpoint_config:
        path: ~/models/hf/Qwen3.6-35B-A3B-FP8
      register: declared
"""

from __future__ import annotations

import os

from sparkops.node.api import Arguments, Node, Outcome, Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Args(Arguments):
    path: Path  # the checkpoint's folder


def apply(args: Args, node: Node) -> Outcome:
    """Always ok. Result: config (None: there is none that can be read)."""
    from sparkops.node import checkpoint, safetensors

    del node
    try:
        config = checkpoint.read_json(os.path.join(args.path, checkpoint.CONFIG), checkpoint.LARGEST_CONFIG)
    except (OSError, safetensors.BadFile) as error:
        return Outcome.ok(str(error), config=None)
    return Outcome.ok(config=short(config))


def short(config: dict[str, Any]) -> dict[str, Any]:
    """A config without the lists under `quantization_config`: they name layers by the hundred, and no caches."""
    found = {}
    for name, value in config.items():
        if name == "quantization_config" and isinstance(value, dict):
            value = {key: one for key, one in value.items() if not isinstance(one, list)}
        elif isinstance(value, dict):
            value = short(value)
        found[name] = value
    return found
