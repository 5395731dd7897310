"""What a check of a recipe finds: an InputError is wrong, a Warned doubtful."""

from __future__ import annotations

from sparkops.errors import InputError


class Warned(InputError):
    """A finding that stops nothing."""
