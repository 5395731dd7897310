"""The process driver: each node is a server process of this user, with a sandbox for a home."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from shutil import copyfile
from subprocess import DEVNULL, Popen
from typing import TYPE_CHECKING, Any

from sparkops.errors import LabError
from sparkops.lab.foreground import foreground
from sparkops.lab.lab import inventory, new_key, write_file
from sparkops.lab.process import client, models, ports, processes
from sparkops.lab.process.sandbox import MARK, Sandbox, login_name

if TYPE_CHECKING:
    from sparkops.lab.lab import Lab

DRIVER_VERSION = "580.95.05"
# Marks the server process of a node among the node's processes.
SERVER = "SPARKOPS_LAB_SERVER"
# Seconds: for a node to answer; for its units to stop at its end; for what is left to obey a SIGTERM.
START, STOP, GRACE = 60.0, 20.0, 1.0
INTERVAL = 0.02


class ProcessDriver:
    """The Driver of `lab up --driver process`."""

    def up(self, lab: Lab) -> None:
        """See Driver."""
        if lab.passwords:
            raise LabError(
                "nodes of the process driver have no sudo to ask for a password",
                hint="leave the passwords out, or use: sparkops lab up --driver nspawn",
            )
        import platformdirs

        cache = platformdirs.user_cache_path("sparkops") / "lab"
        furnish(lab, cache)
        with ports.choosing(cache) as register:
            index, chosen = ports.choose(lab.dir, len(lab.nodes), register)
            for node, pair in zip(lab.nodes, chosen, strict=True):
                lab.place(node.name, ports.ADDRESS, pair.ssh)
            lab.save()
            with ThreadPoolExecutor(len(lab.nodes) + 1) as pool:
                serving = pool.submit(start_index, lab, index)
                for _ in pool.map(lambda node: start(lab, node.name), lab.nodes):
                    pass
                serving.result()
        host_keys = {node.name: (sandbox(lab, node.name).dir / "host_key.pub").read_text() for node in lab.nodes}
        variables = {
            "ansible_user": login_name(),
            "systemd_scope": "user",
            "provision_packages": [],
            # All nodes have this machine's memory and disk, and the stand-in engine takes neither.
            "preflight_ignore": ["memory", "services", "disk"],
            "index_url": f"http://{ports.ADDRESS}:{index}/simple/",
            # The memory there is this machine's, and the stand-in asks for none of it.
            "memory_wait": 0,
        }
        lab.publish(host_keys, variables)
        services = {node.name: pair.service for node, pair in zip(lab.nodes, chosen, strict=True)}
        write_file(lab.dir / "inventory.yml", with_ports(inventory(lab, variables), services))

    def down(self, lab: Lab) -> None:
        """See Driver."""
        stop_servers(lambda entry: entry.startswith(server_mark(lab.dir / "nodes", b"")))
        folder = os.fsencode(f"{MARK}={lab.dir / 'nodes'}")
        stop(lambda entry: entry == folder or entry.startswith(folder + b"/"))

    def exec(self, lab: Lab, node: str, argv: Sequence[str]) -> int:
        """See Driver; as this user, as there is no root."""
        at = sandbox(lab, node)
        if state(at) == "off":
            raise LabError(f"{node} is off", hint=f"start it with: sparkops lab mend --dir {lab.dir} {node}")
        terminal = {"TERM": os.environ["TERM"]} if "TERM" in os.environ else {}
        home = ["/bin/sh", "-c", 'cd && exec "$@"', "sh"]
        return foreground([*home, *argv], env={**at.environment(), **terminal})

    def run(self, lab: Lab, argv: Sequence[str]) -> int:  # noqa: ARG002  (the nodes can be reached from anywhere)
        """See Driver."""
        try:
            return foreground(argv)
        except OSError as error:
            raise LabError(f"cannot run {argv[0]}: {error.strerror}") from error

    def reboot(self, lab: Lab, node: str) -> None:
        """See Driver."""
        self.poweroff(lab, node)
        start(lab, node)

    def poweroff(self, lab: Lab, node: str) -> None:
        """See Driver."""
        at = sandbox(lab, node)
        stop_servers(lambda entry: entry == server_mark(at.dir.parent, os.fsencode(node)))
        stop(lambda entry: entry == at.mark)

    def cut(self, lab: Lab, node: str) -> None:
        """See Driver; connections are refused, and those there are end."""
        at = sandbox(lab, node)
        at.cut.touch() if state(at) == "off" else order(at, "cut")

    def mend(self, lab: Lab, node: str) -> None:
        """See Driver."""
        at = sandbox(lab, node)
        if state(at) == "off":
            at.cut.unlink(missing_ok=True)
            start(lab, node)
        else:
            order(at, "mend")

    def status(self, lab: Lab) -> dict[str, str]:
        """See Driver."""
        return {node.name: state(sandbox(lab, node.name)) for node in lab.nodes}


def sandbox(lab: Lab, node: str) -> Sandbox:
    """A node's folder. LabError when there is no such node."""
    return Sandbox(lab.dir / "nodes" / lab.node(node).name)


