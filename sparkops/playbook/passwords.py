"""`password_hash`, through passlib (or libpass, its maintained fork of the same name in Python); an extra."""

from __future__ import annotations

import importlib
from typing import Any

from sparkops.errors import InputError

_KINDS = {"md5": "md5_crypt", "blowfish": "bcrypt", "sha256": "sha256_crypt", "sha512": "sha512_crypt"}
# Ansible's, so that the same salt gives the same hash.
_ROUNDS = {"bcrypt": 12, "sha256_crypt": 535_000, "sha512_crypt": 656_000}


def password_hash(
    password: Any,
    hashtype: str = "sha512",
    salt: str | None = None,
    salt_size: int | None = None,
    rounds: int | None = None,
    ident: str | None = None,
) -> str:
    """A hash for /etc/shadow. Without `salt` each run gives another one, so that a task that uses it never converges.

    Raises InputError: an unknown kind, a salt that does not fit, no library.
    """
    if not isinstance(password, str):
        raise InputError(f"'password_hash' takes a text, not a {type(password).__name__}", hint="add '| string'")
    kind = _KINDS.get(hashtype, hashtype)
    if kind not in _KINDS.values():
        raise InputError(f"'password_hash' has no kind {hashtype!r}", hint=f"one of {', '.join(_KINDS)}")
    try:
        handlers = importlib.import_module("passlib.hash")
    except ImportError:
        raise InputError("'password_hash' needs a library", hint="pip install 'sparkops[passwords]'") from None
    rounds = rounds or _ROUNDS.get(kind)
    settings = {"salt": salt, "salt_size": salt_size, "rounds": rounds, "ident": ident if kind == "bcrypt" else None}
    handler = getattr(handlers, kind).using(**{name: value for name, value in settings.items() if value})
    return str(handler.hash(password))
