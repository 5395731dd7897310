"""A draft grafted from a checkpoint on the node: what is made, what is refused, and what stays as it was."""

from __future__ import annotations

import errno
import json
import os
import resource
import shutil
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sparkops.checkpoint.advice import advice
from sparkops.checkpoint.inspect import inspect
from sparkops.checkpoint.sources import headers
from sparkops.node import graft
from sparkops.node.api import Failure
from sparkops.node.donor import find
from sparkops.node.safetensors import check_whole
from tests.node.grafting import BODY, CONFIG, DRAFT, INDEX, LAYER, checkpoint, donor, expected, state, tensors_of, write

BYTES = sum(map(len, expected().values()))


class Place:
    """A target, a donor, and where the graft goes."""

    def __init__(self, folder: Path, apply: Any) -> None:
        self.folder = folder
        self.target = checkpoint(folder / "target", [BODY])
        self.donor = donor(folder / "donor")
        self.out = folder / "out"
        self._apply = apply

    def run(self, check: bool = False, **more: Any) -> Any:
        args = {"path": self.out, "target": self.target, "donor": self.donor, **more}
        return self._apply("mtp_graft", check=check, **{name: str(value) for name, value in args.items()})

    def left(self) -> list[str]:
        return sorted(path.name for path in self.folder.iterdir() if path.name not in ("home", "target", "donor"))


@pytest.fixture
def place(tmp_path: Path, apply: Any) -> Place:
    return Place(tmp_path, apply)


def test_a_graft(place: Place) -> None:
    before = state(place.target), state(place.donor)
    predicted = place.run(check=True)
    assert (predicted.state, place.left()) == ("changed", [])
    done = place.run()
    assert (done.state, done.result["fetched"]) == ("changed", (place.out / "mtp.safetensors").stat().st_size)
    told = {"path": str(place.out), "donor": str(place.donor), "tensors": 19, "bytes": BYTES, "files": 4}
    assert predicted.result == told == {name: done.result[name] for name in told}
    assert place.left() == ["out"]
    assert {str(path.relative_to(place.out)) for path in place.out.rglob("*")} == {
        *("config.json", "model-1.safetensors", "mtp.safetensors", "tokenizer.json", "chat", "chat/template.jinja")
    }
    assert tensors_of(place.out / "mtp.safetensors") == expected()
    assert check_whole(str(place.out / "mtp.safetensors")) == 19
    for name in ("model-1.safetensors", "tokenizer.json", "chat/template.jinja"):
        assert (place.out / name).samefile(place.target / name)
    config = deepcopy(CONFIG)
    config["quantization_config"]["ignore"].append("re:^mtp\\..*")
    assert json.loads((place.out / "config.json").read_text()) == config
    assert (state(place.target), state(place.donor)) == before
    made = state(place.out)
    for check in (True, False):
        again = place.run(check=check)
        assert (again.state, again.result["fetched"]) == ("ok", 0)
    assert state(place.out) == made


def test_what_inspect_says_of_it(place: Place) -> None:
    place.run()
    found = inspect(headers(str(place.out)))
    assert (found.tensors, found.count("mtp"), found.parts["mtp"].bytes) == (3 + 19, 19, BYTES)
    told = "\n".join(advice(found))
    assert "a draft is there (19 mtp tensors)" in told
    assert "quantization_config" not in told


def test_an_index_gets_the_tensors(place: Place, tmp_path: Path) -> None:
    place.target = checkpoint(tmp_path / "indexed", [BODY, {"x": ("U8", [3])}], index=True)
    assert place.run().state == "changed"
    old, new = (json.loads((folder / INDEX).read_text()) for folder in (place.target, place.out))
    assert new["metadata"] == {"total_size": old["metadata"]["total_size"] + BYTES, "by": "x"}
    assert new["weight_map"] == {**old["weight_map"], **dict.fromkeys(DRAFT, "mtp.safetensors")}
    assert "index" not in "\n".join(advice(inspect(headers(str(place.out)))))
    assert place.run().state == "ok"
    (place.out / INDEX).write_text(json.dumps(old))
    with pytest.raises(Failure, match=f"{INDEX} is not the target's with the draft"):
        place.run()


def test_what_is_not_quantized_and_not_declared(place: Place, tmp_path: Path) -> None:
    plain = {"text_config": {**CONFIG["text_config"], "mtp_num_hidden_layers": 0}}
    place.target = checkpoint(tmp_path / "plain", [BODY], plain)
    place.run()
    assert json.loads((place.out / "config.json").read_text()) == {"text_config": CONFIG["text_config"]}


def test_from_one_file_and_without_an_index(place: Place, tmp_path: Path) -> None:
    write(tmp_path / "draft.safetensors", {"x": ("F32", [1]), **DRAFT})
    assert place.run(donor=tmp_path / "draft.safetensors").result["tensors"] == 19
    place.out = tmp_path / "out2"
    place.run(donor=donor(tmp_path / "loose", index=False))
    assert tensors_of(place.out / "mtp.safetensors") == expected()


