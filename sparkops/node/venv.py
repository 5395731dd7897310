"""A Python environment that sparkops built: what its folder tells about it.

PATH/sparkops.json says what it was made of and whether it has been tried; without that file, it is not ours.
"""

from __future__ import annotations

import json
import os

from sparkops.node.api import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from sparkops.node.api import Patch

NOTE = "sparkops.json"
BUILDING = ".building-"


class Wanted:
    """The environment that a task asks for: its final path, its lock's sha256, its patches and its further files."""

    def __init__(self, path: str, lock: str, patches: list[Patch], files: dict[str, str] | None = None) -> None:
        self.path = path
        self.lock = lock
        self.patches = patches
        self.files = files or {}
        # A name of its own for each build: a uv that outlived its build must not write into the next one.
        self.building = f"{path}{BUILDING}{os.getpid()}"
        self.failed = path + ".failed"

    @property
    def key(self) -> str:
        """Names the build's job: one build a path, whatever the lock."""
        from hashlib import sha256

        return f"{os.path.basename(self.path)}-{sha256(self.path.encode()).hexdigest()[:8]}"

    def state(self) -> str:
        """missing | untried (in place, not yet tried) | complete. Raises Failure when something else is there."""
        if not os.path.lexists(self.path):
            return "missing"
        found = noted(self.path)
        if found is None:
            raise Failure(
                f"{self.path} is there and is not an environment that sparkops built (it has no {NOTE}); "
                "move it away, or name another path",
                path=self.path,
            )
        differ = []
        if found["lock"] != self.lock:
            differ.append(f"from the lock {found['lock'][:12]}, not {self.lock[:12]}")
        has = [(patch["name"], patch["sha256"]) for patch in found["patches"]]
        if [name for name, _ in has] != [patch.name for patch in self.patches] or not all(
            any(version["after"] == seen for version in patch.versions) for (_, seen), patch in zip(has, self.patches)
        ):
            differ.append(f"with the patches {_named(n for n, _ in has)}, not {_named(p.name for p in self.patches)}")
        # Environments of before there were such files say nothing of them.
        if found.get("files", {}) != self._sums():
            differ.append(f"with the files {_named(found.get('files', {}))}, not {_named(self.files)}")
        if differ:
            raise Failure(
                f"{self.path} was built {' and '.join(differ)}; an environment in place is never changed: "
                "name another path",
                path=self.path,
            )
        return "complete" if found["tried"] else "untried"

    def facts(self) -> dict[str, Any]:
        """The result keys of a task on an environment in place."""
        found = noted(self.path) or {}
        return {"path": self.path, **{key: found.get(key) for key in ("python", "packages", "patches", "built")}}

    def write_files(self, site_packages: str) -> None:
        """Put the further files into the build. Raises Failure: a package has one of that name."""
        from sparkops.node import files

        for name, text in self.files.items():
            path = os.path.join(site_packages, name)
            if os.path.lexists(path):
                raise Failure(f"files: {name} is there already: it belongs to a package, which is changed by a patch")
            os.makedirs(os.path.dirname(path), exist_ok=True)
            files.write(path, text.encode(), 0o644)

    def _sums(self) -> dict[str, str]:
        """name -> sha256 of the further files."""
        from hashlib import sha256

        return {name: sha256(text.encode()).hexdigest() for name, text in self.files.items()}

    def note(self, site_packages: str, tried: bool) -> None:
        """Write down, in the build, what it is."""
        found = {
            "lock": self.lock,
            "files": self._sums(),
            "patches": [
                {"name": patch.name, "file": patch.file, "sha256": _sha256(os.path.join(site_packages, patch.file))}
                for patch in self.patches
            ],
            "python": os.path.basename(os.path.dirname(site_packages)),
            "packages": len([name for name in os.listdir(site_packages) if name.endswith(".dist-info")]),
            "built": _now(),
            "tried": _now() if tried else None,
        }
        self._write(self.building, found)

    def note_tried(self) -> None:
        """The environment in place has been tried and works."""
        self._write(self.path, {**(noted(self.path) or {}), "tried": _now()})

    def move_away(self) -> None:
        """Take what is in place out of the final name."""
        import shutil

        shutil.rmtree(self.failed, ignore_errors=True)
        os.rename(self.path, self.failed)

    def remove_leftovers(self) -> None:
        """Remove what dead builds and failed ones left; called by the only build of this path there is."""
        import glob
        import shutil

        for left in [self.failed, *glob.glob(glob.escape(self.path + BUILDING) + "*")]:
            if os.path.lexists(left):
                shutil.rmtree(left)

    def _write(self, folder: str, found: dict[str, Any]) -> None:
        from sparkops.node import files

        files.write(os.path.join(folder, NOTE), (json.dumps(found, indent=2) + "\n").encode(), 0o644)


