"""A checkpoint's headers in a compact form: what its files hold, its index beside them, and its config.json.

The document, the same whether the headers come from this node's disk or from elsewhere:

    {"path": text, "config": {...} or null,
     "files": [{"name", "size", "header_bytes", "groups": [[name, dtype, shape, count], ...]}, ...],
     "index": {"files": [...], "tensors": n, "total_size": bytes or null, "absent": some, "unlisted": some,
               "misplaced": some} or null,
     "twice": some}

A group is `count` tensors alike but for the expert's number, which its name has as `*`: 124,756 tensors make some
thousand groups. `some` tensors are {"count": n, "first": [up to 3 names]}. absent: the index has them, no file does;
unlisted: a file that the index names has them, the index does not; misplaced: the index names another file; twice:
two files have them.
"""

from __future__ import annotations

import json
import os

from sparkops.node import safetensors
from sparkops.node.safetensors import METADATA, BadFile, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Header = tuple[dict[str, Any], int, int]  # a parsed header, its length, the file's size

INDEX = "model.safetensors.index.json"
CONFIG = "config.json"
LARGEST_CONFIG = 16_000_000
EXPERTS = ".experts."


def survey(path: str) -> dict[str, Any]:
    """The document of a folder, or of one *.safetensors file. Every header is read, no tensor is.

    Raises BadFile that names each file which is damaged or cut short; OSError.
    """
    folder, only = (path, "") if os.path.isdir(path) else os.path.split(path)
    names = sorted(os.listdir(folder or "."))
    weights = [only] if only else [name for name in names if name.endswith(".safetensors")]
    if not weights:
        raise BadFile(f"there is no *.safetensors file in {path}")
    headers: dict[str, Header] = {}
    problems = []
    for name in weights:
        try:
            headers[name] = whole(os.path.join(folder, name))
        except BadFile as error:
            problems.append(f"{name}: {error}")
    if problems:
        raise BadFile("\n".join(problems))
    config = read_json(os.path.join(folder, CONFIG), LARGEST_CONFIG) if CONFIG in names else None
    has_index = INDEX in names and not only
    index = read_json(os.path.join(folder, INDEX), safetensors.LARGEST_HEADER) if has_index else None
    return document(path, headers, config, index)


def whole(path: str) -> Header:
    """The header of a file that is as long as its header says. Raises BadFile, OSError."""
    header, length = safetensors.read_header(path)
    size = os.path.getsize(path)
    safetensors.check_size(header, length, size)
    return header, length, size


def read_json(path: str, largest: int) -> dict[str, Any]:
    """A JSON object from a file of at most `largest` bytes. Raises BadFile that names it; OSError."""
    with safetensors.Passing(path) as file:
        return json_object(safetensors.exactly(file, largest + 1), os.path.basename(path), largest)


def json_object(raw: bytes, name: str, largest: int) -> dict[str, Any]:
    """`raw` as a JSON object. Raises BadFile that calls it `name`."""
    if len(raw) > largest:
        raise BadFile(f"{name}: more than {largest:,} bytes")
    try:
        made = json.loads(raw.decode("utf-8"))
    except (ValueError, RecursionError):
        raise BadFile(f"{name}: no JSON") from None
    if not isinstance(made, dict):
        raise BadFile(f"{name}: no JSON object")
    return made


def document(
    path: str, headers: dict[str, Header], config: dict[str, Any] | None, index: dict[str, Any] | None
) -> dict[str, Any]:
    """The document of `headers` by file name. Raises BadFile when the index is none."""
    files = [
        {"name": name, "size": size, "header_bytes": length, "groups": groups(header)}
        for name, (header, length, size) in headers.items()
    ]
    held: dict[str, str] = {}
    twice: set[str] = set()
    listed = None if index is None else weight_map(index)
    read = headers if listed is None else [name for name in headers if name in set(listed.values())]
    for file in read:
        names = headers[file][0].keys() - {METADATA}
        twice |= names & held.keys()
        held.update(dict.fromkeys(names, file))
    compared = None if index is None or listed is None else {**compare(listed, held), "total_size": total_size(index)}
    return {"path": path, "config": config, "files": files, "index": compared, "twice": some(twice)}


def groups(header: dict[str, Any]) -> list[list[Any]]:
    """[name, dtype, shape, count] of the tensors that are alike but for the expert's number."""
    counts: dict[tuple[str, str, tuple[int, ...]], int] = {}
    for name, entry in header.items():
        if name == METADATA:
            continue
        before, found, after = name.partition(EXPERTS)
        number, dot, rest = after.partition(".")
        if found and dot and number.isdigit():
            name = f"{before}{EXPERTS}*.{rest}"
        key = (name, entry["dtype"], tuple(entry["shape"]))
        counts[key] = counts.get(key, 0) + 1
    return [[name, dtype, list(shape), count] for (name, dtype, shape), count in counts.items()]


def weight_map(index: dict[str, Any]) -> dict[str, str]:
    """{tensor: file} of an index. Raises BadFile."""
    listed = index.get("weight_map")
    if not isinstance(listed, dict) or not all(isinstance(file, str) for file in listed.values()):
        raise BadFile(f"{INDEX}: no weight_map of tensors to files")
    return listed


def total_size(index: dict[str, Any]) -> int | None:
    """The bytes of all tensors, as an index says. Raises BadFile."""
    metadata = index.get("metadata") or {}
    total = metadata.get("total_size") if isinstance(metadata, dict) else metadata
    if total is None or (isinstance(total, (int, float)) and total == total // 1):
        return None if total is None else int(total)
    raise BadFile(f"{INDEX}: total_size is {shown(str(total))}, no number of bytes")


def compare(listed: dict[str, str], held: dict[str, str]) -> dict[str, Any]:
    """An index ({tensor: file}) beside what the files that it names hold."""
    return {
        "files": sorted(set(listed.values())),
        "tensors": len(listed),
        "absent": some(listed.keys() - held.keys()),
        "unlisted": some(held.keys() - listed.keys()),
        "misplaced": some({name for name, file in held.items() if listed.get(name, file) != file}),
    }


def some(names: set[str]) -> dict[str, Any]:
    """How many there are, and the first three."""
    return {"count": len(names), "first": sorted(names)[:3]}
