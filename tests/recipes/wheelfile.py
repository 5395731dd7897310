"""One file out of a wheel of the package index, by HTTP range requests: a few hundred KB of a 300 MB wheel."""

from __future__ import annotations

import io
import os
import urllib.request
import zipfile

from sparkops.node import simple_index

INDEX = os.environ.get("PIP_INDEX_URL", "https://pypi.org/simple")


class Remote(io.RawIOBase):
    """A file behind a URL, read in ranges."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.at = 0
        with urllib.request.urlopen(urllib.request.Request(url, method="HEAD"), timeout=60) as answer:
            self.size = int(answer.headers["Content-Length"])

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.at

    def seek(self, offset: int, whence: int = 0) -> int:
        self.at = offset + (0, self.at, self.size)[whence]
        return self.at

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        last = min(self.at + len(buffer), self.size) - 1
        if last < self.at:
            return 0
        request = urllib.request.Request(self.url, headers={"Range": f"bytes={self.at}-{last}"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            assert answer.status == 206, "the index does not answer range requests"
            data: bytes = answer.read()
        buffer[: len(data)] = data
        self.at += len(data)
        return len(data)


def from_wheel(package: str, wheel: str, member: str) -> bytes:
    """The bytes of `member` in the index's `wheel`."""
    remote = Remote(simple_index.find(INDEX, package, wheel))
    with zipfile.ZipFile(io.BufferedReader(remote, 1 << 18)) as archive:
        return archive.read(member)
