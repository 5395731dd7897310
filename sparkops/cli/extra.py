"""What -e takes: name=value pairs, a JSON or YAML mapping, or @FILE; and the sudo password."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sparkops.errors import InputError
from sparkops.project import yaml


def variables(given: Sequence[str]) -> dict[str, Any]:
    """The variables of all -e, later ones winning. As in Ansible, name=value gives text. Raises InputError."""
    found: dict[str, Any] = {}
    for text in given:
        found.update(_one(text))
    return found


def _one(text: str) -> dict[str, Any]:
    if text.startswith("@"):
        return _mapping(yaml.load(Path(text[1:]).expanduser()), text)
    if text.lstrip().startswith(("{", "[")):
        return _mapping(yaml.loads(text, "-e"), text)
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise InputError(f"-e {text!r}: {error}") from None
    pairs = [word.partition("=") for word in words]
    for name, equals, _ in pairs:
        if not equals or not name.isidentifier():
            raise InputError(f"-e {text!r}: {name!r} is not NAME=VALUE", hint="or give a JSON object, or @FILE")
    # Text: what the user wrote may be a template.
    return {name: yaml.Text(value) for name, _, value in pairs}


def _mapping(value: Any, text: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InputError(f"-e {text!r}: variables are a mapping, not {type(value).__name__}")
    return value


def sudo_password(ask: bool, file: str | None) -> str | None:
    """The password for -K, from the terminal or a line of stdin, or from a file. Raises InputError."""
    if file:
        return yaml.read(Path(file).expanduser()).rstrip("\r\n")
    if not ask:
        return None
    if sys.stdin.isatty():
        from getpass import getpass

        return getpass("sudo password: ")
    line = sys.stdin.readline()
    if not line:
        raise InputError("-K: there is no terminal to ask for the sudo password on, and stdin is at its end")
    return line.rstrip("\r\n")
