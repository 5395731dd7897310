"""`sparkops trust`: show and record host keys."""

from __future__ import annotations

import click

from sparkops.cli.options import Globals, with_globals


@click.command()
@click.argument("patterns", metavar="HOST...", nargs=-1, required=True)
@click.option("--replace", is_flag=True, help="Take the new key of a host whose key has changed.")
@click.option("--yes", is_flag=True, help="Ask nothing.")
@with_globals
def trust(given: Globals, patterns: tuple[str, ...], replace: bool, yes: bool) -> int:
    """Show the key that each HOST offers and record it, once you say that the fingerprint is the node's own."""
    from sparkops.cli.run import Workplace
    from sparkops.errors import HostKeyError, SparkopsError
    from sparkops.playbook.template import Templar
    from sparkops.runner.hoststate import connection_address
    from sparkops.transport import hostkeys
    from sparkops.transport.fingerprint import fingerprint

    place, code = Workplace(given), 0
    for host in place.inventory.select(",".join(patterns)):
        address = connection_address(host.name, host.vars, Templar())
        name = hostkeys.entry_name(address)
        try:
            key = hostkeys.offered(address)
            recorded = hostkeys.recorded(address)
            if key in recorded:
                click.echo(f"{host.name}: {name} {key.get_name()} {fingerprint(key)} is recorded already")
                continue
            if recorded and not replace:
                was = ", ".join(f"{old.get_name()} {fingerprint(old)}" for old in recorded)
                raise HostKeyError(
                    f"{name} offers {key.get_name()} {fingerprint(key)}, but recorded is {was}",
                    where=host.name,
                    hint="if the node was reinstalled: sparkops trust --replace " + host.name,
                )
            click.echo(f"{host.name}: {name} offers {key.get_name()} {fingerprint(key)}")
            click.echo("  on the node itself: ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub")
            if not yes and not click.confirm("  is it the same?", default=False):
                click.echo("  not recorded")
                code = code or 4
                continue
            click.echo(f"  recorded in {hostkeys.record(address, key)}")
        except SparkopsError as error:
            from sparkops.cli.main import show

            show(error)
            code = error.exit_code
    return code
