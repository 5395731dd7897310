"""lineinfile against Ansible's own, case by case: the same text, the same changed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sparkops.node.api import Failure

TEXT = "[a]\n# port = 1\nport = 2\nport = 3\nhost = x\n"
CASES: list[tuple[str, str | None, dict[str, Any]]] = [
    ("replaces the last that matches", TEXT, {"regexp": "^port", "line": "port = 9"}),
    ("replaces the first", TEXT, {"regexp": "port", "line": "port = 9", "firstmatch": True}),
    ("by a text", TEXT, {"search_string": "port = 3", "line": "port = 9"}),
    ("is there", TEXT, {"line": "port = 2"}),
    ("is there and the expression is not", TEXT, {"regexp": "^nope", "line": "port = 2"}),
    ("adds at the end", TEXT, {"regexp": "^nope", "line": "x = 1"}),
    ("adds to a last line without an end", "a\nb", {"line": "c"}),
    ("ends the last line", "a\nb", {"line": "b"}),
    ("adds at the top", TEXT, {"line": "x", "insertbefore": "BOF"}),
    ("adds at the top, said otherwise", TEXT, {"line": "x", "insertafter": "BOF"}),
    ("adds after the last", TEXT, {"line": "x", "insertafter": "port"}),
    ("adds after the first", TEXT, {"line": "x", "insertafter": "port", "firstmatch": True}),
    ("adds after the last line", TEXT, {"line": "x", "insertafter": "^host"}),
    ("adds before the last", TEXT, {"line": "x", "insertbefore": "^port"}),
    ("adds before the first", TEXT, {"line": "x", "insertbefore": "^port", "firstmatch": True}),
    ("adds at the end when there is no such place", TEXT, {"line": "x", "insertbefore": "^nope"}),
    ("refers back", TEXT, {"regexp": "^(port) = (3)", "line": r"\1 = \g<2>0", "backrefs": True}),
    ("refers back to nothing", TEXT, {"regexp": "^(nope)", "line": r"\1", "backrefs": True}),
    ("refers back to nothing, and is there", TEXT, {"regexp": "^(nope)", "line": "port = 2", "backrefs": True}),
    ("removes all that match", TEXT, {"regexp": "port", "state": "absent"}),
    ("removes a text", TEXT, {"search_string": "= 2", "state": "absent"}),
    ("removes a line", TEXT, {"line": "port = 2", "state": "absent"}),
    ("removes nothing", TEXT, {"line": "nope", "state": "absent"}),
    ("removes from no file", None, {"line": "nope", "state": "absent"}),
    ("makes the file", None, {"line": "x", "create": True}),
    ("makes no file", None, {"line": "x"}),
    ("keeps carriage returns", "a\r\nb\r\n", {"regexp": "^b", "line": "c"}),
    ("a carriage return ends no line", "a\rb\n", {"line": "b"}),
    ("is there with a carriage return", "a\r\nb\r\n", {"line": "a"}),
    ("hostile: a line that looks like options", "", {"line": "$(reboot); `x` \\1 %s"}),
]


@pytest.fixture(scope="module")
def ansible(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What Ansible makes of each case: its answer and the file's text."""
    pytest.importorskip("ansible", reason="ansible-core is not installed")
    folder = tmp_path_factory.mktemp("ansible")
    found = {}
    for name, text, args in CASES:
        path = written(folder / "f", text)
        given = {"ANSIBLE_MODULE_ARGS": {"path": str(path), **args, "_ansible_remote_tmp": str(folder)}}
        code = "import json; from ansible.module_utils import basic; from ansible.module_utils.testing import "
        code += "patch_module_args; from ansible.modules import lineinfile as m\n"
        code += "import sys\nwith patch_module_args(json.load(sys.stdin)['ANSIBLE_MODULE_ARGS']): m.main()"
        done = subprocess.run(
            [sys.executable, "-c", code], input=json.dumps(given), capture_output=True, text=True, check=False
        )
        assert done.stdout.strip(), done.stderr
        found[name] = {**json.loads(done.stdout), "text": read(path)}
    return found


def written(path: Path, text: str | None) -> Path:
    path.unlink(missing_ok=True)
    if text is not None:
        path.write_bytes(text.encode())
    return path


def read(path: Path) -> str | None:
    return path.read_bytes().decode() if path.exists() else None


@pytest.mark.parametrize(("name", "text", "args"), CASES, ids=[name for name, _, _ in CASES])
def test_as_ansible_does(
    tmp_path: Path, apply: Any, ansible: dict[str, dict[str, Any]], name: str, text: str | None, args: dict[str, Any]
) -> None:
    path = written(tmp_path / "f", text)
    theirs = ansible[name]
    if theirs.get("failed"):
        with pytest.raises(Failure):
            apply("lineinfile", path=str(path), **args)
        return
    checked = apply("lineinfile", check=True, path=str(path), **args)
    assert read(path) == text
    done = apply("lineinfile", path=str(path), **args)
    assert (done.state == "changed", read(path)) == (theirs["changed"], theirs["text"])
    assert checked.state == done.state
    assert done.msg == theirs["msg"] or not theirs["changed"]
    assert apply("lineinfile", path=str(path), **args).state == "ok"


def test_the_mode_alone(tmp_path: Path, apply: Any) -> None:
    (tmp_path / "f").write_text("a\n")
    done = apply("lineinfile", path=str(tmp_path / "f"), line="a", mode="0600")
    assert (done.state, done.msg) == ("changed", "mode 0644 -> 0600")


def test_a_link_is_written_through(tmp_path: Path, apply: Any) -> None:
    (tmp_path / "f").write_text("a\n")
    (tmp_path / "link").symlink_to("f")
    assert apply("lineinfile", path=str(tmp_path / "link"), line="b").state == "changed"
    assert ((tmp_path / "f").read_text(), (tmp_path / "link").is_symlink()) == ("a\nb\n", True)


@pytest.mark.parametrize(
    "args",
    [
        {},
        {"line": "x", "insertafter": "a", "insertbefore": "b"},
        {"line": "x", "regexp": "a", "search_string": "b"},
        {"line": "x", "regexp": "("},
        {"line": "x", "backrefs": True},
        {"state": "absent"},
    ],
)
def test_what_is_refused(tmp_path: Path, apply: Any, args: dict[str, Any]) -> None:
    (tmp_path / "f").write_text("a\n")
    with pytest.raises(Failure):
        apply("lineinfile", path=str(tmp_path / "f"), **args)
    assert (tmp_path / "f").read_text() == "a\n"
