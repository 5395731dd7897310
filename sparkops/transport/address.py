"""Where a host is and how to log in, read from its connection variables (Ansible's names)."""

from __future__ import annotations

import functools
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sparkops.errors import InputError


@dataclass(frozen=True)
class Address:
    """`known_hosts`: the files to check host keys against (empty: the user's own). `jump`: user@host:port or None."""

    name: str
    host: str
    port: int | None = None
    user: str | None = None
    key_file: str | None = None
    known_hosts: tuple[str, ...] = ()
    jump: str | None = None
    connection: str = "ssh"
    python: str = "python3"
    timeout: float = 10.0
    sudo_password: str | None = field(default=None, repr=False)


def from_variables(name: str, variables: Mapping[str, Any]) -> Address:
    """The address of host `name`. Raises InputError for a value of the wrong kind."""
    options = _options(name, str(variables.get("ansible_ssh_common_args", "")))
    port = variables.get("ansible_port")
    timeout = variables.get("ansible_timeout", 10)
    try:
        port = None if port is None else int(port)
        timeout = float(timeout)
    except (TypeError, ValueError):
        raise InputError(
            f"ansible_port and ansible_timeout must be numbers, not {port!r} and {timeout!r}", where=name
        ) from None
    password = variables.get("ansible_become_password", variables.get("ansible_become_pass"))
    connection = str(variables.get("ansible_connection", "ssh"))
    if connection not in ("ssh", "local"):
        raise InputError(f"ansible_connection is {connection!r}; sparkops has ssh and local", where=name)
    return Address(
        name=name,
        host=str(variables.get("ansible_host", name)),
        port=port,
        user=_text(variables.get("ansible_user")),
        key_file=_text(variables.get("ansible_ssh_private_key_file", variables.get("ansible_private_key_file"))),
        known_hosts=_words(options.get("userknownhostsfile", "")),
        jump=options.get("proxyjump"),
        connection=connection,
        python=_python(str(variables.get("ansible_python_interpreter", "python3"))),
        timeout=timeout,
        sudo_password=_text(password),
    )


def _python(given: str) -> str:
    """Ansible's words for looking for one mean the one that every node has."""
    return "python3" if given in ("auto", "auto_silent", "auto_legacy", "auto_legacy_silent") else given


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


# Most hosts of a run have the same.
@functools.lru_cache(maxsize=64)
def _words(arguments: str) -> tuple[str, ...]:
    return tuple(shlex.split(arguments))


KNOWN = ("userknownhostsfile", "proxyjump")


def _options(name: str, arguments: str) -> dict[str, str]:
    """The ssh options that have a meaning here: -o UserKnownHostsFile, -o ProxyJump, -J. Others are an error, since
    what they ask for would silently not happen."""
    words = iter(_words(arguments))
    found: dict[str, str] = {}
    for word in words:
        flag, given = word[:2], word[2:] or next(words, "")
        key, _, value = ("ProxyJump", "", given) if flag == "-J" else given.strip().partition("=")
        key, value = key.strip().lower(), value.strip()
        if flag in ("-o", "-J") and key in KNOWN:
            found[key] = value
        elif (flag, key, value.lower()) != ("-o", "stricthostkeychecking", "yes"):
            raise InputError(
                f"ansible_ssh_common_args has {flag} {given}, which sparkops does not know",
                where=name,
                hint="it knows -J, -o ProxyJump=, -o UserKnownHostsFile=; put other options into ~/.ssh/config."
                " Host keys are always checked: `sparkops trust HOST` records one",
            )
    return found
