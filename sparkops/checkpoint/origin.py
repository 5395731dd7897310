"""Where a recipe's weights come from: a hub, a path on the nodes, or a graft that the nodes make. Pure."""

from __future__ import annotations

from sparkops.checkpoint.sources import Repository
from sparkops.errors import InputError
from sparkops.node.hub import PREFIX
from sparkops.recipes.checks import SOURCE
from sparkops.recipes.load import Catalogue
from sparkops.recipes.schema import Recipe

TARGET = "draft_target"


def weights_variables(catalogue: Catalogue, recipe: Recipe, given: str | None, target: str | None) -> dict[str, str]:
    """What deploy's playbook sees: model_source, weights_repo, weights_revision; and of a checkpoint that is grafted
    draft_donor, draft_target and draft_folder, where the weights_... are the target's ("" otherwise).

    given, target: the user's model_source and draft_target. Raises InputError.
    """
    for name, one in (("model_source", given), (TARGET, target)):
        if one and not SOURCE.fullmatch(one):
            hint = "hf:ORG/NAME[@REVISION], or an absolute path on the nodes"
            raise InputError(f"{name}={one[:120]!r} is no place that a checkpoint can come from", hint=hint)
    if recipe.draft is None or recipe.model_source or given:
        if target:
            why = "model_source names the finished one" if recipe.draft else f"{recipe.name} makes none by a graft"
            raise InputError(f"{TARGET} is the checkpoint that gets a draft, and {why}", hint="leave one of them out")
        source = recipe.source(given)
        pinned = recipe.model_revision if source == recipe.model_source else None
        return {"model_source": source, **on_hub(source, pinned), **grafted("", "", "")}
    return {"model_source": "", **_target(catalogue, recipe, target)}


def on_hub(source: str, revision: str | None = None) -> dict[str, str]:
    """The repository and revision that a source names, "" where it is on no hub. Raises InputError."""
    if not source.startswith(PREFIX):
        return {"weights_repo": "", "weights_revision": ""}
    found = Repository.of(source)
    return {"weights_repo": found.name, "weights_revision": revision or found.revision}


def grafted(donor: str, target: str, folder: str) -> dict[str, str]:
    """The variables of a graft."""
    return {"draft_donor": donor, TARGET: target, "draft_folder": folder}


def target_folder(catalogue: Catalogue, recipe: Recipe) -> str:
    """The folder in models_dir of the checkpoint that gets a draft; "": it has none there."""
    if recipe.draft is None:
        return ""
    named = recipe.draft.target
    if SOURCE.fullmatch(named):
        return Repository.of(named).name.rpartition("/")[2] if named.startswith(PREFIX) else ""
    return catalogue.recipe(named).directory


def _target(catalogue: Catalogue, recipe: Recipe, given: str | None) -> dict[str, str]:
    """Of the recipe's `draft`; where nothing says its source it is looked for in models_dir."""
    assert recipe.draft
    named, revision = recipe.draft.target, None
    source = given or named
    if not given and not SOURCE.fullmatch(named):
        of = catalogue.recipe(named)
        source, revision = of.model_source or "", of.model_revision
    folder = target_folder(catalogue, recipe)
    if source.startswith(PREFIX) and not folder:
        folder = Repository.of(source).name.rpartition("/")[2]
    return {**on_hub(source, revision), **grafted(recipe.draft.donor, source, folder)}
