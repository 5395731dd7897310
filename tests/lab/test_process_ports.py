"""The ports of labs side by side."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from sparkops.errors import LabError
from sparkops.lab.process import ports


@pytest.fixture(autouse=True)
def numbers(monkeypatch: pytest.MonkeyPatch):
    """Away from the ports of labs that are up."""
    for name, first in {"SSH": 27001, "SERVICE": 28001, "INDEX": 29001}.items():
        monkeypatch.setattr(ports, name, first)


def lab(folder: Path) -> Path:
    folder.mkdir()
    (folder / "lab.json").touch()
    return folder


def test_numbers_belong_to_a_lab_for_as_long_as_it_is(tmp_path: Path):
    first, second, third = (lab(tmp_path / name) for name in ("a", "b", "c"))
    with ports.choosing(tmp_path / "cache") as register:
        _, one = ports.choose(first, 2, register)
        _, two = ports.choose(second, 2, register)
        assert len({port for pair in one + two for port in pair}) == 8
        (first / "lab.json").unlink()
        assert ports.choose(third, 2, register)[1] == one


def test_a_port_that_is_in_use_is_left_alone(tmp_path: Path):
    with ports.choosing(tmp_path) as register, socket.socket() as other:
        _, (before,) = ports.choose(lab(tmp_path / "a"), 1, register)
        (tmp_path / "a" / "lab.json").unlink()
        other.bind((ports.ADDRESS, before.service))
        other.listen()
        _, (after,) = ports.choose(lab(tmp_path / "b"), 1, register)
    assert after not in (before, (before.ssh, before.service))


def test_too_many_nodes(tmp_path: Path):
    with ports.choosing(tmp_path) as register, pytest.raises(LabError, match="too few free ports"):
        ports.choose(tmp_path, ports.TRIES + 1, register)


def test_every_user_begins_elsewhere_and_reaches_all():
    orders = [ports.order(uid) for uid in (0, 1000, 1001)]
    assert len({order[0] for order in orders}) == 3
    assert all(sorted(order) == list(range(ports.TRIES)) for order in orders)
