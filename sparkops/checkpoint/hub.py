"""A checkpoint's headers from a hub that speaks Hugging Face's protocol: some kilobytes of a file of gigabytes.

GET ENDPOINT/api/models/ORG/NAME/revision/REVISION   {"sha": commit, "siblings": [{"rfilename": name}, ...]}
GET ENDPOINT/ORG/NAME/resolve/COMMIT/FILE            the bytes, of which `Range` asks for a part
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from sparkops.checkpoint.sources import HUB, Repository
from sparkops.checkpoint.web import Missing, Web
from sparkops.errors import InputError
from sparkops.node import checkpoint, safetensors
from sparkops.node.safetensors import BadFile

LISTING = 64_000_000
# Most headers are smaller than this, and come with the first request.
FIRST = 100_000


class Hub:
    """endpoint: http(s)://HOST[/PATH]. token: sent to that host alone. Raises InputError for anything that fails."""

    def __init__(self, endpoint: str, token: str | None = None) -> None:
        self.endpoint = endpoint.rstrip("/")
        self.web = Web(self.endpoint, token)

    def survey(self, repository: Repository) -> dict[str, Any]:
        """The document of sparkops.node.checkpoint."""
        commit, names = self._listing(repository)
        base = f"{self.endpoint}/{repository.name}/resolve/{quote(commit, safe='')}"
        path = f"{HUB}{repository.name}@{commit}"
        try:
            index = self._json(base, checkpoint.INDEX, safetensors.LARGEST_HEADER, names)
            config = self._json(base, checkpoint.CONFIG, checkpoint.LARGEST_CONFIG, names)
            weights = _weights(names, index)
            if not weights:
                raise BadFile("there is no *.safetensors file in it")
            found = {name: header for name in weights if (header := self._header(base, name)) is not None}
            if not found:
                raise BadFile(f"there is no {weights[0]} in it")
            return checkpoint.document(path, found, config, index)
        except BadFile as error:
            raise InputError(f"no whole checkpoint: {error}", where=path) from None

    def _listing(self, repository: Repository) -> tuple[str, list[str] | None]:
        """The commit that the revision is at, and the files in it; None where the hub does not list them."""
        url = f"{self.endpoint}/api/models/{repository.name}/revision/{quote(repository.revision, safe='')}"
        try:
            listing = checkpoint.json_object(self.web.whole(url, LISTING), "the hub's listing", LISTING)
            names = [str(one["rfilename"]) for one in listing["siblings"]]
            return str(listing.get("sha") or repository.revision), names
        except Missing:
            # A plain mirror has the files and no API.
            return repository.revision, None
        except (BadFile, KeyError, TypeError):
            raise InputError("its answer is no listing of a model's files", where=url) from None

    def _json(self, base: str, name: str, largest: int, names: list[str] | None) -> dict[str, Any] | None:
        if names is not None and name not in names:
            return None
        try:
            return checkpoint.json_object(self.web.whole(f"{base}/{name}", largest), name, largest)
        except Missing:
            return None

    def _header(self, base: str, name: str) -> tuple[dict[str, Any], int, int] | None:
        """(header, its length, the file's size); None: there is no such file. Raises BadFile that names it."""
        url = f"{base}/{quote(name)}"
        try:
            first, version = self.web.part(url, 0, FIRST)
            length = safetensors.header_length(first[:8], version.size)
            raw = first[8 : 8 + length]
            if len(raw) < length:
                rest, _ = self.web.part(url, 8 + len(raw), 8 + length, version)
                raw += rest
            header = safetensors.parse(raw)
            safetensors.check_size(header, length, version.size)
        except Missing:
            return None
        except BadFile as error:
            raise BadFile(f"{name}: {error}") from None
        return header, length, version.size


def _weights(names: list[str] | None, index: dict[str, Any] | None) -> list[str]:
    """The files to look at: those of the top folder, or where nothing lists them those that the index names."""
    if names is not None:
        return sorted(name for name in names if name.endswith(".safetensors") and "/" not in name)
    return sorted(set(checkpoint.weight_map(index).values())) if index else ["model.safetensors"]
