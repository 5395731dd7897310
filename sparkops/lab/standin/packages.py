"""The packages that a lab's index serves as the engine: `vllm` from our own tree, `torch` by its version.py alone."""

from __future__ import annotations

from pathlib import Path

from .wheels import Package

VLLM_VERSIONS = ("0.24.0", "0.26.0")
TORCH = "2.11.0"
CUDA = "13.0"
SUMMARY = "stand-in of the sparkops lab"
DEPENDENCIES = {
    "compressed-tensors": "0.17.0",
    "safetensors": "0.8.0",
    "tokenizers": "0.22.2",
    "transformers": "5.14.1",
}
TREE = Path(__file__).parent / "vllm"

# As torch 2.11.0's file has it, whose distribution version says no more than 2.11.0.
TORCH_VERSION = f"""\
from typing import Optional

__all__ = ['__version__', 'debug', 'cuda', 'git_version', 'hip', 'xpu']
__version__ = '{TORCH}+cu130'
debug = False
cuda: Optional[str] = '{CUDA}'
git_version = 'standin'
hip: Optional[str] = None
xpu: Optional[str] = None
"""


def vllm(version: str) -> Package:
    """The server."""
    files = {f"vllm/{path.relative_to(TREE).as_posix()}": path.read_text() for path in sorted(TREE.rglob("*.py"))}
    files["vllm/_version.py"] = f'"""The version that this engine stands in for."""\n\n__version__ = "{version}"\n'
    return Package(
        "vllm",
        version,
        f"vLLM: {SUMMARY}",
        files,
        requires=(f"torch=={TORCH}", *DEPENDENCIES),
        scripts={"vllm": "vllm.entrypoints.cli.main:main"},
    )


def torch() -> Package:
    """Nothing but its version."""
    start = f'"""torch: {SUMMARY}."""\n\nfrom .version import __version__\n\n__all__ = ["__version__"]\n'
    return Package("torch", TORCH, f"torch: {SUMMARY}", {"torch/__init__.py": start, "torch/version.py": TORCH_VERSION})


def dependencies() -> list[Package]:
    """The rest: each a version, so that an install has several packages to show."""
    return [
        Package(
            name,
            version,
            f"{name}: {SUMMARY}",
            {f"{name.replace('-', '_')}/__init__.py": f'"""{name}: {SUMMARY}."""\n\n__version__ = "{version}"\n'},
        )
        for name, version in DEPENDENCIES.items()
    ]
