"""A project: the folder that a user works in, its settings (sparkops.yml), and where its files are looked up."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path

from sparkops.errors import InputError
from sparkops.project import yaml
from sparkops.project.data import shipped
from sparkops.project.near import did_you_mean
from sparkops.project.values import key_position, plain, position

FILE = "sparkops.yml"
# What the example says of itself.
EXAMPLE = "`sparkops` never contacts these hosts"
SHIPPED_KINDS = ("playbooks", "templates")


@dataclass(frozen=True)
class Settings:
    """What sparkops.yml may hold; paths are relative to its folder.

    inventory: sources that are used when neither -i nor SPARKOPS_INVENTORY names any. known_hosts: the file of host
    keys (OpenSSH's own when null). forks: how many hosts at a time.
    """

    inventory: list[str] = field(default_factory=list)
    known_hosts: str | None = None
    forks: int | None = None


@dataclass(frozen=True)
class Project:
    """root: the project's folder. given: the inventory sources that the user named, if any."""

    root: Path
    settings: Settings
    given: tuple[str, ...] = ()

    @classmethod
    def find(cls, directory: str | None = None, inventory: Sequence[str] = ()) -> Project:
        """The project in `directory` (-C), or here. Raises InputError: no such folder, wrong settings."""
        root = Path(directory or ".").expanduser().absolute()
        if not root.is_dir():
            raise InputError("there is no such folder", where=str(root), hint="-C names a project's folder")
        named = os.environ.get("SPARKOPS_INVENTORY", "")
        return cls(root, _settings(root / FILE), tuple(inventory) or ((named,) if named else ()))

    @property
    def known_hosts(self) -> Path | None:
        """The file of host keys that the settings name."""
        name = self.settings.known_hosts
        return self.root / Path(name).expanduser() if name else None

    def sources(self) -> list[str]:
        """The inventory's sources: -i, SPARKOPS_INVENTORY, the settings, or the project's inventory/.

        Raises InputError when there is none. The example that sparkops comes with is not taken for one.
        """
        found = self._sources()
        if found:
            return found
        example = self._is_example(self.root / "inventory")
        what = "inventory/ here is the example that sparkops comes with" if example else "there is no inventory"
        raise InputError(
            what, where=str(self.root), hint="name one: -i hosts.yml, SPARKOPS_INVENTORY, or inventory/ in the project"
        )

    def _sources(self) -> list[str]:
        if self.given:
            return list(self.given)
        if self.settings.inventory:
            return [source if "," in source else str(self.root / source) for source in self.settings.inventory]
        folder = self.root / "inventory"
        return [str(folder)] if folder.is_dir() and not self._is_example(folder) else []

    @staticmethod
    def _is_example(folder: Path) -> bool:
        if not folder.is_dir() or folder.resolve() != shipped("inventory").resolve():
            return False
        # In a checkout it is also where people write their own: then it is no example any more.
        example = folder / "hosts.yml"
        return example.is_file() and EXAMPLE in example.read_text(encoding="utf-8", errors="replace")

    def roots(self) -> list[Path]:
        """Folders that may hold playbooks/, templates/, recipes/ ...: the project's, then those of the inventory."""
        beside = [Path(source).expanduser().absolute() for source in self._sources()]
        folders = [path if path.is_dir() else path.parent for path in beside if path.exists()]
        return list(dict.fromkeys([self.root, *folders]))

    def folders(self, kind: str) -> list[Path]:
        """Folders of a kind that exist, the strongest first; the shipped one is the last."""
        own = [root / kind for root in self.roots()]
        own += [shipped(kind)] if kind in SHIPPED_KINDS else []
        return [folder for folder in own if folder.is_dir()]

    def find_file(self, kind: str, name: str) -> Path:
        """The first file of that name. Raises InputError with a near name."""
        folders = self.folders(kind)
        for folder in folders:
            if (folder / name).is_file():
                return folder / name
        known = {path.name for folder in folders for path in folder.iterdir() if path.is_file()}
        looked = ", ".join(map(str, folders)) or "no folder of that kind"
        raise InputError(f"there is no {name!r} in {kind}", hint=did_you_mean(name, known, f"looked in {looked}"))


def _settings(path: Path) -> Settings:
    document = yaml.load(path) if path.exists() else None
    if document is None:
        return Settings()
    if not isinstance(document, dict):
        raise InputError("settings are a mapping", where=position(document) or str(path))
    import msgspec

    known = [field.name for field in fields(Settings)]
    for key in document:
        if key not in known:
            hint = did_you_mean(str(key), known, f"there are: {', '.join(known)}")
            raise InputError(f"there is no setting {key!r}", where=key_position(document, key), hint=hint)
    for key, value in document.items():
        try:
            msgspec.convert(plain({key: value}), Settings)
        except msgspec.ValidationError as error:
            raise InputError(f"{key!r}: {error}", where=position(document, key)) from None
    return msgspec.convert(plain(document), Settings)
