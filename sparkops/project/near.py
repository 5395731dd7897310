"""The near name that an error about an unknown one gives."""

from __future__ import annotations

from collections.abc import Iterable


def near(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most like `name`, or None when none is close."""
    # Nothing is near in most runs.
    from difflib import get_close_matches

    candidates = {candidate.lower(): candidate for candidate in known}
    found = get_close_matches(name.lower(), candidates, n=1)
    return candidates[found[0]] if found else None


def did_you_mean(name: str, known: Iterable[str], otherwise: str | None = None) -> str | None:
    """A hint: "did you mean 'hosts'?", or `otherwise` when no known name is close."""
    found = near(name, known)
    return f"did you mean {found!r}?" if found else otherwise
