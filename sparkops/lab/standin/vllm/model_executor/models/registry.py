"""From a config's architecture to the class that serves it."""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .interfaces import MultiModalModel

MODULES = {
    "Qwen3_5ForConditionalGeneration": "qwen3_5",
    "Qwen3_5MoeForConditionalGeneration": "qwen3_5",
}


def model_class(architectures: list[str]) -> type[MultiModalModel]:
    """The first architecture that is known. Raises ValueError when none is."""
    for architecture in architectures:
        if architecture in MODULES:
            module = import_module(f".{MODULES[architecture]}", __package__)
            found: type[MultiModalModel] = getattr(module, architecture)
            return found
    raise ValueError(f"Model architectures {architectures} are not supported for now.")
