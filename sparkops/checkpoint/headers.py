"""A checkpoint as its headers say it is: the typed form of sparkops.node.checkpoint's document."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sparkops.node.safetensors import BITS


@dataclass(frozen=True)
class Tensors:
    """`count` tensors alike but for the expert's number, `*` in the name."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    count: int

    @property
    def bytes(self) -> int:
        """Of all of them together."""
        return self.count * (math.prod(self.shape) * BITS[self.dtype] // 8)


@dataclass(frozen=True)
class File:
    """One *.safetensors file; `size` in bytes, as it lies on the disk."""

    name: str
    size: int
    tensors: tuple[Tensors, ...]

    @property
    def count(self) -> int:
        """How many tensors it has."""
        return sum(tensors.count for tensors in self.tensors)


@dataclass(frozen=True)
class Some:
    """`count` tensors, of which `first` are named."""

    count: int
    first: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.count:,} ({', '.join(self.first)}{', ...' if self.count > len(self.first) else ''})"


@dataclass(frozen=True)
class Index:
    """model.safetensors.index.json beside the files it names; see sparkops.node.checkpoint for the four lists."""

    files: tuple[str, ...]
    tensors: int
    total_size: int | None
    absent: Some
    unlisted: Some
    misplaced: Some


@dataclass(frozen=True)
class Headers:
    """A checkpoint. `config`: its config.json ({} when there is none)."""

    path: str
    files: tuple[File, ...]
    index: Index | None
    config: dict[str, Any]
    twice: Some

    @classmethod
    def of(cls, document: dict[str, Any]) -> Headers:
        """From the document that a node, or a source here, gave."""
        files = tuple(
            File(
                file["name"],
                file["size"],
                tuple(Tensors(name, dtype, tuple(shape), count) for name, dtype, shape, count in file["groups"]),
            )
            for file in document["files"]
        )
        return cls(
            document["path"], files, _index(document["index"]), document["config"] or {}, _some(document["twice"])
        )

    @property
    def read(self) -> tuple[File, ...]:
        """The files that the engine reads: those that the index names, or all where there is none."""
        return self.files if self.index is None else tuple(file for file in self.files if file.name in self.index.files)

    @property
    def ignored(self) -> tuple[File, ...]:
        """The files that are there and that the index does not name: the engine passes them over."""
        return tuple(file for file in self.files if file not in self.read)

    @property
    def missing(self) -> tuple[str, ...]:
        """The files that the index names and that are not there."""
        names = {file.name for file in self.files}
        return tuple(name for name in self.index.files if name not in names) if self.index else ()

    def tensors(self) -> Iterator[Tensors]:
        """All that the engine reads."""
        return (tensors for file in self.read for tensors in file.tensors)


def _some(document: dict[str, Any]) -> Some:
    return Some(document["count"], tuple(document["first"]))


def _index(document: dict[str, Any] | None) -> Index | None:
    if document is None:
        return None
    lists = {name: _some(document[name]) for name in ("absent", "unlisted", "misplaced")}
    return Index(tuple(document["files"]), document["tensors"], document["total_size"], **lists)
