"""The four recipes' checkpoints without their weights: true headers and configs in sparse files."""

from .seeding import seed

__all__ = ["seed"]
