"""Where a checkpoint's headers come from: a folder or a file here, or `hf:ORG/NAME[@REVISION]`."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from sparkops.checkpoint.headers import Headers
from sparkops.errors import InputError
from sparkops.node import checkpoint
from sparkops.node.safetensors import BadFile

HUB = "hf:"
REPOSITORY = re.compile(r"(?P<name>[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)(@(?P<revision>[\w./-]+))?", re.ASCII)
DEFAULT_ENDPOINT = "https://huggingface.co"


@dataclass(frozen=True)
class Repository:
    """A model on a hub. revision: a branch, a tag or a commit."""

    name: str
    revision: str

    @classmethod
    def of(cls, source: str) -> Repository:
        """From `hf:ORG/NAME[@REVISION]`. Raises InputError."""
        found = REPOSITORY.fullmatch(source.removeprefix(HUB))
        if not found:
            raise InputError(f"{source!r} names no model on a hub", hint="write hf:ORG/NAME or hf:ORG/NAME@REVISION")
        return cls(found["name"], found["revision"] or "main")


def headers(source: str, endpoint: str | None = None) -> Headers:
    """The headers of a checkpoint that this machine can reach; no weights are read.

    endpoint: the hub's address (default: $HF_ENDPOINT, or Hugging Face). Raises InputError.
    """
    if source.startswith(HUB):
        from sparkops.checkpoint.hub import Hub

        address = endpoint or os.environ.get("HF_ENDPOINT") or DEFAULT_ENDPOINT
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
