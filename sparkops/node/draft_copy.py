"""Copying a donor's draft into one file, which an interrupted copy is the beginning of."""

from __future__ import annotations

import json
import os

from sparkops.node import draft, files
from sparkops.node.safetensors import METADATA

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from sparkops.node.donor import Donor

# What the file's own metadata remembers: the donor (a hub's with its commit), and in what words it was asked for.
DONOR = "sparkops_donor"
ASKED = "sparkops_asked"
# After so many bytes they are made durable: what a kill or a power cut costs at most.
SYNC_EVERY = 64 << 20


class Copy:
    """The draft's file on its way. `done`: how many of its `total` bytes an earlier build left for sure."""

    def __init__(self, donor: Donor, stage: str) -> None:
        from hashlib import sha256

        self.donor = donor
        self.path = os.path.join(stage, "tree", draft.FILE)
        self.state = os.path.join(stage, "state.json")
        self.head = head(donor)
        self.total = len(self.head) + donor.total
        spans = [(*span, donor.versions[span[0]].size, donor.versions[span[0]].etag) for span in donor.spans()]
        self.plan = sha256(self.head + json.dumps(spans).encode()).hexdigest()
        self.done = self._left()

    def _left(self) -> int:
        noted = noted_state(self.state)
        try:
            there = os.path.getsize(self.path)
        except OSError:
            return 0
        return noted["done"] if noted.get("plan") == self.plan and noted["done"] <= there else 0

    def run(self) -> int:
        """Copy what is left; returns how many bytes that was. Raises Failure, Trouble, OSError."""
        begun = self.done
        with open(self.path, "r+b" if begun else "wb") as file:
            file.truncate(begun)
            file.seek(begun)
            try:
                self._write(file, begun)
            finally:
                self._note(file)
        return self.done - begun

    def _write(self, file: Any, at: int) -> None:
        if at < len(self.head):
            file.write(self.head[at:])
            at = len(self.head)
        self._note(file)
        unsynced = 0
        for piece in self.donor.pieces(at - len(self.head)):
            file.write(piece)
            unsynced += len(piece)
            if unsynced >= SYNC_EVERY:
                self._note(file)
                unsynced = 0

    def _note(self, file: Any) -> None:
        """Make durable what was written, and then that it was."""
        file.flush()
        os.fsync(file.fileno())
        self.done = file.tell()
        # The GPU shares this memory: the pages go.
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        document = {"plan": self.plan, "total": self.total, "done": self.done}
        files.write(self.state, json.dumps(document).encode())


def noted_state(path: str) -> dict[str, Any]:
    """An unfinished build's state.json; {} when there is none or it is damaged."""
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) and isinstance(found.get("done"), int) else {}


def head(donor: Donor) -> bytes:
    """The grafted file's length and header; the tensors' bytes begin at a multiple of 8."""
    entries: dict[str, Any] = {METADATA: {"format": "pt", DONOR: donor.name, ASKED: donor.asked}}
    at = 0
    for one in donor.tensors:
        end = at + one.end - one.begin
        entries[one.name] = {"dtype": one.dtype, "shape": one.shape, "data_offsets": [at, end]}
        at = end
    raw = json.dumps(entries, separators=(",", ":")).encode()
    raw += b" " * (-len(raw) % 8)
    return len(raw).to_bytes(8, "little") + raw
