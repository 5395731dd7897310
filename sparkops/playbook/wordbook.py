"""What each word of plays, blocks and tasks means and may hold: for `sparkops doc WORD` and the schema of playbooks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sparkops.playbook import words

Schema = dict[str, Any]

TEMPLATE: Schema = {"type": "string", "pattern": r"\{\{|\{%"}
TEXT: Schema = {"type": "string"}
BOOL: Schema = {
    "anyOf": [{"type": "boolean"}, {"enum": ["yes", "no", "on", "off", "true", "false", 0, 1]}, TEMPLATE],
}
CONDITION: Schema = {"type": ["boolean", "string"]}


@dataclass(frozen=True)
class Kind:
    """What may stand behind a word: in words for people, and as a schema."""

    text: str
    schema: Schema


@dataclass(frozen=True)
class Word:
    """A word: what it means, and what may stand behind it."""

    meaning: str
    kind: Kind


def _one_or_list(item: Schema) -> Schema:
    return {"anyOf": [item, {"type": "array", "items": item}]}


def _list_of(name: str) -> Schema:
    return {"type": ["array", "null"], "items": {"$ref": f"#/$defs/{name}"}}


_ANY = Kind("any value", {})
_TEXT = Kind("text", TEXT)
_NAME = Kind("text", {"type": ["string", "number"]})
_VARIABLE = Kind("a variable's name", {"type": "string", "pattern": r"^[A-Za-z_]\w*$"})
_TEXTS = Kind("text or a list of texts", _one_or_list(TEXT))
_TAGS = Kind("a list, or text with commas", _one_or_list({"type": ["string", "number"]}))
_BOOL = Kind("true or false", BOOL)
_NUMBER = Kind("a number", {"anyOf": [{"type": "number"}, TEMPLATE]})
_VARS = Kind("a mapping", {"type": ["object", "null"]})
_CONDITIONS = Kind("a condition, or a list of which all must hold", _one_or_list(CONDITION))
_LIST = Kind("a list, or a template of one", {"anyOf": [{"type": "array"}, TEMPLATE]})
_ENVIRONMENT = Kind(
    "a mapping, a template of one, or a list of these", _one_or_list({"type": ["object", "string", "null"]})
)
_FILE: Schema = {
    "type": "object", "properties": {"file": TEXT}, "required": ["file"], "additionalProperties": False,
}  # fmt: skip
_TASKS = Kind("a list of tasks", _list_of("step"))
_HANDLERS = Kind("a list of handlers", _list_of("handler_step"))
_PATHS = Kind("names and mappings of files, paths and skip", _one_or_list({"type": ["string", "object", "array"]}))
_VARS_FILES = Kind("names of files; a list among them: the first of it that exists", _one_or_list(_one_or_list(TEXT)))
_BATCH: Schema = {"type": ["integer", "string"]}
_PERCENTAGE: Schema = {"anyOf": [{"type": "number"}, {"type": "string", "pattern": r"^[0-9.]+%?$"}]}

LOOP_CONTROL: dict[str, Word] = {
    "loop_var": Word("the variable that has the item, in place of `item`", _VARIABLE),
    "index_var": Word("the variable that has the item's number, from 0", _VARIABLE),
    "label": Word("what is shown of an item, in place of all of it", _ANY),
    "pause": Word("seconds between one item and the next", Kind("a number", {"type": "number"})),
}
_LOOP_CONTROL = Kind(
    "a mapping of " + "; ".join(f"{name}: {word.meaning}" for name, word in LOOP_CONTROL.items()),
    {
        "type": "object",
        "properties": {name: {"description": word.meaning, **word.kind.schema} for name, word in LOOP_CONTROL.items()},
        "additionalProperties": False,
    },
)

WORDS: dict[str, Word] = {
    "always": Word("Tasks that run at the end of a block, whatever happened in it.", _TASKS),
    "any_errors_fatal": Word(
        "When a task fails on one host, the play ends for all.", Kind("true or false", {"type": "boolean"})
    ),
    "args": Word("More arguments of the module, beside those behind its name.", _VARS),
    "become": Word("Whether to run as another user (root, or become_user) through sudo.", _BOOL),
    "become_user": Word("The user that become means; root without it.", _TEXT),
    "block": Word(
        "Tasks that share the words beside them. A failure in it goes to rescue, when there is one; always comes last.",
        _TASKS,
    ),
    "changed_when": Word("When the task counts as changed, whatever the module says.", _CONDITIONS),
    "check_mode": Word("true: never change anything, as under --check; false: work under --check too.", _BOOL),
    "delay": Word("Seconds between two tries of until; 5 without it.", _NUMBER),
    "delegate_to": Word("The host that the task works on, in place of the one that it is for.", _TEXT),
    "environment": Word("Environment variables of what the task runs on the node.", _ENVIRONMENT),
    "failed_when": Word("When the task counts as failed, whatever the module says.", _CONDITIONS),
    "gather_facts": Word("Whether facts of the hosts are gathered before the first task; true without it.", _BOOL),
    "handlers": Word("Tasks that run once, after a section, if one that changed something notified them.", _HANDLERS),
    "hosts": Word("The pattern of the hosts that the play is for.", _TEXTS),
    "ignore_errors": Word("Whether to go on when the task fails.", _BOOL),
    "import_playbook": Word("The plays of another file, read before the run; its name may have -e's variables.", _TEXT),
    "import_tasks": Word(
        "The tasks of another file in this place, read before the run; its name may have -e's variables. Beside this"
        " file, or in tasks/ there.",
        Kind("a file's name", {"anyOf": [TEXT, _FILE]}),
    ),
    "listen": Word("Other names by which the handler can be notified.", _TEXTS),
    "loop": Word("Run the task for each item of a list; `item` is the one it is at.", _LIST),
    "loop_control": Word("How a loop names things, and what is shown of it.", _LOOP_CONTROL),
    "max_fail_percentage": Word(
        "The play ends for all when more than this part of a batch has failed.", Kind("a percentage", _PERCENTAGE)
    ),
    "name": Word("What people are shown; a handler is notified by it.", _NAME),
    "no_log": Word("Whether to show and keep nothing of the task's arguments and result.", _BOOL),
    "notify": Word("The handlers to run when the task changed something.", _TEXTS),
    "post_tasks": Word("Tasks after tasks and the handlers that those notified.", _TASKS),
    "pre_tasks": Word("Tasks before all others; handlers that they notify run before tasks.", _TASKS),
    "register": Word("The variable that gets the task's result.", _VARIABLE),
    "rescue": Word("Tasks that run when one of the block failed; when they end well, that is no failure.", _TASKS),
    "retries": Word("How often until tries again; 3 without it.", _NUMBER),
    "run_once": Word("Whether to run for the batch's first host only; its result is every host's.", _BOOL),
    "serial": Word(
        "How many hosts at a time go through the play: a number or \"50%\"; a list gives the batches one by one.",
        Kind("a number, a percentage, or a list of these", _one_or_list(_BATCH)),
    ),
    "tags": Word("Words by which --tags and --skip-tags choose; `always` and `never` mean what they say.", _TAGS),
    "tasks": Word("The play's tasks, in their order.", _TASKS),
    "timeout": Word("Seconds after which the task is ended and has failed.", _NUMBER),
    "until": Word("Run the task again until this holds, as often as retries says, with delay in between.", _CONDITIONS),
    "vars": Word("Variables for what the word stands in.", _VARS),
    "vars_files": Word("Files of variables for the play.", _VARS_FILES),
    "when": Word("Only when this holds; for each item of a loop by itself.", _CONDITIONS),
    "with_dict": Word(
        "Loop over a mapping: item.key and item.value.",
        Kind("a mapping, or a template of one", {"type": ["object", "string", "array"]}),
    ),
    "with_file": Word("Loop over the texts of files of the controller.", _TEXTS),
    "with_fileglob": Word("Loop over the paths of the controller's files that a glob matches, in files/.", _TEXTS),
    "with_first_found": Word("Loop over one path: of the first of these files that exists.", _PATHS),
    "with_indexed_items": Word("Loop over a list: item.0 is the number, from 0, and item.1 the item.", _LIST),
    "with_items": Word("Loop over items; a list among them is taken apart, one level deep.", _ANY),
    "with_list": Word("Loop over a list as it is.", _LIST),
    "with_nested": Word("Loop over every combination of the items of lists: item.0, item.1, ...", _LIST),
    "with_sequence": Word("Loop over numbers, as text: start=1 end=9 stride=2 format=node%02d, or count=3.", _TEXTS),
    "with_subelements": Word(
        "Loop over the lists inside items: [ITEMS, KEY]; item.0 is the item, item.1 an element of its list KEY.", _LIST
    ),
    "with_together": Word("Loop over several lists side by side: item.0, item.1, ...", _LIST),
}  # fmt: skip

PLACES: dict[str, frozenset[str]] = {
    "play": words.PLAY,
    "import_playbook": words.IMPORT_PLAYBOOK,
    "block": words.BLOCK,
    "task": words.TASK,
    "handler": words.HANDLER,
    "import_tasks": words.IMPORT | {"import_tasks"},
    "include_tasks": words.INCLUDE,
}


def places(word: str) -> list[str]:
    """Where a word may stand."""
    return [place for place, known in PLACES.items() if word in known]
