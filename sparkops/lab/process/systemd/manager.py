"""The units of a node's user: loaded, enabled, started at boot."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from threading import Lock, Thread

from sparkops.lab.process.systemd import unitfile
from sparkops.lab.process.systemd.journal import Journal
from sparkops.lab.process.systemd.service import Service
from sparkops.lab.process.systemd.settings import settings

DEFAULT_TARGET = "default.target"


class LoadError(Exception):
    """A unit cannot be loaded; `state` is its LoadState: not-found, bad-setting or error."""

    def __init__(self, state: str, message: str) -> None:
        super().__init__(message)
        self.state = state


class Manager:
    """A user's systemd. `base`: the environment that services begin with."""

    def __init__(self, base: Mapping[str, str], journal: Journal, host: str, linger: Path) -> None:
        self.base = base
        self.journal = journal
        self.host = host
        self.linger = linger
        self.lock = Lock()
        self.services: dict[str, Service] = {}
        self.files: dict[str, unitfile.UnitFile | None] = {}
        self.entered = False

    @property
    def home(self) -> Path:
        return Path(self.base["HOME"])

    @property
    def config(self) -> Path:
        """Where a user's own units are, and the links of those that are enabled."""
        return Path(self.base.get("XDG_CONFIG_HOME") or self.home / ".config") / "systemd" / "user"

    @property
    def folders(self) -> list[Path]:
        """Where units are looked for, the first one wins."""
        return [self.config, self.home / ".local" / "share" / "systemd" / "user"]

    def load(self, name: str) -> Service:
        """A unit as it was loaded, or as it is on disk now when nothing of it is known or runs. Raises LoadError."""
        with self.lock:
            service = self.services.get(name)
            if service and (service.state.active != "inactive" or service.thread):
                return service
            return self.read(name)

    def read(self, name: str) -> Service:
        """Load a unit anew; its state stays. Raises LoadError."""
        if not re.fullmatch(r"[\w:.\\@-]+", name, re.ASCII):
            raise LoadError("not-found", f"Unit name {name} is not valid.")
        if not name.endswith(".service"):
            raise LoadError("not-found", f"Unit {name} not found.")
        try:
            file = unitfile.read(name, self.folders)
            if file is None:
                raise LoadError("not-found", f"Unit {name} not found.")
            found = settings(file.sections, self.specifiers(name))
        except OSError as error:
            raise LoadError("error", f"Unit {name} failed to load: {error.strerror}.") from error
        except ValueError as error:
            self.journal.write(name, "systemd", 0, f"{name}: {error}")
            raise LoadError("bad-setting", f"Unit {name} has a bad unit file setting: {error}") from error
        self.files[name] = file
        service = self.services.setdefault(name, Service(name, found, self.base, self.journal))
        service.settings = found
        return service

    def specifiers(self, name: str) -> dict[str, str]:
        """The %-specifiers of a unit (systemd.unit(5))."""
        stem = name.rpartition(".")[0]
        prefix, _, instance = stem.partition("@")
        config = self.base.get("XDG_CONFIG_HOME") or f"{self.home}/.config"
        letters = {"h": str(self.home), "n": name, "N": stem, "p": prefix, "i": instance, "H": self.host}
        letters |= {"t": self.base["XDG_RUNTIME_DIR"], "u": self.base["USER"], "s": self.base["SHELL"]}
        return letters | {"E": config, "S": f"{self.home}/.local/state", "C": f"{self.home}/.cache", "T": "/tmp"}

    def reload(self) -> None:
        """daemon-reload: read every unit again that is known. What runs goes on with what it was started with."""
        with self.lock:
            for name in list(self.services):
                try:
                    self.read(name)
                except LoadError:
                    self.files[name] = None
                    if self.services[name].thread is None:
                        del self.services[name]

    def stale(self, name: str) -> bool:
        """Whether a unit's files are no longer those that were loaded (NeedDaemonReload)."""
        file = self.files.get(name)
        return file is not None and unitfile.changed(file.path, file.dropins) != file.changed

    def links(self, name: str) -> list[Path]:
        """The links that enable a unit."""
        return sorted(self.config.glob(f"*.wants/{name}"))

    def enable(self, name: str) -> list[tuple[Path, Path]]:
        """Make the links that [Install] asks for; those that were made, with what they point to. Raises LoadError."""
        service = self.load(name)
        made = []
        for target in service.settings.wanted_by:
            link = self.config / f"{target}.wants" / name
            file = unitfile.find(name, self.folders)
            if file and not link.is_symlink():
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(file)
                made.append((link, file))
        return made

    def disable(self, name: str) -> list[Path]:
        """Take a unit's links away; which they were."""
        links = self.links(name)
        for link in links:
            link.unlink()
        return links

    def file_state(self, name: str) -> str:
        """UnitFileState: enabled, disabled, static (nothing to enable), "" when there is no file."""
        if unitfile.find(name, self.folders) is None:
            return ""
        if self.links(name):
            return "enabled"
        try:
            return "disabled" if self.load(name).settings.wanted_by else "static"
        except LoadError:
            return "bad"

    def boot(self) -> None:
        """What happens when the machine starts: with lingering the user's units are started."""
        if self.linger.exists():
            self.enter()

    def enter(self) -> None:
        """A user's first login, or the boot of a machine where that user lingers: what default.target wants starts."""
        with self.lock:
            first, self.entered = not self.entered, True
        if first:
            for link in sorted(self.config.glob(f"{DEFAULT_TARGET}.wants/*")):
                Thread(target=self.start_quietly, args=(link.name,), daemon=True).start()

    def start_quietly(self, name: str) -> None:
        """Start a unit; the journal has what goes wrong."""
        try:
            self.load(name).start()
        except LoadError as error:
            self.journal.write(name, "systemd", 0, str(error))

    def stop_all(self) -> None:
        """Stop every service, all at once, and return when they have."""
        threads = [Thread(target=service.stop, daemon=True) for service in self.services.values()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
