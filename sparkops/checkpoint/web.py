"""Parts of files over HTTP: ranges, redirects, and again when the connection or the server fails for a moment."""

from __future__ import annotations

import http.client
import re
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from email.message import Message
from typing import IO, Any, TypeVar
from urllib.parse import urlsplit

from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from sparkops.errors import InputError

T = TypeVar("T")

# Seconds without a byte until a connection counts as stalled.
STALL_S = 20.0
ATTEMPTS = 5
# A server that asks for a longer pause is told to the user instead.
LONGEST_PAUSE_S = 60.0
MOMENTARY = {408, 425, 429, 500, 502, 503, 504}
CONTENT_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+)")


class Missing(Exception):
    """There is no such file."""


class Momentary(Exception):
    """It may work a moment later. pause: seconds that the server asked for."""

    def __init__(self, message: str, pause: float = 0.0) -> None:
        super().__init__(message)
        self.pause = pause


@dataclass(frozen=True)
class Version:
    """A file as it was at the first request: its size in bytes and its ETag ("": none)."""

    size: int
    etag: str


class Web:
    """Reads from one origin. token: sent to it, never to where it redirects, and never shown."""

    def __init__(self, endpoint: str, token: str | None = None, *, stall: float = STALL_S, pause: float = 0.5) -> None:
        if urlsplit(endpoint).scheme not in ("http", "https") or not urlsplit(endpoint).hostname:
            raise InputError(f"{endpoint!r} is no address of a hub", hint="--endpoint https://HOST, or $HF_ENDPOINT")
        self._token = token
        self._stall = stall
        self._pause = wait_random_exponential(multiplier=pause, max=10)
        self._opener = urllib.request.build_opener(_Redirects)

    def whole(self, url: str, largest: int) -> bytes:
        """A small file: its bytes, of which at most `largest + 1` are taken. Raises Missing, InputError."""

        def get() -> bytes:
            with self._open(url, {}) as answer:
                data: bytes = answer.read(largest + 1)
                said = answer.headers.get("Content-Length", "")
                if said.isdecimal() and len(data) < min(int(said), largest + 1):
                    raise Momentary(f"it ended after {len(data):,} of {said} bytes")
                return data

        return self._patiently(url, get)

    def part(self, url: str, start: int, stop: int, version: Version | None = None) -> tuple[bytes, Version]:
        """Bytes start to stop (fewer where the file ends), and the file's version.

        With `version`, of that one: a file that has changed is an InputError. Raises Missing, InputError.
        """

        def get() -> tuple[bytes, Version]:
            with self._open(url, {"Range": f"bytes={start}-{stop - 1}"}) as answer:
                found = _version(answer, start)
                if version and found != version:
                    raise InputError("the file changed while it was read", where=url, hint="run it again")
                wanted = max(min(stop, found.size) - start, 0)
                if answer.status == 200:
                    # No ranges here: what lies before is read and dropped.
                    _exactly(answer, start)
                return _exactly(answer, wanted), found

        return self._patiently(url, get)

    def _open(self, url: str, headers: dict[str, str]) -> Any:
        request = urllib.request.Request(url, headers={"Accept-Encoding": "identity", **headers})
        if self._token:
            request.add_unredirected_header("Authorization", f"Bearer {self._token}")
        try:
            return self._opener.open(request, timeout=self._stall)
        except urllib.error.HTTPError as error:
            with error:
                raise self._refusal(url, error) from None

    def _refusal(self, url: str, error: urllib.error.HTTPError) -> Exception:
        if error.code in MOMENTARY:
            after = error.headers.get("Retry-After", "")
            return Momentary(f"HTTP {error.code} {error.reason}", float(after) if after.isdecimal() else 0.0)
        if error.code == 416:
            # The range begins at or behind the end: only an empty file has none at 0.
            return InputError("the file is empty or shorter than it was", where=url)
        if error.code in (401, 403):
            hint = (
                "the token in HF_TOKEN has no right to it" if self._token else "export HF_TOKEN: it is gated or private"
            )
            return InputError(f"HTTP {error.code}: no access (or no such model)", where=url, hint=hint)
        if error.code in (404, 410):
            return Missing(url)
        return InputError(f"HTTP {error.code} {error.reason}", where=url)

    def _patiently(self, url: str, get: Callable[[], T]) -> T:
        """Calls `get` until it works, or ATTEMPTS times."""

        def wait(state: RetryCallState) -> float:
            error = state.outcome.exception() if state.outcome else None
            return max(self._pause(state), error.pause if isinstance(error, Momentary) else 0.0)

        def once() -> T:
            try:
                return get()
            except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
                raise Momentary(_words(error)) from None

        again = Retrying(
            retry=retry_if_exception_type(Momentary), stop=stop_after_attempt(ATTEMPTS), wait=wait, reraise=True
        )
        try:
            return again(once)
        except Momentary as error:
            raise InputError(f"{error} ({ATTEMPTS} times)", where=url, hint="is the hub reachable?") from None


class _Redirects(urllib.request.HTTPRedirectHandler):
    """To http and https only. On the same origin the token goes along: a renamed model redirects there."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> urllib.request.Request | None:
        """urllib's protocol."""
        if urlsplit(newurl).scheme not in ("http", "https"):
            raise InputError(f"it redirects to {newurl[:200]!r}", where=req.full_url)
        made = super().redirect_request(req, fp, 307 if code == 308 else code, msg, headers, newurl)  # type: ignore[arg-type]
        if made and _origin(newurl) == _origin(req.full_url):
            for name, value in req.unredirected_hdrs.items():
                if name == "Authorization":
                    made.add_unredirected_header(name, value)
        return made

    # Python 3.10 does not know 308.
    http_error_308 = urllib.request.HTTPRedirectHandler.http_error_302


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port


def _version(answer: Any, start: int) -> Version:
    """Raises Momentary when the answer is to another question, InputError when it does not tell the size."""
    etag = answer.headers.get("ETag", "")
    if answer.status == 206:
        told = CONTENT_RANGE.fullmatch(answer.headers.get("Content-Range", ""))
        if not told or int(told[1]) != start:
            raise InputError("it answers with another part than was asked for", where=answer.url)
        return Version(int(told[3]), etag)
    size = answer.headers.get("Content-Length", "")
    if not size.isdecimal():
        raise InputError("it does not tell the file's size", where=answer.url)
    return Version(int(size), etag)


def _exactly(answer: Any, count: int) -> bytes:
    """Raises Momentary when the connection ends before."""
    pieces = []
    left = count
    while left and (piece := answer.read(min(left, 1 << 20))):
        pieces.append(piece)
        left -= len(piece)
    if left:
        raise Momentary(f"the connection ended after {count - left:,} of {count:,} bytes")
    return b"".join(pieces)


def _words(error: BaseException) -> str:
    reason = getattr(error, "reason", None) or error
    return "nothing came for a while" if isinstance(reason, TimeoutError) else str(reason) or type(error).__name__
