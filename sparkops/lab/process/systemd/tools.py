"""journalctl and loginctl, as far as they concern a user's own units."""

from __future__ import annotations

import getopt
import re
import time

from sparkops.lab.process.control import Reply
from sparkops.lab.process.systemd import timespan
from sparkops.lab.process.systemd.journal import show
from sparkops.lab.process.systemd.manager import Manager

JOURNAL_STYLES = ("short", "short-iso", "short-iso-precise", "cat", "json")
USAGE = 1


def unit_name(word: str) -> str:
    """A unit's full name: .service is understood."""
    return word if "." in word else f"{word}.service"


def journalctl(manager: Manager, argv: list[str]) -> Reply:
    """journalctl [--user] -u UNIT... [-n N|all] [-S TIME] [-g REGEX] [-o STYLE] [--no-pager] [-q] [-r]; client.py does
    -f, with --after-cursor and --show-cursor.
    """
    try:
        options, rest = getopt.gnu_getopt(
            argv,
            "u:n:o:S:g:qrb",
            [
                *("user", "unit=", "user-unit=", "lines=", "output=", "no-pager", "quiet", "reverse", "boot", "since="),
                *("grep=", "no-tail", "after-cursor=", "show-cursor"),
            ],
        )
        given = dict(options)
        if rest:
            raise getopt.GetoptError(f"Failed to add match '{rest[0]}': Invalid argument")
        style = given.get("-o") or given.get("--output") or "short"
        if style not in JOURNAL_STYLES:
            raise getopt.GetoptError(f"Unknown output '{style}' (of the lab's stand-in: {', '.join(JOURNAL_STYLES)}).")
        lines = given.get("-n") or given.get("--lines") or "all"
        count = None if lines == "all" else int(lines)
        since = next((timespan.moment(value, time.time()) for key, value in options if key in ("-S", "--since")), 0.0)
        wanted = given.get("-g", given.get("--grep", ""))
        pattern = re.compile(wanted, re.IGNORECASE if wanted == wanted.lower() else 0)
    except getopt.GetoptError as error:
        return Reply(USAGE, err=f"journalctl: {error}\n")
    except timespan.NoTime as error:
        return Reply(USAGE, err=f"Failed to parse timestamp: {error}\n")
    except re.error as error:
        return Reply(USAGE, err=f'Bad pattern "{wanted}": {error}\n')
    except ValueError:
        return Reply(USAGE, err=f"Failed to parse lines '{lines}'\n")
    names = [unit_name(value) for key, value in options if key in ("-u", "--unit", "--user-unit")]
    entries = manager.journal.read(names or manager.journal.units())
    cursor = entries[-1].time if entries else 0
    after = max(int(given.get("--after-cursor", 0)) + 1, round(since * 1e6))
    entries = [entry for entry in entries if entry.time >= after and pattern.search(entry.message)]
    entries = entries[len(entries) - count if count is not None and count < len(entries) else 0 :]
    if "-r" in given or "--reverse" in given:
        entries.reverse()
    quiet = "-q" in given or "--quiet" in given
    last = f"-- cursor: {cursor}\n" if "--show-cursor" in given else ""
    if not entries:
        return Reply(1 if wanted else 0, ("" if quiet else "-- No entries --\n") + last)
    return Reply(0, "".join(show(entry, manager.host, style) + "\n" for entry in entries) + last)


def loginctl(manager: Manager, argv: list[str]) -> Reply:
    """loginctl enable-linger|disable-linger|show-user [USER] [-p Linger] [--value]."""
    try:
        options, words = getopt.gnu_getopt(argv, "p:P:", ["property=", "value", "no-pager", "no-ask-password"])
    except getopt.GetoptError as error:
        return Reply(USAGE, err=f"loginctl: {error}\n")
    verb, *users = words or ["list-users"]
    user = manager.base["USER"]
    if any(name not in (user, "") for name in users):
        return Reply(USAGE, err=f"Failed to look up user {users[0]}: No such process\n")
    if verb == "enable-linger":
        manager.linger.touch()
        return Reply()
    if verb == "disable-linger":
        manager.linger.unlink(missing_ok=True)
        return Reply()
    if verb == "show-user":
        return Reply(0, shown(options, {"Name": user, "Linger": "yes" if manager.linger.exists() else "no"}))
    return Reply(USAGE, err=f"Unknown command verb '{verb}' (of the lab's stand-in).\n")


def shown(options: list[tuple[str, str]], properties: dict[str, str]) -> str:
    """Properties as `show` prints them: NAME=VALUE lines, all or those asked for, or the values alone."""
    asked = [name for key, value in options if key in ("-p", "-P", "--property") for name in value.split(",")]
    bare = any(key in ("--value", "-P") for key, _ in options)
    chosen = {name: value for name, value in properties.items() if not asked or name in asked}
    return "".join(f"{value}\n" if bare else f"{name}={value}\n" for name, value in chosen.items())
