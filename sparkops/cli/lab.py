"""`sparkops lab`: throw-away nodes on this machine."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    from sparkops.lab.driver import Driver
    from sparkops.lab.lab import Lab

dir_option = click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(".lab"),
    show_default=True,
    help="The folder that holds the lab.",
)
command_argument = click.argument("argv", metavar="-- CMD...", nargs=-1, required=True, type=click.UNPROCESSED)


@click.group()
def lab() -> None:
    """Throw-away nodes on this machine, to try things on."""


@lab.command()
@dir_option
@click.option("--driver", "kind", type=click.Choice(["nspawn", "process"]), required=True, help="What the nodes are.")
@click.option("--nodes", type=click.IntRange(1, 200), required=True, help="How many: spark-1 to spark-N.")
@click.option("--sudo-password", "passwords", multiple=True, metavar="NODE=PASSWORD", help="sudo asks on this node.")
@click.option(
    "--token-rate", type=click.FloatRange(min=0, min_open=True), help="Tokens a second of the stand-in engine."
)
def up(folder: Path, kind: str, nodes: int, passwords: tuple[str, ...], token_rate: float | None) -> None:
    """Start a lab. nspawn: containers with systemd (root, Linux). process: simulated nodes (anyone)."""
    from sparkops.lab.driver import driver
    from sparkops.lab.lab import Lab

    at = driver(kind)
    it = Lab.create(folder, kind, nodes, passwords=_passwords(passwords), environment=_environment(token_rate))
    try:
        at.up(it)
    except BaseException:
        # Also on Ctrl-C: nothing half started stays.
        at.down(it)
        it.remove()
        raise
    if kind == "process":
        click.echo("These nodes are simulated: programs of this machine, run as you.", err=True)
    _print_status(at.status(it))
    click.echo(
        f"Reach them with: sparkops lab run --dir {folder} -- sparkops -i {folder}/inventory.yml provision --all-nodes",
        err=True,
    )


@lab.command()
@dir_option
@command_argument
def run(folder: Path, argv: tuple[str, ...]) -> None:
    """Run CMD here, where the lab's nodes can be reached."""
    it, at = _load(folder)
    raise SystemExit(at.run(it, argv))


@lab.command("exec")
@dir_option
@click.argument("node")
@command_argument
def exec_(folder: Path, node: str, argv: tuple[str, ...]) -> None:
    """Run CMD as root on NODE, without SSH."""
    it, at = _load(folder)
    raise SystemExit(at.exec(it, node, argv))


@lab.command()
@dir_option
@click.argument("node")
def reboot(folder: Path, node: str) -> None:
    """Reboot NODE, and wait until it is back."""
    _on_node(folder, node, lambda at: at.reboot)


@lab.command()
@dir_option
@click.argument("node")
def poweroff(folder: Path, node: str) -> None:
    """Shut NODE down."""
    _on_node(folder, node, lambda at: at.poweroff)


@lab.command()
@dir_option
@click.argument("node")
def cut(folder: Path, node: str) -> None:
    """Pull NODE's network cable."""
    _on_node(folder, node, lambda at: at.cut)


@lab.command()
@dir_option
@click.argument("node")
def mend(folder: Path, node: str) -> None:
    """Put NODE's network cable back, and start NODE if it is off."""
    _on_node(folder, node, lambda at: at.mend)


@lab.command()
@dir_option
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def status(folder: Path, as_json: bool) -> None:
    """How the nodes are."""
    it, at = _load(folder)
    states = at.status(it)
    if as_json:
        nodes = {n.name: {"address": n.address, "port": n.port, "state": states[n.name]} for n in it.nodes}
        click.echo(json.dumps({"dir": str(it.dir), "driver": it.driver, "nodes": nodes}))
    else:
        _print_status(states)


@lab.command()
@dir_option
def down(folder: Path) -> None:
    """End the lab and remove all that it made."""
    if not (folder / "lab.json").exists():
        click.echo(f"No lab is up in {folder}.", err=True)
        return
    it, at = _load(folder)
    at.down(it)
    it.remove()


def _load(folder: Path) -> tuple[Lab, Driver]:
    from sparkops.lab.driver import driver
    from sparkops.lab.lab import Lab

    it = Lab.load(folder)
    return it, driver(it.driver)


def _on_node(folder: Path, node: str, method: Callable[[Driver], Callable[[Lab, str], None]]) -> None:
    it, at = _load(folder)
    method(at)(it, node)


def _environment(token_rate: float | None) -> dict[str, str]:
    """What the stand-in engine is told: SPARKOPS_LAB_... of this command's own environment, and the token rate."""
    told = {name: value for name, value in os.environ.items() if name.startswith("SPARKOPS_LAB_")}
    return told if token_rate is None else {**told, "SPARKOPS_LAB_TOKEN_RATE": f"{token_rate:g}"}


def _passwords(words: tuple[str, ...]) -> dict[str, str]:
    """NODE=PASSWORD words as a dict."""
    passwords = {}
    for word in words:
        node, equals, password = word.partition("=")
        if not (node and equals and password) or "\n" in password:
            # The word is not repeated: it may be a password.
            raise click.BadParameter("write it as NODE=PASSWORD", param_hint="--sudo-password")
        passwords[node] = password
    return passwords


def _print_status(states: dict[str, str]) -> None:
    for node, state in states.items():
        click.echo(f"{node}: {state}")
