from __future__ import annotations

import re

from msgspec.structs import replace

from sparkops.recipes.identity import engine_id
from sparkops.recipes.load import Catalogue


def test_names_differ_by_lock_and_patches_and_by_nothing_else() -> None:
    engine = Catalogue().engine("vllm-0.24.0")
    patch = Catalogue().patch("qwen3_5-language-only-guard")
    plain = engine_id(engine, b"lock", [])
    assert re.fullmatch(r"vllm-0\.24\.0-[0-9a-f]{12}", plain)
    assert plain == engine_id(replace(engine, probe=["bin/other"]), b"lock", [])
    others = [
        engine_id(engine, b"lock2", []),
        engine_id(engine, b"lock", [patch]),
        engine_id(replace(engine, files={"a": "b"}), b"lock", []),
        engine_id(replace(engine, files={"a": "c"}), b"lock", []),
        engine_id(engine, b"lock", [replace(patch, diff=patch.diff + " ")]),
        engine_id(engine, b"lock", [patch, patch]),
    ]
    assert len({plain, *others}) == 7
    assert engine_id(engine, b"lock", [patch]) == engine_id(engine, b"lock", [replace(patch, description="new")])