def test_links_of_a_hub_s_cache(place: Place) -> None:
    blob = place.folder / "blob"
    (place.target / "model-1.safetensors").rename(blob)
    (place.target / "model-1.safetensors").symlink_to("../blob")
    place.run()
    assert (place.out / "model-1.safetensors").samefile(blob)
    assert not (place.out / "model-1.safetensors").is_symlink()


def test_another_file_system(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def elsewhere(*_: str) -> None:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", elsewhere)
    monkeypatch.setattr(graft, "COPIED_UP_TO", 1000)
    done = place.run()
    assert (done.state, done.result["symlinks"]) == ("changed", 1)
    assert f"keep {place.target}" in done.msg
    assert (place.out / "model-1.safetensors").readlink() == place.target / "model-1.safetensors"
    assert not (place.out / "tokenizer.json").is_symlink()
    assert not (place.out / "tokenizer.json").samefile(place.target / "tokenizer.json")
    assert place.run().state == "ok"


def test_an_empty_folder_is_nothing_and_one_made_by_hand_is_taken(place: Place) -> None:
    place.out.mkdir()
    assert place.run().state == "changed"
    write(place.out / "mtp.safetensors", DRAFT)
    assert place.run(donor=place.folder / "whatever").state == "ok"
    config = json.loads((place.out / "config.json").read_text())
    (place.out / "config.json").write_text(json.dumps({**config, "my_own": 1}))
    assert place.run().state == "ok"


def test_what_is_not_there_yet_is_unknown_in_a_check(place: Place) -> None:
    assert place.run(check=True, target=place.folder / "coming").state == "unknown"
    assert place.run(check=True, donor=place.folder / "coming").state == "unknown"
    with pytest.raises(Failure, match="coming is no folder"):
        place.run(target=place.folder / "coming")
    with pytest.raises(Failure, match=r"there is no donor .*coming"):
        place.run(donor=place.folder / "coming")


def drop(name: str) -> dict[str, Any]:
    return {key: value for key, value in DRAFT.items() if key != name}


TARGETS: list[tuple[Callable[[Path], object], str]] = [
    (lambda at: (at / "config.json").unlink(), "has no config.json"),
    (lambda at: (at / "config.json").write_text("{"), "config.json: no JSON"),
    (lambda at: (at / "config.json").write_text("{}"), "has no hidden_size"),
    (lambda at: os.truncate(at / "model-1.safetensors", 900), "model-1.safetensors: truncated"),
    (lambda at: (at / "model-1.safetensors").unlink(), r"no \*.safetensors file"),
    (lambda at: write(at / "x.safetensors", {"mtp.fc.weight": ("U8", [1])}), "has a draft already .mtp.fc.weight"),
    (lambda at: write(at / "mtp.safetensors", {"x": ("U8", [1])}), "has a draft already .mtp.safetensors"),
    (lambda at: (at / INDEX).write_text('{"weight_map": {"x": "gone.safetensors"}}'), "its index names x, which no"),
    (lambda at: (at / INDEX).write_text("[]"), "no JSON object"),
    (
        lambda at: (at / "config.json").write_text(
            json.dumps({**CONFIG, "quantization_config": {"quant_method": "x"}})
        ),
        "quantized by 'x'",
    ),
    (
        lambda at: (at / "config.json").write_text(
            json.dumps({**CONFIG, "text_config": {**CONFIG["text_config"], "mtp_num_hidden_layers": 2}})
        ),
        "declares 2 MTP layers, and the draft has 1",
    ),
    (
        lambda at: (at / "config.json").write_text(
            json.dumps({**CONFIG, "text_config": {**CONFIG["text_config"], "hidden_size": 32}})
        ),
        r"mtp.fc.weight is \[64, 128\], and config.json asks for \[32, 64\]",
    ),
]


@pytest.mark.parametrize(("spoil", "message"), TARGETS)
def test_wrong_targets(place: Place, spoil: Callable[[Path], object], message: str) -> None:
    spoil(place.target)
    refused(place, message)


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ({"x": ("U8", [1])}, "has no draft to give: none of its 3 files holds an mtp"),
        (drop("mtp.norm.weight"), "mtp.norm.weight is missing"),
        ({**DRAFT, "mtp.more": ("BF16", [1])}, "mtp.more is no tensor of such a draft"),
        ({**DRAFT, "mtp.norm.weight": ("BF16", [32])}, r"mtp.norm.weight is \[32\], and config.json asks for \[64\]"),
        ({**DRAFT, f"{LAYER}.mlp.gate.weight": ("F8_E4M3", [8, 64])}, "mlp.gate.weight is F8_E4M3, and a draft is"),
        ({**DRAFT, "mtp.norm.weight": ("F32", [64])}, "mtp.norm.weight is F32, and a draft is grafted as .*: BF16"),
    ],
)
def test_donors_that_do_not_fit(place: Place, tensors: Any, message: str) -> None:
    place.donor = donor(place.folder / "home" / "odd", tensors)
    refused(place, message)


