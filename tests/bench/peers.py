"""How each peer, the limit and we are called for the workload on the first so many nodes."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.bench.measure import Command
from tests.bench.nodes import NODE_PYTHON, Nodes
from tests.bench.venvs import bin_of

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
WORKLOAD = HERE / "workload"
# How many log-ins ssh makes at a time, as many as we do.
FORKS = 16
OURS, LIMIT = "sparkops", "ssh true"
ALL = (OURS, LIMIT, "ansible", "mitogen", "pyinfra", "fabric")


def sparkops(*words: str) -> Command:
    """Our command line."""
    return Command([sys.executable, "-m", "sparkops.cli.entry", *words], {"PYTHONPATH": str(ROOT)})


def ours(nodes: Nodes, count: int, port: int | None = None) -> Command:
    return sparkops("-i", str(nodes.inventory(count, port)), "play", str(WORKLOAD / "site.yml"))


def limit(nodes: Nodes, count: int, port: int | None = None) -> Command:
    """`ssh HOST true` for each host, fresh handshakes."""
    names = "\\n".join(node.name for node in nodes.nodes(count))
    ssh = f"ssh -F {nodes.config} -p {port or nodes.port} HOST true"
    return Command(["sh", "-c", f"printf '{names}\\n' | xargs -P {FORKS} -I HOST {ssh}"], {})


def ansible(nodes: Nodes, count: int, peer: str = "ansible") -> Command:
    """ansible-core at its best: pipelining, ControlPersist, as many forks as hosts."""
    found = bin_of(peer, nodes.base)
    options = "ControlMaster=auto ControlPersist=60s KexAlgorithms=curve25519-sha256 PreferredAuthentications=publickey"
    options += " IdentitiesOnly=yes IdentityAgent=none GSSAPIAuthentication=no GlobalKnownHostsFile=/dev/null"
    env = {
        "ANSIBLE_HOME": str(nodes.base / "ansible"),
        "ANSIBLE_LOCAL_TEMP": str(nodes.base / "ansible/tmp"),
        "ANSIBLE_SSH_CONTROL_PATH_DIR": "/tmp/sparkops-bench-cp",
        "ANSIBLE_FORKS": str(count),
        "ANSIBLE_PIPELINING": "True",
        "ANSIBLE_GATHERING": "explicit",
        "ANSIBLE_HOST_KEY_CHECKING": "True",
        "ANSIBLE_RETRY_FILES_ENABLED": "False",
        "ANSIBLE_DEPRECATION_WARNINGS": "False",
        "ANSIBLE_PYTHON_INTERPRETER": NODE_PYTHON,
        "ANSIBLE_SSH_ARGS": " ".join(f"-o {option}" for option in options.split()),
    }
    if peer == "mitogen":
        (plugins,) = found.parent.glob("lib/python3*/site-packages/ansible_mitogen/plugins/strategy")
        env |= {"ANSIBLE_STRATEGY": "mitogen_linear", "ANSIBLE_STRATEGY_PLUGINS": str(plugins)}
    argv = [str(found / "ansible-playbook"), "-i", str(nodes.inventory(count)), str(WORKLOAD / "site.yml")]
    return Command(argv, env)


def command(peer: str, nodes: Nodes, count: int) -> Command:
    """A peer's, by its name in ALL."""
    if peer == OURS:
        return ours(nodes, count)
    if peer == LIMIT:
        return limit(nodes, count)
    if peer in ("ansible", "mitogen"):
        return ansible(nodes, count, peer)
    found = bin_of(peer, nodes.base)
    env = {"BENCH_NODES": str(nodes.document()), "BENCH_HOSTS": str(count)}
    if peer == "pyinfra":
        scripts = [str(WORKLOAD / "pyinfra" / name) for name in ("inventory.py", "deploy.py")]
        return Command([str(found / "pyinfra"), "-y", *scripts], env)
    return Command([str(found / "python"), str(WORKLOAD / "with_fabric.py")], env)
