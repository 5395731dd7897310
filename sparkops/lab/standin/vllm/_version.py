"""The version that this engine stands in for."""

__version__ = "0.24.0"
