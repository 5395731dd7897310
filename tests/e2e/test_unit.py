"""The unit on systemd itself: what it may reach, what it waits for, how it ends, and that it comes back."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.nodes import MODEL, ROOT, SPARKOPS, Nodes, eventually, lab

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]
UNIT = "sparkops-vllm.service"
FOLDER = "/opt/sparkops/releases/vllm"
# Tokens a second of the stand-in engine.
RATE = 200
MEMINFO = "etc/sparkops-lab/meminfo"
# systemd's own scale, of 10 (all is open) to 0; it was 9.2 and 9.8 without a word of hardening.
MOST_EXPOSED = {"system": 2.8, "user": 7.2}
# As root in the unit's view of the file system.
INSIDE = 'exec nsenter -t "$(systemctl show -P MainPID sparkops-vllm)" -m "$@"'

READ = """
import json, sys, urllib.request
url, kind = "http://127.0.0.1:8000/v1/completions", {"Content-Type": "application/json"}
answer = urllib.request.urlopen(urllib.request.Request(url, sys.argv[1].encode(), kind))
last = [line[6:] for line in answer if line.startswith(b"data: {")][-1]
print(json.loads(last)["usage"]["completion_tokens"])
"""


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    """A node that serves fp8."""
    with lab(tmp_path_factory.mktemp("unit") / "lab", 1) as nodes:
        nodes.sparkops("provision", "spark-1", "--recipe", "fp8")
        nodes.sparkops("deploy", "fp8", "spark-1")
        yield nodes


def inside(nodes: Nodes, *argv: str) -> str:
    return nodes.on("spark-1", "sh", "-c", INSIDE, "sh", *argv)


def writable(nodes: Nodes, *folders: str) -> list[str]:
    """Those of the folders in which the service could make a file."""
    script = 'for f; do touch "$f/.probe" 2>/dev/null && rm "$f/.probe" && echo "$f"; done; true'
    return inside(
        nodes, "setpriv", "--reuid=spark", "--regid=spark", "--clear-groups", "sh", "-c", script, "sh", *folders
    ).split()


def said(nodes: Nodes, since: str) -> str:
    return nodes.on("spark-1", "journalctl", "-u", UNIT, "--no-pager", "-o", "cat", "--since", since)


def now(nodes: Nodes) -> str:
    return nodes.on("spark-1", "date", "+%F %T.%N").strip()


def test_what_systemd_thinks_of_it(one: Nodes) -> None:
    found = one.on("spark-1", "systemd-analyze", "security", "--no-pager", UNIT)
    score = re.search(r"Overall exposure level for \S+: ([\d.]+)", found)
    assert score, found
    print(f"systemd-analyze security {UNIT}: {score[1]}")
    assert float(score[1]) <= MOST_EXPOSED["system"], found


def test_what_it_may_write(one: Nodes) -> None:
    mine = ["/home/spark", "/home/spark/models/hf", "/opt/sparkops/releases/vllm", "/tmp", "/dev/shm"]
    others = ["/etc", "/usr/bin", "/opt/sparkops", "/opt/sparkops/engines", "/opt/sparkops/bin"]
    assert writable(one, *mine, *others) == mine
    assert inside(one, "sh", "-c", "ls -A /home/spark/.ssh; ls -A /tmp").split() == []


def test_a_copy_serves_from_folders_of_the_user_s_choice(one: Nodes) -> None:
    one.on("spark-1", "sh", "-c", "cp -a /home/spark/models /srv/weights; mkdir /data; chown spark: /data")
    # What systemd's units give a meaning, too.
    home = "/srv/100% spark ops"
    ours = json.dumps({"sparkops_home": home})
    words = ("spark-1", "-e", ours, "-e", "models_dir=/srv/weights/hf")
    one.sparkops("provision", *words, "--recipe", "fp8")
    one.sparkops(
        "deploy", "fp8", *words, "--service", "two", "-e", "port=8001", "-e", '{"env": {"VLLM_CACHE_ROOT": "/data"}}'
    )
    assert one.token("spark-1", MODEL, 8001)
    pid = one.on("spark-1", "systemctl", "show", "-P", "MainPID", "sparkops-two").strip()
    probe = f"touch /data/x && ! touch '{home}/engines/x'"
    one.on(
        "spark-1",
        "nsenter",
        "-t",
        pid,
        "-m",
        "setpriv",
        "--reuid=spark",
        "--regid=spark",
        "--clear-groups",
        "sh",
        "-c",
        probe,
    )
    one.sparkops("remove", "spark-1", "-e", ours, "--service", "two")


def test_its_shared_memory_outlives_a_login(one: Nodes) -> None:
    login = 'exec setpriv --reuid=spark --regid=spark --clear-groups sh -c "echo > /dev/shm/kept"'
    inside(one, "sh", "-c", login)
    one.on("spark-1", "sh", "-c", login)
    one.plain("status", "spark-1")
    # logind takes what a user has left when the last session has been over for ten seconds.
    eventually(lambda: not one.on("spark-1", "ls", "/dev/shm").split())
    assert inside(one, "ls", "/dev/shm").split() == ["kept"]


def test_it_waits_for_memory_to_come_back(one: Nodes) -> None:
    file = one.root("spark-1") / MEMINFO
    whole = file.read_text()
    since = now(one)
    file.write_text(re.sub(r"MemAvailable: .*", "MemAvailable:   41943040 kB", whole))
    try:
        pid = one.on("spark-1", "systemctl", "show", "-P", "MainPID", UNIT).strip()
        one.on("spark-1", "kill", "-9", pid)
        eventually(lambda: "the start asks for 73.0 GiB (0.6 of 121.7), 40.0 are available" in said(one, since))
        assert one.on("spark-1", "systemctl", "show", "-P", "SubState", UNIT).strip() == "start-pre"
    finally:
        file.write_text(whole)
    eventually(lambda: one.token("spark-1", MODEL))
    assert "GiB are available" in said(one, since).partition("memory is back after ")[2]


def test_a_wait_that_ends_in_vain_does_not_keep_it_from_starting(one: Nodes) -> None:
    file = one.root("spark-1") / MEMINFO
    whole = file.read_text()
    file.write_text(re.sub(r"MemAvailable: .*", "MemAvailable:   41943040 kB", whole))
    since = now(one)
    try:
        one.sparkops("deploy", "fp8", "spark-1", "-e", "memory_wait=1")
        assert "starting without it: 40.0 GiB are available after 1 s" in said(one, since)
        assert one.token("spark-1", MODEL)
    finally:
        file.write_text(whole)
    one.sparkops("deploy", "fp8", "spark-1")


def test_a_rollback_brings_the_unit_back(one: Nodes) -> None:
    def unit() -> str:
        return one.on("spark-1", "cat", f"/etc/systemd/system/{UNIT}")

    def drift() -> Any:
        return json.loads(one.plain("--json", "status", "spark-1").out)["spark-1"]["services"][0]["drift"]

    before = unit()
    one.sparkops("deploy", "fp8", "spark-1", "-e", "memory_wait=60")
    after = unit()
    assert before != after
    assert drift() == []
    check = one.sparkops("rollback", "spark-1", "--check")
    assert [task["state"] for task in check.tasks() if task["module"] == "systemd_unit"] == ["changed"]
    assert unit() == after
    one.sparkops("rollback", "spark-1")
    assert (unit(), drift()) == (before, [])
    # Without root the guard can go back to a release, and not to its unit.
    one.on("spark-1", "sh", "-c", f"ln -sfn $(ls {FOLDER} | sort -n | tail -n 1) {FOLDER}/current")
    assert drift() == [f"unit of release {one.on('spark-1', 'readlink', f'{FOLDER}/confirmed').strip()}"]
    one.sparkops("rollback", "spark-1")
    assert drift() == []


class Stream:
    """A streamed completion from a node, under way; its tokens are counted as it ends."""

    def __init__(self, nodes: Nodes, tokens: int) -> None:
        self.tokens = tokens
        body = {"model": MODEL, "prompt": "Count.", "max_tokens": tokens, "ignore_eos": True, "stream": True}
        text = json.dumps({**body, "stream_options": {"include_usage": True}})
        argv = [*SPARKOPS, "lab", "exec", "--dir", str(nodes.dir), "spark-1", "--", "python3", "-c", READ, text]
        self.process = subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        eventually(lambda: running(nodes) > 0)

    def whole(self) -> bool:
        """Whether every token came."""
        out, _ = self.process.communicate(timeout=60)
        return self.process.returncode == 0 and int(out) == self.tokens


def tokens(nodes: Nodes, seconds: float) -> int:
    """The tokens of an answer that goes on so long after a verb has come to the node, however slow this machine is."""
    begun = time.monotonic()
    nodes.sparkops("stop", "spark-1", "--check")
    return round(RATE * (2 * (time.monotonic() - begun) + seconds))


def running(nodes: Nodes) -> float:
    script = "import urllib.request as u; print(u.urlopen('http://127.0.0.1:8000/metrics').read().decode())"
    found = re.search(r"num_requests_running{.*} ([\d.]+)", nodes.on("spark-1", "python3", "-c", script))
    assert found
    return float(found[1])


def test_a_restart_loses_no_token(one: Nodes) -> None:
    """The default waits for the request; without a wait the server itself lets it end, and lets nobody in meanwhile."""
    for words in ((), ("--drain", "0")):
        stream = Stream(one, tokens(one, 2))
        one.sparkops("restart", "spark-1", *words)
        assert stream.whole()
        assert one.token("spark-1", MODEL)


def test_others_are_served_while_it_waits(one: Nodes) -> None:
    stream = Stream(one, tokens(one, 2))
    pid = one.on("spark-1", "systemctl", "show", "-P", "MainPID", UNIT)
    stopping = subprocess.Popen(one.argv("stop", "spark-1"), stdout=subprocess.DEVNULL, cwd=ROOT)
    time.sleep(1.5)
    assert one.token("spark-1", MODEL)
    assert one.on("spark-1", "systemctl", "show", "-P", "MainPID", UNIT) == pid
    assert stream.whole()
    assert stopping.wait(60) == 0
    assert one.on("spark-1", "systemctl", "show", "-P", "ActiveState", UNIT).strip() == "inactive"
    one.sparkops("start", "spark-1")


def test_a_wait_for_requests_is_bounded(one: Nodes) -> None:
    count = tokens(one, 4)
    stream = Stream(one, count)
    began = time.monotonic()
    done = one.sparkops("stop", "spark-1", "--drain", "1")
    waited = next(task for task in done.tasks() if task["module"] == "served_idle")
    assert (waited["state"], waited["result"]["requests"]) == ("ok", 1)
    assert 1 <= waited["result"]["seconds"] < 4
    # Not the default of 30 s, and then what the answer still takes.
    assert time.monotonic() - began < 20 + count / RATE
    assert stream.whole()
    one.sparkops("start", "spark-1")


def test_start_and_stop_twice_and_what_a_check_says(one: Nodes) -> None:
    def changed(*words: str) -> int:
        return one.sparkops(*words, "spark-1").count("changed")["spark-1"]

    assert changed("start") == 0
    for check, verb in (("--check", "stop"), ("--check", "restart")):
        assert changed(verb, check) == 1
        assert one.token("spark-1", MODEL)
    assert changed("stop") == 1
    assert changed("stop") == changed("stop", "--check") == 0
    assert not one.token("spark-1", MODEL)
    assert changed("start", "--check") == 1
    assert not one.token("spark-1", MODEL)
    assert changed("start") == 1
    assert changed("start") == changed("start", "--check") == 0
    assert changed("restart") == changed("restart") == 1


def test_a_service_that_is_not_there(one: Nodes) -> None:
    for verb in ("start", "stop", "restart"):
        done = one.sparkops(verb, "spark-1", "--service", "nobody", rc=1)
        assert "sparkops-nobody.service is not-found on this node" in done.failure("spark-1")["msg"]
        assert one.plain(verb, "spark-1", "--service", "a/b").rc == 2
    for words in (("--drain", "-1"), ("--drain", "soon")):
        assert one.plain("stop", "spark-1", *words).rc == 2
    wrong = one.plain("stop", "spark-1", "-e", "drain=soon")
    assert (wrong.rc, wrong.out.count("timeout"), wrong.err) == (2, 1, ""), wrong
    assert one.token("spark-1", MODEL)


def test_a_crash_loop_ends_and_is_reported(one: Nodes) -> None:
    one.on("spark-1", "mv", "/home/spark/models/hf", "/home/spark/models/away")
    try:
        one.on("spark-1", "sh", "-c", f"kill -9 $(systemctl show -P MainPID {UNIT})")
        eventually(lambda: "failed" in one.on("spark-1", "systemctl", "show", "-P", "ActiveState", UNIT), 90, 1)
        shown = one.on("spark-1", "systemctl", "show", "-p", "Result,NRestarts", UNIT).split()
        # The start before it was asked for, and counts.
        assert shown == ["Result=exit-code", "NRestarts=5"] or "start-limit-hit" in shown[0], shown
        assert "failed" in one.plain("status", "spark-1").out
        log = one.on("spark-1", "journalctl", "-u", UNIT, "--no-pager", "-n", "5")
        assert "Start request repeated too quickly" in log, log
    finally:
        one.on("spark-1", "mv", "/home/spark/models/away", "/home/spark/models/hf")
    one.sparkops("start", "spark-1")
    assert one.token("spark-1", MODEL)


def test_a_user_s_unit_comes_back_after_a_reboot(tmp_path_factory: pytest.TempPathFactory) -> None:
    words = ("-e", "systemd_scope=user", "-e", '{"provision_packages": []}')
    with lab(tmp_path_factory.mktemp("user") / "lab", 1) as nodes:
        nodes.on("spark-1", "rm", "/etc/sudoers.d/spark")
        nodes.sparkops("provision", "spark-1", "--recipe", "fp8", *words)
        nodes.sparkops("deploy", "fp8", "spark-1", *words)
        boot = nodes.on("spark-1", "cat", "/proc/sys/kernel/random/boot_id")
        nodes.lab("reboot", "spark-1")
        assert nodes.on("spark-1", "cat", "/proc/sys/kernel/random/boot_id") != boot
        eventually(lambda: nodes.token("spark-1", MODEL))
        manager = ("runuser", "-u", "spark", "--", "env", "XDG_RUNTIME_DIR=/run/user/1000")
        found = nodes.on("spark-1", *manager, "systemd-analyze", "--user", "security", "--no-pager", UNIT)
        score = re.search(r"Overall exposure level for \S+: ([\d.]+)", found)
        assert score, found
        print(f"systemd-analyze --user security {UNIT}: {score[1]}")
        assert float(score[1]) <= MOST_EXPOSED["user"], found
        pid = nodes.on("spark-1", *manager, "systemctl", "--user", "show", "-P", "MainPID", UNIT).strip()
        assert "NoNewPrivs:\t1" in nodes.on("spark-1", "cat", f"/proc/{pid}/status")
        assert nodes.sparkops("deploy", "fp8", "spark-1", *words).count("changed") == {"spark-1": 0}
