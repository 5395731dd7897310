"""purge-cache of a big file, as its owner, seen from outside through fincore as root."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from tests.e2e.nodes import ROOT, SPARKOPS, Nodes, eventually

pytestmark = pytest.mark.lab

FOLDER = "/home/spark/big"
FILE = f"{FOLDER}/weights.safetensors"
GIB = 1 << 30
HOLD = f"""
import mmap, time
with open("{FILE}", "rb") as file:
    pages = mmap.mmap(file.fileno(), 64 << 20, access=mmap.ACCESS_READ)
    sum(pages[at] for at in range(0, len(pages), 4096))
    print("held", flush=True)
    time.sleep(1000)
"""


@pytest.fixture
def big(nodes: Nodes) -> Iterator[Nodes]:
    """2 GiB of spark's, just written: some of it dirty."""
    write = f"mkdir {FOLDER}; head -c {2 * GIB} /dev/zero > {FILE}; cat {FILE} > /dev/null"
    nodes.on("spark-1", "runuser", "-u", "spark", "--", "sh", "-c", write)
    yield nodes
    nodes.on("spark-1", "rm", "-r", FOLDER)


def resident(nodes: Nodes) -> int:
    return int(nodes.on("spark-1", "fincore", "--bytes", "--noheadings", "--output", "res", FILE))


def test_two_gib_fall_to_nothing(big: Nodes) -> None:
    purge = ("purge-cache", "spark-1", "--path", FOLDER)
    # The kernel may take some pages back meanwhile.
    assert resident(big) > GIB
    check = big.sparkops(*purge, "--check").tasks()[-1]
    assert (check["state"], resident(big) > GIB) == ("changed", True)
    run = big.sparkops(*purge)
    assert resident(big) == 0
    task = run.tasks()[-1]
    assert (task["module"], task["state"]) == ("page_cache", "changed")
    assert GIB < task["result"]["resident"] <= 2 * GIB
    assert task["result"]["resident_after"] == 0
    assert "MemFree" in task["msg"]
    assert "MemAvailable" in task["msg"]
    # The served recipe pins its KV cache.
    (notice,) = [one for one in run.tasks() if one["module"] == "debug"]
    assert all(word in notice["msg"] for word in ("fp8", "unneeded", "re-read"))
    second = big.sparkops(*purge)
    assert second.count("changed") == {"spark-1": 0}
    assert second.tasks()[-1]["state"] == "ok"


def test_a_file_that_a_process_maps_is_named(big: Nodes) -> None:
    purge = ("purge-cache", "spark-1", "--path", FOLDER)
    user = ("runuser", "-u", "spark", "--", "python3", "-c", HOLD)
    argv = [*SPARKOPS, "lab", "exec", "--dir", str(big.dir), "spark-1", "--", *user]
    with subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, text=True) as holder:
        try:
            assert holder.stdout
            assert holder.stdout.readline() == "held\n"
            task = big.sparkops(*purge).tasks()[-1]
            pid = big.on("spark-1", "pgrep", "-f", "-n", "^python3 -c").strip()
            assert task["state"] == "changed"
            (held,) = task["result"]["held"]
            assert held["path"] == FILE
            assert 64 << 20 <= held["resident"] == resident(big) < 128 << 20
            assert [str(by["pid"]) for by in held["by"]] == [pid]
            assert f"pid {pid} (python3" in task["msg"]
            # What stays for good is no change.
            assert big.sparkops(*purge).tasks()[-1]["state"] == "ok"
        finally:
            holder.terminate()
    eventually(lambda: big.sparkops(*purge).tasks()[-1]["result"]["resident_after"] == 0, pause=0.5)
    assert resident(big) == 0
