"""The wheel of uv that nodes install: the real one that the product pins, fetched with this machine's pip."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from sparkops.errors import LabError
from sparkops.recipes.load import Catalogue


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


def _download(folder: Path, version: str) -> Path:
    argv = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    done = subprocess.run([*argv, "--dest", str(folder), f"uv=={version}"], capture_output=True, text=True, check=False)
    if done.returncode:
        tail = "\n".join(done.stderr.strip().splitlines()[-5:])
        raise LabError(f"could not fetch uv {version} for the lab: {tail}", hint="pip needs to reach its index once")
    return next(folder.glob("*.whl"))
