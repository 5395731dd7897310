"""The command line as a user meets it: help, errors, exit codes, options before and after the verb."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


def sparkops(*words: str, cwd: Path, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "sparkops.cli.main", *words]
    return subprocess.run(argv, cwd=cwd, input=stdin, capture_output=True, text=True, timeout=60)


@pytest.fixture
def here(tmp_path: Path) -> Path:
    python = f"ansible_connection: local, ansible_python_interpreter: {sys.executable}"
    (tmp_path / "hosts.yml").write_text(f"all: {{hosts: {{one: {{{python}}}}}}}\n")
    (tmp_path / "play.yml").write_text(
        "- hosts: all\n  gather_facts: false\n  tasks:\n"
        "    - copy: {content: x, dest: '{{ inventory_dir }}/out'}\n    - command: 'true'\n      when: go is defined\n"
    )
    return tmp_path


def test_help_imports_neither_ssh_nor_templates(tmp_path: Path) -> None:
    code = "import sys; from sparkops.cli.main import main\ntry: main(['--help'])\nexcept SystemExit: pass\n"
    code += "print(sorted({'paramiko','fabric','jinja2','yaml','rich','msgspec'} & set(sys.modules)), file=sys.stderr)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "provision" in ran.stdout
    assert ran.stderr.strip() == "[]"


def test_a_run_without_templates_imports_no_jinja(here: Path) -> None:
    (here / "plain.yml").write_text("- hosts: all\n  gather_facts: false\n  tasks:\n    - command: 'true'\n")
    code = "import sys; from sparkops.cli.main import main\n"
    code += "try: main(['-i', 'hosts.yml', 'play', 'plain.yml'])\nexcept SystemExit: pass\n"
    code += "print('jinja2' in sys.modules, 'paramiko' in sys.modules, file=sys.stderr)"
    ran = subprocess.run([sys.executable, "-c", code], cwd=here, capture_output=True, text=True, timeout=60)
    assert ran.stderr.strip() == "False False", ran


def test_json_is_one_object_a_line_and_nothing_else(here: Path) -> None:
    ran = sparkops("play", "play.yml", "--json", "-i", "hosts.yml", cwd=here)
    events = [json.loads(line) for line in ran.stdout.splitlines()]
    kinds = [event["event"] for event in events]
    assert kinds == ["run_start", "host_start", "task", "task", "host_end", "recap"]
    task = events[2]
    assert set(task) == {
        "event", "host", "play", "task", "source", "module", "state", "check", "seconds", "msg", "diff", "result",
    }  # fmt: skip
    assert (task["source"], task["module"], task["state"]) == ("play.yml:4:7", "copy", "changed")
    assert events[3]["state"] == "skipped"
    assert events[-1] == {
        "event": "recap",
        "hosts": {"one": {"ok": 1, "changed": 1, "failed": 0, "skipped": 1, "unreachable": 0, "rescued": 0,
                          "ignored": 0, "unknown": 0}},
        "exit_code": 0,
    }  # fmt: skip


def test_globals_may_stand_before_the_verb(here: Path) -> None:
    assert sparkops("-i", "hosts.yml", "--json", "play", "play.yml", cwd=here).returncode == 0
    assert (
        sparkops("-C", str(here), "-i", str(here / "hosts.yml"), "play", str(here / "play.yml"), cwd=here).returncode
        == 0
    )


def test_check_with_exit_code_says_that_something_would_change(here: Path) -> None:
    words = ("-i", "hosts.yml", "play", "play.yml", "--check", "--exit-code")
    assert sparkops(*words, cwd=here).returncode == 3
    sparkops("-i", "hosts.yml", "play", "play.yml", cwd=here)
    assert sparkops(*words, cwd=here).returncode == 0


def test_extra_variables(here: Path) -> None:
    (here / "vars.yml").write_text("go: true\n")
    for given in ("go=1", '{"go": true}', "@vars.yml"):
        ran = sparkops("-i", "hosts.yml", "play", "play.yml", "--json", "-e", given, cwd=here)
        assert json.loads(ran.stdout.splitlines()[3])["state"] == "changed", given


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["provisoin"], 2, "did you mean provision?"),
        (["provision", "one"], 2, "there is no inventory"),
        (["-i", "hosts.yml", "provision", "two"], 2, "no host matches 'two'"),
        (["-i", "hosts.yml", "provision"], 2, "which nodes?"),
        (["-i", "hosts.yml", "provision", "one", "--all-nodes"], 2, "not both"),
        (["-i", "hosts.yml", "deploy", "fp9", "one"], 2, "did you mean fp8"),
        (["-i", "hosts.yml", "deploy", "nvfp4", "one"], 2, "model_source"),
        (["-i", "hosts.yml", "deploy", "fp8", "one", "-e", "kv_cache_memory_bytes=1"], 2, "extends: fp8"),
        (["-i", "hosts.yml", "deploy", "fp8", "one", "-e", "service=a"], 2, "--service NAME"),
        (["-i", "hosts.yml", "deploy", "fp8", "one", "-e", "serve_args=a"], 2, "what the recipe fp8 gives"),
        (["-i", "hosts.yml", "play", "none.yml"], 2, "there is no such file"),
        (["-i", "none.yml", "play", "play.yml"], 2, "none.yml"),
        (["-i", "hosts.yml", "play", "play.yml", "-e", "x"], 2, "is not NAME=VALUE"),
        (["-i", "hosts.yml", "play", "play.yml", "--limit", "nobody"], 2, "nobody"),
        (["-i", "hosts.yml", "remove", "one", "--service", ""], 2, "is no name"),
        (["-i", "hosts.yml", "remove", "one", "--service", ".."], 2, "is no name"),
        (["-C", "nowhere", "-i", "hosts.yml", "play", "play.yml"], 2, "there is no such folder"),
    ],
)
def test_wrong_input_is_one_clear_error(here: Path, words: list[str], code: int, said: str) -> None:
    ran = sparkops(*words, cwd=here)
    assert ran.returncode == code
    assert said in ran.stderr
    assert "Traceback" not in ran.stderr
    assert ran.stdout == ""


def test_a_position_comes_with_its_line_and_a_caret(here: Path) -> None:
    (here / "play.yml").write_text("- hosts: all\n  tasks:\n    - fiel: {path: /x}\n")
    ran = sparkops("-i", "hosts.yml", "play", "play.yml", cwd=here)
    assert "play.yml:3:7: 'fiel' is no module or word of a task" in ran.stderr
    assert "    - fiel: {path: /x}\n" in ran.stderr
    assert "did you mean 'file'?" in ran.stderr


def test_an_unreachable_host_is_exit_4(tmp_path: Path) -> None:
    ran = sparkops("-i", "localhost:1,", "--json", "purge-cache", cwd=tmp_path)
    last = json.loads(ran.stdout.splitlines()[-1])
    assert (ran.returncode, last["exit_code"]) == (4, 4)
    assert last["hosts"]["localhost"]["unreachable"] == 1


def test_play_lists_without_contacting(here: Path) -> None:
    (here / "play.yml").write_text(
        "- hosts: all\n  name: P\n  tasks:\n    - {name: a, command: 'true', tags: [x, y]}\n"
        "    - {name: b, command: 'true', tags: z}\n"
    )
    words = ("-i", "hosts.yml", "play", "play.yml", "--list-hosts", "--list-tasks", "--list-tags", "--tags", "x")
    ran = sparkops(*words, cwd=here)
    assert ran.stdout.splitlines() == [
        "play #1 (all): P",
        "  hosts (1):",
        "    one",
        "  tasks:",
        "    a  TAGS: [x, y]  play.yml:4:7",
        "  task tags: [x, y]",
    ]
    assert json.loads(sparkops(*words, "--json", cwd=here).stdout)[0]["tasks"][0]["tags"] == ["x", "y"]


def test_syntax_check_finds_what_needs_no_host(here: Path) -> None:
    assert "nothing wrong found" in sparkops("-i", "hosts.yml", "play", "play.yml", "--syntax-check", cwd=here).stdout
    (here / "play.yml").write_text("- hosts: none\n  tasks:\n    - command: echo {{ 1 + }}\n      when: a ==\n")
    ran = sparkops("-i", "hosts.yml", "play", "play.yml", "--syntax-check", cwd=here)
    assert ran.returncode == 2
    assert "play.yml:3:" in ran.stderr
    assert "play.yml:4:" in ran.stderr


def test_start_at_task_and_step(here: Path) -> None:
    (here / "play.yml").write_text(
        "- hosts: all\n  gather_facts: false\n  tasks:\n"
        + "".join(f"    - {{name: {name}, command: 'true'}}\n" for name in ("one", "two", "three"))
    )
    ran = sparkops("-i", "hosts.yml", "--json", "play", "play.yml", "--start-at-task", "tw*", cwd=here)
    assert [event["task"] for event in map(json.loads, ran.stdout.splitlines()) if event["event"] == "task"] == [
        "two",
        "three",
    ]
    ran = sparkops("-i", "hosts.yml", "play", "play.yml", "--start-at-task", "thre", cwd=here)
    assert (ran.returncode, "did you mean 'three'" in ran.stderr) == (2, True)
    ran = sparkops("-i", "hosts.yml", "play", "play.yml", "--step", cwd=here, stdin="y\nn\nc\n")
    assert "changed=2" in ran.stdout


def test_a_syntax_check_of_1000_tasks_over_200_hosts_takes_under_3_seconds_of_cpu(tmp_path: Path) -> None:
    import resource

    hosts = "".join(f"    h{number}: {{ansible_connection: local, n: {number}}}\n" for number in range(200))
    (tmp_path / "hosts.yml").write_text(f"all:\n  hosts:\n{hosts}")
    tasks = "".join(
        f"    - {{name: t{number}, copy: {{content: '{{{{ n }}}}', dest: /tmp/{number}}}, when: n != {number}}}\n"
        for number in range(1000)
    )
    (tmp_path / "play.yml").write_text(f"- hosts: all\n  tasks:\n{tasks}")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert sparkops("-i", "hosts.yml", "play", "play.yml", "--syntax-check", cwd=tmp_path).returncode == 0
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 3


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["deploy", "fp8", "-e", "api_key=sk-1"], "sparkops deploy"),
        (["-i", "x", "play", "-veapi_key=sk-1"], "sparkops play"),
        (["--help"], "sparkops"),
    ],
)
def test_what_others_see_of_a_command_has_no_values(words: list[str], told: str) -> None:
    from sparkops.cli.run import _told

    assert _told(words) == told


def test_what_the_system_refuses_is_one_line(here: Path) -> None:
    (here / "hosts.yml").unlink()
    (here / "hosts.yml").symlink_to("/dev/zero")
    ran = sparkops("-i", "hosts.yml", "play", "play.yml", cwd=here)
    assert (ran.returncode, "this is a device" in ran.stderr, "Traceback" in ran.stderr) == (2, True, False)
    with Path("/dev/full").open("w") as full:
        argv = [sys.executable, "-m", "sparkops.cli.main", "recipe", "list"]
        done = subprocess.run(argv, cwd=here, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert "No space left" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_empty_pattern_is_not_all_nodes(here: Path) -> None:
    for verb in ("purge-cache", "status", "logs", "doctor", "bench"):
        assert sparkops("-i", "hosts.yml", verb, "", cwd=here).returncode == 2, verb
