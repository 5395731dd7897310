"""The console script: finds the verb, prints errors, gives the exit code. Verbs are imported when they are called."""

from __future__ import annotations

import importlib
import io
import re
import sys
from collections.abc import Sequence
from typing import Any

import click

from sparkops.cli import entry
from sparkops.errors import InputErrors, SparkopsError

# verb: (module of sparkops.cli, help), in the order that --help shows.
VERBS = {
    "provision": ("provision", "Make nodes ready to serve"),
    "deploy": ("deploy", "Make every node serve its own copy of a recipe"),
    "status": ("status", "Show how the served copies are"),
    "logs": ("logs", "Show what the served copies have logged"),
    "doctor": ("doctor", "Say what is wrong with served copies, and what to do"),
    "verify": ("verify", "Check that served copies are what was deployed; --reboot: also after a reboot"),
    "bench": ("bench", "Measure tokens a second, beside what was published and measured before"),
    "diff": ("diff", "Show what differs between nodes that should be equal"),
    "releases": ("releases", "List what was deployed on nodes, and when"),
    "rollback": ("rollback", "Serve the release before"),
    "start": ("service", "Start served copies"),
    "stop": ("service", "Stop served copies"),
    "restart": ("service", "Restart served copies"),
    "remove": ("remove", "Take away what sparkops made for a service"),
    "purge-cache": ("purge_cache", "Give back the memory that the page cache holds of the models"),
    "play": ("play", "Run a playbook"),
    "recipe": ("recipe", "Show and check recipes, and the command that each means"),
    "engine": ("engine", "Show engines, resolve their locks, verify them on nodes"),
    "checkpoint": ("checkpoint", "Say what a checkpoint is and whether it fits, or give it a draft"),
    "weights": ("weights", "Fetch checkpoints once, and copy them from node to node"),
    "inventory": ("inventory", "Show hosts, groups, and where each variable comes from"),
    "doc": ("doc", "The manual of a module"),
    "schema": ("schema", "JSON Schemas of the files, for editors"),
    "trust": ("trust", "Show and record the host keys of nodes"),
    "lab": ("lab", "Throw-away nodes on this machine, for trying and for testing"),
}


class Verbs(click.Group):
    """A group that imports a verb only to run it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """click's protocol."""
        del ctx
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """click's protocol."""
        del ctx
        if cmd_name not in VERBS:
            return None
        module, _ = VERBS[cmd_name]
        name = cmd_name.replace("-", "_")
        command: click.Command = getattr(importlib.import_module(f"sparkops.cli.{module}"), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """click's protocol; a verb that is nearly one is named."""
        if args and args[0] not in VERBS and not args[0].startswith("-"):
            from difflib import get_close_matches

            near = get_close_matches(args[0], VERBS, 1)
            ctx.fail(f"there is no verb {args[0]!r}" + (f"; did you mean {near[0]}?" if near else ""))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """click's protocol; from the table, so that --help imports no verb."""
        del ctx
        with formatter.section("Verbs"):
            formatter.write_dl([(verb, text) for verb, (_, text) in VERBS.items()])


def _version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from importlib.metadata import version

        click.echo(f"sparkops {version('sparkops')}")
        ctx.exit()


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("-C", "directory", metavar="DIR", help="Project folder (default: this one).")
@click.option("-i", "inventory", metavar="SOURCE", multiple=True, help="Inventory file, folder, or host1,host2,")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line on stdout.")
@click.option("-v", "verbose", count=True, help="Say more; -vvv shows tracebacks.")
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show the version.")
@click.pass_context
def root(ctx: click.Context, /, **given: Any) -> None:
    """Run vLLM on DGX Spark nodes: name nodes and a recipe; running a command again changes nothing."""
    ctx.obj = given


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point. Ends the process with DESIGN's exit codes."""
    words = list(sys.argv[1:] if argv is None else argv)
    loud = sum(word.count("v") for word in words if re.fullmatch("-v+", word)) > 2
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A character that the terminal does not have is no reason to stop.
        sys.stdout.reconfigure(errors="replace")
    code = 0
    try:
        entry.raising()
        result = root.main(words, prog_name="sparkops", standalone_mode=False)
        code = result if isinstance(result, int) else 0
    except SparkopsError as error:
        if loud:
            raise
        show(error)
        code = error.exit_code
    except click.ClickException as error:
        error.show()
        code = 2
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted", err=True)
        code = 130
    except RuntimeError as error:
        # What Python before 3.12 makes of a Ctrl-C while a class of a module is made.
        if not isinstance(error.__cause__, KeyboardInterrupt):
            raise
        click.echo("interrupted", err=True)
        code = 130
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            # Who reads us has seen enough (`| head`).
            sys.stderr.close()
            code = 141
        elif loud:
            raise
        else:
            place = f"{error.filename}: " if error.filename else ""
            click.echo(f"{click.style('error:', fg='red', bold=True)} {place}{error.strerror or error}", err=True)
            code = 2
    sys.exit(code)


def show(error: SparkopsError) -> None:
    """What happened, where, the line, and what to do."""
    from sparkops.project.excerpt import excerpt

    for one in error.errors if isinstance(error, InputErrors) else [error]:
        place = f"{one.where}: " if one.where else ""
        click.echo(f"{click.style('error:', fg='red', bold=True)} {place}{one.message}", err=True)
        line = "" if "\n" in one.message else excerpt(one.where)
        if line:
            click.echo(line, err=True)
        if one.hint:
            click.echo(f"  {one.hint}", err=True)


if __name__ == "__main__":
    main()
