"""Stands in for vLLM in a lab: its command line, its log lines and its HTTP API, over checkpoints without weights.

Standard library only, Python >= 3.8: it runs on the lab's nodes, installed from a wheel as the package `vllm`.
"""

from ._version import __version__

__all__ = ["__version__"]
