"""`sparkops doc`: the manual of the modules, and of the words of plays, blocks and tasks."""

from __future__ import annotations

import click

from sparkops.cli.options import Globals, with_globals


@click.command()
@click.argument("module", required=False)
@with_globals
def doc(given: Globals, module: str | None) -> None:
    """List the modules and words, or show the manual of MODULE: its arguments, an example, and what its result has.

    MODULE may be a word of plays, blocks and tasks too (`loop`, `serial`, `block`).
    """
    import json

    from sparkops.cli.manpage import listing

    if module is not None:
        click.echo(_page(module, given.as_json))
        return
    from sparkops.playbook import modules
    from sparkops.playbook.manual import synopsis
    from sparkops.playbook.wordbook import WORDS

    lines = {name: synopsis(name) for name in modules.names()}
    meanings = {name: word.meaning for name, word in WORDS.items()}
    if given.as_json:
        click.echo(json.dumps({"modules": lines, "words": meanings}, indent=2))
        return
    click.echo(f"Modules:\n{listing(lines)}\n\nWords of plays, blocks and tasks:\n{listing(meanings)}")


def _page(module: str, as_json: bool) -> str:
    """The manual of a module or word. Raises InputError."""
    import json
    from dataclasses import asdict

    from sparkops.cli.manpage import page, word_page
    from sparkops.playbook import modules
    from sparkops.playbook.manual import manual
    from sparkops.playbook.readtask import plain_name
    from sparkops.playbook.wordbook import WORDS, places

    name = plain_name(module)
    if name in modules.names():
        found = manual(name)
        return json.dumps(asdict(found), indent=2) if as_json else page(found)
    if name in WORDS:
        word = WORDS[name]
        said = {"name": name, "meaning": word.meaning, "takes": word.kind.text, "word_of": places(name)}
        return json.dumps(said, indent=2) if as_json else word_page(name, word)
    from sparkops.errors import InputError
    from sparkops.project.near import did_you_mean

    hint = did_you_mean(name, [*modules.names(), *WORDS], "'sparkops doc' lists all modules and words")
    raise InputError(f"there is no module {module!r}", hint=hint)
