from __future__ import annotations

from pathlib import Path

import pytest

from sparkops.errors import LabError
from sparkops.lab import uv
from sparkops.recipes.load import Catalogue


@pytest.mark.network
def test_the_wheel_is_the_pinned_one_and_is_fetched_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = uv.wheel(tmp_path)
    version = Catalogue().tool("uv").version
    assert first.name.startswith(f"uv-{version}-")
    monkeypatch.setattr("sys.executable", "/nonexistent")
    assert uv.wheel(tmp_path) == first
    assert [path.name for path in tmp_path.iterdir()] == [f"uv-{version}"]


def test_what_cannot_be_fetched_is_an_error_that_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.executable", "/bin/false")
    with pytest.raises(LabError, match="could not fetch uv"):
        uv.wheel(tmp_path)
    assert not list(tmp_path.iterdir())
