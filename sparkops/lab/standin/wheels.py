"""Builds a wheel: pure Python, the same bytes on every machine.

By zipfile, stored and with fixed times: compressed bytes would follow zlib's version, and the locks that labs write
would differ between machines.
"""

from __future__ import annotations

import base64
import hashlib
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

EPOCH = (2026, 7, 27, 0, 0, 0)  # the day the recipes were verified
FILE_MODE = 0o100644
TAG = "py3-none-any"


@dataclass(frozen=True)
class Package:
    """What a wheel holds: `files` by their path in site-packages, `scripts` as command -> module:function."""

    name: str
    version: str
    summary: str
    files: dict[str, str]
    requires: tuple[str, ...] = ()
    scripts: dict[str, str] = field(default_factory=dict)

    @property
    def stem(self) -> str:
        """The name as wheels and dist-info folders spell it."""
        return f"{self.name.replace('-', '_')}-{self.version}"


def write_wheel(package: Package, folder: Path) -> Path:
    """Write the package's wheel into `folder` and return its path."""
    path = folder / f"{package.stem}-{TAG}.whl"
    contents = {**package.files, **dist_info(package)}
    record = f"{package.stem}.dist-info/RECORD"
    contents[record] = "".join(record_line(name, text) for name, text in contents.items()) + f"{record},,\n"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, text in contents.items():
            entry = zipfile.ZipInfo(name, EPOCH)
            entry.external_attr = FILE_MODE << 16
            archive.writestr(entry, text)
    return path


def dist_info(package: Package) -> dict[str, str]:
    """The wheel's metadata files but RECORD."""
    root = f"{package.stem}.dist-info"
    metadata = [
        "Metadata-Version: 2.1",
        f"Name: {package.name}",
        f"Version: {package.version}",
        f"Summary: {package.summary}",
        "License: Apache-2.0",
        "Requires-Python: >=3.8",
        *(f"Requires-Dist: {requirement}" for requirement in package.requires),
    ]
    files = {
        f"{root}/METADATA": lines(metadata),
        f"{root}/WHEEL": lines(
            ["Wheel-Version: 1.0", "Generator: sparkops-lab", "Root-Is-Purelib: true", f"Tag: {TAG}"]
        ),
    }
    if package.scripts:
        scripts = [f"{command} = {target}" for command, target in package.scripts.items()]
        files[f"{root}/entry_points.txt"] = lines(["[console_scripts]", *scripts])
    return files


def record_line(name: str, text: str) -> str:
    """A file's line in RECORD: name, sha256 and size."""
    content = text.encode()
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(content)}\n"


def lines(texts: list[str]) -> str:
    """The texts, each ended by a newline."""
    return "".join(f"{text}\n" for text in texts)
