from __future__ import annotations

from pathlib import Path

import pytest

from sparkops.errors import InputError, Position
from sparkops.recipes.load import SHIPPED, Catalogue, Kind

SHIPPED_RECIPE = (SHIPPED / "recipes" / "fp8.yml").read_text()
ENGINE = "name: vllm\nversion: 0.24.0\npython: null\nexpect_cuda: null\nlocks: {x86_64: a.lock}\nprobe: [bin/vllm]\n"


def written(folder: Path, kind: Kind, name: str, text: str) -> Path:
    path = folder / kind / f"{name}.yml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("load", "kind"), [(Catalogue.recipe, "recipes"), (Catalogue.engine, "engines"), (Catalogue.patch, "patches")]
)
def test_everything_shipped_loads(load: object, kind: Kind) -> None:
    catalogue = Catalogue()
    assert catalogue.names(kind)
    for name in catalogue.names(kind):
        assert callable(load)
        load(catalogue, name)


def test_recipes_name_engines_and_patches_that_exist() -> None:
    catalogue = Catalogue()
    for name in catalogue.names("recipes"):
        recipe = catalogue.recipe(name)
        catalogue.engine(recipe.engine)
        for patch in recipe.patches:
            catalogue.patch(patch.name)


def test_only_bf16_has_a_patch() -> None:
    catalogue = Catalogue()
    patches = {name: catalogue.recipe(name).patch_names() for name in catalogue.names("recipes")}
    assert patches == {"bf16": ["qwen3_5-language-only-guard"], "fp8": [], "nvfp4": [], "nvfp4-mtp": []}


def test_unpublished_checkpoint_must_be_given() -> None:
    recipe = Catalogue().recipe("nvfp4")
    assert recipe.source("/data/export") == "/data/export"
    with pytest.raises(InputError, match="not published") as caught:
        recipe.source(None)
    assert "-e model_source=" in f"{caught.value.hint}"
    assert Catalogue().recipe("fp8").source(None) == "hf:Qwen/Qwen3.6-35B-A3B-FP8"


def test_the_first_folder_wins_and_brings_its_own_locks(tmp_path: Path) -> None:
    lab = tmp_path / "lab"
    written(lab, "engines", "vllm-0.24.0", ENGINE)
    (lab / "engines" / "a.lock").write_text("vllm==0.24.0 --hash=sha256:00\n")
    engine = Catalogue([tmp_path / "project", lab]).engine("vllm-0.24.0")
    assert engine.lock("x86_64") == str(lab / "engines" / "a.lock")
    with pytest.raises(InputError, match="no lock for riscv64"):
        engine.lock("riscv64")
    assert Catalogue().engine("vllm-0.24.0").lock("aarch64") == str(SHIPPED / "engines" / "vllm-0.24.0.lock")


def test_unknown_names_suggest_near_ones() -> None:
    with pytest.raises(InputError, match="no recipe 'bf61'") as caught:
        Catalogue().recipe("bf61")
    assert "bf16" in f"{caught.value.hint}"


@pytest.mark.parametrize("name", ["../recipes/fp8", "/etc/passwd", "", ".", "fp8\n", "fp8; whoami"])
def test_a_name_is_never_a_path(name: str) -> None:
    with pytest.raises(InputError, match="there is no recipe"):
        Catalogue().recipe(name)


@pytest.mark.parametrize(
    ("old", "new", "at", "message"),
    [
        ("port: 8000", "prot: 8000", "prot", "unknown field `prot`"),
        ("port: 8000", "port: http", "http", "expected `int`, got `str` in port"),
        ("port: 8000", "port: 70000", "70000", "<= 65535"),
        ("gpu_memory_utilization: 0.6", "gpu_memory_utilization: 60", "60", "<= 1.0"),
        ("args: []", "args: [--port=1]", "--port", "--port does not belong in args"),
        ("args: []", "args: [--kv_cache_memory_bytes, '1']", "--kv", "--kv-cache-memory-bytes does not belong"),
        ("args: []", "args: [--api-key, x]", "--api", "--api-key does not belong"),
        ("args: []", "args: [--x, 1]", "1", "expected `str`, got `int` in args[1]"),
        ("args: []", "env: {VLLM_API_KEY: x}", "x}", "an API key does not belong"),
        ("args: []", "patches: [{name: x, when: maybe}]", "maybe", "maybe"),
        ("  driver: 580", "  driver: yes", "yes", "got `bool`"),
        ("args: []", "env: {PATH: /x}", "/x}", "PATH does not belong"),
        (
            "model_source: hf:Qwen/Qwen3.6-35B-A3B-FP8",
            "model_source: Q/3.6",
            "Q/3.6",
            "no place that a checkpoint can come from",
        ),
        ("port: 8000", "draft: {target: nvfp4, donor: Qwen/x}", "Qwen/x}", "no place that a draft can come from"),
        ("port: 8000", "draft: {target: ../x, donor: hf:a/b}", "../x", "no checkpoint that can get a draft"),
        ("port: 8000", "draft: {target: nvfp4}", "{", "missing required field `donor`"),
        ("port: 8000", "host: a b", "a b", "regex"),
        ("port: 8000", "strict: maybe", "maybe", "expected `bool`"),
        ("port: 8000", "model_revision: 1.10", "1.10", "expected `str | null`"),
        ("port: 8000", "golden: {prompt: x}", "{", "missing required field `answer`"),
        ("  ready_within: 900", "  ready_within: 0", "0", ">= 1"),
        ("  backend: Using", "  beckend: Using", "beckend", "unknown field `beckend`"),
        ("name: fp8", "name: fp9", "fp9", "'fp9'"),
        ("engine: vllm-0.24.0", "engine: ../x", "../x", "regex"),
    ],
)
def test_errors_have_a_place(tmp_path: Path, old: str, new: str, at: str, message: str) -> None:
    assert old in SHIPPED_RECIPE
    text = SHIPPED_RECIPE.replace(old, new, 1)
    path = written(tmp_path, "recipes", "fp8", text)
    with pytest.raises(InputError) as caught:
        Catalogue([tmp_path]).recipe("fp8")
    assert message in caught.value.message
    before = text[: text.index(new) + new.index(at)]
    place = Position(str(path), before.count("\n") + 1, len(before) - before.rfind("\n"))
    assert caught.value.where == place


