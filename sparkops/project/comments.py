"""The comments of a class's fields, read from its source."""

from __future__ import annotations

import ast


def field_comments(source: str, name: str) -> dict[str, str]:
    """field -> the comment behind it, or the ones above it; of the class `name` at the top of `source`."""
    lines = source.splitlines()
    found: dict[str, str] = {}
    classes = [node for node in ast.parse(source).body if isinstance(node, ast.ClassDef) and node.name == name]
    for node in (node for one in classes for node in one.body):
        if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
            continue
        # The column counts bytes.
        line = lines[(node.end_lineno or node.lineno) - 1].encode()[node.end_col_offset or 0 :].decode()
        above: list[str] = []
        for earlier in reversed(lines[: node.lineno - 1]):
            if not earlier.strip().startswith("#"):
                break
            above.insert(0, earlier.strip().lstrip("# "))
        behind = line.partition("#")[2].strip()
        # `fmt: skip` and its kind speak to tools.
        found[node.target.id] = " ".join(above) if not behind or behind.startswith(("fmt:", "noqa")) else behind
    return {field: comment for field, comment in found.items() if comment}
