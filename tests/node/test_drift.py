"""What was edited since a deploy: arguments and a starting state, what is found."""

from __future__ import annotations

import json
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from sparkops.node import drift, venv_contents
from tests.node.conftest import HereNode

UNIT = "[Service]\nExecStart=/x\n"
ENGINE = "vllm-1"


def shown(tmp_path: Path, **more: str) -> dict[str, str]:
    return {"LoadState": "loaded", "FragmentPath": str(tmp_path / "sparkops-vllm.service"), **more}


@pytest.fixture
def deployed(tmp_path: Path, apply: Any, node: HereNode) -> Path:
    """A release with all that it keeps, its unit installed, its engine with one patch."""
    node.program("nvidia-smi", "#!/bin/sh\necho 580.95.05, 16.00, 42\n")
    files = {
        "run": {"content": "#!/bin/sh\nexec true\n", "mode": "0755"},
        "env": {"content": "A=1\n", "mode": "0600"},
        "unit": {"content": UNIT},
    }
    apply("release", home=str(tmp_path), service="vllm", files=files, meta={"engine": ENGINE, "recipe": "fp8"})
    (tmp_path / "sparkops-vllm.service").write_text(UNIT)
    engine(tmp_path / "engines" / ENGINE)
    return tmp_path / "releases/vllm/current"


def record(name: str, data: bytes) -> str:
    from base64 import urlsafe_b64encode

    return f"{name},sha256={urlsafe_b64encode(sha256(data).digest()).rstrip(b'=').decode()},{len(data)}\n"


def engine(path: Path) -> None:
    """A venv of two packages as python_venv leaves it, `a.py` patched."""
    folder = path / "lib/python3.12/site-packages"
    folder.mkdir(parents=True)
    for name, data in {"a.py": b"patched", "a.py.orig": b"pristine", "b.py": b"b = 1\n", "c.so": b"\x7fELF"}.items():
        (folder / name).write_bytes(data)
    lock = b"one==1.0 \\\n    --hash=sha256:00\ntwo[x]==2.0 ; python_version > '3'\n# a comment==3\n"
    (path / "requirements.lock").write_bytes(lock)
    for package, lines in {"one-1.0": [record("a.py", b"pristine"), record("b.py", b"b = 1\n")], "two-2.0": []}.items():
        (folder / f"{package}.dist-info").mkdir()
        own = [*lines, record("c.so", b"\x7fELF"), f"{package}.dist-info/RECORD,,\n", "__pycache__/b.pyc,,\n"]
        (folder / f"{package}.dist-info/RECORD").write_text("".join(own))
    patches = [{"name": "guard", "file": "a.py", "sha256": sha256(b"patched").hexdigest()}]
    (path / "sparkops.json").write_text(json.dumps({"patches": patches, "lock": sha256(lock).hexdigest()}))


def site(tmp_path: Path) -> Path:
    return tmp_path / "engines" / ENGINE / "lib/python3.12/site-packages"


def test_nothing_was_edited(tmp_path: Path, deployed: Path) -> None:
    found = drift.look(str(tmp_path), "vllm", shown(tmp_path))
    assert (found["drift"], found["patches"], found["engine"]) == ([], {"guard": "applied"}, ENGINE)
    assert found["deployed"]["driver"] == "580.95.05"


EDITS: dict[str, tuple[Callable[[Path, Path], object], list[str]]] = {
    "run": (lambda _, current: (current / "run").write_text("x"), ["run"]),
    "env": (lambda _, current: (current / "env").unlink(), ["env gone"]),
    "unit": (lambda top, _: (top / "sparkops-vllm.service").write_text(UNIT + "#"), ["unit"]),
    "patch": (lambda top, _: (site(top) / "a.py").write_bytes(b"other"), ["patch guard edited"]),
    "taken out": (lambda top, _: (site(top) / "a.py").write_bytes(b"pristine"), ["patch guard taken out"]),
    "file gone": (lambda top, _: (site(top) / "a.py").unlink(), ["patch guard gone"]),
    "engine": (lambda top, _: (top / "engines" / ENGINE).rename(top / "gone"), ["engine gone"]),
}


@pytest.mark.parametrize("name", EDITS)
def test_what_was_edited(tmp_path: Path, deployed: Path, name: str) -> None:
    edit, wanted = EDITS[name]
    edit(tmp_path, deployed)
    assert drift.look(str(tmp_path), "vllm", shown(tmp_path))["drift"] == wanted


@pytest.mark.parametrize(
    ("more", "wanted"),
    [
        ({"FragmentPath": ""}, ["unit gone"]),
        ({"DropInPaths": "/etc/systemd/system/sparkops-vllm.service.d/override.conf"}, ["unit drop-in override.conf"]),
        ({"DropInPaths": "/usr/lib/systemd/system/service.d/10-all.conf"}, []),
        ({"NeedDaemonReload": "yes"}, ["unit not reloaded"]),
    ],
)
def test_what_systemd_tells(tmp_path: Path, deployed: Path, more: dict[str, str], wanted: list[str]) -> None:
    assert drift.look(str(tmp_path), "vllm", shown(tmp_path, **more))["drift"] == wanted


def test_an_older_release_has_kept_nothing(tmp_path: Path, deployed: Path) -> None:
    (deployed / "SHA256SUMS").unlink()
    (deployed / "unit").unlink()
    found = drift.look(str(tmp_path), "vllm", shown(tmp_path))
    assert (found["drift"], found["patches"]) == (None, {"guard": "applied"})
    assert drift.look(str(tmp_path), "other", {}) == {
        "drift": None,
        "patches": None,
        "engine": None,
        "adopted": None,
        "deployed": {"kernel": None, "driver": None},
    }


