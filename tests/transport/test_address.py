"""Connection variables to addresses."""

from __future__ import annotations

import pytest

from sparkops.errors import InputError
from sparkops.transport.address import from_variables


def test_ansibles_names_are_read() -> None:
    options = """-o 'UserKnownHostsFile="/a b" /c' -J me@jump:23 -oStrictHostKeyChecking=yes"""
    found = from_variables(
        "spark-1",
        {
            "ansible_host": "10.0.0.1",
            "ansible_port": "2222",
            "ansible_user": "spark",
            "ansible_ssh_private_key_file": "~/k",
            "ansible_ssh_common_args": options,
            "ansible_become_password": "s3cret",
        },
    )
    assert (found.host, found.port, found.user, found.key_file) == ("10.0.0.1", 2222, "spark", "~/k")
    assert (found.known_hosts, found.jump) == (("/a b", "/c"), "me@jump:23")
    assert found.sudo_password == "s3cret"
    assert "s3cret" not in repr(found)


def test_a_host_alone_is_its_own_address() -> None:
    found = from_variables("spark-1", {})
    assert (found.host, found.port, found.connection, found.python) == ("spark-1", None, "ssh", "python3")


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"ansible_port": "ssh"}, "must be numbers"),
        ({"ansible_connection": "winrm"}, "ansible_connection is 'winrm'"),
        ({"ansible_ssh_common_args": "-o StrictHostKeyChecking=no"}, "StrictHostKeyChecking"),
        ({"ansible_ssh_common_args": "-o ForwardAgent=yes"}, "ForwardAgent"),
    ],
)
def test_what_would_silently_not_happen_is_an_error(variables: dict[str, str], said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        from_variables("spark-1", variables)
    assert caught.value.where == "spark-1"
