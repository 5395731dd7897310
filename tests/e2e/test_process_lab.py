"""The whole thread on the process lab, as anybody can run it: no root, no systemd, no sudo."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.e2e.nodes import MODEL, VERBS, Nodes, lab

# The lab fetches uv's wheel, once.
pytestmark = pytest.mark.network


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    with lab(tmp_path_factory.mktemp("process") / "lab", 2, "process") as nodes:
        yield nodes


def stream(nodes: Nodes, node: str) -> list[str]:
    """The data lines of a chat's answer as they come."""
    sparks = yaml.safe_load(nodes.inventory.read_text())["sparks"]
    message = {"role": "user", "content": "Say hello."}
    body = {"model": MODEL, "messages": [message], "max_tokens": 8, "stream": True}
    url = f"http://127.0.0.1:{sparks['hosts'][node]['port']}/v1/chat/completions"
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return [line.decode().strip()[6:] for line in answer if line.startswith(b"data: ")]


def files(nodes: Nodes) -> dict[str, tuple[int, int, int, int]]:
    """Everything in the nodes' homes but state/ and what servers write."""
    found = {}
    for home in nodes.dir.glob("nodes/*/home"):
        for path in home.rglob("*"):
            if "state" not in path.parts and path.suffix not in (".log", ".journal"):
                now = path.lstat()
                found[str(path)] = (now.st_mode, now.st_uid, now.st_size, now.st_mtime_ns)
    return found


def asked(nodes: Nodes, *words: str, rc: int = 0) -> Any:
    done = nodes.plain("--json", *words)
    assert done.rc == rc, done.out + done.err
    return json.loads(done.out)


def test_the_three_verbs_a_streamed_answer_and_again(simulated: Nodes) -> None:
    # They share the checkpoints' files, and so what is in the page cache: the purge may find nothing on one.
    first = [simulated.sparkops(*verb) for verb in VERBS]
    assert all(first[0].count("changed").values())
    assert all(first[1].count("changed").values())
    for node in ("spark-1", "spark-2"):
        *chunks, end = stream(simulated, node)
        assert end == "[DONE]"
        deltas = [json.loads(chunk)["choices"] for chunk in chunks]
        text = "".join(one["delta"].get("content") or "" for choices in deltas for one in choices)
        assert len(chunks) > 3
        assert text.strip()

    before = files(simulated)
    assert any("engines" in path for path in before)
    for verb in VERBS:
        assert simulated.sparkops(*verb).count("changed") == {"spark-1": 0, "spark-2": 0}
    assert files(simulated) == before


def test_the_verbs_that_look(simulated: Nodes) -> None:
    for verb in VERBS[:2]:
        simulated.sparkops(*verb)
    told = asked(simulated, "verify")["nodes"]
    assert {one["state"] for node in told.values() for one in node["checks"]} == {"pass"}
    # They share one address.
    assert [one["item"] for one in asked(simulated, "diff", rc=1)["differences"]] == ["run --port"]
    assert asked(simulated, "status", "spark-1")["spark-1"]["services"][0]["drift"] == []
    assert asked(simulated, "releases", "spark-1")["spark-1"]["releases"][-1]["release"] == 1
    found = simulated.plain("logs", "--since", "1 hour ago", "--grep", "startup complete").out.splitlines()
    assert {line.split()[0] for line in found} == {"spark-1", "spark-2"}
    assert all("Application startup complete." in line for line in found)
