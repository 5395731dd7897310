"""Where a checkpoint's headers come from: a folder or a file here, or `hf:ORG/NAME[@REVISION]`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from sparkops.checkpoint.headers import Headers
from sparkops.errors import InputError
from sparkops.node import checkpoint, hub
from sparkops.node.patience import Trouble
from sparkops.node.safetensors import BadFile


@dataclass(frozen=True)
class Repository:
    """A model on a hub. revision: a branch, a tag or a commit."""

    name: str
    revision: str

    @classmethod
    def of(cls, source: str) -> Repository:
        """From `hf:ORG/NAME[@REVISION]`. Raises InputError."""
        try:
            return cls(*hub.repository(source))
        except Trouble as error:
            raise InputError(error.message, where=error.where, hint=error.hint) from None

    def __str__(self) -> str:
        return f"{hub.PREFIX}{self.name}@{self.revision}"


def headers(source: str, endpoint: str | None = None) -> Headers:
    """The headers of a checkpoint that this machine can reach; no weights are read.

    endpoint: the hub's address (default: $HF_ENDPOINT, or Hugging Face). Raises InputError.
    """
    if source.startswith(hub.PREFIX):
        from sparkops.checkpoint.hub import Hub

        address = endpoint or os.environ.get("HF_ENDPOINT") or hub.ENDPOINT
        return Headers.of(Hub(address, os.environ.get("HF_TOKEN") or None).survey(Repository.of(source)))
    return Headers.of(_here(Path(source).expanduser()))


def _here(path: Path) -> dict[str, object]:
    if not path.exists():
        hint = "name a folder or a *.safetensors file here, hf:ORG/NAME, or with --node a path on that node"
        raise InputError("there is no such folder or file", where=str(path), hint=hint)
    try:
        return checkpoint.survey(str(path))
    except BadFile as error:
        raise InputError(f"no whole checkpoint: {error}", where=str(path), hint="fetch the named file again") from None
    except OSError as error:
        raise InputError(f"cannot read it: {error.strerror}", where=str(error.filename or path)) from None
