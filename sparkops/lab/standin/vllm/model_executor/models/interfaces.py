"""What models are made of here: named parameters without values."""

from __future__ import annotations

import os
from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any


class MultiModalConfig:
    """The part of the command line that a multimodal model sees."""

    def __init__(self, language_model_only: bool) -> None:
        self.language_model_only = language_model_only


class Part:
    """A part of a model: `parameters` must come from the checkpoint, unless it is a mere placeholder.

    A placeholder takes whatever weights there are for it and misses none.
    """

    def __init__(self, parameters: Iterable[str]) -> None:
        self.parameters = set(parameters)
        self.placeholder = False


class MultiModalModel:
    """A language model with towers; parts are attributes, by the first word of their parameters' names."""

    def __init__(self, config: dict[str, Any], multimodal_config: MultiModalConfig) -> None:
        self.config = config
        self.multimodal_config = multimodal_config

    @contextmanager
    def _mark_tower_model(self, name: str) -> Iterator[None]:
        """Around the place where a tower is built: with --language-model-only it becomes a placeholder.

        Under the lab's defect seed001 it stays a part like any other, as the BF16 recipe says of the real engine.
        """
        yield
        tower = getattr(self, name)
        tower.placeholder = self.multimodal_config.language_model_only and not has_defect("seed001")

    def load_weights(self, names: Iterable[str]) -> None:
        """Take a checkpoint's tensors, as the model calls them. Raises ValueError: one too many, or some missing."""
        loaded = set()
        for name in names:
            part = getattr(self, name.split(".", 1)[0], None)
            if part is None:
                raise ValueError(
                    f"There is no module or parameter named '{name.split('.', 1)[0]}' in {type(self).__name__}"
                )
            loaded.add(name)
        parts = [part for part in vars(self).values() if isinstance(part, Part) and not part.placeholder]
        require(set().union(*(part.parameters for part in parts)) - loaded)


def require(missing: set[str]) -> None:
    """Raises ValueError when parameters are missing."""
    if missing:
        raise ValueError(f"Following weights were not initialized from checkpoint: {{{', '.join(sorted(missing))}}}")


def has_defect(name: str) -> bool:
    """Whether the lab asked for a defect: seed001 (towers), garbage (tokens), length (half the context), kv (one block
    too few), backend (another than is best).
    """
    return name in os.environ.get("SPARKOPS_LAB_DEFECT", "").split(",")
