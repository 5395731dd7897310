"""One node as a container: its overlay, its start, its end."""

from __future__ import annotations

import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sparkops.errors import LabError
from sparkops.lab.nspawn import network, processes
from sparkops.lab.nspawn.cgroups import cgroups
from sparkops.lab.nspawn.host import call, entering

# nspawn ends with 133 when the container asks for a reboot. The arguments are cgroups to join, `--`, and the command.
KEEPER = """\
while [ "$1" != -- ]; do echo $$ > "$1/cgroup.procs"; shift; done
shift
while :; do "$@"; [ $? -eq 133 ] || exit; done
"""
NSPAWN_RUN = Path("/run/systemd/nspawn")
# Their own view of everything but user ids: what a login on the node would see.
ENTER = ("--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup")
# How long a container may show no process of its own before it counts as ended, in seconds.
GONE = 2.0
# What a command run as root on the node finds in its environment.
ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "USER": "root",
    "LOGNAME": "root",
    "LANG": "C.UTF-8",
}


@dataclass(frozen=True)
class Container:
    """A node's container. folder: DIR/nodes/NAME; lab_net: the lab's namespace; machine: unlike any other lab's."""

    name: str
    folder: Path
    lab_net: Path
    machine: str

    @property
    def root(self) -> Path:
        """The node's file system, while it is mounted."""
        return self.folder / "root"

    @property
    def net(self) -> Path:
        """The node's network namespace."""
        return self.folder / "net"

    @property
    def cgroup(self) -> str:
        """The node's cgroup, below the lab's."""
        lab, _, _ = self.machine.rpartition("-")
        return f"{lab}/{self.name}"

    def mount(self, layers: list[Path]) -> None:
        """Put the node's own layer over the shared ones. LabError."""
        for part in ("upper", "work", "root"):
            (self.folder / part).mkdir(parents=True, exist_ok=True)
        lower = ":".join(str(layer) for layer in layers)
        # Relative names, as a comma in DIR would end the option.
        options = f"lowerdir={lower},upperdir=upper,workdir=work"
        call("mount", "-t", "overlay", "-o", options, "sparkops-lab", "root", cwd=self.folder)

    def command(self) -> list[str]:
        """The command that boots the node and boots it again when it reboots."""
        folders = cgroups(self.cgroup)
        nspawn = [
            *("systemd-nspawn", "--quiet", "--boot", "--register=no", "--keep-unit", f"--directory={self.root}"),
            *(f"--machine={self.machine}", f"--hostname={self.name}", f"--network-namespace-path={self.net}"),
            *("--resolv-conf=off", "--timezone=off", "--link-journal=no", "--bind=/proc/sys/vm/drop_caches"),
            # What is bound below /proc is looked up in the node's own file system.
            "--bind=/etc/sparkops-lab/meminfo:/proc/meminfo",
        ]
        return entering(self.lab_net, ["sh", "-c", KEEPER, "keeper", *map(str, folders), "--", *nspawn])

    def start(self) -> None:
        """Boot the node; it goes on when this process ends."""
        for folder in cgroups(self.cgroup):
            folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "console.log").open("ab") as console:
            subprocess.Popen(
                self.command(), stdin=subprocess.DEVNULL, stdout=console, stderr=console, start_new_session=True
            )

    def leader(self) -> int | None:
        """The node's process 1, None when it is off."""
        return processes.leader(self.net)

    def enter(self, argv: list[str]) -> list[str]:
        """argv that runs on the node as root. LabError when the node is off."""
        if (pid := self.leader()) is None:
            raise LabError(
                f"{self.name} is off",
                hint=f"start it with: sparkops lab mend --dir {self.folder.parent.parent} {self.name}",
            )
        return ["nsenter", f"--target={pid}", *ENTER, "--", *argv]

    def call(self, argv: list[str]) -> None:
        """Run a command on the node as root. LabError when the node is off or the command fails."""
        call(*self.enter(argv))

    def running(self) -> list[int]:
        """Everything that keeps the node going, on it and around it."""
        return processes.inside(self.net) + processes.carrying(f"--machine={self.machine}")

    def state(self) -> str:
        """systemd's word for the node (`running`, `degraded: UNIT ...`, `starting` ...) or `off`."""
        try:
            argv = self.enter(["systemctl", "is-system-running"])
        except LabError:
            return "off"
        word = _output(argv) or "starting"
        if word != "degraded":
            return "starting" if word in ("initializing", "offline", "unknown") else word
        failed = _output(self.enter(["systemctl", "--failed", "--plain", "--no-legend"]))
        return f"degraded: {' '.join(line.split()[0] for line in failed.splitlines())}"

    def wait(self, address: str, *, not_leader: int | None = None, timeout: float = 120.0) -> None:
        """Until the node has booted and its sshd answers. LabError with the console's end after `timeout` seconds.

        not_leader: the process 1 of the boot before.
        """
        deadline = time.monotonic() + timeout
        gone_since = None
        while time.monotonic() < deadline:
            now = self.leader()
            if now not in (None, not_leader) and self.state().startswith(("running", "degraded")):
                if (network.banner(self.lab_net, address, 22) or b"").startswith(b"SSH-"):
                    return
            elif now is None and not processes.carrying(f"--machine={self.machine}"):
                # A process in mid-exec has no command line for a moment.
                gone_since = gone_since or time.monotonic()
                if time.monotonic() - gone_since > GONE:
                    break
            else:
                gone_since = None
            time.sleep(0.1)
        console = (self.folder / "console.log").read_text(errors="replace").splitlines()[-15:]
        raise LabError(f"{self.name} did not come up (within {timeout:.0f} s): " + "\n".join(console))

    def wait_off(self, timeout: float = 120.0) -> None:
        """Until nothing of the node runs. LabError after `timeout` seconds."""
        deadline = time.monotonic() + timeout
        while self.running():
            if time.monotonic() > deadline:
                raise LabError(f"{self.name} did not shut down within {timeout:.0f} s")
            time.sleep(0.1)


def _output(argv: list[str]) -> str:
    return subprocess.run(argv, capture_output=True, text=True, check=False, env=ENVIRONMENT).stdout.strip()


def forget(container: Container) -> None:
    """Remove what nspawn leaves in /run when it is killed; the node's file system is still mounted."""
    with suppress(OSError):
        (NSPAWN_RUN / "propagate" / container.machine).rmdir()
    with suppress(OSError):
        status = container.root.stat()
        (NSPAWN_RUN / "locks" / f"inode-{status.st_dev}:{status.st_ino}").unlink()
