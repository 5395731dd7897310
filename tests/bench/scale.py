"""Time and memory grow as the fleet does: 64 and 256 nodes run, 250 and 1,000 hosts by 100 tasks checked."""

from __future__ import annotations

import subprocess
import sys

from tests.bench import measure, peers
from tests.bench.nodes import Nodes
from tests.bench.rounds import Table, rounds, show

FEW, MANY = 64, 256
# Below the ports that the kernel hands out.
PORT = 20000
HOSTS = (250, 1000)
TASKS = 100
CHECKED = """\
import sys
from pathlib import Path
from sparkops.cli.options import Changing, Globals
from sparkops.cli.run import Workplace, prepare
how = Changing(None, False, False, False, None, (), (), (), False, None, None)
place = Workplace(Globals(None, (sys.argv[1],), False, 0), file=Path(sys.argv[2]))
prepare(place, None, how, {}, lambda event: None).check()
"""


def fleet(nodes: Nodes, count: int) -> dict[str, Table]:
    """The workload converged on 64 and on 256 servers of one process."""
    folder = nodes.base / "servers"
    argv = [sys.executable, "-m", "tests.bench.servers", str(MANY), str(PORT), str(folder)]
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, stdin=pipe, stdout=pipe, cwd=peers.ROOT) as servers:
        assert servers.stdin and servers.stdout
        measure.keep_children()
        servers.stdout.readline()
        commands = {
            str(some): peers.sparkops("-i", f"{folder}/hosts.{some}.ini", "play", str(peers.WORKLOAD / "site.yml"))
            for some in (FEW, MANY)
        }
        found = rounds(commands, count, nodes.base / "log")
        servers.stdin.close()
    show("nodes of one process", found, str(FEW))
    _per("node", found, FEW, MANY)
    return {"nodes": found}


def compiling(nodes: Nodes, count: int) -> dict[str, Table]:
    """The check before the first connection, of 250 and of 1,000 hosts by 100 tasks."""
    book = nodes.base / "hundred.yml"
    task = '    - copy: {content: "{{ inventory_hostname }} NUMBER {{ port }}", dest: "/srv/{{ name }}/NUMBER"}\n'
    tasks = "".join(task.replace("NUMBER", str(number)) for number in range(TASKS))
    book.write_text(f"- hosts: all\n  gather_facts: false\n  tasks:\n{tasks}")
    commands = {}
    for some in HOSTS:
        inventory = nodes.base / f"some.{some}.ini"
        inventory.write_text("".join(f"h{number} port={number} name=n{number}\n" for number in range(some)))
        argv = [sys.executable, "-c", CHECKED, str(inventory), str(book)]
        commands[str(some)] = measure.Command(argv, {"PYTHONPATH": str(peers.ROOT)})
    found = rounds(commands, count, nodes.base / "log")
    show(f"hosts by {TASKS} tasks, checked", found, str(HOSTS[0]))
    _per("host", found, *HOSTS)
    return {"hosts": found}


def _per(what: str, table: Table, few: int, many: int) -> None:
    ratio = table.ratio(str(many), str(few))
    memory = table.ratio(str(many), str(few), "rss")
    if ratio and memory:
        share = few / many
        print(f"  a {what} costs {ratio[1] * share:.2f} x the time; the largest process is {memory[1]:.2f} x")
