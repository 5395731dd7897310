"""What a served copy must have logged since it started."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from sparkops.node.api import Failure

BACKEND = "Using TRITON Fp8 MoE backend"
TOKENS = 308955
CACHE = "GPU KV cache size: 308,955 tokens"


@pytest.fixture
def journal(node: Any) -> Any:
    """journal(line, ...): the unit is up since now, and has logged these; `old` lines are from before."""

    def write(*lines: str, old: tuple[str, ...] = (), state: str = "active") -> None:
        stamp = int(time.clock_gettime(time.CLOCK_MONOTONIC) * 1e6)
        show = f"LoadState=loaded\nActiveState={state}\nExecMainStartTimestampMonotonic={stamp}\n"
        told = [f"{_stamp(at)} spark-1 run[7]: {line}" for at, group in ((-60, old), (1, lines)) for line in group]
        node.program("systemctl", f"#!/bin/sh\ncat <<'END'\n{show}END\n")
        node.program("journalctl", "#!/bin/sh\ncat <<'END'\n" + "".join(line + "\n" for line in told) + "END\n")

    return write


def _stamp(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(time.time() + seconds))


def look(apply: Any, **more: Any) -> Any:
    return apply("log_expect", **{"unit": "vllm", "expect": [BACKEND], "kv_cache_tokens": TOKENS, **more})


def test_all_is_there(journal: Any, apply: Any) -> None:
    journal(f"INFO {BACKEND} out of", "INFO GPU KV cache size: 308,955 tokens")
    done = look(apply)
    assert (done.state, done.msg) == ("ok", "")
    assert done.result == {"missing": [], "kv_cache_tokens": TOKENS, "warnings": []}


def test_a_missing_line_is_a_failure_and_one_of_an_earlier_start_does_not_count(journal: Any, apply: Any) -> None:
    journal("INFO GPU KV cache size: 308,955 tokens", old=(BACKEND,))
    with pytest.raises(Failure, match=f"did not log '{BACKEND}'"):
        look(apply)
    assert look(apply, check=True).state == "unknown"


def test_another_size_of_the_cache_warns_and_fails_when_strict(journal: Any, apply: Any) -> None:
    journal(BACKEND, "GPU KV cache size: 412,980 tokens", "GPU KV cache size: 300,000 tokens")
    done = look(apply)
    said = "the KV cache has 300,000 tokens, not the 308,955 that fit its pool"
    assert (done.state, done.result["warnings"]) == ("ok", [said])
    with pytest.raises(Failure, match=said):
        look(apply, strict=True)
    assert look(apply, strict=True, check=True).state == "ok"
    assert look(apply, kv_cache_tokens=None, strict=True).result["warnings"] == []
    journal(BACKEND)
    assert look(apply, strict=True).result["kv_cache_tokens"] is None


def test_what_does_not_run_has_logged_nothing(journal: Any, apply: Any) -> None:
    journal(BACKEND, state="failed")
    with pytest.raises(Failure, match="is not running: failed"):
        look(apply)
    assert look(apply, check=True).state == "unknown"


def test_a_copy_that_has_served_for_long(node: Any, apply: Any, journal: Any, tmp_path: Path) -> None:
    journal()
    since = int((time.clock_gettime(time.CLOCK_MONOTONIC) - 7200) * 1e6)
    shown = f"LoadState=loaded\\nActiveState=active\\nExecMainStartTimestampMonotonic={since}\\n"
    node.program("systemctl", f"#!/bin/sh\nprintf '{shown}'\n")
    (tmp_path / "tail").write_text(f"{_stamp(-60)} spark-1 run[7]: INFO: POST /v1/completions\n")
    (tmp_path / "start").write_text("".join(f"{_stamp(-7199)} spark-1 run[7]: {line}\n" for line in (BACKEND, CACHE)))
    grep = f'for one; do case $one in --grep=*) exec grep -P -e "${{one#--grep=}}" {tmp_path}/start; esac; done'
    node.program("journalctl", f"#!/bin/sh\n{grep}\nexec cat {tmp_path}/tail\n")
    assert look(apply).result == {"missing": [], "kv_cache_tokens": TOKENS, "warnings": []}
    # Nobody can tell what the journal has dropped.
    done = look(apply, expect=["Using (another) backend.*"])
    assert (done.state, done.result["missing"]) == ("ok", ["Using (another) backend.*"])
    assert "the journal no longer has all of its start" in done.msg
