"""The SSH server of a simulated node behaves as sshd does for commands without a terminal."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import paramiko
import pytest

from sparkops.lab.lab import Lab, new_key
from sparkops.lab.process.sandbox import login_name
from tests.lab.processlab import connected, eventually, execute, home, process_lab, transport


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory):
    with process_lab(tmp_path_factory.mktemp("ssh") / "lab") as up:
        yield up


@pytest.fixture
def connection(lab: Lab):
    with connected(lab) as it:
        yield it


@pytest.mark.parametrize("status", [0, 1, 7, 255])
def test_a_command_s_exit_status_comes_back(connection: paramiko.Transport, status: int):
    assert execute(connection, f"exit {status}").rc == status


def test_a_command_ended_by_a_signal_has_no_exit_status(connection: paramiko.Transport):
    assert execute(connection, "kill -9 $$").rc == -1


def test_both_outputs_come_back_apart(connection: paramiko.Transport):
    done = execute(connection, "echo out; echo err >&2; exit 3")
    assert done == (3, b"out\n", b"err\n")


def test_20_mb_survive_a_round_trip(connection: paramiko.Transport):
    sent = os.urandom(20_000_000)
    done = execute(connection, "cat", sent)
    assert done.rc == 0
    assert done.out == sent


def test_a_command_starts_in_the_node_s_home_with_the_node_s_environment(lab: Lab, connection: paramiko.Transport):
    lines = execute(connection, "pwd; env").out.decode().splitlines()
    there = dict(line.partition("=")[::2] for line in lines[1:])
    node = home(lab).parent
    assert lines[0] == there["HOME"] == str(node / "home")
    assert there["PATH"].split(":")[0] == str(node / "bin")
    assert there["XDG_RUNTIME_DIR"] == str(node / "run")
    assert there["TMPDIR"] == str(node / "tmp")
    assert there["SPARKOPS_LAB_ETC"] == str(node / "etc")
    assert there["USER"] == login_name()
    assert not {"PYTHONPATH", "VIRTUAL_ENV", "SSH_AUTH_SOCK"} & set(there)


def test_python_nvidia_smi_and_a_sudo_that_refuses_are_on_the_path(connection: paramiko.Transport):
    assert execute(connection, "python3 -c 'import json, venv'").rc == 0
    assert execute(connection, "nvidia-smi --query-gpu=name --format=csv,noheader").out == b"NVIDIA GB10\n"
    refused = execute(connection, "sudo -n true")
    assert refused.rc == 1
    assert b"simulated" in refused.err


def test_only_the_lab_s_user_with_the_lab_s_key_gets_in(lab: Lab, tmp_path: Path):
    other = tmp_path / "other"
    other.write_text(new_key("other")[0])
    right, wrong = (paramiko.Ed25519Key.from_private_key_file(str(path)) for path in (lab.key, other))
    for user, key in ((login_name(), wrong), ("nobody-known", right)):
        connection = transport(lab)
        with pytest.raises(paramiko.AuthenticationException):
            connection.auth_publickey(user, key)
        connection.close()
    connection = transport(lab)
    with pytest.raises(paramiko.BadAuthenticationType) as refusal:
        connection.auth_password(login_name(), "")
    assert refusal.value.allowed_types == ["publickey"]
    connection.close()


def test_there_is_no_shell_and_no_forwarding(connection: paramiko.Transport):
    with pytest.raises(paramiko.SSHException):
        connection.open_session().invoke_shell()
    with pytest.raises(paramiko.ChannelException):
        connection.open_channel("direct-tcpip", ("127.0.0.1", 22), ("127.0.0.1", 1))


@pytest.mark.parametrize("lose", ["channel", "connection", "socket"])
def test_a_client_that_goes_away_leaves_a_command_with_the_end_of_its_input(lab: Lab, lose: str):
    mark = home(lab) / f"after-{lose}"
    with connected(lab) as connection:
        channel = connection.open_session()
        channel.exec_command(f"cat > /dev/null; sleep 0.3; echo still here > {mark.name}")
        if lose == "channel":
            channel.close()
        if lose == "socket":
            connection.sock.shutdown(socket.SHUT_RDWR)
    eventually(mark.exists)


def test_output_that_nobody_reads_holds_a_command_up(lab: Lab, connection: paramiko.Transport):
    size = 64_000_000
    mark = home(lab) / "all-written"
    channel = connection.open_session()
    channel.exec_command(f"head -c {size} /dev/zero; touch {mark.name}")
    with pytest.raises(AssertionError):
        eventually(mark.exists, seconds=1)
    received = 0
    while data := channel.recv(1 << 20):
        received += len(data)
    assert received == size
    assert mark.exists()


def test_input_that_nobody_takes_does_not_hold_the_client_up(connection: paramiko.Transport):
    channel = connection.open_session()
    channel.exec_command("exec <&-; sleep 3; echo done")
    channel.settimeout(30)
    for _ in range(200):
        channel.sendall(bytes(100_000))
    assert not channel.exit_status_ready()
    assert channel.recv(100) == b"done\n"


def test_output_has_nowhere_to_go_when_the_client_has_gone(lab: Lab):
    mark = home(lab) / "gave-up"
    with connected(lab) as connection:
        channel = connection.open_session()
        channel.exec_command(f"trap '' PIPE; while echo something 2>&-; do :; done; touch {mark.name}")
        assert channel.recv(9) == b"something"
    eventually(mark.exists)


def test_many_fast_commands_on_one_connection(connection: paramiko.Transport):
    assert [execute(connection, f"exit {number % 5}").rc for number in range(100)] == [n % 5 for n in range(100)]


def test_many_connections_at_once(lab: Lab):
    def one(number: int) -> bytes:
        with connected(lab) as connection:
            return execute(connection, "cat", b"%d" % number).out

    with ThreadPoolExecutor(24) as pool:
        assert list(pool.map(one, range(48))) == [b"%d" % number for number in range(48)]


def test_the_system_s_own_ssh_client(lab: Lab):
    if not shutil.which("ssh"):
        pytest.skip("this machine has no ssh client")
    node = lab.nodes[0]
    options = ["-F", "none", "-o", "BatchMode=yes", "-o", "IdentitiesOnly=yes", "-o", "StrictHostKeyChecking=yes"]
    options += ["-i", str(lab.key), "-o", f"UserKnownHostsFile={lab.dir / 'known_hosts'}", "-p", str(node.port)]
    argv = ["ssh", *options, f"{login_name()}@{node.address}"]
    sent = os.urandom(5_000_000)
    done = subprocess.run([*argv, "cat; echo bad >&2; exit 9"], input=sent, capture_output=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (9, sent, b"bad\n")
    assert subprocess.run([*argv, "kill -9 $$"], capture_output=True, timeout=60).returncode == 255