@pytest.mark.parametrize(
    ("old", "new", "near"),
    [
        ("port: 8000", "prot: 8000", "did you mean 'port'?"),
        ("  backend: Using", "  beckend: Using", "did you mean 'backend'?"),
        ("{metric: decode,", "{metrics: decode,", "did you mean 'metric'?"),
        ("  driver: 580", "  zzz: 580", "there are: driver, disk_gb, memory_gib"),
    ],
)
def test_a_near_field_is_named(tmp_path: Path, old: str, new: str, near: str) -> None:
    assert old in SHIPPED_RECIPE
    written(tmp_path, "recipes", "fp8", SHIPPED_RECIPE.replace(old, new, 1))
    with pytest.raises(InputError) as caught:
        Catalogue([tmp_path]).recipe("fp8")
    assert caught.value.hint == near


def test_a_recipe_need_not_know_its_checkpoint(tmp_path: Path) -> None:
    text = (
        "name: x\ndescription: d\nmodel: O/M\nmodel_source: hf:O/M\nserved_model_name: m\nengine: vllm-0.24.0\n"
        "max_model_len: 4096\ngpu_memory_utilization: 0.5\n"
    )
    written(tmp_path, "recipes", "x", text)
    recipe = Catalogue([tmp_path]).recipe("x")
    assert (recipe.host, recipe.port, recipe.strict, recipe.golden) == ("127.0.0.1", 8000, False, None)
    assert (recipe.requires.driver, recipe.expect.ready_within, recipe.checkpoint) == (580, 900, None)


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    written(tmp_path, "recipes", "x", "name: x\n")
    with pytest.raises(InputError, match="missing required field `description`"):
        Catalogue([tmp_path]).recipe("x")
    written(tmp_path, "recipes", "y", "")
    with pytest.raises(InputError, match="got `null`"):
        Catalogue([tmp_path]).recipe("y")
    written(tmp_path, "engines", "vllm-0.24.0", ENGINE)
    with pytest.raises(InputError, match=r"there is no lock .*a\.lock"):
        Catalogue([tmp_path]).engine("vllm-0.24.0")


@pytest.mark.parametrize("file", ["../a", "/a", "."])
def test_an_engine_s_files_lie_in_site_packages(tmp_path: Path, file: str) -> None:
    written(tmp_path, "engines", "vllm-0.24.0", f"{ENGINE}files: {{{file}: text}}\n")
    (tmp_path / "engines" / "a.lock").touch()
    with pytest.raises(InputError, match="is not a path inside site-packages"):
        Catalogue([tmp_path]).engine("vllm-0.24.0")


@pytest.mark.parametrize(
    ("file", "diff", "message"),
    [
        ("../../x.py", "@@ -1 +1 @@\n-a\n+b", "not a path inside site-packages"),
        ("/etc/x.py", "@@ -1 +1 @@\n-a\n+b", "not a path inside site-packages"),
        ("x.py", "@@ -1,2 +1 @@\n-a\n+b", "not a unified diff"),
    ],
)
def test_patches_are_checked(tmp_path: Path, file: str, diff: str, message: str) -> None:
    text = (
        f"name: p\ndescription: d\nlicense: MIT\nfile: {file}\n"
        f"versions: [{{engine: e, before: {'a' * 64}, after: {'b' * 64}}}]\n"
        "diff: |\n" + "".join(f"  {line}\n" for line in diff.split("\n"))
    )
    written(tmp_path, "patches", "p", text)
    with pytest.raises(InputError, match=message):
        Catalogue([tmp_path]).patch("p")
