"""The verbs that look at served copies, as user spark with sudo on two nodes that boot systemd."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.interrupting import no_executor_stays
from tests.e2e.nodes import MODEL, ROOT, STATE, Nodes, eventually, lab

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300)]
ONE, TWO = "spark-1", "spark-2"
UNIT = "sparkops-vllm.service"
INSTALLED = f"/etc/systemd/system/{UNIT}"
CURRENT = "/opt/sparkops/releases/vllm/current"
PATCHED = "/opt/sparkops/engines/*/lib/python3*/site-packages/vllm/model_executor/models/qwen3_5.py"
# The guarded engine's file, which has its backup beside it.
GUARDED = f"$(ls {PATCHED}.orig | sed s/.orig$//)"
# Both are more than a node's memory has room for, as the preflight says.
TOGETHER = ("-e", "preflight_ignore=services")
SECOND = "Qwen/Qwen-AgentWorld-35B-A3B"


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    """Two nodes that serve bf16, whose engine is patched; the second one serves fp8 beside."""
    with lab(tmp_path_factory.mktemp("verbs") / "lab", 2) as nodes:
        nodes.sparkops("provision", "--all-nodes", "--recipe", "bf16", "--recipe", "fp8")
        nodes.sparkops("deploy", "bf16", "--all-nodes")
        nodes.sparkops("deploy", "fp8", TWO, "--service", "side", "-e", "port=8001", *TOGETHER)
        nodes.on(TWO, "sh", "-c", f"mkdir /root/good; cp -a {INSTALLED} {CURRENT}/env {GUARDED} /root/good/")
        yield nodes


@pytest.fixture
def nodes(pair: Nodes) -> Iterator[Nodes]:
    """The pair; afterwards the second node is mended."""
    yield pair
    mend = (
        f"cp -a /root/good/{UNIT} /etc/systemd/system/; cp -a /root/good/env {CURRENT}/;"
        f"cp -a /root/good/qwen3_5.py {GUARDED}; echo 580.95.05 > /etc/sparkops-lab/driver;"
        "rm -f /run/reboot-required; systemctl daemon-reload"
    )
    pair.on(TWO, "sh", "-c", mend)


def asked(nodes: Nodes, *words: str, rc: int = 0) -> Any:
    """A verb's JSON document."""
    done = nodes.plain("--json", *words)
    assert done.rc == rc, done.out + done.err
    return json.loads(done.out)


def copies(nodes: Nodes, name: str) -> dict[str, Any]:
    """A node's copies by service, as status tells."""
    return {one["service"]: one for one in asked(nodes, "status")[name]["services"]}


def checks(nodes: Nodes, name: str, rc: int = 0) -> dict[str, tuple[str, str]]:
    rows = asked(nodes, "verify", rc=rc)["nodes"][name]["checks"]
    return {one["check"]: (one["state"], one["detail"]) for one in rows}


def test_all_is_well_and_said_so(nodes: Nodes) -> None:
    one, two = copies(nodes, ONE), copies(nodes, TWO)
    assert (set(one), set(two)) == ({"vllm"}, {"vllm", "side"})
    copy = one["vllm"]
    assert (copy["unit_state"], copy["release"], copy["drift"], copy["changed_since"]) == ("active", 1, [], {})
    assert (set(copy["patches"].values()), two["side"]["patches"]) == ({"applied"}, {})
    assert {state for state, _ in checks(nodes, ONE).values()} == {"pass"}
    assert asked(nodes, "diff")["differences"] == []
    assert nodes.plain("diff").out == "no differences (2 nodes)\n"
    (release,) = asked(nodes, "releases", ONE)[ONE]["releases"]
    assert (release["current"], release["state"], release["recipe"]) == (True, "confirmed", "bf16")
    assert (release["driver"], release["verb"]) == ("580.95.05", "sparkops deploy")


def test_looking_changes_nothing(nodes: Nodes) -> None:
    stamp = "find /opt/sparkops /etc/systemd /home/spark/models -printf '%p %T@ %m\\n' | sort | sha256sum"
    pids = f"systemctl show -p MainPID {UNIT}"
    before = nodes.on(TWO, "sh", "-c", f"{stamp}; {pids}")
    for verb in ("releases", "status", "verify", "diff", "logs"):
        assert nodes.plain(verb).rc == 0
    assert nodes.on(TWO, "sh", "-c", f"{stamp}; {pids}") == before


