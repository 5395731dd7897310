"""Broken playbooks and inventories: an error that says where, or a run; never a traceback, never a hang."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sparkops.errors import HostUnreachable, InputError, InputErrors, SparkopsError
from sparkops.events import Event, HostEnd
from sparkops.inventory.inventory import load
from sparkops.playbook import modules, words
from sparkops.playbook.files import Files
from sparkops.playbook.parse import playbook
from sparkops.playbook.template import Templar
from sparkops.runner.options import Options
from sparkops.runner.run import Run, Target
from sparkops.runner.walk import Walk
from sparkops.transport.address import Address
from sparkops.transport.session import Session
from tests.playbook.mutations import broken

LIMIT = 20  # seconds; the slowest takes about one
PLAYBOOK = """\
- name: the play
  hosts: all
  gather_facts: false
  become: false
  serial: [1, "50%"]
  vars:
    model: {name: qwen, size: 27}
    greeting: "hello {{ model.name }}"
  vars_files: [more.yml]
  pre_tasks:
    - name: say
      debug:
        msg: "{{ greeting }} from {{ inventory_hostname }}"
      tags: [always, said]
  tasks:
    - name: remember
      set_fact:
        found: "{{ model.size + 1 }}"
      when:
        - model.size > 20
        - inventory_hostname in groups.all
    - name: several
      debug: {msg: "{{ item.key }} {{ loop_index }}"}
      loop: "{{ model | dict2items }}"
      loop_control:
        index_var: loop_index
      register: several
      until: several is succeeded
      retries: 2
      delay: 0
    - block:
        - name: check
          assert:
            that: [found | int == 28, greeting is match('hello')]
            fail_msg: "found {{ found }}"
          changed_when: false
        - include_tasks: tasks.yml
          vars: {depth: 1}
      rescue:
        - debug: {var: ansible_failed_task.name}
      always:
        - name: last
          debug: msg="the last {{ found | default('none') }}"
          notify: [handled, topic]
          changed_when: true
    - name: folder
      file: path=/nonexistent/{{ inventory_hostname }} state=directory mode="0755"
      when: false
    - name: file
      copy:
        content: "{{ several.results | length }}"
        dest: /nonexistent/file
        mode: "0644"
      environment: {LANG: C}
      delegate_to: localhost
      ignore_errors: true
      no_log: true
  handlers:
    - name: handled
      debug: {msg: handled}
      listen: topic
- import_playbook: second.yml
  when: model is defined
"""
SECOND = "- hosts: sparks\n  gather_facts: false\n  tasks:\n    - import_tasks: tasks.yml\n"
TASKS = "- name: in a file\n  debug: {msg: '{{ depth | default(0) }}'}\n  register: deep\n"
INVENTORY = """\
all:
  vars:
    region: here
    models: [a, b]
  hosts:
    gate:
      ansible_host: 192.0.2.1
  children:
    sparks:
      hosts:
        spark-[1:3]:
        spark-9: {ansible_port: 2222, note: "{{ region }}-{{ models | first }}"}
      vars:
        ansible_user: spark
        limits: {low: 1, high: 10}
    spare:
      children:
        old:
          hosts: {spark-9: }
"""


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits, waits no time."""
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    monkeypatch.setattr(Walk, "sleep", lambda walk, seconds: None)


class TooSlow(BaseException):
    """Not an Exception, so that nothing swallows it."""


@contextmanager
def limited() -> Iterator[None]:
    """At most LIMIT seconds."""

    def alarm(*_: object) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGALRM, alarm)
    signal.alarm(LIMIT)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _unreachable(address: Address) -> Session:
    raise HostUnreachable(f"{address.name} is not there", where=address.name)


def attempt(folder: Path, **files: str | bytes) -> list[SparkopsError]:
    """Run play.yml on hosts.yml as far as no host is needed; what was wrong. Raises whatever is a bug."""
    for name, text in {
        "hosts": INVENTORY,
        "play": PLAYBOOK,
        "second": SECOND,
        "tasks": TASKS,
        "more": "{}",
        **files,
    }.items():
        data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
        (folder / f"{name}.yml").write_bytes(data)
    events: list[Event] = []
    templar = Templar()
    with limited():
        try:
            inventory = load([str(folder / "hosts.yml")], also=[folder])
            plays = playbook(folder / "play.yml", lambda value: templar.render(value, {}))
            found = Files(lambda _: [], lambda _: {})
            options = Options(state_dir=str(folder / "state"), lease=False)
            run = Run(plays, Target(inventory), options, events.append, found, _unreachable, [folder])
            run.check()
            run.execute()
        except InputErrors as several:
            return several.errors
        except SparkopsError as error:
            return [error]
    ends = [event for event in events if isinstance(event, HostEnd) and event.state == "failed" and event.msg]
    assert not [event.msg for event in ends if "a bug in sparkops" in event.msg]
    return [InputError(event.msg, where=event.msg.split(": ")[0]) for event in ends]


def test_what_is_broken_later_is_good(tmp_path: Path) -> None:
    assert attempt(tmp_path) == []


