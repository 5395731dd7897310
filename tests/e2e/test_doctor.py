"""Failures made for real on a node that boots systemd, with the stand-in engine; doctor names each."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.nodes import Nodes, eventually, lab

pytestmark = pytest.mark.lab

NODE = "spark-1"
UNIT = "sparkops-vllm.service"
CURRENT = "/opt/sparkops/releases/vllm/current"
RUN = f"{CURRENT}/run"
MODELS = "/home/spark/models/hf"
FP8 = f"{MODELS}/Qwen3.6-35B-A3B-FP8"
SHARD = f"{FP8}/model-00003-of-00010.safetensors"
RESTART = f"systemctl reset-failed {UNIT}; systemctl restart {UNIT}"
PID = f"$(systemctl show -P MainPID {UNIT})"
# After every case: takes back whatever any of them did.
MEND = f"""
systemctl stop squatter {UNIT} 2>/dev/null
umount {MODELS} 2>/dev/null
for file in run env recipe.json; do cp -a /root/good/$file {CURRENT}/$file; done
cp -a /root/good/{UNIT} /etc/systemd/system/
rm -rf /etc/systemd/system/{UNIT}.d {FP8}/.cache
[ -d {FP8}.away ] && mv {FP8}.away {FP8}
[ -d /opt/sparkops/engines.away ] && mv /opt/sparkops/engines.away /opt/sparkops/engines
[ -f /root/shard ] && mv /root/shard {SHARD}
chmod 644 {FP8}/config.json
echo 580.95.05 > /etc/sparkops-lab/driver
systemctl daemon-reload
systemctl enable {UNIT} 2>/dev/null
true
"""


def edited(old: str, new: str) -> str:
    """The command that edits the serve command and restarts the copy."""
    return f"sed -i 's#{old}#{new}#' {RUN}; {RESTART}"


def with_flag(words: str) -> str:
    return edited("--shutdown-timeout", f"{words} --shutdown-timeout")


def served(folder: str) -> str:
    return f"sed -i 's#{FP8}#{MODELS}/{folder}#' {RUN}"


ASK = """python3 - <<'X' &
import urllib.request
body = b'{"model": "Qwen/Qwen3.6-35B-A3B-FP8", "prompt": "x", "max_tokens": 9}'
urllib.request.urlopen(urllib.request.Request("http://127.0.0.1:8000/v1/completions", body), timeout=60)
X
sleep 1"""
# The name of the engine that carries the guard.
PATCHED = "/opt/sparkops/engines/*/lib/python3*/site-packages/vllm/model_executor/models/qwen3_5.py"
GUARDED = f"$(grep -l language_model_only {PATCHED} | head -1 | cut -d/ -f5)"
SQUAT = "systemd-run -q --unit=squatter python3 -m http.server 8000 --bind 127.0.0.1; sleep 1"
SMALL = f"""
mkdir -p /run/small; cp -a --sparse=always {FP8} /run/small/
mount -t tmpfs -o size=200m,mode=755 tmpfs {MODELS}; chown spark: {MODELS}
cp -a --sparse=always /run/small/* {MODELS}/; rm -r /run/small; {RESTART}"""


@dataclass(frozen=True)
class Case:
    """What is done to the node, and what doctor must say first; `up`: the copy serves all the same."""

    id: str
    harm: str
    up: bool = False
    severity: str = "failure"
    says: str = ""


CASES = [
    Case("kv-too-small", edited("6442450944", "4294967296"), says="205,920"),
    Case("unknown-flag", with_flag("--no-such-flag"), says="--no-such-flag"),
    Case("length-too-long", edited("--max-model-len 262144", "--max-model-len 524288"), says="524288"),
    Case("backend-unusable", with_flag("--moe-backend nonsense"), says="nonsense"),
    Case("visual-missing", f"{served('Qwen-AgentWorld-35B-A3B')}; {RESTART}", says="(0 of 693)"),
    Case(
        "visual-unexpected",
        f'sed -i "s#engines/[^/]*/#engines/{GUARDED}/#" {RUN}; {served("Qwen-AgentWorld-35B-A3B-NVFP4")};'
        + with_flag("--language-model-only"),
        says="(333 of 124,756)",
    ),
    Case(
        "draft-missing",
        with_flag('--speculative-config "{\\\\"method\\\\": \\\\"mtp\\\\"}"'),
        says="mtp.safetensors",
    ),
    Case("memory-check", f"echo SPARKOPS_LAB_FREE_GIB=20 >> {CURRENT}/env; {RESTART}", says="20.00 of 121.7"),
    Case("port-taken", f"systemctl stop {UNIT}; {SQUAT}; {RESTART}", says="squatter.service"),
    Case("checkpoint-truncated", f"cp --sparse=always {SHARD} /root/shard; truncate -s 5000000 {SHARD}; {RESTART}"),
    Case("shard-missing", f"mv {SHARD} /root/shard; {RESTART}", says="model-00003-of-00010"),
    Case("checkpoint-missing", f"mv {FP8} {FP8}.away; {RESTART}"),
    Case("permission-denied", f"chmod 000 {FP8}/config.json; {RESTART}", says="config.json"),
    Case("engine-missing", f"mv /opt/sparkops/engines /opt/sparkops/engines.away; {RESTART}", says="bin/vllm"),
    Case(
        "wrong-revision",
        f"mkdir -p {FP8}/.cache/huggingface/download;"
        f"echo 5ca1ab1e > {FP8}/.cache/huggingface/download/config.json.metadata;"
        f'sed -i \'s#"model_revision": null#"model_revision": "0badc0de"#\' {CURRENT}/recipe.json; {RESTART}',
        up=True,
        says="0badc0de",
    ),
    Case("driver-too-old", "echo 570.86.10 > /etc/sparkops-lab/driver", up=True, says="570.86.10"),
    Case("wedged", f"kill -USR1 {PID}; {ASK}", up=True, says="1 requests under way"),
    Case("wrong-model", edited("--served-model-name [^ ]*", "--served-model-name other"), up=True, says="other"),
    Case("wrong-backend", with_flag("--moe-backend marlin"), up=True, says="Using TRITON Fp8 MoE backend"),
    Case("wrong-length", edited("--max-model-len 262144", "--max-model-len 65536"), up=True, says="65536"),
    Case("kv-tokens-differ", edited("6442450944", "7516192768"), up=True, severity="warning", says="308,955"),
    Case("not-enabled", f"systemctl disable {UNIT}", up=True, severity="warning"),
    Case("out-of-disk", SMALL, up=True, severity="warning", says=MODELS),
    Case("stopped", f"systemctl stop {UNIT}"),
    Case("unit-missing", f"systemctl stop {UNIT}; rm /etc/systemd/system/{UNIT}; systemctl daemon-reload"),
]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    """One node that serves fp8, with the guarded engine beside; /root/good keeps what cases change."""
    with lab(tmp_path_factory.mktemp("doctor") / "lab", 1) as nodes:
        nodes.sparkops("provision", NODE)
        nodes.sparkops("deploy", "fp8", NODE)
        files = f"{RUN} {CURRENT}/env {CURRENT}/recipe.json /etc/systemd/system/{UNIT}"
        nodes.on(NODE, "sh", "-c", f"mkdir /root/good; cp -a {files} /root/good/")
        yield nodes