def test_speeds_are_measured_remembered_and_compared(nodes: Nodes) -> None:
    words = ("bench", "all", "--prompt-tokens", "2048,512", "--tokens", "20", "--runs", "2")
    only_said = asked(nodes, *words, "--check")["nodes"][ONE]["copies"][0]["measured"]
    assert [(one["prompt_tokens"], "decode_tok_s" in one) for one in only_said] == [(2048, False), (512, False)]
    first, second = asked(nodes, *words)["nodes"], asked(nodes, *words)["nodes"]
    assert [copy["service"] for copy in second[TWO]["copies"]] == ["side", "vllm"]
    for name, service in ((ONE, 0), (TWO, 0), (TWO, 1)):
        then, now = (found[name]["copies"][service] for found in (first, second))
        assert (then["trouble"], now["trouble"]) == (None, None)
        for earlier, later in zip(then["measured"], now["measured"], strict=True):
            assert (earlier["before"], earlier["warnings"], later["warnings"]) == (None, [], [])
            assert 50 < earlier["decode_tok_s"]["median"] < 250, "the lab's copies give 200 tokens a second"
            before = later["before"]
            assert (before["at"], before["decode_tok_s"]) == (earlier["at"], earlier["decode_tok_s"])
            assert before["differs"] == {}
            ratio = later["decode_tok_s"]["median"] / earlier["decode_tok_s"]["median"]
            assert before["ratios"]["decode_tok_s"] == pytest.approx(ratio, abs=0.001)
    (long, short) = second[ONE]["copies"][0]["measured"]
    (published,) = long["published"]
    assert (published["metric"], published["value"], short["published"]) == ("decode", 30.4, [])
    assert long["ceiling"]["decode_tok_s"] == 46.3
    table = nodes.plain(*words, "--runs", "1").out
    assert sum(line.split()[3:5] == ["2,048", "20"] and "x of 30.4 " in line for line in table.splitlines()) == 2
    kept = nodes.on(TWO, "sh", "-c", f"stat -c '%U %a %n' {STATE}/state/bench/*")
    assert kept.split("\n")[:2] == [f"spark 600 {STATE}/state/bench/{name}.json" for name in ("side", "vllm")]


def test_what_can_t_be_measured(nodes: Nodes) -> None:
    copy = asked(nodes, "bench", ONE, "--prompt-tokens", "262000", rc=1)["nodes"][ONE]["copies"][0]
    assert "max_model_len 262,144" in copy["trouble"]
    assert "nothing deployed" in nodes.plain("bench", ONE, "--service", "none").out
    pid = nodes.on(ONE, "systemctl", "show", "-P", "MainPID", UNIT).strip()
    nodes.on(ONE, "kill", "-USR1", pid)
    told = nodes.plain("bench", ONE, "--patience", "1")
    assert (told.rc, "no token came for 1 s" in told.out) == (1, True)
    nodes.on(ONE, "kill", "-USR1", pid)
    eventually(lambda: copies(nodes, ONE)["vllm"]["running"] == 0)


def test_ctrl_c_ends_the_requests_of_a_bench(nodes: Nodes) -> None:
    argv = nodes.argv("bench", ONE, "--tokens", "100000")
    with subprocess.Popen(argv, cwd=ROOT, stdin=subprocess.DEVNULL, start_new_session=True) as process:
        eventually(lambda: copies(nodes, ONE)["vllm"]["running"] == 1)
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(30) == 130
    eventually(lambda: copies(nodes, ONE)["vllm"]["running"] == 0)
    no_executor_stays(nodes, ONE)


