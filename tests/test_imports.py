"""The walls of the house: who may import whom, and what a node can be asked to understand."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
NODE = ROOT / "sparkops" / "node"
NODE_FILES = sorted(NODE.rglob("*.py"))
OLDEST_NODE = (3, 8)
# These cost a node more milliseconds than they are worth there.
TOO_DEAR = {"dataclasses", "typing", "pathlib"}


class Imports(ast.NodeVisitor):
    """The modules that a file imports when it runs: what TYPE_CHECKING guards is left out."""

    def __init__(self, package: str) -> None:
        self.package = package
        self.names: set[str] = set()

    def visit_If(self, node: ast.If) -> None:
        guarded = isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for child in node.orelse if guarded else node.body + node.orelse:
            self.visit(child)

    def visit_Import(self, node: ast.Import) -> None:
        self.names.update(alias.name for alias in node.names)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if not node.level:
            self.names.add(node.module or "")
            return
        base = self.package.split(".")[: -(node.level - 1) or None]
        self.names.add(".".join([*base, *([node.module] if node.module else [])]))


def imports(path: Path) -> set[str]:
    visitor = Imports(".".join(path.parent.relative_to(ROOT).parts))
    visitor.visit(ast.parse(path.read_text(encoding="utf-8")))
    return visitor.names


def test_import_linter_keeps_every_contract() -> None:
    lint = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([str(lint), "--no-cache"], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", NODE_FILES, ids=lambda path: str(path.relative_to(NODE)))
def test_node_code_parses_on_the_oldest_node(path: Path) -> None:
    ast.parse(path.read_text(encoding="utf-8"), feature_version=OLDEST_NODE)


@pytest.mark.parametrize("path", NODE_FILES, ids=lambda path: str(path.relative_to(NODE)))
def test_node_code_imports_only_the_standard_library(path: Path) -> None:
    names = imports(path)
    foreign = {
        name
        for name in names
        if name.split(".")[0] not in sys.stdlib_module_names and not (name + ".").startswith("sparkops.node.")
    }
    assert not foreign
    assert not names & TOO_DEAR


@pytest.mark.parametrize("path", NODE_FILES, ids=lambda path: str(path.relative_to(NODE)))
def test_node_annotations_are_not_evaluated_there(path: Path) -> None:
    """`X | None` in an annotation is an error on Python 3.8 without this import."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    code = [node for node in tree.body if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))]
    assert not code or (isinstance(code[0], ast.ImportFrom) and code[0].module == "__future__")


def test_relative_and_guarded_imports_are_understood() -> None:
    visitor = Imports("sparkops.node.modules")
    visitor.visit(
        ast.parse(
            "from ..api import Node\nfrom . import x\nif TYPE_CHECKING:\n    import typing\nelse:\n    import json\n"
            "def f():\n    import pathlib\n"
        )
    )
    assert visitor.names == {"sparkops.node.api", "sparkops.node.modules", "json", "pathlib"}
