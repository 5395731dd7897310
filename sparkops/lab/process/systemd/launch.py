"""Starts a service's processes, and stops what is left of them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from threading import Thread

from sparkops.lab.process import processes
from sparkops.lab.process.systemd import words
from sparkops.lab.process.systemd.journal import Journal
from sparkops.lab.process.systemd.settings import Command, Settings, environment_file

# Exit statuses that mean: it did not get as far as the program (systemd.exec(5)).
CHDIR = 200
EXEC = 203


class Unlaunched(Exception):
    """A command could not be started; `status` is the exit status that systemd gives it."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def environment(settings: Settings, base: Mapping[str, str], invocation: str) -> dict[str, str]:
    """A service's environment. OSError when a file that has to be there cannot be read."""
    variables = {**base, "INVOCATION_ID": invocation, **settings.environment}
    for path, may_miss in settings.environment_files:
        try:
            variables |= environment_file(Path(path).read_text())
        except FileNotFoundError:
            if not may_miss:
                raise
    return variables


def launch(command: Command, settings: Settings, variables: dict[str, str], unit: str, journal: Journal) -> Running:
    """Start a command in a session of its own, its output going to the journal. Raises Unlaunched."""
    argv = command.words if command.literal else [command.words[0], *words.expand(command.words[1:], variables)]
    folder, may_miss = settings.working_directory
    folder = variables["HOME"] if folder in ("", "~") else folder
    if not Path(folder).is_dir():
        if not may_miss:
            raise Unlaunched(CHDIR, f"Changing to the requested working directory failed: {folder}")
        folder = variables["HOME"]
    program = shutil.which(argv[0], path=variables["PATH"])
    if program is None:
        raise Unlaunched(EXEC, f"Failed to execute {argv[0]}: No such file, or it is not executable")
    try:
        process = subprocess.Popen(
            argv,
            executable=program,
            cwd=folder,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        raise Unlaunched(EXEC, f"Failed to execute {argv[0]}: {error.strerror}") from error
    return Running(process, unit, Path(argv[0]).name, journal)


class Running:
    """A process of a service; what it prints goes to the journal until nobody holds its output open any more."""

    def __init__(self, process: subprocess.Popen[bytes], unit: str, identifier: str, journal: Journal) -> None:
        self.process = process
        self.unit = unit
        self.identifier = identifier
        self.journal = journal
        self.reader = Thread(target=self.record, daemon=True)

    def listen(self) -> None:
        """Begin to write down its output."""
        self.reader.start()

    def record(self) -> None:
        """Write down every line."""
        assert self.process.stdout
        with self.process.stdout as output:
            for line in output:
                text = line.decode(errors="replace").rstrip("\n")
                self.journal.write(self.unit, self.identifier, self.process.pid, text)

    def wait(self, timeout: float | None = None) -> int:
        """Its returncode, once it has ended and its last words are in the journal. subprocess.TimeoutExpired."""
        returncode = self.process.wait(timeout)
        self.reader.join(0.2)  # a child may hold the output open for ever
        return returncode


def rest(invocation: str) -> list[processes.Process]:
    """What still runs of an activation: our substitute for its control group."""
    mark = os.fsencode(f"INVOCATION_ID={invocation}")
    return processes.find(lambda entry: entry == mark)