def server_mark(nodes: Path, name: bytes) -> bytes:
    """The environment entry of the server process of node `name`."""
    return os.fsencode(f"{SERVER}={nodes}/") + name


def furnish(lab: Lab, cache: Path) -> None:
    """Make all files of a lab: what its index serves, the engine's data, and the nodes' folders. LabError."""
    from sparkops.lab import standin
    from sparkops.lab.standin import nvidia_smi
    from sparkops.lab.uv import hub_client, wheel

    standin.build(lab.dir, cache=cache)
    for tool in (wheel(cache), *hub_client(cache)):
        copyfile(tool, lab.dir / "wheels" / tool.name)
    (lab.dir / "log").mkdir(exist_ok=True)
    for node in lab.nodes:
        at = sandbox(lab, node.name)
        at.build({"nvidia-smi": nvidia_smi.SCRIPT})
        private, public = new_key(node.name)
        write_file(at.host_key, private, 0o600)
        write_file(at.dir / "host_key.pub", " ".join(public.split()[:2]))
        write_file(at.authorized_key, lab.public_key)
        write_file(at.etc / "driver", f"{DRIVER_VERSION}\n")
        write_file(at.etc / "environment.json", json.dumps(lab.environment))
        models.seed(at.home / "models" / "hf", cache)


def with_ports(text: str, services: dict[str, int]) -> str:
    """An inventory with each host's own `port`: all nodes share one address."""
    import yaml

    document: dict[str, Any] = yaml.safe_load(text)
    for name, port in services.items():
        document["sparks"]["hosts"][name]["port"] = port
    return yaml.safe_dump(document, sort_keys=False, width=1000)


def start(lab: Lab, node: str) -> None:
    """Start a node's server process, and return once it answers. LabError when it does not."""
    at, port = sandbox(lab, node), lab.node(node).port
    environment = {**at.environment(), SERVER: str(at.dir), "PYTHONPATH": str(Path(__file__).parents[3])}
    argv = [sys.executable, "-m", "sparkops.lab.process.node", str(at.dir), login_name(), str(port)]
    process = spawn(argv, environment, lab.dir / "log" / f"{node}.log")
    wait(process, lambda: state(at) != "off", f"node {node}", lab.dir / "log" / f"{node}.log")


def start_index(lab: Lab, port: int) -> None:
    """Start the server of wheels, and return once it answers. LabError when it does not."""
    from sparkops.lab import index

    log = lab.dir / "log" / "index.log"
    argv = [sys.executable, "-I", index.__file__, ports.ADDRESS, str(port), str(lab.dir / "wheels")]
    process = spawn(argv, {MARK: str(lab.dir / "nodes")}, log)
    wait(process, lambda: ports.answers(port), "the wheel index", log)


def spawn(argv: list[str], environment: dict[str, str], log: Path) -> Popen[bytes]:
    """Start a process that goes on when this one ends."""
    with log.open("ab") as output:
        return Popen(argv, env=environment, stdin=DEVNULL, stdout=output, stderr=output, start_new_session=True)


def wait(process: Popen[bytes], ready: Callable[[], bool], what: str, log: Path) -> None:
    """Until `ready()`. LabError with the end of the log when the process ends first, or after START seconds."""
    end = time.monotonic() + START
    while not ready():
        if process.poll() is not None or time.monotonic() > end:
            tail = "\n".join(log.read_text(errors="replace").splitlines()[-10:])
            raise LabError(f"{what} did not start: {tail}", where=str(log))
        time.sleep(INTERVAL)


def stop_servers(wanted: Callable[[bytes], bool]) -> None:
    """Have nodes shut down: their server processes stop the units and end."""
    processes.stop(lambda: processes.marked(wanted), STOP)


def stop(wanted: Callable[[bytes], bool]) -> None:
    """End the processes with such an environment entry, and all that belongs to them."""
    processes.stop(lambda: processes.find(wanted), GRACE)


def order(at: Sandbox, word: str) -> str:
    """Have a node's server process do something; its state after that. OSError when the node is off."""
    return client.ask(str(at.run), "node", [word])[1]


def state(at: Sandbox) -> str:
    """A node's state, as Driver.status gives it."""
    try:
        return order(at, "state")
    except OSError:
        return "off"
