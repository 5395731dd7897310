"""A draft that a node fetches from a hub: its bytes alone, through trouble, and on after a cut or a kill."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from sparkops.node import patience, ranges
from sparkops.node.api import Failure
from sparkops.node.donor import find
from tests.checkpoint.standin_hub import SHA, Handler, Server, broken, busy, cut, hung_up, serving, stalled
from tests.node.grafting import BODY, WIDE, WIDE_CONFIG, checkpoint, donor, expected, tensors_of

ROOT = Path(__file__).parents[2]
TOKEN = "hf_secretsecretsecret"
SOURCE = "hf:org/model"
Run = Callable[..., Any]


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test waits for the seconds that a hub would be given."""
    monkeypatch.setattr(patience, "LONGEST_WAIT_S", 0.01)
    monkeypatch.setattr("sparkops.node.donor.Web", partial(ranges.Web, stall=0.3, pause=0.01))


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Server]:
    with serving(donor(tmp_path / "hub")) as server:
        yield server


@pytest.fixture
def run(tmp_path: Path, apply: Any, hub: Server) -> Run:
    """Graft into `tmp_path/out`."""
    target = checkpoint(tmp_path / "target", [BODY])

    def graft(**more: Any) -> Any:
        args = {"path": str(tmp_path / "out"), "target": str(target), "donor": SOURCE, "endpoint": hub.url, **more}
        return apply("mtp_graft", **args)

    return graft


def spans(hub: Server, since: int = 0) -> list[tuple[int, int]]:
    """The parts of files that were asked for, but for the beginnings that hold the headers."""
    asked = [re.fullmatch(r"bytes=(\d+)-(\d+)", span) for _, span, _ in hub.seen[since:] if span]
    return [(int(one[1]), int(one[2]) + 1) for one in asked if one and one[1] != "0"]


def test_only_the_draft_is_fetched(run: Run, hub: Server, tmp_path: Path) -> None:
    done = run()
    assert (done.state, done.result["donor"], done.result["tensors"]) == ("changed", f"hf:org/model@{SHA}", 19)
    assert tensors_of(tmp_path / "out/mtp.safetensors") == expected()
    assert sum(end - begin for begin, end in spans(hub)) == done.result["bytes"]
    # The index says which files hold it; the other is never asked for.
    assert not any("model-1" in path for path, *_ in hub.seen)
    assert all(f"/resolve/{SHA}/" in path for path, *_ in hub.seen[1:])
    # Tensors that touch come in one request.
    assert len(spans(hub)) == 2
    asked = len(hub.seen)
    assert run().state == run(donor=f"{SOURCE}@{SHA}").state == "ok"
    assert len(hub.seen) == asked
    with pytest.raises(Failure, match=f"its draft is that of hf:org/model@{SHA}"):
        run(donor="hf:org/model@v2")


def test_a_revision_and_no_index(run: Run, hub: Server) -> None:
    (hub.folder / "model.safetensors.index.json").unlink()
    for _ in range(2):
        assert run(donor=f"{SOURCE}@v1").result["tensors"] == 19
    assert hub.seen[0][0] == "/api/models/org/model/revision/v1"


def test_a_check_fetches_headers_alone(run: Run, hub: Server, tmp_path: Path) -> None:
    assert run(check=True).state == "changed"
    assert not spans(hub)
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "home" / ".local").exists()


def test_the_token_goes_to_the_hub_alone(run: Run, hub: Server, tmp_path: Path) -> None:
    with serving(hub.folder) as store:

        def elsewhere(handler: Handler, at: int) -> bool:
            if handler.path.endswith(".safetensors"):
                handler.say(302, headers={"Location": store.url + handler.path})
            return handler.path.endswith(".safetensors")

        hub.spoil = elsewhere
        done = run(token=TOKEN)
    assert {token for *_, token in hub.seen} == {f"Bearer {TOKEN}"}
    assert store.seen
    assert {token for *_, token in store.seen} == {None}
    assert TOKEN not in repr(done.__dict__)
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or TOKEN.encode() not in path.read_bytes(), path


@pytest.mark.parametrize("trouble", [busy, broken, cut, hung_up, stalled])
def test_a_moment_s_trouble_is_survived(
    run: Run, hub: Server, tmp_path: Path, trouble: Callable[[Handler], bool]
) -> None:
    hub.spoil = lambda handler, at: at % 2 == 0 and trouble(handler)
    run()
    assert tensors_of(tmp_path / "out/mtp.safetensors") == expected()


@pytest.mark.parametrize(
    ("trouble", "message"),
    [
        (busy, "HTTP 429 .*5 times.*is the hub reachable"),
        (hung_up, "5 times"),
        (stalled, "nothing came for a while .5 times"),
        (lambda handler: handler.say(401), "HTTP 401: no access"),
        (lambda handler: handler.say(404), "lacks 'model-2.safetensors', which its index names"),
        (lambda handler: handler.say(200, b"<!DOCTYPE html><html>"), "not a safetensors file"),
    ],
)
def test_lasting_trouble_is_named(
    run: Run, hub: Server, tmp_path: Path, trouble: Callable[[Handler], bool | None], message: str
) -> None:
    hub.spoil = lambda handler, at: handler.path.endswith(".safetensors") and trouble(handler) in (None, True)
    for check in (True, False):
        with pytest.raises(Failure, match=message) as caught:
            run(check=check, token=TOKEN)
        assert TOKEN not in f"{caught.value.msg}{caught.value.result}"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home", "hub", "target"]


def breaks_after(hub: Server, count: int) -> None:
    """The hub sends so many bytes of parts, then no more."""

    def spoil(handler: Handler, at: int) -> bool:
        if handler.headers.get("Range", "bytes=0-").startswith("bytes=0-"):
            return False
        if (left := count - sum(sent)) <= 0:
            handler.close_connection = True
            return True
        begin, end = spans(hub)[-1]
        handler.short = min(left, end - begin)
        sent.append(handler.short)
        return False

    sent: list[int] = []
    hub.spoil = spoil