@pytest.mark.parametrize("seed", range(150))
def test_a_broken_playbook(tmp_path: Path, seed: int) -> None:
    for error in attempt(tmp_path, play=broken(PLAYBOOK, seed)):
        assert isinstance(error, InputError)
        assert str(error.where).startswith(str(tmp_path)), repr(error)


@pytest.mark.parametrize("seed", range(60))
def test_a_broken_inventory(tmp_path: Path, seed: int) -> None:
    for error in attempt(tmp_path, hosts=broken(INVENTORY, seed)):
        assert isinstance(error, InputError)
        assert str(error.where).startswith(str(tmp_path)), repr(error)


DEEP = sys.getrecursionlimit() * 20
PLAY = "- hosts: all\n  gather_facts: false\n"
LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{this}: &{this} [{', '.join([f'*{before}'] * 9)}]\n"
    for before, this in zip("abcdefghi", "bcdefghij", strict=True)
)
HOSTILE: dict[str, dict[str, str | bytes]] = {
    "imports itself": {
        "play": f"{PLAY}  tasks: [{{import_tasks: tasks.yml}}]",
        "tasks": "- import_tasks: tasks.yml\n" * 9,
    },
    "imports in a circle": {
        "play": f"{PLAY}  tasks: [{{import_tasks: tasks.yml}}]",
        "tasks": "- import_tasks: more.yml\n- import_tasks: more.yml\n",
        "more": "- import_tasks: tasks.yml\n- import_tasks: tasks.yml\n",
    },
    "playbook imports itself": {"play": "- import_playbook: play.yml\n- import_playbook: play.yml\n"},
    "includes itself": {
        "play": f"{PLAY}  tasks: [{{include_tasks: tasks.yml}}]",
        "tasks": "- include_tasks: tasks.yml\n",
    },
    "includes itself in a loop": {
        "play": f"{PLAY}  tasks: [{{include_tasks: tasks.yml}}]",
        "tasks": "- include_tasks: tasks.yml\n  loop: [1, 2, 3]\n",
    },
    "handlers notify one another": {
        "play": f"{PLAY}  tasks: [{{debug: , changed_when: true, notify: h}}]\n"
        "  handlers:\n    - {name: h, debug: , changed_when: true, notify: i}\n"
        "    - {name: i, debug: , changed_when: true, notify: h}\n",
    },
    "a variable of itself": {
        "play": f"{PLAY}  vars: {{v: '{{{{ v }}}}'}}\n  tasks: [{{debug: {{msg: '{{{{ v }}}}'}}}}]"
    },
    "variables of one another": {
        "play": f"{PLAY}  vars: {{v: '{{{{ w }}}}', w: '{{{{ v }}}}'}}\n  tasks: [{{debug: {{msg: '{{{{ v }}}}'}}}}]"
    },
    "an inventory variable of itself": {
        "hosts": "all: {hosts: {a: }, vars: {v: '{{ v }}'}}",
        "play": f"{PLAY}  tasks: [{{debug: {{msg: '{{{{ v }}}}'}}}}]",
    },
    "a group in itself": {"hosts": "a: {children: {b: {children: {a: }}}}"},
    "deep flow lists": {"play": f"{PLAY}  tasks: {'[' * DEEP}{']' * DEEP}"},
    "deep mappings": {"play": f"{PLAY}  vars: {'{a: ' * DEEP}1{'}' * DEEP}"},
    "deep blocks": {"play": f"{PLAY}  tasks: {'[{block: ' * 2000}[]{'}]' * 2000}"},
    "deep template": {"play": f"{PLAY}  tasks: [{{debug: {{msg: '{{{{ {'(' * DEEP}1{')' * DEEP} }}}}'}}}}]"},
    "deep inventory": {"hosts": "all: {hosts: {a: {v: " + "[" * DEEP + "]" * DEEP + "}}}"},
    "many laughs": {
        "more": LAUGHS,
        "play": f"{PLAY}  vars_files: [more.yml]\n  tasks: [{{debug: {{msg: '{{{{ j | length }}}}'}}}}]",
    },
    "an anchor in itself": {"play": f"{PLAY}  vars: &v {{a: *v}}\n  tasks: []"},
    "a huge number": {"play": f"{PLAY}  vars: {{n: {'9' * 50000}}}\n  tasks: [{{debug: {{msg: '{{{{ n }}}}'}}}}]"},
    "a huge range of hosts": {"hosts": "all: {hosts: {'n[1:999999999999]': }}"},
    "a huge loop": {"play": f"{PLAY}  tasks: [{{debug: , loop: '{{{{ range(10 ** 12) | list }}}}'}}]"},
    "a huge serial": {"play": f"{PLAY}  serial: {'9' * 5000}\n  tasks: [{{debug: }}]"},
    "serial of nonsense": {"play": f"{PLAY}  serial: [-1, nan%, 1e999%, '%']\n  tasks: [{{debug: }}]"},
    "failures without end": {"play": f"{PLAY}  max_fail_percentage: nan\n  tasks: [{{debug: }}]"},
    "retries without end": {"play": f"{PLAY}  tasks: [{{debug: , until: false, retries: .inf, delay: 0}}]"},
    "a pause without end": {"play": f"{PLAY}  tasks: [{{pause: {{seconds: .inf}}}}]"},
    "a template that never closes": {"play": f"{PLAY}  tasks: [{{debug: {{msg: '{{{{ a'}}}}]"},
    "a block that never closes": {"play": f"{PLAY}  tasks: [{{debug: {{msg: '{{% if true %}}'}}}}]"},
    "a quote that never closes": {"play": f'{PLAY}  tasks: [{{debug: "msg=\'a"}}]'},
    "a condition that is none": {"play": f"{PLAY}  tasks: [{{debug: , when: 'a =='}}]"},
    "a condition of a list": {"play": f"{PLAY}  tasks: [{{debug: , when: [[a]]}}]"},
    "a regex that is none": {"play": f"{PLAY}  tasks: [{{debug: {{msg: \"{{{{ 'a' | regex_search('(') }}}}\"}}}}]"},
    "random bytes": {"play": bytes(range(256)) * 8},
    "another encoding": {"play": PLAYBOOK.encode("utf-16")},
    "half a character": {"play": PLAYBOOK.encode() + b"\xc3"},
    "a lone surrogate": {"play": PLAYBOOK + "# \ud800"},
    "nothing": {"play": "", "hosts": ""},
    "only a text": {"play": "hello", "hosts": "hello"},
    "only a number": {"play": "1", "hosts": "1"},
    "null everywhere": {
        "play": "- hosts: all\n  tasks: [null]\n  vars: null\n  handlers: [null]\n  vars_files: [null]"
    },
    "keys of other kinds": {"play": f"{PLAY}  tasks: [{{1: x}}, {{null: y}}, {{[a, b]: z}}, {{true: w}}]"},
    "the same key twice": {"play": f"{PLAY}  tasks: [{{debug: , debug: {{msg: x}}}}]"},
    "words of other kinds": {
        "play": f"{PLAY}  tasks: [{{debug: , register: 1, notify: 2, tags: {{a: b}}, loop: 3, when: {{a: b}}}}]"
    },
    "names of other kinds": {
        "play": "- {hosts: {a: b}, name: [x], tasks: {a: b}}\n- {hosts: 1.5, gather_facts: [x], tasks: x}"
    },
    "two documents": {"play": f"{PLAY}  tasks: []\n---\n{PLAY}  tasks: []\n"},
    "a tag of Python": {"play": f"{PLAY}  vars: {{v: !!python/object/apply:os.system [id]}}\n  tasks: []"},
}