def test_an_edited_unit_and_environment(nodes: Nodes) -> None:
    edit = f"sed -i s/RestartSec=5/RestartSec=6/ {INSTALLED}; systemctl daemon-reload"
    nodes.on(TWO, "sh", "-c", f"{edit}; echo HF_TOKEN=hf_secret >> {CURRENT}/env")
    assert copies(nodes, TWO)["vllm"]["drift"] == ["env", "unit"]
    assert "env, unit" in nodes.plain("status").out
    said = checks(nodes, TWO, rc=1)
    assert said["unit"] == ("fail", "edited: unit")
    assert said["release files"] == ("fail", "edited: env")
    told = asked(nodes, "diff", rc=1)
    assert told["drift"] == {ONE: [], TWO: ["env", "unit"]}
    assert [one["item"] for one in told["differences"]] == ["unit RestartSec", "env HF_TOKEN"]
    assert "hf_secret" not in nodes.plain("diff").out
    # A deploy puts it right: the environment by a new release, the unit in place.
    nodes.sparkops("deploy", "bf16", TWO, *TOGETHER)
    assert copies(nodes, TWO)["vllm"]["drift"] == []
    states = [(one["release"], one["current"], one["state"]) for one in asked(nodes, "releases", TWO)[TWO]["releases"]]
    assert (2, True, "confirmed") in states
    assert (1, False, "served") in states


def test_an_edited_patch_and_another_driver(nodes: Nodes) -> None:
    nodes.on(TWO, "sh", "-c", f"echo '# by hand' >> {GUARDED}; echo 590.44.01 > /etc/sparkops-lab/driver")
    nodes.on(TWO, "touch", "/run/reboot-required")
    copy = copies(nodes, TWO)["vllm"]
    name = "qwen3_5-language-only-guard"
    assert (copy["patches"], copy["drift"]) == ({name: "edited"}, [f"patch {name} edited"])
    assert copy["changed_since"] == {"driver": ["580.95.05", "590.44.01"]}
    line = next(one for one in nodes.plain("status").out.splitlines() if one.startswith(TWO) and "bf16" in one)
    assert "0 of 1" in line
    assert "driver 580.95.05 -> 590.44.01; reboot pending" in line
    assert checks(nodes, TWO, rc=1)["patches"] == ("fail", f"{name} edited")
    told = asked(nodes, "diff", rc=1)["differences"]
    sides = {one["item"]: {side["nodes"][0]: side["value"] for side in one["sides"]} for one in told}
    assert set(sides) == {"driver", f"patch {name}"}
    assert sides["driver"] == {ONE: "580.95.05", TWO: "590.44.01"}
    assert sides[f"patch {name}"][ONE].startswith("applied ")
    assert sides[f"patch {name}"][TWO].startswith("edited ")
    nodes.on(TWO, "sh", "-c", f'sed -i \'s/"kernel": ".*"/"kernel": "6.11.0-nvidia"/\' {CURRENT}/release.json')
    assert copies(nodes, TWO)["vllm"]["changed_since"]["kernel"] == ["6.11.0-nvidia", os.uname().release]
    nodes.on(TWO, "sh", "-c", f"cp {GUARDED}.orig {GUARDED}")
    assert copies(nodes, TWO)["vllm"]["patches"] == {name: "taken out"}


def test_an_engine_that_is_not_as_locked(nodes: Nodes) -> None:
    file = f"$(dirname {GUARDED})/registry.py"
    nodes.on(TWO, "sh", "-c", f"cp -a {file} /root/good/registry.py; sed -i '1s/^./#/' {file}")
    state, detail = checks(nodes, TWO, rc=1)["engine"]
    assert (state, detail) == ("fail", "vllm/model_executor/models/registry.py was edited")
    assert [one["item"] for one in asked(nodes, "diff", rc=1)["differences"]] == ["engine contents"]
    nodes.on(TWO, "sh", "-c", f"cp -a /root/good/registry.py {file}")
    assert checks(nodes, TWO)["engine"][0] == "pass"


def test_a_copy_that_is_stopped_does_not_verify(nodes: Nodes) -> None:
    nodes.on(ONE, "systemctl", "stop", UNIT)
    rows = asked(nodes, "verify", ONE, "-e", "patience=1", rc=1)["nodes"][ONE]["checks"]
    assert {one["check"] for one in rows if one["state"] == "fail"} == {"serving", "log"}
    nodes.on(ONE, "systemctl", "start", UNIT)
    eventually(lambda: nodes.token(ONE, SECOND))