def test_it_goes_on_where_it_was_cut(run: Run, hub: Server, tmp_path: Path) -> None:
    breaks_after(hub, 50_000)
    with pytest.raises(Failure, match=r"5 times.*what has come is kept"):
        run()
    assert not (tmp_path / "out").exists()
    before = len(hub.seen)
    hub.spoil = lambda *_: False
    done = run()
    # The rest, and what of the first part was still in a buffer.
    assert done.result["bytes"] - 50_000 <= sum(end - begin for begin, end in spans(hub, before)) < 1 << 16
    assert tensors_of(tmp_path / "out/mtp.safetensors") == expected()


def test_another_version_is_no_continuation(run: Run, hub: Server, tmp_path: Path) -> None:
    breaks_after(hub, 50_000)
    with pytest.raises(Failure):
        run()
    before = len(hub.seen)
    hub.spoil = lambda *_: False
    hub.etag = '"2"'
    done = run()
    assert sum(end - begin for begin, end in spans(hub, before)) == done.result["bytes"]
    assert tensors_of(tmp_path / "out/mtp.safetensors") == expected()


@pytest.mark.parametrize("change", ["etag", "length"])
def test_it_changes_meanwhile(run: Run, hub: Server, tmp_path: Path, change: str) -> None:
    def spoil(handler: Handler, at: int) -> bool:
        if spans(hub) and change == "etag":
            hub.etag = '"2"'
        elif spans(hub):
            begin, end = spans(hub)[-1]
            handler.say(
                206, b"x" * (end - begin), {"Content-Range": f"bytes {begin}-{end - 1}/9999999", "ETag": hub.etag}
            )
            return True
        return False

    hub.spoil = spoil
    with pytest.raises(Failure, match="the file changed while it was read"):
        run()
    assert not (tmp_path / "out").exists()


def test_a_hub_without_ranges_is_not_asked_for_everything(
    run: Run, hub: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranges, "MOST_DROPPED", 100_000)
    hub.ranges = False
    with pytest.raises(Failure, match=r"gives no parts of files .*; fetch the file whole first"):
        run()


def test_memory_is_bound(tmp_path: Path) -> None:
    large = {"mtp.a": ("BF16", [64, 1 << 18]), "mtp.b": ("BF16", [64])}
    with serving(donor(tmp_path / "large", large)) as server:
        for source in (SOURCE, str(server.folder)):
            found = find(source, server.url, None)
            tracemalloc.start()
            total = sum(map(len, found.pieces(0)))
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert (total, peak < 12 << 20) == (found.total, True)


WORK = f"""
import sys
from sparkops.node import draft_copy, graft
from sparkops.node.donor import find
draft_copy.SYNC_EVERY = 1 << 17
target, out, endpoint = sys.argv[1:]
graft.build(graft.Target(target), find({SOURCE!r}, endpoint, None), out)
"""


def test_killed_at_any_moment(tmp_path: Path) -> None:
    target, out = checkpoint(tmp_path / "target", [BODY], WIDE_CONFIG, index=True), tmp_path / "out"
    rng = random.Random(3)
    kills = finished = 0
    with serving(donor(tmp_path / "hub", WIDE)) as server:
        server.delay = 0.02
        begun = time.monotonic()
        while (kills < 20 or not finished) and time.monotonic() - begun < 90:
            argv = [sys.executable, "-c", WORK, str(target), str(out), server.url]
            with subprocess.Popen(argv, cwd=ROOT, stderr=subprocess.PIPE) as process:
                try:
                    # Most of them while it copies, some while it places and renames.
                    process.wait(rng.uniform(0.1, 0.8) if kills < 20 else 30)
                except subprocess.TimeoutExpired:
                    process.kill()
                    kills += 1
                assert process.stderr and not process.stderr.read()
            if out.exists():
                assert tensors_of(out / "mtp.safetensors") == expected(WIDE)
                assert sorted(path.name for path in tmp_path.iterdir() if path.name != ".out.graft") == [
                    *("hub", "out", "target"),
                ]
                finished += 1
                out.rename(tmp_path / "home")
                subprocess.run(["rm", "-r", str(tmp_path / "home")], check=True)
    assert finished
    assert kills == 20


def test_a_killed_job_is_named_and_taken_up(run: Run, hub: Server, tmp_path: Path, node: Any) -> None:
    del run
    target = checkpoint(tmp_path / "wide", [BODY], WIDE_CONFIG)
    with serving(donor(tmp_path / "slow", WIDE)) as server:
        server.delay = 0.02

        def kill(*_: Any) -> None:
            (pid,) = Path(node.state_dir, "jobs").glob("*/pid")
            os.kill(int(pid.read_text().split()[0]), 9)

        node.progress = kill
        args = {"path": str(tmp_path / "out"), "target": str(target), "donor": SOURCE, "endpoint": server.url}
        from sparkops.node.modules import mtp_graft

        given = mtp_graft.Args(**{**{"token": ""}, **args})
        with pytest.raises(Failure, match=r"the detached job .* was killed"):
            mtp_graft.apply(given, node)
        moves: list[tuple[float, float | None]] = []
        node.progress = lambda done, total, unit, msg="": moves.append((done, total))
        server.delay = 0.005
        done = mtp_graft.apply(given, node)
    assert (done.state, tensors_of(tmp_path / "out/mtp.safetensors")) == ("changed", expected(WIDE))
    assert moves and moves == sorted(moves)
    assert {total for _, total in moves} == {(tmp_path / "out/mtp.safetensors").stat().st_size}
