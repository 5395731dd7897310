"""Each row of the table of known failures, by a sample log that we wrote in the engine's format."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from sparkops.errors import InputError
from sparkops.serving.diagnosis import diagnose
from sparkops.serving.evidence import Evidence
from sparkops.serving.failures import SHIPPED, Failures, load
from sparkops.serving.rootcause import root_cause
from sparkops.serving.signs import LOOKS
from sparkops.serving.triage import Finding, triage

SAMPLES = Path(__file__).with_name("failures")
ABOUT: dict[str, dict[str, Any]] = yaml.safe_load((SAMPLES / "evidence.yml").read_text())
TABLE = load()
ROWS = {row.id: row for row in TABLE.failures}
MODEL = "Qwen/Qwen3.6-35B-A3B-FP8"
PATH = "/home/spark/models/hf/Qwen3.6-35B-A3B-FP8"
GIB = 1 << 30
ENGINE = "(EngineCore pid=1) ERROR 07-28 10:00:00 [core.py:1]"
# A unit that has failed.
DOWN: dict[str, Any] = {
    "properties": {
        **{"LoadState": "loaded", "ActiveState": "failed", "SubState": "failed", "UnitFileState": "enabled"},
        **{"Result": "exit-code", "NRestarts": "0", "MainPID": "0", "ExecMainCode": "1", "ExecMainStatus": "1"},
    },
    "release": {
        "number": 3,
        "words": ["/opt/sparkops/engines/vllm/bin/vllm", "serve", PATH, "--port", "8000"],
        "program": True,
        "recipe": {
            **{"name": "fp8", "served_model_name": MODEL, "max_model_len": 262144, "requires": {"driver": 580}},
            "expect": {"kv_cache_tokens": 308955, "log": ["Using TRITON Fp8 MoE backend"], "ready_within": 900},
        },
    },
    "memory": {"total": int(121.7 * GIB), "available": 60 * GIB, "free": 20 * GIB},
    "disks": [{"name": "models_dir", "path": "/home/spark/models/hf", "free": 900 * GIB, "inodes": 90000}],
    "driver": {"version": "580.95.05"},
    "clock": {"synchronized": True, "ntp": True},
    "checkpoint": {"path": PATH, "tensors": 62546},
    "http": {"error": "/health: Connection refused"},
}
# One that serves.
UP: dict[str, Any] = {
    "properties": {"ActiveState": "active", "SubState": "running", "Result": "success", "MainPID": "4200"},
    "uptime": 300.0,
    "listeners": [
        {"address": "127.0.0.1", "pid": 4200, "command": "vllm", "unit": "sparkops-vllm.service", "ours": True}
    ],
    "http": {
        **{"health": 200, "error": "", "models": {MODEL: 262144}, "token": {"generated": True}},
        "metrics": [{"at": at, "num_requests_running": 0, "generation_tokens_total": 9} for at in (0, 1.5)],
    },
}


def laid(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """A mapping over another, deep."""
    found = copy.deepcopy(base)
    for key, value in over.items():
        both = isinstance(value, dict) and isinstance(found.get(key), dict) and key != "models"
        found[key] = laid(found[key], value) if both else copy.deepcopy(value)
    return found


def sample(name: str, **more: Any) -> Evidence:
    """The evidence of a sample."""
    about = ABOUT.get(name, {})
    found = laid(laid(DOWN, UP), {}) if about.get("up") else DOWN
    lines = (SAMPLES / f"{name}.log").read_text().splitlines()
    return Evidence.of(laid(laid(laid(found, {"journal": {"run": lines}}), about.get("with", {})), more))


def ids(found: list[Finding], *severities: str) -> list[str]:
    return [one.id for one in found if not severities or one.severity in severities]


def test_every_row_has_a_sample_and_every_sample_a_row() -> None:
    names = {path.stem for path in SAMPLES.glob("*.log")} - {"healthy", "unknown"}
    assert names == set(ROWS)
    assert set(ABOUT) <= names | {"healthy"}


@pytest.mark.parametrize("name", sorted(ROWS))
def test_a_row_is_named_by_its_sample(name: str) -> None:
    evidence, about = sample(name), ABOUT.get(name, {})
    found = triage(evidence, TABLE)
    assert ids(found)[0] == about.get("first", name), found
    (one,) = [one for one in found if one.id == name]
    assert one.severity == ROWS[name].severity
    assert one.evidence
    assert "(not known)" not in one.cause + one.cure
    assert "None" not in one.cause + one.cure
    for piece in about.get("says", []):
        assert piece in one.cause + one.cure


@pytest.mark.parametrize("name", sorted(set(ROWS) - {"unknown"}))
def test_a_sample_has_no_second_cause(name: str) -> None:
    """What follows from a cause may be told too, another cause not."""
    found = triage(sample(name), TABLE)
    causes = [one.id for one in found if one.severity == "failure" and not one.consequence]
    assert len(causes) <= 1, causes


def test_a_healthy_copy_has_no_findings() -> None:
    said = diagnose(sample("healthy"), TABLE)
    assert (said.state, said.findings) == ("serving", [])
    assert said.summary == "fp8, release 3, port 8000, up 5 min, idle"


def test_findings_stand_by_precedence() -> None:
    evidence = sample("kv-too-small", properties={"Result": "start-limit-hit", "UnitFileState": "disabled"})
    for table in (TABLE, Failures(TABLE.failures[::-1], TABLE.benign, TABLE.never_the_cause, TABLE.account_begins)):
        assert ids(triage(evidence, table)) == ["kv-too-small", "crash-loop", "not-enabled"]
    ranks = {
        severity: [row.precedence for row in TABLE.failures if row.severity == severity]
        for severity in ["failure", "warning", "hint"]
    }
    assert max(ranks["failure"]) < min(ranks["warning"]) <= max(ranks["warning"]) < min(ranks["hint"])
    assert len({row.precedence for row in TABLE.failures}) == len(TABLE.failures)


def test_the_table_names_only_signs_that_there_are() -> None:
    named = {sign for row in TABLE.failures for sign in (*row.match.signs, *row.only_if, *row.unless)}
    assert named <= set(LOOKS)
    assert set(LOOKS) <= named


def test_an_unknown_failure_gets_the_first_real_error() -> None:
    (one,) = triage(sample("unknown"), TABLE)
    assert (one.id, one.severity) == ("unknown", "failure")
    assert one.cause == "The engine ended with: KeyError: 'rope_parameters'"
    assert one.evidence == ["(EngineCore pid=4301) ERROR 07-28 10:00:09 [core.py:1136] KeyError: 'rope_parameters'"]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["ValueError: a", "RuntimeError: Engine core initialization failed. See root cause above."], "ValueError: a"),
        (["RuntimeError: Engine core initialization failed. See root cause above."], None),
        (["ValueError: a", "RuntimeError: Engine core initialization failed.", "OSError: of the end"], "ValueError: a"),
        (["OSError: an old one, gone on from", f"{ENGINE} EngineCore failed to start.", f"{ENGINE} a.b.OddError: x",
          "RuntimeError: Engine core initialization failed. See root cause above."], "a.b.OddError: x"),
        ([f"{ENGINE} EngineCore failed to start.", f"{ENGINE} Worker 0 said no", f"{ENGINE} OddError: x",
          f"{ENGINE} OddError: y"], "OddError: x"),
        (["ERROR 07-28 10:00:00 [x.py:1] WorkerProc failed to start.", "ERROR 07-28 10:00:00 [x.py:1] OddError: x",
          f"{ENGINE} EngineCore failed to start.",
          f"{ENGINE} Exception: WorkerProc initialization failed due to an exception in a background process."],
         "OddError: x"),
        (["ModuleNotFoundError: No module named 'vllm'"], "ModuleNotFoundError: No module named 'vllm'"),
        (["ERROR 07-28 10:00:00 [x.py:1] something odd"], "something odd"),
        (["x.service: Main process exited, code=exited, status=1/FAILURE", "INFO 07-28 10:00:00 [x.py:1] fine"], None),
        (["AssertionError", "Fatal Python error: Aborted"], "Fatal Python error: Aborted"),
        (["INFO 07-28 10:00:00 [x.py:1] ValueError: told in passing"], None),
    ],
)  # fmt: skip
def test_the_root_cause_of_lines(lines: list[str], said: str | None) -> None:
    found = root_cause(lines, TABLE)
    assert (found.said if found else None) == said


def test_the_engine_s_last_words_are_never_the_cause() -> None:
    for row in TABLE.failures:
        assert not any("initialization failed" in pattern for pattern in row.match.lines)
    for name in ROWS:
        for one in triage(sample(name), TABLE):
            assert not any("Engine core initialization failed" in line for line in one.evidence)


def test_benign_lines_never_match() -> None:
    benign = [
        line
        for line in (SAMPLES / "healthy.log").read_text().splitlines()
        if "block size" in line or "skipped memory" in line
    ]
    assert len(benign) == 2
    table = Failures(
        [*TABLE.failures], [*TABLE.benign, "CUDA out of memory"], TABLE.never_the_cause, TABLE.account_begins
    )
    assert "cuda-out-of-memory" not in ids(triage(sample("cuda-out-of-memory"), table))
    mine = {"recipe": {"expect": {"benign": ["There is no module or parameter"]}}}
    assert "visual-unexpected" not in ids(triage(sample("visual-unexpected", release=mine), TABLE))


def looks(**last: float) -> dict[str, Any]:
    first = {"at": 0.0, "num_requests_running": 1, "generation_tokens_total": 5, "kv_cache_usage_perc": 0.1}
    return {"metrics": [first, {**first, "at": 1.5, **last}]}


def test_busy_is_not_wedged() -> None:
    wedged = diagnose(sample("healthy", http=looks()), TABLE)
    assert ids(wedged.findings) == ["wedged"]
    for moved in ({"generation_tokens_total": 95}, {"kv_cache_usage_perc": 0.2}, {"prompt_tokens_total": 1.0}):
        said = diagnose(sample("healthy", http=looks(**moved)), TABLE)
        assert (said.state, said.findings) == ("serving", [])
    assert (
        "busy: 1 running, 0 waiting, 60 tokens/s"
        in diagnose(sample("healthy", http=looks(generation_tokens_total=95)), TABLE).summary
    )
    idle = looks(num_requests_running=0)
    assert diagnose(sample("healthy", http=idle), TABLE).findings == []


def test_healthy_and_without_a_token_is_wedged() -> None:
    token = {"generated": False, "error": "/v1/completions: timed out"}
    assert ids(triage(sample("healthy", http={"token": token}), TABLE)) == ["wedged"]


def test_a_fresh_start_is_not_judged_by_the_run_before() -> None:
    before = (SAMPLES / "kv-too-small.log").read_text().splitlines()
    run = (SAMPLES / "overdue.log").read_text().splitlines()
    silent = {"http": {"health": None, "models": None}, "listeners": [], "journal": {"run": run, "before": before}}
    assert diagnose(sample("healthy", **silent), TABLE).state == "starting"
    again = diagnose(sample("healthy", **silent, properties={"NRestarts": "2"}), TABLE)
    assert ids(again.findings) == ["kv-too-small", "restarting"]


def test_what_ended_the_run_before_is_a_warning_once_it_serves() -> None:
    before = (SAMPLES / "oom-killed.log").read_text().splitlines()
    (one,) = triage(sample("healthy", journal={"before": before}), TABLE)
    assert (one.id, one.severity) == ("oom-killed", "warning")
    assert one.cause.startswith("It serves again")
    assert triage(sample("healthy", journal={"before": before}, uptime=90000.0), TABLE) == []


def test_two_listeners_on_one_port() -> None:
    own = UP["listeners"][0]
    other = {"address": "127.0.0.1", "pid": 77, "command": "vllm serve x", "unit": "session-3.scope"}
    (one,) = triage(sample("healthy", listeners=[own, other]), TABLE)
    assert (one.id, one.severity) == ("port-taken", "failure")
    assert "pid 77 (vllm serve x) of no unit" in one.cause
    assert "kill 77" in one.cure
    assert triage(sample("healthy", listeners=[own, {**other, "address": "192.168.100.2"}]), TABLE) == []


@pytest.mark.parametrize(
    "longest", ["", " Based on the available memory, the estimated maximum model length is 205920."]
)
def test_the_largest_length_is_told_or_estimated_from_below(longest: str) -> None:
    line = (
        "ValueError: To serve at least one request with the model's max seq len (262144), (5.08 GiB KV cache is "
        f"needed, which is larger than the available KV cache memory (4.0 GiB).{longest}"
    )
    (one,) = triage(sample("kv-too-small", journal={"run": [line]}), TABLE)
    assert ("at most 205,920" if longest else "at most some 204,000") in one.cure


def test_a_kernel_kill_counts_only_for_our_processes() -> None:
    said = "spark-1 kernel: Out of memory: Killed process {} (VLLM::EngineCor) total-vm:1kB"
    assert ids(triage(sample("killed", kernel=[said.format(4301)]), TABLE))[0] == "oom-killed"
    assert "oom-killed" not in ids(triage(sample("killed", kernel=[said.format(99)]), TABLE))


def test_lines_that_scrolled_away_are_not_missed() -> None:
    assert "wrong-backend" not in ids(triage(sample("wrong-backend", journal={"whole": False}), TABLE))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("cause: There is no release", "reason: There is no release", "unknown field"),
        ("id: unit-missing", "id: not-deployed", "not-deployed is there twice"),
        ("GatedRepoError", "'(Gated'", "is no regular expression"),
    ],
)
def test_a_table_that_is_wrong_says_so(tmp_path: Path, old: str, new: str, said: str) -> None:
    path = tmp_path / "failures.yml"
    path.write_text(SHIPPED.read_text().replace(old, new, 1))
    with pytest.raises(InputError, match=said):
        load(path)
