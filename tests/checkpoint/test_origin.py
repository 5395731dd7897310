"""Where a recipe's weights come from, as the playbook is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkops.checkpoint.origin import target_folder, weights_variables
from sparkops.errors import InputError
from sparkops.recipes.load import Catalogue

DONOR = "hf:Qwen/Qwen3.6-35B-A3B"
NVFP4 = "Qwen-AgentWorld-35B-A3B-NVFP4"


def told(recipe: str, given: str | None = None, target: str | None = None, folder: Path | None = None) -> list[str]:
    """[model_source, repo, revision, donor, target, folder]."""
    catalogue = Catalogue([folder] if folder else [])
    found = weights_variables(catalogue, catalogue.recipe(recipe), given, target)
    names = ("model_source", "weights_repo", "weights_revision", "draft_donor", "draft_target", "draft_folder")
    assert set(found) == set(names)
    return [found[name] for name in names]


def test_a_recipe_without_a_draft() -> None:
    source = "hf:Qwen/Qwen3.6-35B-A3B-FP8"
    assert told("fp8") == [source, "Qwen/Qwen3.6-35B-A3B-FP8", "main", "", "", ""]
    assert told("fp8", "hf:a/b@v2") == ["hf:a/b@v2", "a/b", "v2", "", "", ""]
    assert told("nvfp4", "/there") == ["/there", "", "", "", "", ""]


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (None, ["", "", "", DONOR, "", NVFP4]),
        ("hf:me/mine@v1", ["", "me/mine", "v1", DONOR, "hf:me/mine@v1", NVFP4]),
        ("~/there", ["", "", "", DONOR, "~/there", NVFP4]),
    ],
)
def test_a_graft(target: str | None, expected: list[str]) -> None:
    assert told("nvfp4-mtp", target=target) == expected


def test_a_finished_one_is_taken_as_it_is() -> None:
    assert told("nvfp4-mtp", "/done") == ["/done", "", "", "", "", ""]
    assert told("nvfp4-mtp", "hf:me/done") == ["hf:me/done", "me/done", "main", "", "", ""]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("draft: {target: hf:a/b@v1}", ["", "a/b", "v1", DONOR, "hf:a/b@v1", "b"]),
        ("draft: {target: /t, donor: ~/d}", ["", "", "", "~/d", "/t", ""]),
        ("draft: {target: fp8}", ["", *["Qwen/Qwen3.6-35B-A3B-FP8", "main"], DONOR]),
        ("model_source: hf:a/done", ["hf:a/done", "a/done", "main", "", "", ""]),
    ],
)
def test_the_target_of_a_recipe(tmp_path: Path, text: str, expected: list[str]) -> None:
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes/mine.yml").write_text(f"extends: nvfp4-mtp\n{text}\n")
    assert told("mine", folder=tmp_path)[: len(expected)] == expected


@pytest.mark.parametrize(
    ("recipe", "given", "target", "message"),
    [
        ("nvfp4", None, None, "has no model_source"),
        ("fp8", None, "hf:a/b", "fp8 makes none by a graft"),
        ("nvfp4-mtp", "/done", "hf:a/b", "model_source names the finished one"),
        ("nvfp4-mtp", None, "a/b", "draft_target='a/b' is no place"),
        ("fp8", "Qwen/x", None, "model_source='Qwen/x' is no place"),
        ("fp8", "hf:Qwen", None, "no place"),
        ("fp8", "/a\nb", None, "no place"),
    ],
)
def test_what_is_no_place(recipe: str, given: str | None, target: str | None, message: str) -> None:
    with pytest.raises(InputError, match=message):
        told(recipe, given, target)


def test_whose_files_are_shared() -> None:
    catalogue = Catalogue()
    assert target_folder(catalogue, catalogue.recipe("nvfp4-mtp")) == NVFP4
    assert target_folder(catalogue, catalogue.recipe("fp8")) == ""
