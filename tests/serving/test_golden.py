"""The serve lines of the shipped recipes, as files to read; a release writes the very same."""

from __future__ import annotations

import dataclasses
import shlex
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sparkops.playbook.template import Templar
from sparkops.recipes.load import Catalogue
from sparkops.recipes.schema import Recipe
from sparkops.recipes.variables import recipe_variables
from sparkops.serving.command import (
    Place,
    env_lines,
    environment,
    serve_args,
    serve_command,
    serve_environment,
    shell_line,
)

GOLDEN = Path(__file__).parent / "golden"
TEMPLATES = Path(__file__).parents[2] / "templates"
NAMES = Catalogue().names("recipes")
PLAIN = Place("/opt/sparkops/engines/vllm-0.24.0", "/home/spark/models/hf/CHECKPOINT", "127.0.0.1", 8000)
HOSTILE = Place("/opt/a b/$(id)", "/m/it's; whoami\n", "::1", 1)

# Another order than that of names, and values that need quotes.
ODD: dict[str, Any] = {
    "served_model_name": "a b; whoami",
    "args": ["--x", "-1", "--y=$HOME", "it's", "ä"],
    "env": {"b": "1", "A": 'say "ä"\n', "HF_HUB_OFFLINE": "0"},
}


def test_every_recipe_has_one() -> None:
    assert sorted(path.stem for path in GOLDEN.glob("*.txt")) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_serve_lines(name: str) -> None:
    recipe = Catalogue().recipe(name)
    place = dataclasses.replace(PLAIN, model_path=f"/home/spark/models/hf/{recipe.directory}")
    assert f"{shell_line(serve_command(recipe, place))}\n" == (GOLDEN / f"{name}.txt").read_text()


def rendered(template: str, recipe: Recipe, place: Place) -> str:
    names = {
        "service": "vllm",
        "recipe": recipe_variables(recipe),
        "serve_args": serve_args(recipe),
        "serve_env": environment(recipe),
        "engine_path": place.engine_path,
        "model_path": place.model_path,
        "serve_host": place.host,
        "serve_port": place.port,
    }
    return Templar().render_file(TEMPLATES / template, names)


@pytest.mark.parametrize("place", [PLAIN, HOSTILE], ids=["plain", "hostile"])
@pytest.mark.parametrize("odd", [{}, ODD], ids=["shipped", "odd"])
@pytest.mark.parametrize("name", NAMES)
def test_a_release_has_the_same(name: str, odd: dict[str, Any], place: Place) -> None:
    recipe = replace(Catalogue().recipe(name), **odd)
    argv = serve_command(recipe, place)
    script = rendered("run.j2", recipe, place)
    assert script.split("\n", 2)[2] == shell_line(argv) + "\n"
    assert shlex.split(script.split("\n", 2)[2].replace("\\\n", ""))[1:] == argv
    file = [line for line in rendered("env.j2", recipe, place).splitlines() if not line.startswith("#")]
    assert "\n".join(file) == "\n".join(env_lines(serve_environment(recipe, place)))


def test_a_home_folder_stays_one() -> None:
    place = Place("/e", "~/models/it's", "127.0.0.1", 8000)
    line = shell_line(serve_command(Catalogue().recipe("fp8"), place))
    assert line.startswith("exec /e/bin/vllm serve ~/'models/it'\"'\"'s' \\\n")


def test_the_engine_waits_as_long_as_the_recipe() -> None:
    recipe = Catalogue().recipe("fp8")
    assert serve_environment(recipe, PLAIN)["VLLM_ENGINE_READY_TIMEOUT_S"] == str(recipe.expect.ready_within)
    assert serve_environment(recipe, PLAIN)["PATH"].split(":")[:2] == [
        "/opt/sparkops/engines/vllm-0.24.0/bin",
        "/usr/local/cuda/bin",
    ]
