"""A simple package index (PEP 503 HTML, PEP 691 JSON): where a file is, and its bytes.

Credentials in a URL are never shown.
"""

from __future__ import annotations

from sparkops.node.api import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

ACCEPT = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"
TIMEOUT = 60.0  # seconds without a byte
PIECE = 1 << 18
PAGE_LIMIT = 64 << 20


def redacted(url: str) -> str:
    """The URL with user and password as `****`."""
    return url.replace(_userinfo(url), "****@", 1) if _userinfo(url) else url


def secrets(url: str) -> list[str]:
    """What of a URL must not be printed: its credentials, together and the password alone, also unquoted."""
    from urllib.parse import unquote

    login = _userinfo(url)[:-1]
    password = login.partition(":")[2]
    return sorted({login, password, unquote(login), unquote(password)} - {""}, key=len, reverse=True)


def find(index_url: str, package: str, filename: str) -> str:
    """The URL of a file of a package, with the index's credentials if it is on the same host. Raises Failure."""
    from urllib.parse import urljoin, urlsplit

    page = f"{index_url.rstrip('/')}/{package}/"
    if page.startswith("file:"):
        page += "index.html"
    pieces: list[bytes] = []
    kind, at = fetch(page, pieces.append, limit=PAGE_LIMIT)
    for name, url in _files(b"".join(pieces).decode("utf-8", "replace"), kind):
        if name == filename:
            full = urljoin(at, url).partition("#")[0]
            login = _userinfo(index_url)
            if urlsplit(full).netloc == urlsplit(index_url).netloc[len(login) :]:
                full = full.replace("://", f"://{login}", 1)
            return full
    raise Failure(f"{redacted(page)} has no {filename}; is index_url a simple index that holds {package}?")


def fetch(
    url: str,
    take: Callable[[bytes], Any],
    progress: Callable[[int, int | None], None] | None = None,
    limit: int | None = None,
) -> tuple[str, str]:
    """GET a URL and hand its pieces to `take`; returns its content type and final URL.

    `progress` gets bytes so far and in all (None: not told). Raises Failure that names the URL.
    """
    from base64 import b64encode
    from http.client import HTTPException
    from urllib.parse import unquote
    from urllib.request import Request, urlopen

    shown, login = redacted(url), _userinfo(url)
    try:
        request = Request(url.replace(login, "", 1), headers={"Accept": ACCEPT})
        if login:
            token = b64encode(unquote(login[:-1]).encode()).decode()
            # Unredirected: another host must not see it.
            request.add_unredirected_header("Authorization", f"Basic {token}")
        with urlopen(request, timeout=TIMEOUT) as answer:
            total = answer.headers.get("Content-Length")
            size = int(total) if total and total.isdigit() else None
            done = 0
            while piece := answer.read(PIECE):
                done += len(piece)
                if limit is not None and done > limit:
                    raise Failure(f"{shown} is larger than {limit} bytes, which no index page is")
                take(piece)
                if progress:
                    progress(done, size)
            if size is not None and done != size:
                raise Failure(f"{shown} ended after {done} of {size} bytes; run again")
            return answer.headers.get("Content-Type") or "", answer.geturl()
    except (OSError, ValueError, HTTPException) as error:
        raise Failure(f"cannot fetch {shown}: {error}", url=shown) from None


def _files(text: str, kind: str) -> list[tuple[str, str]]:
    """(file name, URL) of each file on a project page."""
    if "json" in kind:
        import json

        try:
            return [(str(file["filename"]), str(file["url"])) for file in json.loads(text)["files"]]
        except (ValueError, KeyError, TypeError):
            raise Failure("the index's answer is not the JSON of a simple index; check index_url") from None
    from html.parser import HTMLParser
    from urllib.parse import unquote, urlsplit

    links: list[str] = []

    class Links(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            links.extend(value for name, value in attrs if tag == "a" and name == "href" and value)

    Links().feed(text)
    return [(unquote(urlsplit(link).path).rpartition("/")[2], link) for link in links]


def _userinfo(url: str) -> str:
    """`user:password@` of a URL as it stands there, "" when there is none."""
    authority = url.partition("://")[2].partition("/")[0]
    login, at, _ = authority.rpartition("@")
    return login + at
