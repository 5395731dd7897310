"""The schemas take every file that sparkops ships, and refuse what sparkops refuses."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from sparkops.cli.schema import KINDS, document
from sparkops.inventory.yaml_source import WORDS as GROUP_WORDS
from sparkops.playbook import modules
from sparkops.playbook.manual import manual

ROOT = Path(__file__).parents[2]
RECIPES = ROOT / "sparkops" / "recipes"
SHIPPED = [
    *(("playbook", path) for path in (ROOT / "playbooks").glob("*.yml") if path.name != "defaults.yml"),
    ("inventory", ROOT / "inventory" / "hosts.yml"),
    *(("recipe", path) for path in (RECIPES / "recipes").glob("*.yml")),
    *(("engine", path) for path in (RECIPES / "engines").glob("*.yml")),
    *(("patch", path) for path in (RECIPES / "patches").glob("*.yml")),
]


def plain(value: Any) -> Any:
    """As JSON has it: dates are texts."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value.isoformat() if isinstance(value, datetime.date) else value


def wrong(kind: str, text: str) -> bool:
    """Whether the schema refuses a document."""
    validator = jsonschema.Draft202012Validator(document(kind))
    return not validator.is_valid(plain(yaml.safe_load(text)))


@pytest.mark.parametrize("kind", KINDS)
def test_each_is_a_schema(kind: str) -> None:
    jsonschema.Draft202012Validator.check_schema(document(kind))


@pytest.mark.parametrize(("kind", "path"), SHIPPED, ids=lambda value: getattr(value, "name", value))
def test_shipped_files_are_right(kind: str, path: Path) -> None:
    jsonschema.validate(plain(yaml.safe_load(path.read_text("utf-8"))), document(kind), jsonschema.Draft202012Validator)


@pytest.mark.parametrize(("kind", "path"), SHIPPED, ids=lambda value: getattr(value, "name", value))
def test_a_typo_in_each_is_refused(kind: str, path: Path) -> None:
    lines = path.read_text("utf-8").splitlines()
    first = next(n for n, line in enumerate(lines) if line and line.lstrip("- ")[:1].isalpha() and ":" in line)
    # In an inventory the first word names a group, which may be anything; the next is fixed.
    place = first + 1 if kind == "inventory" else first
    lines[place] = lines[place].replace(":", "x:", 1)
    assert wrong(kind, "\n".join(lines))


@pytest.mark.parametrize("name", modules.names())
def test_every_module_example_is_right(name: str) -> None:
    tasks = yaml.safe_load(manual(name).example)
    jsonschema.validate(
        plain([{"hosts": "all", "tasks": tasks}]), document("playbook"), jsonschema.Draft202012Validator
    )


def test_the_words_of_groups() -> None:
    assert GROUP_WORDS == ("hosts", "vars", "children")


TASK = "- hosts: all\n  tasks:\n    - {}\n"


