"""A stand-in for the engine: wheels, engine data and a patch under the real ones' names, written by us.

`build` fills the folder that a lab serves as its wheel index and keeps beside its inventory; `checkpoints.seed` fills a
node's models_dir; `nvidia_smi.SCRIPT` answers as a GB10's nvidia-smi does.
"""

from .building import build

__all__ = ["build"]
