"""What the module collects, on this machine: a real server on a real port, a release, stand-ins for systemd's tools."""

from __future__ import annotations

import json
import os
import socket
import struct
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from sparkops.node import journal, listeners
from sparkops.serving.evidence import Evidence

MODEL = "some/model"
KEY = "s3cret'key"
SHOW = "LoadState=loaded\nActiveState=active\nSubState=running\nNRestarts=2\nMainPID={pid}\nUnitFileState=enabled\n"
JOURNAL = """\
2026-11-30T14:00:00+00:00 spark-1 systemd[1]: Starting sparkops-vllm.service - vLLM copy...
2026-11-30T14:00:00+00:00 spark-1 systemd[1]: Started sparkops-vllm.service - vLLM copy.
2026-11-30T14:00:01+00:00 spark-1 run[7]: ValueError: the first
  and its second line
2026-11-30T14:00:02+00:00 spark-1 systemd[1]: sparkops-vllm.service: Failed with result 'exit-code'.
-- Boot 0123456789abcdef --
2026-11-30T14:00:07+00:00 spark-1 systemd[1]: Started sparkops-vllm.service - vLLM copy.
2026-11-30T14:00:08+00:00 spark-1 run[8]: (APIServer pid=8) INFO:     127.0.0.1:1 - "GET /health HTTP/1.1" 200 OK
2026-11-30T14:00:08+00:00 spark-1 run[8]: key=s3cret'key
"""