def test_an_engine_that_was_adopted(tmp_path: Path, deployed: Path) -> None:
    about = json.loads((deployed / "release.json").read_text())
    (deployed / "release.json").write_text(json.dumps({**about, "engine": str(tmp_path / "venv")}))
    found = drift.look(str(tmp_path), "vllm", shown(tmp_path))
    assert (found["engine"], found["adopted"], found["drift"]) == (None, str(tmp_path / "venv"), ["engine gone"])
    (tmp_path / "venv").mkdir()
    assert drift.look(str(tmp_path), "vllm", shown(tmp_path))["drift"] == []


def test_the_unit_of_another_release(tmp_path: Path, deployed: Path) -> None:
    later = deployed.parent / "7"
    later.mkdir()
    (later / "unit").write_text(UNIT + "#")
    (tmp_path / "sparkops-vllm.service").write_text(UNIT + "#")
    assert drift.look(str(tmp_path), "vllm", shown(tmp_path))["drift"] == ["unit of release 7"]


def test_sums_that_this_user_may_not_read_say_nothing(tmp_path: Path, deployed: Path) -> None:
    (deployed / "SHA256SUMS").unlink()
    assert drift.look(str(tmp_path), "vllm", shown(tmp_path))["drift"] is None


def contents(tmp_path: Path, node: HereNode) -> list[str]:
    problems: list[str] = venv_contents.contents(str(tmp_path / "engines" / ENGINE), node)["problems"]
    return problems


def test_an_engine_as_locked(tmp_path: Path, deployed: Path, node: HereNode) -> None:
    assert contents(tmp_path, node) == []
    assert node.moves


IN_THE_ENGINE: dict[str, tuple[Callable[[Path], object], list[str]]] = {
    "edited": (lambda site: (site / "b.py").write_bytes(b"b = 2\n"), ["b.py was edited"]),
    "longer": (lambda site: (site / "c.so").write_bytes(b"\x7fELF2"), ["c.so has another size"]),
    "gone": (lambda site: (site / "c.so").unlink(), ["c.so is gone"]),
    "version": (
        lambda site: (site / "two-2.0.dist-info").rename(site / "two-2.1.dist-info"),
        ["two is 2.1, locked is 2.0"],
    ),
    "more": (lambda site: (site / "three-3.dist-info").mkdir(), ["three 3 is not in the lock"]),
    "lock": (
        lambda site: (site.parents[2] / "requirements.lock").write_text("one==1.0\ntwo==2.0\nx==1\n"),
        ["requirements.lock is not the one it was built from", "x 1 is missing"],
    ),
}


@pytest.mark.parametrize("name", IN_THE_ENGINE)
def test_an_engine_that_is_not_as_locked(tmp_path: Path, deployed: Path, node: HereNode, name: str) -> None:
    change, wanted = IN_THE_ENGINE[name]
    change(site(tmp_path))
    found = contents(tmp_path, node)
    assert found[: len(wanted)] == wanted


def test_what_nodes_are_compared_by(tmp_path: Path, deployed: Path, apply: Any, node: HereNode) -> None:
    node.program("systemctl", "#!/bin/sh\nexit 1\n")
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text("{}")
    (model / "a.safetensors").write_text("x")
    run = f"#!/bin/sh\nexec {tmp_path}/bin/vllm serve {model} --port 8000 \\\n  --api-key hush --enforce-eager\n"
    (deployed / "run").write_text(run)
    (deployed / "env").write_text("# HF_TOKEN=no\nVLLM_API_KEY=hush\nHF_HUB_OFFLINE=1\n")
    one = apply("serving_drift", home=str(tmp_path), service="vllm", salt="a").result
    other = apply("serving_drift", home=str(tmp_path), service="vllm", salt="b").result
    items = one["items"]
    assert (items["run --port"], items["run --enforce-eager"]) == ("8000", "")
    assert (items["run model"], items["run program"]) == ("sparkops_home/model", "sparkops_home/bin/vllm")
    assert (items["driver"], items["engine contents"]) == ("580.95.05", "as locked")
    assert items["patch guard"].startswith("applied ")
    assert items["checkpoint weights"].startswith("1 files, ")
    assert "hush" not in json.dumps(one)
    secret = {"env VLLM_API_KEY", "env HF_HUB_OFFLINE", "run --api-key"}
    assert {name for name, value in items.items() if value != other["items"][name]} == secret
    assert not {"env HF_TOKEN", "env # HF_TOKEN"} & set(items)


def test_a_node_without_a_release(tmp_path: Path, apply: Any, node: HereNode) -> None:
    found = apply("serving_drift", home=str(tmp_path), service="vllm").result
    assert (found["release"], found["contents"], found["checkpoint"]["path"]) == (None, None, None)
    assert found["items"]["architecture"]


def test_a_unit_s_settings(tmp_path: Path, apply: Any, node: HereNode) -> None:
    unit = tmp_path / "sparkops-vllm.service"
    unit.write_text(f"# a=b\n[Service]\nExecStart={node.home}/x\nEnvironment=A=1\nEnvironment=B=2\n")
    node.program("systemctl", f"#!/bin/sh\necho LoadState=loaded; echo FragmentPath={unit}; echo DropInPaths=/a.conf\n")
    items = apply("serving_drift", home=str(tmp_path / "s"), service="vllm").result["items"]
    assert items["unit Environment"].count("(hidden ") == 2
    assert {name: value for name, value in items.items() if name.startswith("unit")} == {
        "unit ExecStart": "~/x",
        "unit Environment": items["unit Environment"],
        "unit drop-ins": "/a.conf",
    }