@pytest.fixture
def serving(node: Nodes) -> Iterator[Nodes]:
    """It serves; afterwards it is mended."""
    node.on(NODE, "sh", "-c", f"systemctl is-active -q {UNIT} || ({RESTART})")
    eventually(lambda: node.token(NODE, "Qwen/Qwen3.6-35B-A3B-FP8"))
    yield node
    node.on(NODE, "sh", "-c", MEND)


def doctor(nodes: Nodes, rc: int) -> dict[str, Any]:
    """What doctor says of the node."""
    done = nodes.plain("--json", "doctor", NODE)
    assert done.rc == rc, done.out + done.err
    document: dict[str, Any] = json.loads(done.out)
    assert document["exit_code"] == rc
    said: dict[str, Any] = document["nodes"][NODE]
    return said


def settled(nodes: Nodes, up: bool) -> bool:
    """Whether the unit has got to where it goes: it answers, or it has ended."""
    state = nodes.on(NODE, "systemctl", "show", "-P", "SubState", UNIT).strip()
    if not up:
        return state in ("auto-restart", "failed", "dead")
    get = "import urllib.request as u; print(u.urlopen('http://127.0.0.1:8000/health').status)"
    return nodes.lab("exec", NODE, "--", "python3", "-c", get, check=False).rc == 0


