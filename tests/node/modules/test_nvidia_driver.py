from __future__ import annotations

from typing import Any

import pytest

from sparkops.node.api import Failure
from sparkops.node.modules import nvidia_driver

PROC = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build\nGCC version: 12\n"


def smi(node: Any, out: str, rc: int = 0) -> None:
    node.program("nvidia-smi", f"#!/bin/sh\ncat <<'X'\n{out}\nX\nexit {rc}\n")


@pytest.mark.parametrize(
    ("out", "version", "gpus"),
    [
        ("580.95.05", "580.95.05", 1),
        ("580.159.04\n580.159.04", "580.159.04", 2),
        ("590.1", "590.1", 1),
        ("1000.1", "1000.1", 1),
    ],
)
def test_new_enough(node: Any, apply: Any, out: str, version: str, gpus: int) -> None:
    smi(node, out)
    for check in (True, False):
        done = apply("nvidia_driver", check=check)
        assert (done.state, done.result) == ("ok", {"driver_version": version, "gpus": gpus})


@pytest.mark.parametrize(
    ("out", "minimum", "found"),
    [
        ("570.86", "580", "570.86"),
        ("580.95.05", "580.126", "580.95.05"),
        ("99.9", "580", "99.9"),
        ("590.1\n570.86", "580", "570.86"),
        ("1000.1\n590.1", "600", "590.1"),
    ],
)
def test_too_old(node: Any, apply: Any, out: str, minimum: str, found: str) -> None:
    smi(node, out)
    with pytest.raises(
        Failure, match=f"driver {found} is older than {minimum}; sparkops never installs drivers"
    ) as caught:
        apply("nvidia_driver", minimum=minimum)
    assert caught.value.result["driver_version"] == found


@pytest.mark.parametrize(("out", "rc"), [("No devices were found", 6), ("[N/A]", 0)])
def test_the_kernel_s_own_word_is_the_second_source(
    tmp_path: Any, node: Any, apply: Any, monkeypatch: pytest.MonkeyPatch, out: str, rc: int
) -> None:
    smi(node, out, rc)
    (tmp_path / "version").write_text(PROC)
    monkeypatch.setattr(nvidia_driver, "VERSION_FILE", str(tmp_path / "version"))
    assert apply("nvidia_driver").result["driver_version"] == "580.159.04"


def test_no_driver_at_all(tmp_path: Any, node: Any, apply: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    smi(node, "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.", 9)
    monkeypatch.setattr(nvidia_driver, "VERSION_FILE", str(tmp_path / "gone"))
    with pytest.raises(Failure, match="no NVIDIA driver answers"):
        apply("nvidia_driver")


@pytest.mark.parametrize("minimum", ["", "new", "580.x", "-1"])
def test_a_bad_minimum(apply: Any, minimum: str) -> None:
    with pytest.raises(Failure, match="is no version"):
        apply("nvidia_driver", minimum=minimum)
