"""Files and parts of files over HTTP: ranges, redirects, and on from where it stopped when the connection or the
server fails for a moment.

Runs on the node and on the controller: standard library only.
"""

from __future__ import annotations

from sparkops.node.patience import Missing, Momentary, Patience, Trouble, failures, words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

# Seconds without a byte until a connection counts as stalled.
STALL_S = 20.0
MOMENTARY = (408, 425, 429, 500, 502, 503, 504)
PIECE = 1 << 20
# Where a server knows no ranges, what lies before a part is read and dropped; more than this would take for ever.
MOST_DROPPED = 128 << 20


class Version:
    """A file as it was at the first request: its size in bytes and its ETag ("": none)."""

    def __init__(self, size: int, etag: str) -> None:
        self.size = size
        self.etag = etag

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Version) and (self.size, self.etag) == (other.size, other.etag)

    __hash__ = None  # type: ignore[assignment]


class Web:
    """Reads from one origin. token: sent to it, never to where it redirects, and never shown.

    stall: seconds without a byte until it is tried again. pause: about the first wait before that, in seconds.
    """

    def __init__(self, endpoint: str, token: str | None = None, stall: float = STALL_S, pause: float = 0.5) -> None:
        from urllib.parse import urlsplit

        try:
            parts = urlsplit(endpoint)
            known = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            known = False
        if not known:
            raise Trouble("it is no address of a hub", repr(endpoint), "--endpoint https://HOST, or $HF_ENDPOINT")
        self._token = token
        self._stall = stall
        self._pause = pause
        self._opener = opener()

    def whole(self, url: str, largest: int) -> bytes:
        """A small file: its bytes, of which at most `largest + 1` are taken. Raises Missing, Trouble."""

        def get() -> bytes:
            with self._open(url, {}) as answer:
                data: bytes = answer.read(largest + 1)
                said = answer.headers.get("Content-Length", "")
                if said.isdecimal() and len(data) < min(int(said), largest + 1):
                    raise Momentary(f"it ended after {len(data):,} of {said} bytes")
                return data

        return Patience(url, self._pause).call(get)

    def part(self, url: str, start: int, stop: int, version: Version | None = None) -> tuple[bytes, Version]:
        """Bytes start to stop (fewer where the file ends), and the file's version.

        With `version`, of that one: a file that has changed is Trouble. Raises Missing, Trouble.
        """
        reading = Part(self, url, start, stop, version)
        data = b"".join(reading.pieces())
        assert reading.version
        return data, reading.version

    def pieces(self, url: str, start: int, stop: int, version: Version | None = None) -> Iterator[bytes]:
        """The same in pieces of at most PIECE bytes, for what is too large for the memory."""
        return Part(self, url, start, stop, version).pieces()

    def _open(self, url: str, headers: dict[str, str]) -> Any:
        """The answer to a GET. Raises Missing, Momentary, Trouble."""
        import urllib.error
        import urllib.request

        request = urllib.request.Request(url, headers={"Accept-Encoding": "identity", **headers})
        if self._token:
            request.add_unredirected_header("Authorization", f"Bearer {self._token}")
        try:
            return self._opener.open(request, timeout=self._stall)
        except urllib.error.HTTPError as error:
            with error:
                raise self._refusal(url, error) from None

    def _refusal(self, url: str, error: Any) -> Exception:
        if error.code in MOMENTARY:
            after = error.headers.get("Retry-After", "")
            return Momentary(f"HTTP {error.code} {error.reason}", float(after) if after.isdecimal() else 0.0)
        if error.code == 416:
            # The range begins at or behind the end: only an empty file has none at 0.
            return Trouble("the file is empty or shorter than it was", url)
        if error.code in (401, 403):
            mine = "the token in HF_TOKEN has no right to it"
            hint = mine if self._token else "export HF_TOKEN: it is gated or private"
            return Trouble(f"HTTP {error.code}: no access (or no such model)", url, hint)
        if error.code in (404, 410):
            return Missing(url)
        return Trouble(f"HTTP {error.code} {error.reason}", url)


class Part:
    """Bytes start to stop of a file, over as many requests as it takes. `version` is known once a byte has come."""

    def __init__(self, web: Web, url: str, start: int, stop: int, version: Version | None) -> None:
        self.web = web
        self.url = url
        self.at = start
        self.stop = stop
        self.version = version

    def pieces(self) -> Iterator[bytes]:
        """In order, each once. Raises Missing, Trouble."""
        patience = Patience(self.url, self.web._pause)
        while True:
            answer = patience.call(self._ask)
            with answer:
                try:
                    while self.at < self._end() and (piece := self._read(answer)):
                        self.at += len(piece)
                        patience.renew(len(piece))
                        yield piece
                except Momentary as error:
                    patience.again(error)
                    continue
            if self.at >= self._end():
                return
            patience.again(Momentary(f"the connection ended {self._end() - self.at:,} bytes early"))

    def _end(self) -> int:
        assert self.version
        return min(self.stop, self.version.size)

    def _ask(self) -> Any:
        """An answer whose next byte is the one at `at`."""
        answer = self.web._open(self.url, {"Range": f"bytes={self.at}-{self.stop - 1}"})
        try:
            found = version_of(answer, self.at)
            if self.version and found != self.version:
                raise Trouble("the file changed while it was read", self.url, "run it again")
            self.version = found
            if answer.status == 200:
                self._drop(answer, min(self.at, found.size))
        except BaseException:
            answer.close()
            raise
        return answer

    def _drop(self, answer: Any, left: int) -> None:
        if left > MOST_DROPPED:
            raise Trouble("the server gives no parts of files (HTTP ranges)", self.url, "fetch the file whole first")
        while left and (piece := answer.read(min(left, PIECE))):
            left -= len(piece)
        if left:
            raise Momentary("the connection ended early")

    def _read(self, answer: Any) -> bytes:
        try:
            piece: bytes = answer.read(min(self._end() - self.at, PIECE))
        except failures() as error:
            raise Momentary(words(error)) from None
        return piece


def opener() -> Any:
    """urllib's opener, which redirects to http and https only; on the same origin the token goes along."""
    import urllib.request
    from urllib.parse import urlsplit

    def origin(url: str) -> tuple[str, str | None, int | None]:
        parts = urlsplit(url)
        return parts.scheme, parts.hostname, parts.port

    class Redirects(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
            if urlsplit(newurl).scheme not in ("http", "https"):
                raise Trouble(f"it redirects to {newurl[:200]!r}", req.full_url)
            made = super().redirect_request(req, fp, 307 if code == 308 else code, msg, headers, newurl)
            # A renamed model redirects there.
            if made and origin(newurl) == origin(req.full_url):
                for name, value in req.unredirected_hdrs.items():
                    if name == "Authorization":
                        made.add_unredirected_header(name, value)
            return made

        # Python 3.10 does not know 308.
        http_error_308 = urllib.request.HTTPRedirectHandler.http_error_302

    return urllib.request.build_opener(Redirects)


def version_of(answer: Any, start: int) -> Version:
    """Raises Trouble when the answer is to another question, or does not tell the size."""
    import re

    etag = answer.headers.get("ETag", "")
    if answer.status == 206:
        told = re.fullmatch(r"bytes (\d+)-(\d+)/(\d+)", answer.headers.get("Content-Range", ""))
        if not told or int(told[1]) != start:
            raise Trouble("it answers with another part than was asked for", answer.url)
        return Version(int(told[3]), etag)
    size = answer.headers.get("Content-Length", "")
    if not size.isdecimal():
        raise Trouble("it does not tell the file's size", answer.url)
    return Version(int(size), etag)