@pytest.mark.parametrize(
    "task",
    [
        "file: {path: /x, state: directory}",
        "ansible.builtin.file: {dest: /x, mode: '0644'}",
        "file: {path: /x, recurse: '{{ deep }}'}",
        "file: {path: /x, recurse: yes}",
        "command: uptime -p",
        "command:\n      args: {cmd: x}",
        "{command: {argv: [a, 1]}, when: [a, true], tags: [x], register: out, become: '{{ b }}'}",
        "{apt: {name: a}, loop: '{{ l }}', changed_when: false, no_log: true}",
        "apt: {name: [a, b], update-cache: yes, cache_valid_time: '60'}",
        "file: path=/x state=directory",
        "{block: [{command: x}], rescue: [{fail: null}], always: [{block: [{command: y}]}], when: a, name: b}",
        "import_tasks: x.yml",
        "{ansible.builtin.import_tasks: {file: x.yml}, when: a, tags: a, vars: {b: 1}}",
        "{include_tasks: '{{ x }}.yml', loop: [1], loop_control: {loop_var: n, label: '{{ n }}', pause: 1}}",
        "{ansible.builtin.include_tasks: {file: x.yml}, when: a}",
        "{command: x, until: a.rc == 0, retries: 5, delay: '{{ d }}', register: a}",
        "{command: x, with_items: [[1], 2], environment: {A: b}, run_once: true, delegate_to: localhost, timeout: 5}",
        "{command: x, with_dict: {a: 1}}",
        "{command: x, with_subelements: [[], k]}",
        "{command: x, with_sequence: count=3}",
        "{command: x, with_first_found: [a, {files: [b], skip: true}]}",
        "meta: flush_handlers",
        "assert: {that: [a, true, b is defined], msg: no}",
        "assert: {that: a == b}",
        "set_fact: {anything: [1], cacheable: yes}",
        "set_fact: a=1",
        "{debug: {var: a.b}, check_mode: no, ignore_errors: '{{ x }}'}",
        "include_vars: x.yml",
        "pause: {minutes: 1}",
    ],
)
def test_tasks_that_are_right(task: str) -> None:
    assert not wrong("playbook", TASK.format(task))


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "[]",
        "- name: x\n",
        "- hosts: all\n  taks: []\n",
        TASK.format("name: no module"),
        TASK.format("{file: {path: /x}, copy: {dest: /y}}"),
        TASK.format("fil: {path: /x}"),
        TASK.format("file: {pth: /x}"),
        TASK.format("file: {state: directory}"),
        TASK.format("file: {path: /x, state: folder}"),
        TASK.format("file: {path: /x, mode: 420}"),
        TASK.format("file: {path: /x, recurse: maybe}"),
        TASK.format("file: {path: [/x]}"),
        TASK.format("apt: {name: x, cache_valid_time: soon}"),
        TASK.format("{command: x, register: 1x}"),
        TASK.format("{command: x, when: 5}"),
        TASK.format("{block: [{commnd: x}]}"),
        TASK.format("{block: [{command: x}], rescu: []}"),
        TASK.format("{block: [{command: x}], always: [{fil: null}]}"),
        TASK.format("{block: [{command: x}], loop: [1]}"),
        TASK.format("{rescue: [{command: x}]}"),
        TASK.format("{import_tasks: x.yml, loop: [1]}"),
        TASK.format("{import_tasks: {name: x.yml}}"),
        TASK.format("{include_tasks: x.yml, register: a}"),
        TASK.format("{include_tasks: x.yml, command: a}"),
        TASK.format("{command: x, listen: a}"),
        TASK.format("{command: x, with_flattened: [1]}"),
        TASK.format("{command: x, loop: a}"),
        TASK.format("{command: x, loop_control: {loopvar: a}}"),
        TASK.format("{command: x, retries: many}"),
        TASK.format("meta: flush_handler"),
        TASK.format("assert: {that: [5]}"),
        TASK.format("assert: {msg: no}"),
        TASK.format("fail: {message: no}"),
        "- {hosts: all, roles: [a]}\n",
        "- {hosts: all, serial: true}\n",
        "- {hosts: all, max_fail_percentage: many}\n",
        "- {hosts: all, pre_tasks: [{fil: null}]}\n",
        "- {hosts: all, handlers: [{command: x, lissen: a}]}\n",
        "- {import_playbook: x.yml, hosts: all}\n",
        "- import_playbook: [x.yml]\n",
    ],
)
def test_playbooks_that_are_wrong(text: str) -> None:
    assert wrong("playbook", text)


@pytest.mark.parametrize(
    "text",
    [
        "- {import_playbook: x.yml, when: a, vars: {b: 1}, tags: [c]}\n",
        "- ansible.builtin.import_playbook: x.yml\n",
        "- {hosts: [a, b], pre_tasks: [{command: x}], post_tasks: [{command: y}], vars_files: [a, [b, c]]}\n",
        "- {hosts: all, serial: [1, '50%'], max_fail_percentage: 30, any_errors_fatal: true, gather_facts: no}\n",
        "- {hosts: all, handlers: [{command: x, listen: a}, {block: [{command: y}]}, {import_tasks: h.yml}]}\n",
    ],
)
def test_plays_that_are_right(text: str) -> None:
    assert not wrong("playbook", text)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("inventory", "hosts: {a: null}"),
        ("inventory", "plugin: x"),
        ("inventory", "g: {host: {a: null}}"),
        ("inventory", "g: {hosts: [a]}"),
        ("inventory", "g: {children: {h: {hots: null}}}"),
        ("inventory", "g: {hosts: {a: {ansible_port: 0}}}"),
        ("inventory", "g: {vars: [a]}"),
        ("inventory", "[]"),
        ("settings", "fork: 3"),
        ("settings", "forks: many"),
        ("settings", "inventory: hosts.yml"),
    ],
)
def test_others_that_are_wrong(kind: str, text: str) -> None:
    assert wrong(kind, text)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("inventory", "g: null"),
        ("inventory", "all: {hosts: {a: null, 'b[1:3]': {x: 1, port: 80}}, children: {g: null}, vars: null}"),
        ("inventory", "g: {hosts: a, vars: {any: [1]}}"),
        ("settings", "{}"),
        ("settings", "inventory: [hosts.yml]\nforks: 4\nknown_hosts: null"),
    ],
)
def test_others_that_are_right(kind: str, text: str) -> None:
    assert not wrong(kind, text)


def test_fields_are_described_by_their_comments() -> None:
    recipe = document("recipe")["$defs"]["Requires"]["properties"]
    assert recipe["driver"]["description"].startswith("NVIDIA driver")
    file = document("playbook")["$defs"]["module_file"]["anyOf"][0]["properties"]
    assert file["recurse"]["description"] == "a directory's contents too."