class Server(ThreadingHTTPServer):
    """Answers as vLLM does; `moving` tells whether its tokens grow, `running` how many requests it says it has."""

    moving = False
    running = 0
    tokens = 5.0
    completion = 200
    asked: list[tuple[str, str | None]]


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.asked.append((self.path, self.headers.get("Authorization")))
        self.server.tokens += 10 if self.server.moving else 0
        texts = {
            "/health": "",
            "/v1/models": json.dumps({"data": [{"id": MODEL, "max_model_len": 4096}]}),
            "/metrics": f'# HELP x\nvllm:num_requests_running{{engine="0"}} {self.server.running}.0\n'
            f'vllm:generation_tokens_total{{engine="0"}} {self.server.tokens}\nvllm:x_bucket{{le="1"}} 3\nhttp_x 7\n',
        }
        self.reply(200, texts[self.path])

    def do_POST(self) -> None:
        self.server.asked.append((self.path, self.headers.get("Authorization")))
        self.rfile.read(int(self.headers["Content-Length"]))
        self.reply(self.server.completion, json.dumps({"choices": [{"text": "a"}], "usage": {"completion_tokens": 1}}))

    def reply(self, status: int, text: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(("127.0.0.1", 0), Handler) as found:
        found.asked = []
        threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        yield found
        found.shutdown()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def checkpoint(folder: Path, spare: int = 0) -> None:
    """A whole checkpoint of two tensors, one of them visual, in a file that is `spare` bytes short."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    names = ("model.visual.a", "model.b")
    header = {
        n: {"dtype": "U8", "shape": [4], "data_offsets": [at, at + 4]} for n, at in zip(names, (0, 4), strict=True)
    }
    raw = json.dumps(header).encode()
    data = struct.pack("<Q", len(raw)) + raw + bytes(8)
    (folder / "model.safetensors").write_bytes(data[: len(data) - spare])


@pytest.fixture
def place(tmp_path: Path, node: Any) -> Path:
    """A node with a release that serves, and tools that say so."""
    node.program("systemctl", f"#!/bin/sh\nprintf '%s' '{SHOW.format(pid=os.getpid())}'\n")
    (tmp_path / "journal").write_text(JOURNAL)
    node.program("journalctl", f'#!/bin/sh\ncase "$*" in *-k*) exit 1;; esac\ncat {tmp_path}/journal\n')
    node.program("dmesg", "#!/bin/sh\necho '[1.0] NVRM: Xid 119'; echo '[2.0] eth0: link up'\n")
    node.program("nvidia-smi", "#!/bin/sh\ncase $1 in --query-gpu=*) echo 580.95.05;; *) echo '77, python3';; esac\n")
    node.program("timedatectl", "#!/bin/sh\nprintf 'NTP=yes\\nNTPSynchronized=no\\n'\n")
    checkpoint(tmp_path / "models" / "m")
    return tmp_path


def release(place: Path, port: int, **recipe: Any) -> None:
    folder = place / "home" / "releases" / "vllm" / "4"
    folder.mkdir(parents=True)
    run = f"#!/bin/sh\n# It's a comment.\nexec /bin/sh serve '{place}/models/m' \\\n  --port {port} \\\n  --flag\n"
    (folder / "run").write_text(run)
    (folder / "env").write_text(f'VLLM_API_KEY="{KEY}"\n')
    (folder / "recipe.json").write_text(json.dumps(recipe))
    (folder.parent / "current").symlink_to("4")


def collect(place: Path, apply: Any, **more: Any) -> tuple[dict[str, Any], Evidence]:
    home, models = str(place / "home"), str(place / "models")
    outcome = apply("serving_evidence", service="vllm", home=home, models_dir=models, interval=0.05, **more)
    assert outcome.state == "ok"
    json.dumps(outcome.result)
    return outcome.result, Evidence.of(outcome.result)


def test_a_copy_that_serves(place: Path, server: Server, apply: Any) -> None:
    release(place, server.server_port, name="fp8")
    result, seen = collect(place, apply)
    assert seen.serving
    assert (seen.release.number, seen.recipe, seen.release.program) == (4, {"name": "fp8"}, True)
    assert seen.release.words[1:] == ["serve", f"{place}/models/m", "--port", str(server.server_port), "--flag"]
    (listener,) = seen.listeners
    assert (listener.address, listener.pid, listener.ours) == ("127.0.0.1", os.getpid(), True)
    assert "pytest" in listener.command
    assert (seen.http.health, seen.http.models) == (200, {MODEL: 4096})
    assert seen.http.token is not None
    assert seen.http.token.generated
    assert [set(look) for look in seen.http.metrics] == [{"at", "num_requests_running", "generation_tokens_total"}] * 2
    assert (seen.kernel, seen.clock.synchronized, seen.clock.ntp) == (["[1.0] NVRM: Xid 119"], False, True)
    assert (seen.driver.version, seen.driver.processes) == ("580.95.05", ["77 python3"]) if seen.driver else False
    assert seen.checkpoint is not None
    assert (seen.checkpoint.problems, seen.checkpoint.tensors, seen.checkpoint.visual) == ([], 2, 1)
    assert seen.memory.total > seen.memory.available > 0
    assert [(disk.name, bool(disk.free)) for disk in seen.disks] == [("models_dir", True), ("sparkops_home", True)]
    # The key is used, and never told.
    assert ("/v1/completions", f"Bearer {KEY}") in server.asked
    assert KEY not in json.dumps(result)


def test_a_command_that_somebody_has_edited(place: Path, server: Server, apply: Any) -> None:
    release(place, 0)
    run = place / "home/releases/vllm/current/run"
    run.write_text(run.read_text().replace("--port 0", '--port "$PORT"'))
    _, seen = collect(place, apply, port=server.server_port)
    assert (seen.port, seen.http.health) == (server.server_port, 200)


def test_nothing_is_changed_and_check_mode_sees_the_same(place: Path, apply: Any) -> None:
    release(place, free_port())
    before = sorted((str(path), path.lstat().st_mtime_ns) for path in place.rglob("*"))
    said = [collect(place, apply, check=check)[0] for check in (True, False)]
    assert said[0].keys() == said[1].keys()
    assert said[0]["journal"] == said[1]["journal"]
    assert sorted((str(path), path.lstat().st_mtime_ns) for path in place.rglob("*")) == before


def test_two_runs_of_the_journal(place: Path, apply: Any) -> None:
    release(place, free_port())
    _, seen = collect(place, apply)
    assert seen.journal.whole
    assert seen.journal.run == ["Started sparkops-vllm.service - vLLM copy.", "key=(hidden)"]
    assert seen.journal.before[2:] == [
        "ValueError: the first",
        "and its second line",
        "sparkops-vllm.service: Failed with result 'exit-code'.",
    ]
    assert not seen.serving
    assert "refused" in seen.http.error


def test_a_frozen_engine_is_looked_at_until_it_is_sure(
    place: Path, server: Server, apply: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sparkops.node.modules import serving_evidence

    monkeypatch.setattr(serving_evidence, "PATIENCE", 0.4)
    server.running = 1
    release(place, server.server_port)
    _, seen = collect(place, apply)
    assert len(seen.http.metrics) > 3
    assert seen.http.token is None
    server.moving = True
    began = time.monotonic()
    _, seen = collect(place, apply)
    assert len(seen.http.metrics) == 2
    assert time.monotonic() - began < 3


def test_no_token(place: Path, server: Server, apply: Any) -> None:
    server.completion = 500
    release(place, server.server_port)
    token = collect(place, apply)[1].http.token
    assert token is not None
    assert (token.generated, token.error[:10]) == (False, "status 500")
    assert collect(place, apply, ask=False)[1].http.token is None


def test_nothing_deployed(place: Path, node: Any, apply: Any) -> None:
    node.program("systemctl", "#!/bin/sh\nprintf 'LoadState=not-found\\nActiveState=inactive\\n'\n")
    node.program("journalctl", "#!/bin/sh\nexit 1\n")
    node.program("dmesg", "#!/bin/sh\necho 'dmesg: not permitted' >&2; exit 1\n")
    node.program("nvidia-smi", "#!/bin/sh\necho 'NVML: Driver/library version mismatch'; exit 18\n")
    _, seen = collect(place, apply, port=free_port())
    assert (seen.release.number, seen.release.words, seen.checkpoint, seen.uptime) == (None, [], None, None)
    assert (seen.journal.run, seen.kernel, seen.listeners) == ([], None, [])
    assert seen.driver is not None
    assert (seen.driver.version, seen.driver.error) == (None, "NVML: Driver/library version mismatch")


@pytest.mark.parametrize(
    ("harm", "problem"),
    [
        (lambda folder: (folder / "model.safetensors").write_bytes(b"12345678901"), "model.safetensors: "),
        (lambda folder: (folder / "config.json").unlink(), "config.json is missing"),
        (lambda folder: (folder / "model.safetensors").unlink(), "there is no *.safetensors file"),
        (
            lambda folder: (folder / "model.safetensors.index.json").write_text(
                '{"weight_map": {"a": "b.safetensors"}}'
            ),
            "b.safetensors is missing",
        ),
        (lambda folder: folder.rename(folder.with_name("gone")), ": No such file or directory"),
    ],
)
def test_a_checkpoint_s_problems(place: Path, apply: Any, harm: Any, problem: str) -> None:
    release(place, free_port())
    harm(place / "models" / "m")
    seen = collect(place, apply)[1].checkpoint
    assert seen is not None
    assert any(problem in one for one in seen.problems), seen.problems


def test_the_revision_that_was_fetched(place: Path, apply: Any) -> None:
    release(place, free_port())
    noted = place / "models/m/.cache/huggingface/download/config.json.metadata"
    noted.parent.mkdir(parents=True)
    noted.write_text("0123abcd\netag\n17.0\n")
    seen = collect(place, apply)[1].checkpoint
    assert seen is not None
    assert seen.revision == "0123abcd"


def test_listeners_of_proc(tmp_path: Path) -> None:
    """Both tables, both families; only what listens; the holders and their units."""
    head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
    line = "   0: {} 00000000:0000 {} 00000000:00000000 00:00000000 00000000  1000        0 {} 1 0\n"
    net = tmp_path / "net"
    net.mkdir()
    (net / "tcp").write_text(
        head
        + line.format("0100007F:1F40", "0A", 11)
        + line.format("0100007F:1F40", "01", 12)
        + line.format("00000000:1F41", "0A", 13)
    )
    (net / "tcp6").write_text(head + line.format("00000000000000000000000001000000:1F40", "0A", 14))
    fd = tmp_path / "812" / "fd"
    fd.mkdir(parents=True)
    (fd / "3").symlink_to("socket:[11]")
    (tmp_path / "812" / "cmdline").write_text("vllm\0serve\0")
    (tmp_path / "812" / "cgroup").write_text("0::/system.slice/web.service\n")
    assert listeners.listeners(8000, str(tmp_path)) == [
        {"address": "127.0.0.1", "pid": 812, "command": "vllm serve", "unit": "web.service"},
        {"address": "::1", "pid": None, "command": "", "unit": ""},
    ]


def test_ancestors() -> None:
    assert listeners.ancestors(os.getpid())[:2] == [os.getpid(), os.getppid()]


@pytest.mark.parametrize(
    ("cgroup", "unit"),
    [
        ("0::/user.slice/user-0.slice/user@0.service/app.slice/sparkops-vllm.service\n", "sparkops-vllm.service"),
        ("0::/system.slice/ssh.service/inner\n", "ssh.service"),
        ("1:name=systemd:/user.slice/session-3.scope\n", "session-3.scope"),
        ("0::/\n", ""),
        ("", ""),
    ],
)
def test_unit_of(cgroup: str, unit: str) -> None:
    assert listeners.unit_of(cgroup) == unit


def test_a_run_whose_start_has_scrolled_away() -> None:
    said = [("run", "later"), ("systemd", "Started a."), ("run", "b")]
    assert [(run.whole, run.lines) for run in journal.split(said)] == [(False, ["later"]), (True, ["Started a.", "b"])]