def noted(path: str) -> dict[str, Any] | None:
    """What an environment's folder tells; None: it is not one of ours. Raises Failure."""
    try:
        with open(os.path.join(path, NOTE), encoding="utf-8") as file:
            found: dict[str, Any] = json.load(file)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError:
        raise Failure(f"{path}/{NOTE} is not JSON; move {path} away, then run again") from None
    return found


def package_count(lock: bytes) -> int:
    """How many packages a lock pins."""
    return sum(1 for line in lock.splitlines() if b"==" in line and not line.lstrip().startswith((b"#", b"-")))


def installed_count(path: str) -> int:
    """How many packages the environments that the glob `path` means hold."""
    import glob

    return len(glob.glob(os.path.join(path, "lib", "python3*", "site-packages", "*.dist-info")))


def fetched_count(cache_dir: str, building: str) -> int:
    """How many packages uv has put into its cache (a folder of archive-v0 each) since the build began.

    building: a glob that means the build's folder; 0 while it is not there.
    """
    import glob

    try:
        begun = [os.stat(path).st_mtime for path in glob.glob(os.path.join(building, "pyvenv.cfg"))]
        with os.scandir(os.path.join(cache_dir, "archive-v0")) as entries:
            return sum(1 for entry in entries if begun and entry.stat().st_mtime >= min(begun))
    except OSError:
        return 0


def check_cuda(site_packages: str, expected: str, lock: str) -> None:
    """Compare torch/version.py's `cuda` with what the engine expects. Raises Failure.

    The distribution's version doesn't tell: torch 2.11.0 of the registry is the cu130 build, and reads 2.11.0.
    """
    path = os.path.join(site_packages, "torch", "version.py")
    found = torch_cuda(path)
    if found != expected:
        raise Failure(
            f"torch is built for CUDA {found or 'none (a CPU build)'}, expected {expected}: {lock} or the index gives "
            "wheels for another CUDA",
            expected=expected,
            found=found,
        )


def torch_cuda(path: str) -> str | None:
    """The value of `cuda` in a torch/version.py, read without running it. Raises Failure when it can't be."""
    import ast

    try:
        with open(path, encoding="utf-8") as file:
            tree = ast.parse(file.read())
    except (OSError, SyntaxError, ValueError) as error:
        raise Failure(f"cannot read torch's CUDA version from {path}: {error}") from None
    value = None
    for statement in tree.body:
        # `cuda: Optional[str] = '13.0'` in recent versions, `cuda = '13.0'` in older ones.
        if isinstance(statement, (ast.AnnAssign, ast.Assign)):
            target = statement.target if isinstance(statement, ast.AnnAssign) else statement.targets[0]
            if isinstance(target, ast.Name) and target.id == "cuda":
                value = statement.value
    found = getattr(value, "value", None)
    return found if isinstance(found, str) else None


def _named(names: Any) -> str:
    return ", ".join(names) or "none"


def _sha256(path: str) -> str:
    from sparkops.node import files

    return files.sha256(path)


def _now() -> str:
    import time

    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
