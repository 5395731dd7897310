"""An engine's directory name: the same lock, files and patches give the same one, anything else another."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

import msgspec

from sparkops.recipes.schema import Engine, PatchFile


def engine_id(engine: Engine, lock: bytes, patches: Sequence[PatchFile]) -> str:
    """`NAME-VERSION-HASH`, twelve hex digits over the lock's bytes, the engine's files and what the patches do."""
    seen = sha256(sha256(lock).digest())
    if engine.files:
        seen.update(sha256(msgspec.json.encode(sorted(engine.files.items()))).digest())
    for patch in patches:
        what = [patch.name, patch.file, [[v.before, v.after] for v in patch.versions], patch.diff]
        seen.update(sha256(msgspec.json.encode(what)).digest())
    return f"{engine.id}-{seen.hexdigest()[:12]}"
