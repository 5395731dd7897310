"""The nvidia-smi of a lab's nodes, as a script: SCRIPT is smi.py's text."""

from __future__ import annotations

from pathlib import Path

SCRIPT: str = Path(__file__).with_name("smi.py").read_text(encoding="utf-8")
