from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparkops.errors import InputError, Position
from sparkops.recipes.extends import merged
from sparkops.recipes.load import Catalogue, Loaded
from sparkops.recipes.show import origins, recipe_yaml


def load(folder: Path, name: str = "mine", **files: str) -> Loaded:
    (folder / "recipes").mkdir(exist_ok=True)
    for stem, text in files.items():
        (folder / "recipes" / f"{stem}.yml").write_text(text)
    catalogue = Catalogue([folder])
    return catalogue.load_recipe(catalogue.path("recipes", name))


def refused(folder: Path, name: str = "mine", **files: str) -> InputError:
    with pytest.raises(InputError) as caught:
        load(folder, name, **files)
    return caught.value


def test_its_own_values_win_and_the_rest_is_the_base_s(tmp_path: Path) -> None:
    base = Catalogue().recipe("bf16")
    text = "extends: bf16\nport: 8100\nargs: [--x]\nenv: {A: '1'}\nrequires: {disk_gb: 99}\nexpect: {benign: []}\n"
    mine = load(tmp_path, mine=text).recipe
    assert (mine.name, mine.port, mine.args, mine.env) == ("mine", 8100, ["--x"], {"A": "1"})
    assert (mine.requires.driver, mine.requires.disk_gb, mine.requires.memory_gib) == (580, 99, 80)
    assert (mine.expect.benign, mine.expect.backend) == ([], base.expect.backend)
    assert (mine.description, mine.model, mine.patches) == (base.description, base.model, base.patches)
    assert base == Catalogue().recipe("bf16")


def test_null_takes_a_value_away(tmp_path: Path) -> None:
    text = (
        "extends: bf16\nkv_cache_memory_bytes: null\npatches: null\nmodel_source: null\ncheckpoint: {visual: null}\n"
        "expect: {kv_cache_tokens: null, concurrency: null}\n"
    )
    mine = load(tmp_path, mine=text).recipe
    assert (mine.kv_cache_memory_bytes, mine.patches, mine.model_source) == (None, [], None)
    assert (mine.expect.kv_cache_tokens, mine.expect.concurrency, mine.expect.ready_within) == (None, None, 900)
    assert mine.checkpoint is not None
    assert (mine.checkpoint.visual, mine.checkpoint.tensors) == (None, 693)


def test_null_in_a_mapping_of_names(tmp_path: Path) -> None:
    base = "extends: fp8\nenv: {A: '1', B: '2'}\n"
    assert load(tmp_path, base=base, mine="extends: base\nenv: {A: null}\n").recipe.env == {"B": "2"}


def test_what_must_be_given_cannot_be_taken_away(tmp_path: Path) -> None:
    error = refused(tmp_path, mine="extends: fp8\nmodel: null\n")
    assert error.message == "expected `str`, got `null` in model"
    assert error.where == Position(str(tmp_path / "recipes" / "mine.yml"), 2, 8)


def test_chains(tmp_path: Path) -> None:
    found = load(tmp_path, mine="extends: mid\nport: 1\n", mid="extends: fp8\nport: 2\nhost: 10.0.0.1\n")
    assert list(found.extends) == ["mid", "fp8"]
    assert (found.recipe.name, found.recipe.port, found.recipe.host) == ("mine", 1, "10.0.0.1")


@pytest.mark.parametrize(
    ("files", "message", "place"),
    [
        ({"mine": "extends: fp9\n"}, "there is no recipe 'fp9'", "mine.yml:1:10"),
        ({"mine": "port: 1\nextends: [fp8]\n"}, "takes the name of one recipe, not ['fp8']", "mine.yml:2:10"),
        ({"mine": "extends: null\n"}, "takes the name of one recipe, not None", "mine.yml:1:10"),
        ({"mine": "extends: mine\n"}, "mine extends itself", "mine.yml:1:10"),
        ({"mine": "extends: b\n", "b": "extends: c\n", "c": "extends: b\n"}, "mine -> b -> c -> b", "c.yml:1:10"),
        ({"mine": "extends: b\n", "b": "extends: mine\n"}, "a circle: mine -> b -> mine", "b.yml:1:10"),
        ({"mine": "extends: fp8\nname: other\n"}, "what it describes is called 'other'", "mine.yml:2:7"),
        ({"mine": "extends: fp8\nexpect: {tokens: 1}\n"}, "unknown field `tokens`", "mine.yml:2:10"),
        ({"mine": "extends: b\nport: 1\n", "b": "extends: fp8\nhost: 1\n"}, "got `int` in host", "b.yml:2:7"),
        ({"mine": "extends: fp8\nargs: [--port, '1']\n"}, "--port does not belong in args", "mine.yml:2:8"),
    ],
)
def test_errors_stand_in_the_file_that_is_wrong(
    tmp_path: Path, files: dict[str, str], message: str, place: str
) -> None:
    error = refused(tmp_path, **files)
    assert message in error.message
    assert str(error.where) == f"{tmp_path}/recipes/{place}"


def test_where_each_value_comes_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = load(tmp_path, mine="extends: fp8\nport: 8100\nexpect: {log: [a]}\n")
    where = origins(found)
    assert where["port"] == "recipes/mine.yml:2:7"
    assert where["expect.log"] == "recipes/mine.yml:3:15"
    assert where["expect.backend"] == "shipped fp8.yml:24:12"
    assert where["host"] == "default"
    lines = recipe_yaml(found).splitlines()
    assert "port: 8100  # recipes/mine.yml:2:7" in lines
    assert "  log:  # recipes/mine.yml:3:15" in lines


@pytest.mark.parametrize("name", [*Catalogue().names("recipes"), "mine"])
def test_the_whole_recipe_is_a_recipe(tmp_path: Path, name: str) -> None:
    odd = "extends: nvfp4-mtp\ndescription: \"two\\nlines # no comment: 'é'\"\nenv: {A: 'yes', B: '0644', C: ''}\n"
    found = load(tmp_path, name, mine=odd)
    again = tmp_path / "again" / "recipes" / f"{name}.yml"
    again.parent.mkdir(parents=True)
    again.write_text(recipe_yaml(found))
    assert Catalogue().load_recipe(again).recipe == found.recipe
    assert ("#" in recipe_yaml(found).replace("# no comment", "")) == (name == "mine")


TREES = st.recursive(
    st.none() | st.integers() | st.text(max_size=3) | st.lists(st.integers(), max_size=2),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
MAPPINGS = st.dictionaries(st.sampled_from("abc"), TREES, max_size=3)


def without_nulls(value: object) -> object:
    if not isinstance(value, dict):
        return value
    return {key: without_nulls(item) for key, item in value.items() if item is not None}


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(MAPPINGS, MAPPINGS)
def test_merging(base: dict[str, object], over: dict[str, object]) -> None:
    result = merged(base, over, None)
    assert merged(result, over, None) == result
    assert merged({}, over, None) == without_nulls(over)
    assert merged(base, {}, None) == base
    for key, value in over.items():
        if value is None:
            assert key not in result
        elif not isinstance(value, dict):
            assert result[key] == value
    assert {key: result[key] for key in base if key not in over} == {k: v for k, v in base.items() if k not in over}


def test_yaml_of_the_shipped_ones_has_no_surprise() -> None:
    for name in Catalogue().names("recipes"):
        catalogue = Catalogue()
        found = catalogue.load_recipe(catalogue.path("recipes", name))
        assert yaml.safe_load(recipe_yaml(found))["name"] == name
