"""A service whose first release never gets healthy: there is nothing to go back to."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.nodes import MODEL, Nodes, lab

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300)]
UNIT = "sparkops-vllm.service"
# Too small a pool for the context: the engine does not start.
BAD = "name: bad\nextends: fp8\nkv_cache_memory_bytes: 4294967296\n"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    with lab(tmp_path_factory.mktemp("first") / "lab", 1) as nodes:
        (nodes.dir / "recipes").mkdir(exist_ok=True)
        (nodes.dir / "recipes/bad.yml").write_text(BAD)
        nodes.sparkops("provision", "spark-1", "--recipe", "fp8")
        yield nodes


def unit(nodes: Nodes) -> list[str]:
    return nodes.on("spark-1", "systemctl", "show", "-P", "ActiveState", "-P", "UnitFileState", UNIT).split()


def test_it_is_stopped_and_stays_so(node: Nodes) -> None:
    for _ in range(2):
        # The second run finds its release written, and starts it all the same.
        message = node.sparkops("deploy", "bad", "spark-1", rc=1).failure("spark-1")["msg"]
        assert "5.08 GiB" in message, message
        assert "the service is stopped" in message, message
        assert "active" not in unit(node)
        assert "disabled" in unit(node)


def test_what_fails_before_the_release_is_written_is_named(node: Nodes) -> None:
    node.on("spark-1", "mv", "/opt/sparkops/releases", "/opt/sparkops/away")
    node.on("spark-1", "touch", "/opt/sparkops/releases")
    try:
        done = node.sparkops("deploy", "fp8", "spark-1", rc=1)
        assert "/opt/sparkops/releases" in done.failure("spark-1")["msg"]
    finally:
        node.on("spark-1", "rm", "/opt/sparkops/releases")
        node.on("spark-1", "mv", "/opt/sparkops/away", "/opt/sparkops/releases")


def test_a_release_that_serves_starts_at_boot_again(node: Nodes) -> None:
    node.sparkops("deploy", "fp8", "spark-1")
    assert unit(node) == ["active", "enabled"]
    assert node.token("spark-1", MODEL)
