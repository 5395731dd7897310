"""A service's releases over time: trial, confirmation, going back, pruning."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sparkops.node import releases
from sparkops.node.api import Failure, Outcome
from sparkops.node.jobs import Job
from sparkops.node.modules import release
from sparkops.node.runtime import LocalNode


@pytest.fixture
def apply(tmp_path: Path) -> Iterator[Any]:
    def run(module: str, check: bool = False, **args: Any) -> Outcome:
        found = __import__(f"sparkops.node.modules.{module}", fromlist=["apply"])
        node = LocalNode(None, str(tmp_path / "state"), check, {})
        given = {"home": str(tmp_path), "service": "vllm", **_defaults(found, args)}
        outcome: Outcome = found.apply(found.Args(**given), node)
        return outcome

    yield run
    # So that no watchdog goes on.
    for marker in tmp_path.glob("releases/*/*/unconfirmed"):
        marker.unlink()


def _defaults(module: Any, args: dict[str, Any]) -> dict[str, Any]:
    names = [name for name in module.Args.__annotations__ if hasattr(module.Args, name)]
    return {**{name: getattr(module.Args, name) for name in names}, **args}


def deploy(apply: Any, text: str, engine: str = "e1", within: float | None = None, unit: str | None = None) -> Outcome:
    files = {"run": {"content": text, "mode": "0755"}}
    found: Outcome = apply("release", files=files, meta={"engine": engine}, confirm_within=within, unit=unit)
    return found


def current(tmp_path: Path, link: str = "current") -> str:
    return str((tmp_path / "releases/vllm" / link).readlink())


def test_the_first_release_has_no_trial_and_is_confirmed_by_hand(apply: Any, tmp_path: Path) -> None:
    deploy(apply, "one", within=5)
    assert not (tmp_path / "releases/vllm/1/unconfirmed").exists()
    assert apply("release_confirm", check=True).state == "changed"
    assert apply("release_confirm").state == "changed"
    assert apply("release_confirm").state == "ok"
    assert current(tmp_path, "confirmed") == "1"


def test_a_trial_that_is_confirmed_stays(apply: Any, tmp_path: Path) -> None:
    deploy(apply, "one")
    apply("release_confirm")
    deploy(apply, "two", within=1.2)
    assert (tmp_path / "releases/vllm/2/unconfirmed").exists()
    assert apply("release_confirm", release=3, check=True).state == "changed"
    assert apply("release_confirm", release=2).state == "changed"
    time.sleep(2.5)
    assert (current(tmp_path), current(tmp_path, "confirmed")) == ("2", "2")


def test_a_trial_that_nobody_confirms_ends_at_the_last_confirmed_release(apply: Any, tmp_path: Path) -> None:
    deploy(apply, "one")
    apply("release_confirm")
    deploy(apply, "two", within=1)
    deadline = time.monotonic() + 10
    while current(tmp_path) == "2" and time.monotonic() < deadline:
        time.sleep(0.1)
    assert current(tmp_path) == "1"
    with pytest.raises(Failure, match="went back to 1 by itself"):
        apply("release_confirm", release=2)


def test_a_run_that_is_killed_before_the_new_release_is_current_leaves_it_watched(
    apply: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deploy(apply, "one")
    apply("release_confirm")

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(releases, "point", killed)
        with pytest.raises(KeyboardInterrupt):
            deploy(apply, "two", within=60)
    assert current(tmp_path) == "1"
    end = time.monotonic() + 5
    while not (running := Job(str(tmp_path / "state"), "trial-vllm-2").running()) and time.monotonic() < end:
        time.sleep(0.05)
    assert running


def test_a_run_after_one_that_was_killed_has_the_whole_trial(apply: Any, tmp_path: Path) -> None:
    deploy(apply, "one")
    apply("release_confirm")
    deploy(apply, "two", within=2)
    marker = tmp_path / "releases/vllm/2/unconfirmed"
    (tmp_path / "releases/vllm/2/starts").write_text("\n")
    before = marker.read_text()
    files = {"run": {"content": "two", "mode": "0755"}}
    assert apply("release", check=True, files=files, confirm_within=60).state == "changed"
    assert marker.read_text() == before
    again = deploy(apply, "two", within=60)
    assert (again.state, again.result["release"], again.result["confirmed"]) == ("changed", 2, 1)
    assert not (tmp_path / "releases/vllm/2/starts").exists()
    time.sleep(3.5)
    assert current(tmp_path) == "2"
    assert apply("release_confirm").state == "changed"
    assert deploy(apply, "two", within=60).state == "ok"


def test_the_guard_goes_back_at_the_fourth_start_of_a_trial(apply: Any, tmp_path: Path) -> None:
    deploy(apply, "one")
    apply("release_confirm")
    deploy(apply, "two", within=3600)
    guard = tmp_path / "releases/vllm/guard"
    guard.write_text((Path(__file__).parents[3] / "templates/guard.j2").read_text())
    seen = []
    for _ in range(5):
        subprocess.run(["sh", guard], check=True, capture_output=True)
        seen.append(current(tmp_path))
    assert seen == ["2", "2", "2", "1", "1"]
    deploy(apply, "three", within=3600)
    apply("release_confirm")
    for _ in range(5):
        subprocess.run(["sh", guard], check=True, capture_output=True)
    assert current(tmp_path) == "3", "a confirmed release may start as often as it is asked to"


def test_a_confirmation_that_a_power_cut_stopped_is_ended_by_the_guard(apply: Any, tmp_path: Path) -> None:
    deploy(apply, "one")
    apply("release_confirm")
    deploy(apply, "two", within=3600)
    guard = tmp_path / "releases/vllm/guard"
    guard.write_text((Path(__file__).parents[3] / "templates/guard.j2").read_text())
    releases.point(str(tmp_path / "releases/vllm"), 2, "confirmed")
    said = subprocess.run(["sh", guard], check=True, capture_output=True, text=True)
    assert (said.stdout, said.stderr, current(tmp_path)) == ("", "", "2")
    assert not (tmp_path / "releases/vllm/2/unconfirmed").exists()


def test_a_confirmation_that_comes_too_late_says_so(
    apply: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deploy(apply, "one")
    apply("release_confirm")
    deploy(apply, "two", within=3600)
    confirm = releases.confirm

    def late(folder: str, number: int) -> bool:
        releases.point(folder, 1)
        return confirm(folder, number)

    monkeypatch.setattr(releases, "confirm", late)
    with pytest.raises(Failure, match="release 2 is not current any more: the node went back to 1 by itself"):
        apply("release_confirm", release=2)


def test_a_copy_that_hangs_is_killed_when_its_trial_is_over(
    apply: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = "trap '' TERM; touch $0/deaf; while :; do sleep 0.1; done"
    with subprocess.Popen(["sh", "-c", script, tmp_path]) as deaf:
        while not (tmp_path / "deaf").exists():
            time.sleep(0.01)
        systemctl = tmp_path / "bin/systemctl"
        systemctl.parent.mkdir()
        systemctl.write_text(f"#!/bin/sh\necho MainPID={deaf.pid}\n")
        systemctl.chmod(0o755)
        monkeypatch.setenv("PATH", f"{systemctl.parent}:/usr/bin:/bin")
        monkeypatch.setattr(release, "STOP_WITHIN", 0.5)
        deploy(apply, "one")
        apply("release_confirm")
        deploy(apply, "two", within=0.5, unit="sparkops-vllm")
        try:
            assert deaf.wait(20) == -9
        finally:
            deaf.kill()
    assert current(tmp_path) == "1"


def test_the_guard_goes_back_only_after_the_deadline(apply: Any, tmp_path: Path) -> None:
    deploy(apply, "one")
    apply("release_confirm")
    deploy(apply, "two", within=3600)
    template = (Path(__file__).parents[3] / "templates/guard.j2").read_text()
    guard = tmp_path / "releases/vllm/guard"
    guard.write_text(template)
    subprocess.run(["sh", guard], check=True)
    assert current(tmp_path) == "2"
    (tmp_path / "releases/vllm/2/unconfirmed").write_text("1")
    subprocess.run(["sh", guard], check=True, capture_output=True)
    assert current(tmp_path) == "1"
    subprocess.run(["sh", guard], check=True)
    assert current(tmp_path) == "1"
    assert not list(tmp_path.glob("releases/vllm/.sparkops*"))


def test_going_back_tells_the_unit_of_what_it_goes_to(apply: Any) -> None:
    for user in ("one", "two"):
        unit = {"content": f"[Service]\nUser={user}\nExecStart=/x\n"}
        apply("release", files={"run": {"content": user, "mode": "0755"}, "unit": unit})
    back = apply("release_back", check=True).result
    assert (back["unit"], back["user"]) == ("[Service]\nUser=one\nExecStart=/x\n", "one")
    assert apply("release_back", to=2).result["user"] == "two"


def test_going_back(apply: Any, tmp_path: Path) -> None:
    with pytest.raises(Failure, match="nothing to go back to"):
        apply("release_back")
    deploy(apply, "one")
    with pytest.raises(Failure, match="no release before"):
        apply("release_back")
    deploy(apply, "two")
    deploy(apply, "three")
    assert apply("release_back", check=True).result["release"] == 2
    assert current(tmp_path) == "3"
    assert (apply("release_back").state, current(tmp_path)) == ("changed", "2")
    assert (apply("release_back", to=3).state, current(tmp_path)) == ("changed", "3")
    again = apply("release_back", to=3)
    assert (again.state, again.result["warnings"]) == ("ok", ["release 3 is current already"])
    with pytest.raises(Failure, match="there are: 1, 2, 3"):
        apply("release_back", to=9)
    (tmp_path / "releases/vllm/2/unconfirmed").write_text("1")
    assert apply("release_back", check=True).result == {
        **{"release": 1, "previous": 3, "warnings": []},
        **{"unit": None, "user": None},
    }
    # One that is named is gone to all the same, and said to be what it is.
    said = ["release 2 has never been confirmed: nobody has seen it serve here"]
    assert apply("release_back", check=True, to=2).result["warnings"] == said
    assert apply("release_back", to=2).result["warnings"] == said
    assert apply("release_back", to=1).result["warnings"] == []
    assert apply("release_back", to=2).result["warnings"] == []


def test_pruning_keeps_what_is_in_use(apply: Any, tmp_path: Path) -> None:
    for number, engine in enumerate(["old", "shared", "e3", "shared", "e5"], 1):
        (tmp_path / "engines" / engine).mkdir(parents=True, exist_ok=True)
        deploy(apply, str(number), engine)
    releases.point(str(tmp_path / "releases/vllm"), 1, "confirmed")
    (tmp_path / "engines/never-released").mkdir()
    assert apply("release_prune", check=True, keep=2).result == {"removed": [2, 3], "engines": ["e3"]}
    assert apply("release_prune", keep=2).state == "changed"
    assert sorted(path.name for path in (tmp_path / "engines").iterdir()) == ["e5", "never-released", "old", "shared"]
    assert sorted(releases.numbers(str(tmp_path / "releases/vllm"))) == [1, 4, 5]
    assert apply("release_prune", keep=2).state == "ok"


def test_pruning_keeps_what_rollback_goes_to(apply: Any, tmp_path: Path) -> None:
    """However many trials have failed since."""
    for number in range(1, 6):
        deploy(apply, str(number))
        (tmp_path / f"releases/vllm/{number}/{releases.MARKER}").write_text("1") if number in (2, 3, 4) else None
    assert apply("release_prune", keep=1).result["removed"] == [2, 3, 4]
    assert apply("release_back").result["release"] == 1


def test_an_engine_of_another_service_stays(apply: Any, tmp_path: Path) -> None:
    (tmp_path / "engines/e1").mkdir(parents=True)
    for text in ("1", "2", "3"):
        deploy(apply, text, "e1" if text == "1" else "e2")
    other = tmp_path / "releases/second/1"
    other.mkdir(parents=True)
    (other / "release.json").write_text(json.dumps({"engine": "e1"}))
    assert apply("release_prune", keep=1).result == {"removed": [1], "engines": []}


def test_removing_a_service_keeps_what_others_use(apply: Any, tmp_path: Path) -> None:
    for name in ("engines/shared", "engines/own", "bin", "cache", "releases/second/1"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "releases/second/1/release.json").write_text(json.dumps({"engine": "shared"}))
    deploy(apply, "1", "own")
    assert apply("release_remove", check=True, engines=True).state == "changed"
    assert apply("release_remove", engines=True).state == "changed"
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "state") == [
        "bin",
        "cache",
        "engines",
        "releases",
    ]
    assert [path.name for path in (tmp_path / "engines").iterdir()] == ["shared"]
    assert apply("release_remove", engines=True).state == "ok"
    for name in ("", ".", "..", "a/b"):
        with pytest.raises(Failure, match="must be letters"):
            apply("release_remove", service=name)


def test_what_a_killed_removal_left_is_taken_away(apply: Any, tmp_path: Path) -> None:
    for name in ("engines/.sparkops-e1", "releases/.sparkops-vllm"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "file").write_text("")
    deploy(apply, "1")
    assert apply("release_prune", check=True).state == "changed"
    assert apply("release_prune").result == {"removed": [], "engines": [".sparkops-e1"]}
    assert apply("release_prune").state == "ok"
    assert apply("release_remove").state == "changed"
    (tmp_path / "releases/.sparkops-vllm").mkdir()
    assert apply("release_remove").state == "changed"
    assert apply("release_remove").state == "ok"
    assert [*tmp_path.glob("*/.*")] == []


def test_a_trial_ends_with_the_boot_in_which_it_began(apply: Any, tmp_path: Path) -> None:
    deploy(apply, "one")
    apply("release_confirm")
    deploy(apply, "two", within=3600)
    guard = tmp_path / "releases/vllm/guard"
    guard.write_text((Path(__file__).parents[3] / "templates/guard.j2").read_text())
    marker = tmp_path / "releases/vllm/2/unconfirmed"
    marker.write_text(f"{time.time() + 3600:.0f} another-boot\n")
    subprocess.run(["sh", guard], check=True, capture_output=True)
    assert current(tmp_path) == "1"
    assert apply("release_back", to=2).state == "changed"
    assert not marker.exists()


def test_releases_are_listed_with_their_states(apply: Any, tmp_path: Path) -> None:
    def states(**args: Any) -> list[tuple[int, bool, str]]:
        listed = apply("release_list", **args).result["releases"]
        return [(one["release"], one["current"], one["state"]) for one in listed]

    assert states() == []
    deploy(apply, "one")
    assert states() == [(1, True, "unconfirmed")]
    apply("release_confirm")
    deploy(apply, "two", within=60)
    assert states() == [(2, True, "on trial"), (1, False, "confirmed")]
    apply("release_back", to="confirmed")
    assert states() == [(2, False, "failed"), (1, True, "confirmed")]
    deploy(apply, "three")
    apply("release_confirm")
    assert states() == [(3, True, "confirmed"), (2, False, "failed"), (1, False, "served")]
    assert apply("release_list").result["releases"][0]["engine"] == "e1"
    assert states(service=None) == states()
    (tmp_path / "releases/vllm/1/release.json").write_text("no json")
    assert apply("release_list").result["releases"][2]["engine"] is None
