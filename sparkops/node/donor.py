"""The draft's tensors in another checkpoint: a folder or a file of this node, or a model on a hub.

From a hub come the headers, and later the byte ranges of these tensors alone: 1.7 GB of 70.
"""

from __future__ import annotations

import os

from sparkops.node import checkpoint, hub, safetensors
from sparkops.node.api import Failure
from sparkops.node.draft import is_draft
from sparkops.node.patience import Trouble
from sparkops.node.ranges import PIECE, Version, Web
from sparkops.node.safetensors import METADATA, BadFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    Found = tuple[dict[str, Any], int, Version]  # a parsed header, its length, the file as it was


class Tensor:
    """One of the draft's: where its bytes begin and end in `file`."""

    def __init__(self, name: str, entry: dict[str, Any], file: str, data: int) -> None:
        self.name = name
        self.dtype: str = entry["dtype"]
        self.shape: tuple[int, ...] = tuple(entry["shape"])
        self.file = file
        self.begin: int = data + entry["data_offsets"][0]
        self.end: int = data + entry["data_offsets"][1]


class Here:
    """A checkpoint on this node. `name` and `asked`: what a graft remembers of it."""

    def __init__(self, path: str) -> None:
        path = os.path.realpath(path)
        self.name = self.asked = path
        self.folder, self.only = (path, "") if os.path.isdir(path) else os.path.split(path)

    def index(self) -> dict[str, Any] | None:
        """Its index, None when it has none."""
        path = os.path.join(self.folder, checkpoint.INDEX)
        if self.only or not os.path.exists(path):
            return None
        return checkpoint.read_json(path, safetensors.LARGEST_HEADER)

    def files(self, index: dict[str, Any] | None) -> list[str]:
        """Its *.safetensors files."""
        del index
        return [self.only] if self.only else sorted(n for n in os.listdir(self.folder) if n.endswith(".safetensors"))

    def header(self, file: str) -> Found | None:
        """None: there is no such file."""
        path = os.path.join(self.folder, file)
        if not os.path.exists(path):
            return None
        try:
            header, length, _ = checkpoint.whole(path)
        except BadFile as error:
            raise BadFile(f"{file}: {error}") from None
        return header, length, version(os.stat(path))

    def pieces(self, file: str, begin: int, end: int, wanted: Version) -> Iterator[bytes]:
        """Bytes of a file; the page cache is left as it was. Raises Failure when the file has changed."""
        path = os.path.join(self.folder, file)
        with safetensors.Passing(path) as source:
            source.seek(begin)
            while begin < end:
                piece = source.read(min(PIECE, end - begin))
                if not piece or version(os.fstat(source.fileno())) != wanted:
                    raise Failure(f"{path} changed while it was read; run again")
                begin += len(piece)
                yield piece


class There:
    """A model on a hub."""

    def __init__(self, source: str, endpoint: str, token: str | None) -> None:
        web = Web(endpoint, token)
        name, revision = hub.repository(source)
        self.model = hub.Model(web, endpoint, name, revision)
        self.name = self.model.path
        self.asked = source

    def index(self) -> dict[str, Any] | None:
        """See Here."""
        return self.model.json(checkpoint.INDEX, safetensors.LARGEST_HEADER)

    def files(self, index: dict[str, Any] | None) -> list[str]:
        """See Here."""
        return self.model.weights(index)

    def header(self, file: str) -> Found | None:
        """See Here."""
        return self.model.header(file)

    def pieces(self, file: str, begin: int, end: int, wanted: Version) -> Iterator[bytes]:
        """See Here. Raises Trouble."""
        return self.model.web.pieces(self.model.url(file), begin, end, wanted)


class Donor:
    """A checkpoint's draft, in the order in which it is written. Raises Failure when there is none, or half of one."""

    def __init__(self, place: Here | There) -> None:
        self.place = place
        self.name, self.asked = place.name, place.asked
        self.versions: dict[str, Version] = {}
        index = place.index()
        self.indexed = index is not None
        files = place.files(index)
        if not files:
            raise Failure(f"the donor {self.name} has no *.safetensors file")
        listed = (
            {file for name, file in checkpoint.weight_map(index).items() if is_draft(name)}
            if index is not None
            else set()
        )
        tensors: dict[str, Tensor] = {}
        for file in sorted(listed) or files:
            for tensor in self._held(file):
                if tensor.name in tensors:
                    raise Failure(f"two files of {self.name} hold {tensor.name}: {tensors[tensor.name].file}, {file}")
                tensors[tensor.name] = tensor
        if not tensors:
            raise Failure(
                f"{self.name} has no draft to give: none of its {len(files)} files holds an mtp.* tensor; name the "
                "checkpoint as it was trained"
            )
        # Wide types first, so that each tensor begins at a multiple of its type's size; then as they lie there.
        self.tensors = sorted(tensors.values(), key=lambda one: (-safetensors.BITS[one.dtype], one.file, one.begin))
        self.total = sum(one.end - one.begin for one in self.tensors)

    def shapes(self) -> dict[str, tuple[str, tuple[int, ...]]]:
        """{name: (dtype, shape)}."""
        return {one.name: (one.dtype, one.shape) for one in self.tensors}

    def pieces(self, skip: int) -> Iterator[bytes]:
        """All tensors' bytes end to end, but for the first `skip`. Raises Failure, Trouble, OSError."""
        for file, begin, end in self.spans():
            start = min(begin + skip, end)
            skip -= start - begin
            if start < end:
                yield from self.place.pieces(file, start, end, self.versions[file])

    def spans(self) -> list[tuple[str, int, int]]:
        """(file, begin, end) of the tensors, those that touch in one."""
        made: list[tuple[str, int, int]] = []
        for one in self.tensors:
            if made and made[-1][0] == one.file and made[-1][2] == one.begin:
                made[-1] = (one.file, made[-1][1], one.end)
            else:
                made.append((one.file, one.begin, one.end))
        return made

    def _held(self, file: str) -> Iterator[Tensor]:
        found = self.place.header(file) if os.path.basename(file) == file else None
        if found is None:
            named = "which its index names" if self.indexed else "and has no index: is there such a model?"
            raise Failure(f"{self.name} lacks {file[:120]!r}, {named}")
        header, length, self.versions[file] = found
        for name, entry in header.items():
            if name != METADATA and is_draft(name):
                yield Tensor(name, entry, file, 8 + length)


def find(source: str, endpoint: str, token: str | None) -> Donor:
    """The draft of a folder or a file here, or of `hf:ORG/NAME[@REVISION]`. Raises Failure."""
    if not source.startswith(hub.PREFIX) and not os.path.exists(source):
        raise Failure(f"there is no donor {source}: name a folder or a *.safetensors file here, or hf:ORG/NAME")
    try:
        return Donor(There(source, endpoint, token) if source.startswith(hub.PREFIX) else Here(source))
    except Trouble as error:
        raise Failure(str(error)) from None
    except BadFile as error:
        raise Failure(f"the donor {source} is no whole checkpoint: {error}") from None
    except OSError as error:
        raise Failure(f"cannot read the donor {error.filename or source}: {error.strerror or error}") from None


def version(found: os.stat_result) -> Version:
    """A file here as it is now."""
    return Version(found.st_size, str(found.st_mtime_ns))
