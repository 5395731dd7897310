"""What a release serves: the words of its command, and where its checkpoint came from."""

from __future__ import annotations

import os

from sparkops.node.facts import read


def command(current: str) -> list[str]:
    """The words of a release's serve command; [] when its `run` can't be read as one."""
    from shlex import split

    try:
        words = split(read(os.path.join(current, "run")).replace("\\\n", " "), comments=True)
    except ValueError:
        return []
    return words[1:] if words[:1] == ["exec"] else words


def checkpoint_path(words: list[str]) -> str | None:
    """The checkpoint among a serve command's words."""
    return words[words.index("serve") + 1] if "serve" in words[:-1] else None


def revision(path: str, state_dir: str) -> str | None:
    """The commit that sparkops or `hf download --local-dir` has noted, or that names a snapshot of the hub's cache."""
    from sparkops.node.weights_record import Record

    record = Record.of(state_dir, path)
    if record is not None and "@" in record.source:
        return record.source.rpartition("@")[2]
    head, _, last = path.rstrip("/").rpartition("/")
    if head.endswith("/snapshots"):
        return last
    noted = read(os.path.join(path, ".cache/huggingface/download/config.json.metadata"))
    return noted.partition("\n")[0].strip() or None
