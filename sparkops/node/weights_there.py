"""The checkpoints that are on a node, and which of them its releases serve."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from sparkops.node.api import Node


def users(home: str) -> list[tuple[str, str]]:
    """(release, what its command says) of every release of every service; current or not, all may be gone back to."""
    from sparkops.node import releases

    found = []
    for service in releases.services(home):
        folder = releases.service_folder(home, service)
        for number in sorted(releases.numbers(folder)):
            try:
                with open(os.path.join(folder, str(number), "run"), encoding="utf-8", errors="replace") as file:
                    found.append((f"{service} {number}", file.read()))
            except OSError:
                continue
    return found


def serves(command: str, path: str) -> bool:
    """Whether a release's command names a checkpoint; a command that is none may."""
    import shlex

    try:
        return any(word == path or word.startswith(path + "/") for word in shlex.split(command, comments=True))
    except ValueError:
        return path in command


def there(models_dir: str, home: str, node: Node) -> list[dict[str, Any]]:
    """Every checkpoint in models_dir, and those elsewhere that sparkops has hashed: name, path, source, bytes, files,
    problems, staged (bytes of an unfinished transfer), made (by sparkops), recorded, content (a short hash over all of
    its files' hashes: equal on nodes that hold the same), used (releases).
    """
    from sparkops.node import weights_record as weights

    commands = users(home)
    records = {record.path: record for record in weights.records(node.state_dir)}
    names = sorted(os.listdir(models_dir)) if os.path.isdir(models_dir) else []
    parts = [os.path.join(models_dir, name[len(".sparkops-") : -len(".part")]) for name in names if unfinished(name)]
    paths = [os.path.join(models_dir, name) for name in names if not name.startswith(".")]
    found = []
    for path in dict.fromkeys([*paths, *parts, *(one for one in records if os.path.isdir(one))]):
        if path not in parts and not os.path.isdir(path):
            continue
        record = records.get(path)
        looked = weights.look(path, node)
        found.append(
            {
                **looked,
                "name": os.path.basename(path),
                "bytes": looked["bytes"] or weights.size_of(path),
                "made": record.made if record else not os.path.isdir(path),
                "recorded": record is not None,
                "content": content(record.files) if record else "",
                "used": [release for release, command in commands if serves(command, path)],
            }
        )
    return found


def unfinished(name: str) -> bool:
    """Whether a folder's name is that of a transfer under way."""
    return name.startswith(".sparkops-") and name.endswith(".part")


def content(files: dict[str, dict[str, Any]]) -> str:
    """Twelve hex digits over the names and hashes of a checkpoint's files."""
    from hashlib import sha256

    lines = "".join(f"{files[name]['sha256']}  {name}\n" for name in sorted(files))
    return sha256(lines.encode("utf-8", "surrogateescape")).hexdigest()[:12]
