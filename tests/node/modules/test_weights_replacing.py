"""Which commit a checkpoint is of, what is shared with another, and what is kept when a file gives way to another."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from sparkops.node import incoming
from sparkops.node import weights_record as weights
from sparkops.node.api import Failure
from sparkops.node.modules import weights_pull, weights_take
from tests.node.grafting import BODY, checkpoint, donor
from tests.node.modules.test_weights import FILES, contents, digest, fill, flip, prune, put

A, B = "a" * 40, "b" * 40


def record(source: str, revision: str = "") -> weights.Record:
    return weights.Record("/m", source, True, {}, revision)


@pytest.mark.parametrize(
    ("known", "repo", "revision", "why", "warning"),
    [
        (f"hf:o/m@{A}", "o/m", "main", "", ""),
        (f"hf:o/m@{A}", "o/m", A, "", ""),
        (f"hf:o/m@{A}", "o/m", "aaaaaaa", "", ""),
        (f"hf:o/m@{A}", "", B, "", ""),
        (f"hf:o/m@{A}", "o/m", B, "it is commit aaaaaaaaaaaa, and bbbb", ""),
        (f"hf:o/m@{A}", "o/m", "v1", "", ""),
        (f"hf:o/m@{A}", "o/m", "v2", "and v2 is asked for", ""),
        (f"hf:o/other@{A}", "o/m", "main", "", "it is hf:o/other@"),
        ("draft of hf:o/d@c", "o/m", "main", "", "it is draft of"),
        ("", "o/m", B, "", "whether it is bbbb"),
        ("", "o/m", "main", "", ""),
    ],
)
def test_another_commit(known: str, repo: str, revision: str, why: str, warning: str) -> None:
    found = weights.another(record(known, "v1"), repo, revision)
    assert why in found[0] and bool(why) == bool(found[0])
    assert warning in found[1] and bool(warning) == bool(found[1])


def test_what_nobody_has_fetched_is_warned_of(apply: Any, node: Any) -> None:
    model = fill(Path(node.home, "models/model"))
    found = apply("weights_look", path=str(model), fabric_address="", repo="o/m", revision=A).result
    assert found["present"]
    assert found["warnings"] == [f"{model}: it was here before sparkops: whether it is {A} of o/m is not known"]


def stage(model: Path, name: str, data: bytes) -> str:
    """A file that has come, beside the others of the checkpoint as they are; its sha256."""
    folder = Path(incoming.prepare(str(model), [one for one in FILES if one != name]))
    (folder / name).write_bytes(data)
    return digest(data)


def settle(node: Any, model: Path, names: dict[str, str]) -> None:
    incoming.settle(str(model), list(names), names, "x", node)


def backups(model: Path) -> list[str]:
    return sorted(path.name.partition(".json")[0] for path in model.iterdir() if path.name.endswith("~"))


SUMS = {name: digest(data) for name, data in FILES.items()}


def test_an_edited_file_stays_as_a_backup(apply: Any, node: Any) -> None:
    model = Path(node.home, "models/model")
    put(apply, node, model)
    (model / "config.json").write_text('{"mine": 1}')
    put(apply, node, model)
    assert backups(model) == ["config"]
    assert [path.read_text() for path in model.glob("*~")] == ['{"mine": 1}']
    assert {name: (model / name).read_bytes() for name in FILES} == FILES
    # It is no file of the checkpoint.
    assert apply("weights_verify", path=str(model)).state == "ok"
    assert apply("weights_look", path=str(model), fabric_address="").result["files"] == len(FILES)


def test_what_sparkops_fetched_and_nobody_touched_goes(apply: Any, node: Any) -> None:
    model = Path(node.home, "models/model")
    put(apply, node, model)
    settle(node, model, {**SUMS, "config.json": stage(model, "config.json", b"{1}")})
    assert backups(model) == []
    assert (model / "config.json").read_bytes() == b"{1}"


def test_damaged_tensors_and_large_files_are_not_kept(apply: Any, node: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Path(node.home, "models/model")
    put(apply, node, model)
    flip(model / "a.safetensors", keep_times=False)
    flip(model / "config.json", keep_times=False)
    monkeypatch.setattr(incoming, "EDITABLE", 1)
    put(apply, node, model)
    assert list(model.rglob("*~")) == []


def test_what_was_there_before_is_kept(node: Any) -> None:
    model = fill(Path(node.home, "models/model"))
    settle(node, model, {**SUMS, "config.json": stage(model, "config.json", b"{1}")})
    assert [path.read_bytes() for path in model.glob("*~")] == [FILES["config.json"]]


def test_a_file_that_a_newer_commit_lacks_goes(apply: Any, node: Any) -> None:
    model = Path(node.home, "models/model")
    put(apply, node, model)
    (model / "notes.txt").write_text("mine")
    rest = {name: one for name, one in SUMS.items() if name != "a.safetensors"}
    stage(model, "a.safetensors", b"")
    settle(node, model, rest)
    assert contents(model).keys() == {*rest, "notes.txt"}


def test_links_to_another_checkpoint(node: Any) -> None:
    like = fill(Path(node.home, "models/like"))
    folder = Path(node.home, "stage")
    sums = {"other-name": SUMS["a.safetensors"], "sub/b.safetensors": SUMS["sub/b.safetensors"], "none": "0" * 64}
    assert weights_take.link(str(like), sums, str(folder), node) == {"other-name", "sub/b.safetensors"}
    assert (folder / "other-name").samefile(like / "a.safetensors")
    # One that is not what it was is no source.
    flip(like / "a.safetensors", keep_times=False)
    assert weights_take.link(str(like), sums, str(folder), node) == {"sub/b.safetensors"}
    assert weights_take.link(f"{like}-none", sums, str(folder), node) == set()


def test_nothing_is_appended_to_what_is_somebody_s(tmp_path: Path) -> None:
    theirs, staged = tmp_path / "theirs", tmp_path / "staged"
    theirs.write_bytes(b"begin")
    os.link(theirs, staged)
    weights_take.drop_what_is_no_beginning(str(staged), 100)
    assert not staged.exists()
    staged.write_bytes(b"begin")
    weights_take.drop_what_is_no_beginning(str(staged), 100)
    assert staged.exists()


def test_a_graft_has_a_record_whose_hashes_are_the_target_s(apply: Any, node: Any) -> None:
    target = checkpoint(Path(node.home, "target"), [BODY], index=True)
    known = weights.adopt(str(target), node)
    given = donor(Path(node.home, "donor"))
    args = {"target": str(target), "donor": str(given), "endpoint": "http://127.0.0.1:1", "token": ""}
    out = Path(node.home, "out")
    apply("mtp_graft", path=str(out), **args)
    made = weights.Record.of(node.state_dir, str(out))
    assert made and made.made and made.source == f"draft of {given}"
    assert apply("weights_verify", path=str(out)).state == "ok"
    shared = {name: one["sha256"] for name, one in known.wanted().items() if name in made.files}
    del shared["config.json"], shared["model.safetensors.index.json"]
    assert weights.hashes_of_links(str(out), made.files, known) == shared != {}
    # What was changed in place is another file.
    (out / "tokenizer.json").write_text("[]")
    assert "tokenizer.json" not in weights.hashes_of_links(str(out), made.files, known)


def test_where_an_unfinished_graft_is_counts(apply: Any, node: Any) -> None:
    out = Path(node.home, "models/out")
    tree = out.with_name(".out.graft") / "tree"
    tree.mkdir(parents=True)
    (tree / "mtp.safetensors").write_bytes(b"x" * 1234)
    assert apply("weights_look", path=str(out), fabric_address="").result["staged"] == 1234


def test_a_link_out_of_the_folder_is_named(apply: Any, node: Any) -> None:
    model = fill(Path(node.home, "models/model"))
    (model / "same.txt").symlink_to("config.json")
    assert apply("weights_look", path=str(model), fabric_address="").result["leads_out"] == ""
    (model / "a.safetensors").rename(model.parent / "blob")
    (model / "a.safetensors").symlink_to("../blob")
    found = apply("weights_look", path=str(model), fabric_address="").result
    assert (found["present"], found["leads_out"]) == (True, "a.safetensors")


def test_prune_takes_the_log_of_a_failed_transfer_along(apply: Any, node: Any) -> None:
    path = f"{node.home}/models/model"
    Path(weights.staging(path)).mkdir(parents=True)
    job = Path(node.state_dir, "jobs", weights.job_key(path))
    job.mkdir(parents=True)
    (job / "log").write_text("it failed")
    prune(apply, node)
    assert not job.exists()


class Lister:
    """A hub that lists one file."""

    endpoint = "http://hub"

    def __init__(self, name: str, size: Any) -> None:
        self.one = (name, size)

    def listing(self, *_: Any) -> dict[str, Any]:
        name, size = self.one
        return {"commit": A, "files": {name: {"size": size, "sha256": None, "blob": ""}}}


@pytest.mark.parametrize(
    ("name", "size", "said"),
    [("a", None, "with None bytes"), ("a", -1, "with -1 bytes"), ("a", "9", "with '9' bytes"), ("../a", 1, "no name")],
)
def test_a_listing_that_cannot_be(node: Any, tmp_path: Path, name: str, size: Any, said: str) -> None:
    args = weights_pull.Args(path="/m", repo="o/m", client="/c", revision="main", endpoint="http://hub")
    with pytest.raises(Failure, match=said):
        weights_pull.pin(args, Lister(name, size), None, str(tmp_path), node)
    assert not (tmp_path / weights_pull.PIN).exists()


def test_a_size_that_no_disk_has(tmp_path: Path) -> None:
    with pytest.raises(Failure, match=r"1000000000\.0 GB are to come"):
        incoming.check_space(str(tmp_path), 10**18)


@pytest.mark.parametrize(
    ("stall", "endpoint"), [(0, "http://hub"), (-1, "http://hub"), (1, "ftp://x"), (1, "nonsense")]
)
def test_what_no_hub_can_be_asked_with(stall: float, endpoint: str) -> None:
    with pytest.raises(Failure, match=r"hub_stall|hub_url"):
        weights_pull.refuse(weights_pull.Args(stall=stall, endpoint=endpoint))