# What is odd, and yet can be carried out.
HARMLESS = frozenset(("handlers notify one another",))


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_input(tmp_path: Path, name: str) -> None:
    errors = attempt(tmp_path, **HOSTILE[name])
    assert bool(errors) != (name in HARMLESS)
    for error in errors:
        assert isinstance(error, InputError)
        assert str(error.where).startswith(str(tmp_path)), repr(error)


KINDS = (
    "null",
    "true",
    "-1",
    "1.5",
    ".nan",
    ".inf",
    "text",
    "'{{ nosuch }}'",
    "'{{'",
    "[]",
    "[1]",
    "[null]",
    "{}",
    "{a: b}",
)
EVERYWHERE = sorted(words.TASK | words.BLOCK | words.PLAY | words.LOOP_CONTROL | words.ANSIBLES | words.IMPORT_PLAYBOOK)


@pytest.mark.parametrize("word", EVERYWHERE)
def test_words_with_values_of_every_kind(tmp_path: Path, word: str) -> None:
    """At every place where a word may stand, or may not."""
    for kind in KINDS:
        told = f"{word}: {kind}"
        for play in (
            f"{PLAY}  {told}\n",
            f"{PLAY}  tasks:\n    - debug:\n      loop_control: {{{told}}}\n      loop: [1]\n",
            f"{PLAY}  tasks:\n    - command: 'true'\n      {told}\n      until: true\n",
            f"{PLAY}  tasks:\n    - debug:\n      changed_when: true\n      {told}\n      loop: [1]\n",
            f"{PLAY}  tasks:\n    - block: [{{debug: }}]\n      {told}\n",
            f"{PLAY}  tasks:\n    - include_tasks: tasks.yml\n      {told}\n",
            f"{PLAY}  tasks:\n    - import_tasks: tasks.yml\n      {told}\n",
            f"- import_playbook: second.yml\n  {told}\n",
        ):
            for error in attempt(tmp_path, play=play):
                assert isinstance(error, InputError)
                assert str(error.where).startswith(str(tmp_path)), (play, repr(error))


@pytest.mark.parametrize("name", [name for name in modules.names() if not modules.runs_on_node(name)])
def test_arguments_of_every_kind(tmp_path: Path, name: str) -> None:
    for argument in (*modules.module(name).fields, "nosuch"):
        for kind in KINDS:
            play = f"{PLAY}  tasks:\n    - {name}:\n        {argument}: {kind}\n"
            for error in attempt(tmp_path, play=play):
                assert isinstance(error, InputError)
                assert str(error.where).startswith(str(tmp_path)), (play, repr(error))