def test_a_node_is_rebooted_and_serves_again(nodes: Nodes) -> None:
    refused = nodes.plain("verify", ONE, "--reboot")
    assert refused.rc == 2
    assert "--yes" in refused.err
    boot = nodes.on(ONE, "cat", "/proc/sys/kernel/random/boot_id")
    other = nodes.on(TWO, "cat", "/proc/sys/kernel/random/boot_id")
    done = nodes.plain("--json", "verify", ONE, "--reboot", "--yes")
    assert done.rc == 0, done.out + done.err
    rows = json.loads(done.out)["nodes"][ONE]["checks"]
    assert rows[0]["check"] == "reboot"
    assert rows[0]["detail"].startswith("back after ")
    assert {one["state"] for one in rows} == {"pass"}
    assert nodes.on(ONE, "cat", "/proc/sys/kernel/random/boot_id") != boot
    assert nodes.on(TWO, "cat", "/proc/sys/kernel/random/boot_id") == other


class Followed:
    """`logs -f` under way, in a process group of its own as a shell would have it."""

    def __init__(self, nodes: Nodes, folder: Path, *words: str) -> None:
        self.nodes = nodes
        self.out, self.err = folder / "out", folder / "err"
        with self.out.open("wb") as out, self.err.open("wb") as err:
            self.process = subprocess.Popen(
                nodes.argv("logs", "-f", *words),
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )

    def hosts(self) -> set[str]:
        return {line.split()[0] for line in self.out.read_text().splitlines()}

    def interrupt(self) -> int:
        os.killpg(self.process.pid, signal.SIGINT)
        return self.process.wait(30)


def journalctls(nodes: Nodes, name: str) -> str:
    return nodes.on(name, "sh", "-c", "pgrep -a journalctl || true")


def test_ctrl_c_leaves_no_journalctl(nodes: Nodes, tmp_path: Path) -> None:
    followed = Followed(nodes, tmp_path, "-n", "1")
    eventually(lambda: followed.hosts() == {ONE, TWO})
    assert "journalctl" in journalctls(nodes, TWO)
    nodes.token(TWO, MODEL)
    assert nodes.token(TWO, SECOND)
    eventually(lambda: "/v1/completions" in followed.out.read_text().splitlines()[-1])
    assert followed.interrupt() == 130
    for name in (ONE, TWO):
        eventually(lambda name=name: not journalctls(nodes, name), 5)  # type: ignore[misc]
        no_executor_stays(nodes, name)
    assert followed.err.read_text() == ""
    assert "\x1b" not in followed.out.read_text()


def test_a_killed_controller_leaves_no_journalctl(nodes: Nodes, tmp_path: Path) -> None:
    followed = Followed(nodes, tmp_path, TWO, "--json")
    eventually(lambda: '"output"' in followed.out.read_text())
    os.killpg(followed.process.pid, signal.SIGKILL)
    followed.process.wait()
    eventually(lambda: not journalctls(nodes, TWO), 5)


def test_a_node_that_goes_away_is_named_and_the_others_go_on(nodes: Nodes, tmp_path: Path) -> None:
    followed = Followed(nodes, tmp_path, "-n", "1")
    eventually(lambda: followed.hosts() == {ONE, TWO})
    nodes.lab("reboot", ONE)
    eventually(lambda: followed.err.read_text().startswith(f"{ONE}: "))
    assert nodes.token(TWO, SECOND)
    eventually(lambda: "/v1/completions" in followed.out.read_text())
    assert followed.process.poll() is None
    assert followed.interrupt() == 130
    eventually(lambda: nodes.token(ONE, SECOND))


def test_who_reads_has_seen_enough(nodes: Nodes) -> None:
    argv = nodes.argv("logs", "-f")
    done = subprocess.run(["sh", "-c", '"$@" | head -1', "sh", *argv], cwd=ROOT, capture_output=True, timeout=30)
    assert len(done.stdout.splitlines()) == 1


def test_a_pattern_and_a_time(nodes: Nodes) -> None:
    done = nodes.plain("logs", "--grep", "application startup", "-n", "2", TWO)
    assert [line.rpartition("INFO:")[2].strip() for line in done.out.splitlines()] == [
        "Waiting for application startup.",
        "Application startup complete.",
    ]
    assert nodes.plain("logs", "--since", "2200-01-01").out == ""
    wrong = nodes.plain("logs", "--since", "whenever", TWO)
    assert (wrong.rc, "whenever" in wrong.err) == (1, True)
