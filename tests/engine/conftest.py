"""One node with the real engine for all tests of this folder, and the report of a run in which all went well."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.node import ENGINE, EngineNode, engine_node
from tests.engine.report import Report

REPORT = Report()


@pytest.fixture(scope="session")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineNode]:
    with engine_node(tmp_path_factory.mktemp("engine"), REPORT) as node:
        yield node


@pytest.fixture(scope="session")
def serving(node: EngineNode) -> EngineNode:
    """It serves tiny, stock and with --language-model-only: what everything else starts from or goes back to."""
    with node.report.case("deploy tiny", "serves"):
        run = node.sparkops("deploy", "tiny", "spark-1")
    assert run.count("failed") == {"spark-1": 0}
    assert node.token()
    return node


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Each run writes the report: the cases that ended as they should, and how many tests did not."""
    asked = [Path(arg).resolve() for arg in session.config.args]
    if REPORT.cases:
        whole = asked == [Path(__file__).parent] and not session.config.option.keyword and exitstatus == 0
        REPORT.write(ENGINE.rpartition("-")[2], whole, session.testsfailed)
