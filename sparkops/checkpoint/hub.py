"""A checkpoint's headers from a hub: some kilobytes of a file of gigabytes."""

from __future__ import annotations

from typing import Any

from sparkops.checkpoint.sources import Repository
from sparkops.errors import InputError
from sparkops.node import checkpoint, safetensors
from sparkops.node.hub import Model
from sparkops.node.patience import Trouble
from sparkops.node.ranges import Web
from sparkops.node.safetensors import BadFile


class Hub:
    """endpoint: http(s)://HOST[/PATH]. token: sent to that host alone. Raises InputError for anything that fails."""

    def __init__(self, endpoint: str, token: str | None = None) -> None:
        self.endpoint = endpoint
        try:
            self.web = Web(endpoint, token)
        except Trouble as error:
            raise wrong(error) from None

    def survey(self, repository: Repository) -> dict[str, Any]:
        """The document of sparkops.node.checkpoint."""
        where = str(repository)
        try:
            model = Model(self.web, self.endpoint, repository.name, repository.revision)
            where = model.path
            return _survey(model)
        except Trouble as error:
            raise wrong(error) from None
        except BadFile as error:
            raise InputError(f"no whole checkpoint: {error}", where=where) from None


def wrong(error: Trouble) -> InputError:
    """The error for a user of this machine."""
    return InputError(error.message, where=error.where, hint=error.hint or None)


def _survey(model: Model) -> dict[str, Any]:
    index = model.json(checkpoint.INDEX, safetensors.LARGEST_HEADER)
    config = model.json(checkpoint.CONFIG, checkpoint.LARGEST_CONFIG)
    weights = model.weights(index)
    if not weights:
        raise BadFile("there is no *.safetensors file in it")
    found = {name: header for name in weights if (header := model.header(name)) is not None}
    if not found:
        raise BadFile(f"there is no {weights[0]} in it")
    sizes = {name: (header, length, version.size) for name, (header, length, version) in found.items()}
    return checkpoint.document(model.path, sizes, config, index)
