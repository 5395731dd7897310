"""A lab and its nodes as the end-to-end tests use them: sparkops as a user runs it, and a look at the nodes as root."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.e2e.leaks import Watch

ROOT = Path(__file__).parents[2]
SPARKOPS = [sys.executable, "-m", "sparkops.cli.main"]
STATE = "/home/spark/.local/share/sparkops"
SECONDS = 120
# sudo on spark-2 asks for it; on spark-1 it asks for none.
PASSWORD = "open, sesame'7"
VERBS = (("provision", "--all-nodes"), ("deploy", "fp8", "--all-nodes"), ("purge-cache",))
MODEL = "Qwen/Qwen3.6-35B-A3B-FP8"

ASK = """
import json, sys, urllib.request
url, model = sys.argv[1:]
body = json.dumps({"model": model, "prompt": "Say hello.", "max_tokens": 4}).encode()
request = urllib.request.Request(url + "/v1/completions", body, {"Content-Type": "application/json"})
print(json.load(urllib.request.urlopen(request, timeout=5))["usage"]["completion_tokens"])
"""


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    rc: int
    out: str
    err: str

    @property
    def events(self) -> list[dict[str, Any]]:
        """The JSON objects of stdout: one a line, and nothing else."""
        events = [json.loads(line) for line in self.out.splitlines()]
        assert all(isinstance(event, dict) and "event" in event for event in events), self.out
        return events

    @property
    def recap(self) -> dict[str, dict[str, int]]:
        """The counts of the last line, by node."""
        last = self.events[-1]
        assert (last["event"], last["exit_code"]) == ("recap", self.rc), self.out
        counts: dict[str, dict[str, int]] = last["hosts"]
        return counts

    def count(self, state: str) -> dict[str, int]:
        """One count of the recap, by node."""
        return {node: counts[state] for node, counts in self.recap.items()}

    def tasks(self, node: str | None = None) -> list[dict[str, Any]]:
        """The tasks' and handlers' events."""
        kinds = ("task", "handler")
        return [one for one in self.events if one["event"] in kinds and node in (None, one["host"])]

    def failure(self, node: str) -> dict[str, Any]:
        """The one task that failed on a node."""
        (failed,) = [task for task in self.tasks(node) if task["state"] == "failed"]
        return failed


@dataclass(frozen=True)
class First:
    """The three commands on bare nodes, one after the other, and who had the password meanwhile."""

    runs: list[Done]
    watch: Watch


@dataclass(frozen=True)
class Nodes:
    """A lab that is up, in `dir`."""

    dir: Path

    @property
    def inventory(self) -> Path:
        """The lab's own."""
        return self.dir / "inventory.yml"

    def lab(self, verb: str, *words: str, stdin: str = "", check: bool = True) -> Done:
        """`sparkops lab VERB`."""
        return command([*SPARKOPS, "lab", verb, "--dir", str(self.dir), *words], stdin=stdin, check=check)

    def inside(self, *argv: str) -> list[str]:
        """The command that runs argv where the nodes can be reached."""
        return [*SPARKOPS, "lab", "run", "--dir", str(self.dir), "--", *argv]

    def argv(self, *words: str, inventory: Path | None = None) -> list[str]:
        """The command that runs sparkops there."""
        return self.inside(*SPARKOPS, "-i", str(inventory or self.inventory), *words)

    def sparkops(self, *words: str, stdin: str = "", inventory: Path | None = None, rc: int = 0) -> Done:
        """Run a verb with --json, to its end; `rc` is the exit code that it should have."""
        done = self.plain("--json", *words, stdin=stdin, inventory=inventory)
        assert done.rc == rc, done.out + done.err
        return done

    def plain(self, *words: str, stdin: str = "", inventory: Path | None = None) -> Done:
        """Run a verb as somebody at a pipe sees it."""
        return command(self.argv(*words, inventory=inventory), stdin=stdin)

    def on(self, node: str, *argv: str, stdin: str = "") -> str:
        """What a command that runs as root on a node says; it must succeed."""
        return self.lab("exec", node, "--", *argv, stdin=stdin).out

    def root(self, node: str) -> Path:
        """A node's file system, seen from here."""
        return self.dir / "nodes" / node / "root"

    def token(self, node: str, model: str, port: int = 8000) -> bool:
        """Whether the copy on a node generates a token now."""
        words = ("python3", "-c", ASK, f"http://127.0.0.1:{port}", model)
        done = self.lab("exec", node, "--", *words, check=False)
        return done.rc == 0 and int(done.out) > 0


def command(argv: list[str], stdin: str = "", check: bool = False, seconds: float = SECONDS) -> Done:
    """Run a command to its end."""
    done = subprocess.run(argv, cwd=ROOT, input=stdin, capture_output=True, text=True, timeout=seconds)
    assert not check or done.returncode == 0, done.stdout + done.stderr
    return Done(done.returncode, done.stdout, done.stderr)


@contextmanager
def lab(folder: Path, count: int = 2, driver: str = "nspawn", *words: str, **environment: str) -> Iterator[Nodes]:
    """A lab that is up."""
    nodes = Nodes(folder)
    argv = [*SPARKOPS, "lab", "up", "--dir", str(folder), "--driver", driver, "--nodes", str(count), *words]
    done = subprocess.run(argv, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    try:
        yield nodes
    finally:
        nodes.lab("down")


def eventually(holds: Callable[[], object], seconds: float = 30.0, pause: float = 0.1) -> None:
    """Wait until something holds."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"it did not come about within {seconds:g} s"
        time.sleep(pause)
