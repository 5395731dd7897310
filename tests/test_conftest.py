"""A test that can't run is never silently left out."""

from __future__ import annotations

from typing import Any, cast

import pytest

from tests import conftest


class Marked:
    """A test that carries the marker `lab`."""

    def get_closest_marker(self, name: str) -> Any:
        return name == "lab"


ITEM = cast(pytest.Item, Marked())


@pytest.fixture(autouse=True)
def _no_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(conftest.NEEDS, "lab", lambda: "no root here")
    monkeypatch.delenv("SPARKOPS_REQUIRE_LAB", raising=False)


def test_what_can_not_run_is_skipped_with_its_reason() -> None:
    with pytest.raises(pytest.skip.Exception, match="no root here"):
        conftest.pytest_runtest_setup(ITEM)


def test_what_can_not_run_fails_where_every_test_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARKOPS_REQUIRE_LAB", "1")
    with pytest.raises(pytest.fail.Exception, match="no root here"):
        conftest.pytest_runtest_setup(ITEM)


def test_what_can_run_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(conftest.NEEDS, "lab", lambda: None)
    conftest.pytest_runtest_setup(ITEM)
