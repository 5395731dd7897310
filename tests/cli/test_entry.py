"""Ctrl-C at any moment of a start: one line and 130, never a traceback."""

from __future__ import annotations

import json
import shlex
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

ENTRY = [sys.executable, "-c", "from sparkops.cli.entry import main; main()"]


def interrupted(words: list[str], after: float) -> tuple[int, str]:
    """Exit code and what stderr got, of a run that gets SIGINT so many seconds after Python has begun to run us."""
    code = (
        "import os; os.write(1, b'.'); from sparkops.cli.entry import main, quiet; quiet(); os.write(1, b'.'); main()"
    )
    argv = [sys.executable, "-c", code, *words]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout and process.stderr
        process.stdout.read(2)
        time.sleep(after)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    return process.returncode, err


@pytest.mark.parametrize("after", [0.0, 0.01, 0.02, 0.04, 0.06, 0.1, 0.15, 0.2, 0.3])
def test_ctrl_c_while_it_starts(tmp_path: Path, after: float) -> None:
    book = tmp_path / "play.yml"
    book.write_text("- hosts: all\n  gather_facts: false\n  tasks:\n    - pause: {seconds: 60}\n")
    rc, err = interrupted(["-i", "a,", "play", str(book)], after)
    assert "Traceback" not in err and "Exception" not in err
    assert rc == 130


def test_ctrl_c_while_a_host_does_not_answer(tmp_path: Path) -> None:
    with socket.socket() as silent:
        # It accepts, and says nothing: a log-in waits for its banner.
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        book = tmp_path / "play.yml"
        book.write_text("- hosts: all\n  tasks: []\n")
        inventory = f"a ansible_host=127.0.0.1 ansible_port={silent.getsockname()[1]}\n"
        (tmp_path / "hosts.ini").write_text(inventory)
        argv = [*ENTRY, "-i", str(tmp_path / "hosts.ini"), "play", str(book)]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            held, _ = silent.accept()
            time.sleep(0.5)
            start = time.monotonic()
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=60)
            took = time.monotonic() - start
            held.close()
    assert process.returncode == 130
    assert "Traceback" not in err
    # paramiko would have waited 15 s for the banner.
    assert took < 8


def test_ctrl_c_that_is_ignored_stays_so() -> None:
    code = (
        "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "from sparkops.cli import entry\nentry.quiet(); entry.raising()\n"
        "print(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "True\n"


def test_all_that_was_said_arrives() -> None:
    done = subprocess.run([*ENTRY, "schema", "recipe"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    assert json.loads(done.stdout)
    wrong = subprocess.run([*ENTRY, "deplo"], capture_output=True, text=True, timeout=60)
    assert (wrong.returncode, "did you mean deploy" in wrong.stderr) == (2, True)


def test_a_reader_that_has_gone_is_no_error() -> None:
    script = f"{' '.join(map(shlex.quote, ENTRY))} schema recipe | head -c 1"
    done = subprocess.run(["bash", "-c", f"set -o pipefail; {script}"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) in ((141, "{", ""), (0, "{", ""))


def test_ctrl_c_while_a_class_is_made() -> None:
    code = (
        "import sys\nfrom sparkops.cli import main\n"
        "def cut(*_, **__):\n"
        "    try:\n        raise KeyboardInterrupt\n"
        "    except KeyboardInterrupt as cause:\n        raise RuntimeError('Error calling __set_name__') from cause\n"
        "main.root.main = cut\nmain.main([])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (130, "interrupted\n")
