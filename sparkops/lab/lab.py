"""A lab on disk: DIR/lab.json says what it is made of, beside the files that reach its nodes."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from sparkops.errors import LabError

# What a lab writes into DIR; `remove` takes these and nothing else. lab.json goes last: `down` finds the rest by it.
PARTS = (
    "inventory.yml",
    "known_hosts",
    "id_ed25519",
    "id_ed25519.pub",
    "engines",
    "patches",
    "recipes",
    "wheels",
    "nodes",
    "log",
    "lab.json",
)


@dataclass(frozen=True)
class NodeSpec:
    """A node and where its sshd listens; `port` 0 as long as the driver has not placed it."""

    name: str
    address: str = ""
    port: int = 0


@dataclass
class Lab:
    """A lab: where it is kept, who drives it, its nodes.

    passwords: sudo password by node name, a node that is not in it asks for none. environment: what the units
    of its nodes get, SPARKOPS_LAB_... for the stand-in engine. state: the driver's own notes, JSON.
    """

    dir: Path
    driver: str
    nodes: list[NodeSpec]
    passwords: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    state: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def create(
        cls,
        dir: Path,
        driver: str,
        count: int,
        *,
        passwords: dict[str, str] | None = None,
        environment: dict[str, str] | None = None,
    ) -> Lab:
        """A new lab of nodes spark-1..count, saved, with its login key. LabError if DIR holds anything already."""
        names = [f"spark-{number}" for number in range(1, count + 1)]
        if unknown := sorted(set(passwords or {}) - set(names)):
            raise LabError(f"a sudo password is given for {', '.join(unknown)}, but the nodes are {', '.join(names)}")
        dir = dir.resolve()
        if (dir / "lab.json").exists():
            raise LabError(f"there is a lab in {dir} already", hint=f"end it with: sparkops lab down --dir {dir}")
        if dir.exists() and (not dir.is_dir() or any(dir.iterdir())):
            raise LabError(f"{dir} is not an empty folder", hint="name one that is empty or does not exist: --dir DIR")
        dir.mkdir(parents=True, exist_ok=True)
        lab = cls(dir, driver, [NodeSpec(name) for name in names], passwords or {}, environment or {})
        lab.save()
        private, public = new_key(f"sparkops lab {dir.name}")
        write_file(lab.key, private, 0o600)
        write_file(dir / "id_ed25519.pub", public + "\n")
        return lab

    @classmethod
    def load(cls, dir: Path) -> Lab:
        """The lab in DIR. LabError when there is none, or lab.json is not one."""
        dir = dir.resolve()
        try:
            document = json.loads((dir / "lab.json").read_text())
            nodes = [NodeSpec(**node) for node in document.pop("nodes")]
            return cls(dir=dir, nodes=nodes, **document)
        except FileNotFoundError:
            raise LabError(f"there is no lab in {dir}", hint="make one with: sparkops lab up --dir DIR") from None
        except (ValueError, TypeError, KeyError) as error:
            raise LabError(f"not a lab's description: {error!r}", where=str(dir / "lab.json")) from error

    @property
    def id(self) -> str:
        """Eight hex digits that differ for labs in different folders of one machine."""
        return sha256(os.fsencode(self.dir)).hexdigest()[:8]

    @property
    def key(self) -> Path:
        """The private key that `spark` accepts on every node."""
        return self.dir / "id_ed25519"

    @property
    def public_key(self) -> str:
        """The line for authorized_keys, without a newline."""
        return (self.dir / "id_ed25519.pub").read_text().strip()

    def node(self, name: str) -> NodeSpec:
        """A node by name. LabError when the lab has none of that name."""
        for node in self.nodes:
            if node.name == name:
                return node
        names = ", ".join(node.name for node in self.nodes)
        raise LabError(f"the lab in {self.dir} has no node {name!r}", hint=f"its nodes are: {names}")

    def place(self, name: str, address: str, port: int) -> None:
        """Set where a node's sshd listens. `save` it."""
        self.nodes = [replace(n, address=address, port=port) if n.name == name else n for n in self.nodes]

    def save(self) -> None:
        """Write lab.json whole; on return it is on the disk. 0600, as it holds sudo passwords."""
        document = asdict(self)
        del document["dir"]
        write_file(self.dir / "lab.json", json.dumps(document, indent=2) + "\n", 0o600)

    def publish(self, host_keys: dict[str, str], variables: dict[str, Any]) -> None:
        """Write known_hosts and inventory.yml.

        host_keys: "ssh-ed25519 AAAA..." by node name; variables: of all nodes. Sudo passwords are in neither.
        """
        lines = [f"{known_name(node)} {host_keys[node.name]}\n" for node in self.nodes]
        write_file(self.dir / "known_hosts", "".join(lines))
        write_file(self.dir / "inventory.yml", inventory(self, variables))

    def remove(self) -> None:
        """Delete the lab's files, and DIR when nothing else is in it."""
        for part in PARTS:
            path = self.dir / part
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        if not any(self.dir.iterdir()):
            self.dir.rmdir()


def inventory(lab: Lab, variables: dict[str, Any]) -> str:
    """The inventory of a lab as YAML; Ansible reads it as well."""
    import yaml

    shared = {
        "ansible_user": "spark",
        "ansible_ssh_private_key_file": str(lab.key),
        "ansible_ssh_common_args": f"-o UserKnownHostsFile={ssh_word(lab.dir / 'known_hosts')}",
        **variables,
    }
    hosts = {node.name: {"ansible_host": node.address, "ansible_port": node.port} for node in lab.nodes}
    return yaml.safe_dump({"sparks": {"hosts": hosts, "vars": shared}}, sort_keys=False, width=1000)


def ssh_word(path: Path) -> str:
    """A path as ssh's -o takes it, within a line that is split into words as a shell does."""
    import shlex

    text = str(path)
    return shlex.quote(f'"{text}"' if " " in text else text)


def known_name(node: NodeSpec) -> str:
    """A node's name in known_hosts."""
    return node.address if node.port == 22 else f"[{node.address}]:{node.port}"


def new_key(comment: str) -> tuple[str, str]:
    """A fresh Ed25519 key: the private half as OpenSSH writes it, and the public line."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()).decode()
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    return private, f"{public} {comment}"


def write_file(path: Path, text: str, mode: int = 0o644) -> None:
    """Write a file beside its name, flush it to the disk and rename it into place."""
    content = text.encode()
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise
