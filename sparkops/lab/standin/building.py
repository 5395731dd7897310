"""Fills a lab's folder with the stand-in engine: wheels to serve, engine data and locks, and the patch."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from pathlib import Path

import yaml

from . import packages, patching
from .wheels import Package, write_wheel

FOLDERS = ("wheels", "engines", "patches")
ARCHITECTURES = ("aarch64", "x86_64")


def build(dest: Path, *, cache: Path) -> None:
    """Write dest/wheels/*.whl, dest/engines/{*.yml,*.lock} and dest/patches/*.yml.

    The files are made once for each state of their sources, in `cache`, and copied from there. Raises OSError.
    """
    vllms = [packages.vllm(version) for version in packages.VLLM_VERSIONS]
    others = [packages.torch(), *packages.dependencies()]
    built = cache / f"standin-{fingerprint([*vllms, *others])}"
    if not built.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache, prefix=".standin-") as staging:
            folder = Path(staging) / "built"
            write_all(folder, vllms, others)
            publish(folder, built)
    for name in FOLDERS:
        shutil.copytree(built / name, dest / name, dirs_exist_ok=True)


def fingerprint(made_of: list[Package]) -> str:
    """A short name for what would be built: the packages, and the code that writes them."""
    digest = hashlib.sha256(repr(made_of).encode())
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def publish(folder: Path, built: Path) -> None:
    """Move the finished folder to its name, unless another lab has just done so."""
    try:
        folder.rename(built)
    except OSError:
        if not built.is_dir():
            raise


def write_all(folder: Path, vllms: list[Package], others: list[Package]) -> None:
    """Write the three folders anew."""
    for name in FOLDERS:
        (folder / name).mkdir(parents=True)
    shared = [lock_entry(package, folder / "wheels") for package in others]
    for vllm in vllms:
        lock = "".join(sorted([*shared, lock_entry(vllm, folder / "wheels")]))
        (folder / "engines" / lock_name(vllm)).write_text(lock)
        write_yaml(folder / "engines" / f"vllm-{vllm.version}.yml", engine(vllm))
    patch = patching.patch(vllms[0].files[patching.FILE], packages.VLLM_VERSIONS)
    write_yaml(folder / "patches" / f"{patching.NAME}.yml", patch)


def lock_entry(package: Package, folder: Path) -> str:
    """Build the package's wheel and return its requirement, pinned by hash."""
    digest = hashlib.sha256(write_wheel(package, folder).read_bytes()).hexdigest()
    return f"{package.name}=={package.version} \\\n    --hash=sha256:{digest}\n"


def lock_name(vllm: Package) -> str:
    """The lock's file beside the engine's YAML: one for all architectures, since the wheels are pure Python."""
    return f"vllm-{vllm.version}.lock"


def engine(vllm: Package) -> dict[str, object]:
    """engines/vllm-VERSION.yml: as the product's own, but for any Python."""
    return {
        "name": "vllm",
        "version": vllm.version,
        "python": None,
        "expect_cuda": packages.CUDA,
        "locks": {architecture: lock_name(vllm) for architecture in ARCHITECTURES},
        "probe": ["bin/vllm", "--version"],
    }


def write_yaml(path: Path, document: dict[str, object]) -> None:
    """Block style; texts of several lines (a diff) as such."""
    path.write_text(yaml.dump(document, Dumper=BlockDumper, sort_keys=False, width=120))


class BlockDumper(yaml.SafeDumper):
    """Writes texts of several lines as `|` blocks."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


BlockDumper.add_representer(str, _text)
