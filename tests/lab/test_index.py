from __future__ import annotations

import hashlib
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkops.lab.index import Index, answer, normalized


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    folder = tmp_path / "wheels"
    folder.mkdir()
    for name in (
        "Some_Thing-1.0-py3-none-any.whl",
        "some_thing-2.0+cu130-py3-none-any.whl",
        "other-1-py3-none-any.whl",
    ):
        (folder / name).write_bytes(name.encode())
    (tmp_path / "secret").write_text("secret")
    return folder


@pytest.fixture
def index(wheels: Path) -> Iterator[Index]:
    with Index(("127.0.0.1", 0), wheels) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()


def get(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=5) as response:
        return bytes(response.read())


def test_names_are_normalized_as_pep_503_says() -> None:
    assert normalized("Some._-Thing") == "some-thing"


def test_the_root_lists_projects_once(index: Index) -> None:
    page = get(index.url).decode()
    assert page.count('href="/simple/some-thing/"') == 1
    assert 'href="/simple/other/"' in page


def test_a_project_lists_its_wheels_with_their_hashes(index: Index) -> None:
    page = get(index.url + "some-thing/").decode()
    digest = hashlib.sha256(b"Some_Thing-1.0-py3-none-any.whl").hexdigest()
    assert f'href="/wheels/Some_Thing-1.0-py3-none-any.whl#sha256={digest}"' in page
    assert "some_thing-2.0%2Bcu130-py3-none-any.whl#sha256=" in page
    assert "other" not in page


def test_wheels_are_served(index: Index) -> None:
    root = index.url.removesuffix("simple/")
    assert get(root + "wheels/some_thing-2.0%2Bcu130-py3-none-any.whl") == b"some_thing-2.0+cu130-py3-none-any.whl"


def test_head_has_the_length_and_no_body(index: Index) -> None:
    request = urllib.request.Request(index.url + "other/", method="HEAD")
    with urllib.request.urlopen(request, timeout=5) as response:
        assert int(response.headers["Content-Length"]) > 0
        assert response.read() == b""


def test_what_is_not_there_is_404(index: Index) -> None:
    for path in ("nothing/", "../wheels/", "other/x/y"):
        with pytest.raises(urllib.error.HTTPError, match="404"):
            get(index.url + path)


@pytest.mark.parametrize(
    "path",
    [
        "/wheels/../secret",
        "/wheels/%2e%2e/secret",
        "/wheels/..%2fsecret",
        "/wheels/%2Fetc%2Fpasswd",
        "/wheels",
        "/",
        "/debs/x",
    ],
)
def test_nothing_else_is_served(wheels: Path, path: str) -> None:
    assert answer(path, wheels, None) is None


def test_debs_are_found_by_the_names_that_apt_uses(wheels: Path, tmp_path: Path) -> None:
    debs = tmp_path / "debs"
    debs.mkdir()
    (debs / "Packages").write_text("")
    (debs / "a_1%3a2.deb").write_text("")
    assert answer("/debs/./Packages", wheels, debs) == debs / "Packages"
    assert answer("/debs/./a_1%253a2.deb", wheels, debs) == debs / "a_1%3a2.deb"


def test_a_wheel_that_is_replaced_gets_a_new_hash(wheels: Path) -> None:
    before = answer("/simple/other/", wheels, None)
    (wheels / "other-1-py3-none-any.whl").write_bytes(b"longer than it was before")
    assert answer("/simple/other/", wheels, None) != before