def test_a_healthy_node_is_one_line(serving: Nodes, tmp_path: Path) -> None:
    done = serving.plain("doctor")
    lines = [line for line in done.out.splitlines() if not line.startswith("  ")]
    assert done.rc == 0, done.out
    assert len(lines) == 1
    assert lines[0].startswith("spark-1  serving  fp8, release 1, port 8000, up ")
    assert {one["id"] for one in doctor(serving, 0)["findings"]} <= {"clock", "reboot-pending"}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_doctor_names(serving: Nodes, case: Case) -> None:
    serving.on(NODE, "sh", "-c", case.harm)
    eventually(lambda: settled(serving, case.up))
    said = doctor(serving, 1 if case.severity == "failure" else 0)
    first = said["findings"][0]
    assert (first["id"], first["severity"]) == (case.id, case.severity), said
    assert case.says in first["cause"] + first["cure"] + str(first["evidence"])
    causes = [one["id"] for one in said["findings"] if one["severity"] == "failure" and not one["consequence"]]
    assert causes in ([], [case.id]), said


def test_a_crash_loop_and_its_cause(serving: Nodes) -> None:
    drop_in = f"/etc/systemd/system/{UNIT}.d"
    fast = f"mkdir -p {drop_in}; printf '[Service]\\nRestartSec=0.1\\n' > {drop_in}/fast.conf; systemctl daemon-reload;"
    serving.on(NODE, "sh", "-c", fast + edited("6442450944", "4294967296"))
    eventually(lambda: serving.on(NODE, "systemctl", "show", "-P", "SubState", UNIT).strip() == "failed", 60)
    assert [one["id"] for one in doctor(serving, 1)["findings"][:2]] == ["kv-too-small", "crash-loop"]


def test_an_engine_that_died_and_came_back(serving: Nodes) -> None:
    serving.on(NODE, "sh", "-c", f"kill -USR2 {PID}")
    eventually(lambda: settled(serving, up=False))
    assert "engine-died" in [one["id"] for one in doctor(serving, 1)["findings"]]
    eventually(lambda: settled(serving, up=True))
    (again,) = [one for one in doctor(serving, 0)["findings"] if one["id"] == "engine-died"]
    assert again["severity"] == "warning"


def test_a_start_that_has_scrolled_away_is_still_found(serving: Nodes) -> None:
    serving.on(NODE, "sh", "-c", with_flag("--moe-backend marlin"))
    eventually(lambda: settled(serving, up=True))
    ask = (
        "import http.client as h\nc = h.HTTPConnection('127.0.0.1', 8000)\n"
        "for _ in range(4500): c.request('GET', '/health'); c.getresponse().read()"
    )
    serving.on(NODE, "python3", "-c", ask)
    count = "journalctl -q --sync; journalctl -q -u sparkops-vllm -n 4000 | grep -c 'MoE backend' || true"
    assert serving.on(NODE, "sh", "-c", count).strip() == "0"
    (finding,) = [one for one in doctor(serving, 1)["findings"] if one["severity"] == "failure"]
    assert finding["id"] == "wrong-backend"
    assert "MARLIN" in finding["evidence"][0]
