"""The wheels of the tools that nodes install (uv, the hub's client): the real ones that the product pins, fetched with
this machine's pip.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from sparkops.errors import LabError
from sparkops.recipes.load import Catalogue
from sparkops.recipes.variables import hub_client_variables


def wheel(cache: Path) -> Path:
    """The wheel for this machine's architecture, from the folder `cache` or fetched into it. LabError."""
    version = Catalogue().tool("uv").version
    final = cache / f"uv-{version}"
    if not (found := sorted(final.glob("*.whl"))):
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache, prefix=".uv.") as scratch:
            found = [_download(Path(scratch), version)]
            final.mkdir(exist_ok=True)
            # Two labs may fetch at once: each renames a whole file, and both are the same.
            found = [found[0].rename(final / found[0].name)]
    return found[0]


def hub_client(cache: Path) -> list[Path]:
    """The wheels of tools/hf.lock, from the folder `cache` or fetched into it. LabError."""
    client = hub_client_variables(Catalogue())
    final = cache / client["id"]
    if not final.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache, prefix=".hf.") as scratch:
            wheels = Path(scratch) / "wheels"
            _pip(wheels, "the hub's client", "--require-hashes", "-r", client["lock"])
            with suppress(OSError):
                wheels.rename(final)
    return sorted(final.glob("*.whl"))


def _download(folder: Path, version: str) -> Path:
    _pip(folder, f"uv {version}", "--no-deps", f"uv=={version}")
    return next(folder.glob("*.whl"))


def _pip(folder: Path, what: str, *words: str) -> None:
    argv = [sys.executable, "-m", "pip", "download", "--quiet", "--only-binary=:all:", "--dest", str(folder), *words]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        tail = "\n".join(done.stderr.strip().splitlines()[-5:])
        raise LabError(f"could not fetch {what} for the lab: {tail}", hint="pip needs to reach its index once")
