"""One big file to one and to four nodes, and many small ones, against scp, rsync and paramiko's own SFTP."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from tests.bench import peers
from tests.bench.measure import Command
from tests.bench.nodes import Nodes
from tests.bench.rounds import Table, rounds, show

BIG = 1 << 30
SMALL_FILES = 10_000
SMALL = 1000

PLAY = """\
- hosts: nodes
  gather_facts: false
  tasks:
    - copy: {{src: {source}, dest: "{{{{ node_root }}}}/blob", mode: "0644"}}
"""
MANY = """\
- hosts: nodes
  gather_facts: false
  tasks:
    - copy: {{src: {source}/, dest: "{{{{ node_root }}}}/many", mode: "0644"}}
"""
PARAMIKO = """\
import sys, paramiko
client = paramiko.SSHClient()
client.load_host_keys(sys.argv[1])
client.connect(sys.argv[2], int(sys.argv[3]), key_filename=sys.argv[4], allow_agent=False, look_for_keys=False)
client.open_sftp().put(sys.argv[5], sys.argv[6])
"""


def big(nodes: Nodes, count: int) -> dict[str, Table]:
    """1 GiB to one node, and to four at once."""
    source = nodes.base / "blob"
    if not source.exists() or source.stat().st_size != BIG:
        with source.open("wb") as file:
            for _ in range(BIG >> 20):
                file.write(os.urandom(1 << 20))
    book = nodes.base / "blob.yml"
    book.write_text(PLAY.format(source=source))
    found = {}
    for to in (1, 4):
        ssh = f"ssh -F {nodes.config}"
        scp = " & ".join(f"scp -q -F {nodes.config} {source} {node.name}:{node.root}/blob" for node in nodes.nodes(to))
        rsync = " & ".join(f"rsync -W -e '{ssh}' {source} {node.name}:{node.root}/blob" for node in nodes.nodes(to))
        commands = {
            peers.OURS: peers.sparkops("-i", str(nodes.inventory(to)), "play", str(book)),
            "scp": Command(["sh", "-c", f"{scp} & wait"], {}),
            "rsync": Command(["sh", "-c", f"{rsync} & wait"], {}),
        }
        if to == 1:
            (node,) = nodes.nodes(1)
            where = [str(nodes.client / "known_hosts"), node.address, str(nodes.port), str(nodes.client / "id_ed25519")]
            argv = [sys.executable, "-c", PARAMIKO, *where, str(source), str(node.root / "blob")]
            commands["paramiko put"] = Command(argv, {})
        found[f"N={to}"] = rounds(
            commands, count, nodes.base / "log", nodes.cpu, prepare=lambda _: _gone(nodes, "blob")
        )
        show(f"1 GiB to {to}", found[f"N={to}"], "scp")
    _gone(nodes, "blob")
    return found


def small(nodes: Nodes, count: int) -> dict[str, Table]:
    """10,000 files of 1 kB to one node."""
    source = nodes.base / "many"
    if not source.exists():
        source.mkdir()
        for number in range(SMALL_FILES):
            (source / f"f{number:05}").write_bytes(os.urandom(SMALL))
    book = nodes.base / "many.yml"
    book.write_text(MANY.format(source=source))
    (node,) = nodes.nodes(1)
    rsync = ["rsync", "-a", "-e", f"ssh -F {nodes.config}", f"{source}/", f"{node.name}:{node.root}/many/"]
    commands = {
        peers.OURS: peers.sparkops("-i", str(nodes.inventory(1)), "play", str(book)),
        "rsync": Command(rsync, {}),
    }
    found = rounds(commands, count, nodes.base / "log", nodes.cpu, prepare=lambda _: _gone(nodes, "many"))
    show(f"{SMALL_FILES} files", found, "rsync")
    _gone(nodes, "many")
    return {"N=1": found}


def _gone(nodes: Nodes, name: str) -> None:
    for node in nodes.nodes(4):
        path: Path = node.root / name
        if path.is_dir():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
