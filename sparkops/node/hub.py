"""A model on a hub that speaks Hugging Face's protocol: its files' names, headers and bytes.

GET ENDPOINT/api/models/ORG/NAME/revision/REVISION   {"sha": commit, "siblings": [{"rfilename": name}, ...]}
GET ENDPOINT/ORG/NAME/resolve/COMMIT/FILE            the bytes, of which `Range` asks for a part
"""

from __future__ import annotations

from sparkops.node import checkpoint, safetensors
from sparkops.node.patience import Missing, Trouble
from sparkops.node.ranges import Version, Web
from sparkops.node.safetensors import BadFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PREFIX = "hf:"
ENDPOINT = "https://huggingface.co"
REPOSITORY = r"(?P<name>[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)(@(?P<revision>[\w./-]+))?"
LISTING = 64_000_000
# Most headers are smaller than this, and come with the first request.
FIRST = 100_000


def repository(source: str) -> tuple[str, str]:
    """(ORG/NAME, revision) of `hf:ORG/NAME[@REVISION]`. Raises Trouble."""
    import re

    found = re.fullmatch(REPOSITORY, source[len(PREFIX) :] if source.startswith(PREFIX) else source, re.ASCII)
    if not found:
        raise Trouble("it names no model on a hub", repr(source), "write hf:ORG/NAME or hf:ORG/NAME@REVISION")
    return found["name"], found["revision"] or "main"


class Model:
    """A model as it is at one commit. names: its files; None where the hub does not list them.

    name: ORG/NAME. revision: a branch, a tag or a commit. Everything raises Trouble for what fails.
    """

    def __init__(self, web: Web, endpoint: str, name: str, revision: str) -> None:
        from urllib.parse import quote

        self.web = web
        endpoint = endpoint.rstrip("/")
        self.commit, self.names = self._listing(
            f"{endpoint}/api/models/{name}/revision/{quote(revision, safe='')}", revision
        )
        self.base = f"{endpoint}/{name}/resolve/{quote(self.commit, safe='')}"
        self.path = f"{PREFIX}{name}@{self.commit}"

    def url(self, file: str) -> str:
        """Where a file's bytes are."""
        from urllib.parse import quote

        return f"{self.base}/{quote(file)}"

    def json(self, file: str, largest: int) -> dict[str, Any] | None:
        """A JSON object of at most `largest` bytes; None: there is no such file. Raises BadFile too."""
        if self.names is not None and file not in self.names:
            return None
        try:
            return checkpoint.json_object(self.web.whole(self.url(file), largest), file, largest)
        except Missing:
            return None

    def weights(self, index: dict[str, Any] | None) -> list[str]:
        """The *.safetensors files of the top folder, or where nothing lists them those that the index names."""
        if self.names is not None:
            return sorted(name for name in self.names if name.endswith(".safetensors") and "/" not in name)
        return ["model.safetensors"] if index is None else sorted(set(checkpoint.weight_map(index).values()))

    def header(self, file: str) -> tuple[dict[str, Any], int, Version] | None:
        """(header, its length, the file's version); None: there is no such file. Raises BadFile that names it too."""
        url = self.url(file)
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
            raise BadFile(f"{file}: {error}") from None
        return header, length, version

    def _listing(self, url: str, revision: str) -> tuple[str, list[str] | None]:
        """The commit that the revision is at, and the files in it."""
        try:
            listing = checkpoint.json_object(self.web.whole(url, LISTING), "the hub's listing", LISTING)
            names = [str(one["rfilename"]) for one in listing["siblings"]]
            return str(listing.get("sha") or revision), names
        except Missing:
            # A plain mirror has the files and no API.
            return revision, None
        except (BadFile, KeyError, TypeError):
            raise Trouble("its answer is no listing of a model's files", url) from None
