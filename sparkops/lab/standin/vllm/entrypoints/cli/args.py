"""The command line of `vllm`."""

from __future__ import annotations

import argparse
import json

from ..._version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def parser() -> argparse.ArgumentParser:
    """`vllm --version` and `vllm serve`; an unknown flag ends with argparse's error and status 2."""
    top = argparse.ArgumentParser(
        prog="vllm", description="vLLM CLI (stand-in of the sparkops lab)", allow_abbrev=False
    )
    top.add_argument("-v", "--version", action="version", version=__version__)
    verbs = top.add_subparsers(dest="verb", required=True)
    serve = verbs.add_parser("serve", allow_abbrev=False, help="Start the vLLM OpenAI Compatible API server")
    serve.add_argument("model", metavar="model_tag")
    serve.add_argument("--host", default="0.0.0.0")
    serve.add_argument("--port", type=int, default=8000)
    serve.add_argument("--api-key", nargs="*", default=[])
    serve.add_argument("--served-model-name", nargs="+", default=[])
    serve.add_argument("--max-model-len", type=positive)
    serve.add_argument("--gpu-memory-utilization", type=share, default=0.92)
    serve.add_argument("--kv-cache-memory-bytes", type=positive)
    serve.add_argument("--language-model-only", action="store_true")
    serve.add_argument("--moe-backend", default="auto")
    serve.add_argument("--speculative-config", type=speculative)
    serve.add_argument("--enforce-eager", action="store_true")
    serve.add_argument("--shutdown-timeout", type=int, default=0)
    serve.add_argument("--safetensors-load-strategy", default="lazy")
    serve.add_argument("--gdn-prefill-backend")
    return top


def positive(text: str) -> int:
    """A whole number above 0."""
    value = int(text)
    if value <= 0:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return value


def share(text: str) -> float:
    """A share of the memory, above 0 and up to 1."""
    value = float(text)
    if not 0 < value <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not in (0, 1]")
    return value


def speculative(text: str) -> dict[str, Any]:
    """A draft: {"method": "mtp", "num_speculative_tokens": K}; K is 1 unless given."""
    try:
        document = json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"Value {text} cannot be converted to <function loads>: {error}") from error
    if not isinstance(document, dict) or document.get("method") != "mtp":
        raise argparse.ArgumentTypeError("the stand-in drafts by method mtp only")
    if not isinstance(document.setdefault("num_speculative_tokens", 1), int) or document["num_speculative_tokens"] < 1:
        raise argparse.ArgumentTypeError("num_speculative_tokens must be a positive number")
    return document
