"""Check that the NVIDIA driver is new enough. sparkops never installs drivers.

Example:
    - name: The driver carries CUDA 13
      nvidia_driver:
        minimum: "580"
"""

from __future__ import annotations

from sparkops.node.api import Arguments, Failure, Node, Outcome

VERSION_FILE = "/proc/driver/nvidia/version"


class Args(Arguments):
    """minimum: a version such as "580" or "580.95"; the driver's must not be lower."""

    minimum: str = "580"


def apply(args: Args, node: Node) -> Outcome:
    """Always ok, or a Failure. Result: driver_version, gpus (0: not counted). The GPUs' names are not looked at."""
    minimum = numbers(args.minimum)
    if not minimum:
        raise Failure(f"minimum: {args.minimum!r} is no version; for example 580")
    versions = reported(node) or loaded()
    if not versions:
        raise Failure(
            f"no NVIDIA driver answers on this node (nvidia-smi, {VERSION_FILE}); sparkops never installs drivers: "
            "install the distribution's, reboot, and run this again",
            driver_version=None,
            gpus=0,
        )
    oldest = min(versions, key=numbers)
    gpus = len(versions) if node.which("nvidia-smi") else 0
    if numbers(oldest) < minimum:
        raise Failure(
            f"driver {oldest} is older than {args.minimum}; sparkops never installs drivers: "
            "upgrade it with the distribution's package manager, reboot, and run this again",
            driver_version=oldest,
            gpus=gpus,
        )
    return Outcome.ok(f"driver {oldest}", driver_version=oldest, gpus=gpus)


def numbers(version: str) -> list[int]:
    """A version's parts as numbers; [] when it is none."""
    parts = version.strip().split(".")
    return [int(part) for part in parts] if all(part.isdigit() for part in parts) else []


def reported(node: Node) -> list[str]:
    """The driver's version as nvidia-smi gives it, once a GPU; [] when it does not."""
    argv = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    done = node.run(argv, env={"LC_ALL": "C"}, timeout=60)
    lines = [line.strip() for line in done.out.splitlines()] if done.rc == 0 else []
    return [line for line in lines if numbers(line)]


def loaded() -> list[str]:
    """The version of the kernel module that is loaded; [] when none is."""
    from sparkops.node.facts import read

    head = read(VERSION_FILE).partition("\n")[0]
    return [word for word in head.split() if "." in word and numbers(word)][:1] if head.startswith("NVRM") else []