DONORS: list[tuple[Callable[[Path], object], str]] = [
    (lambda at: os.truncate(at / "model-2.safetensors", 9000), "model-2.safetensors: truncated"),
    (lambda at: (at / "model-3.safetensors").unlink(), "lacks 'model-3.safetensors', which its index names"),
    (lambda at: (at / INDEX).write_text('{"weight_map": {"mtp.x": "../x"}}'), "lacks '../x'"),
    (lambda at: (at / INDEX).write_text("{}"), "no weight_map"),
    (lambda at: (at / INDEX).rename(at / "x") and write(at / "z.safetensors", DRAFT), "two files of .* hold mtp"),
    (lambda at: [path.rename(path.with_suffix(".bin")) for path in at.glob("*.safetensors")], "has no .*.safetensors"),
]


@pytest.mark.parametrize(("spoil", "message"), DONORS)
def test_wrong_donors(place: Place, spoil: Callable[[Path], object], message: str) -> None:
    spoil(place.donor)
    refused(place, message)


def refused(place: Place, message: str) -> None:
    """In a check and for real, with nothing left behind."""
    for check in (True, False):
        with pytest.raises(Failure, match=message):
            place.run(check=check)
        assert place.left() == []


def test_something_else_is_there(place: Place) -> None:
    place.run()
    other = donor(place.folder / "home" / "other")
    with pytest.raises(Failure, match=f"(?s)out is there, and is not .*its draft is that of {place.donor}"):
        place.run(donor=other)
    write(place.target / "model-1.safetensors", {**BODY, "x": ("U8", [1])})
    (place.out / "tokenizer.json").unlink()
    with pytest.raises(Failure, match=r"tokenizer\.json is not the target's"):
        place.run()
    for name, message in (("notes.txt", "there is no mtp.safetensors"), ("mtp.safetensors", "mtp.safetensors, or a")):
        place.out = place.folder / f"with-{name}"
        place.out.mkdir()
        (place.out / name).write_text("mine")
        with pytest.raises(Failure, match=message):
            place.run()
        assert [path.name for path in place.out.iterdir()] == [name]
    place.out = place.out / "mtp.safetensors"
    with pytest.raises(Failure, match="is there and can't be listed: Not a directory"):
        place.run()


@pytest.mark.parametrize("where", [".", "sub", "../target"])
def test_into_the_target_itself(place: Place, where: str) -> None:
    with pytest.raises(Failure, match=r"is in the target .*: a graft makes a new folder beside it"):
        place.run(path=place.target / where)


def test_no_room(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_bavail=10, f_frsize=4096))
    refused(place, r"no room for the draft: it takes [0-9,]+ bytes, and .* has 40,960 free")
    monkeypatch.undo()
    place.out = place.folder / "no" / "folder"
    refused(place, "no: No such file or directory")


def test_the_disk_fills_up_meanwhile(place: Place) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, limits[1]))
    try:
        with pytest.raises(Failure, match=r"cannot make .*out: .*File too large"):
            place.run()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert place.left() == [".out.graft"]
    assert place.run().state == "changed"
    assert (place.left(), tensors_of(place.out / "mtp.safetensors")) == (["out"], expected())


class Stopped(BaseException):
    """As a kill: no handler of the code under test takes it for an error."""


STEPS = ("fsync", "link", "mkdir", "rename", "rmdir", "symlink", "unlink")


def test_stopped_before_each_step(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.target = checkpoint(place.folder / "home" / "indexed", [BODY], index=True)
    left = 0

    def stopping(step: Any) -> Any:
        def call(*args: Any, **more: Any) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                raise Stopped
            return step(*args, **more)

        return call

    for step in STEPS:
        monkeypatch.setattr(os, step, stopping(getattr(os, step)))
    stopped = 0
    while True:
        left = stopped
        try:
            graft.build(graft.Target(str(place.target)), find(str(place.donor), "", None), str(place.out))
            break
        except Stopped:
            stopped += 1
            left = 10**9
            # Half of it is never there under its name; what is there is taken as it is.
            if place.out.exists():
                assert place.run().state == "ok"
                shutil.rmtree(place.out)
    assert stopped > 15
    left = 10**9
    assert place.run().state == "ok"
    assert place.left() == ["out"]


def test_a_job_that_was_joined_had_another_donor(place: Place, node: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    other = donor(place.folder / "home" / "other")

    def joined(*_: Any) -> dict[str, Any]:
        graft.build(graft.Target(str(place.target)), find(str(other), "", None), str(place.out))
        return {"fetched": 1}

    monkeypatch.setattr(node, "job", joined)
    with pytest.raises(Failure, match=f"its draft is that of {other}"):
        place.run()
