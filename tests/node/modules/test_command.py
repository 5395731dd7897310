from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sparkops.node.api import Failure


@pytest.mark.parametrize(
    ("args", "stdout"),
    [
        ({"cmd": "printf '%s|' 'a b' c"}, "a b|c|"),
        ({"argv": ["printf", "%s|", "a b", "; rm -rf /", "$(id)", "*", "-n"]}, "a b|; rm -rf /|$(id)|*|-n|"),
        ({"argv": ["printf", "%s", "$HOME ${GONE} ~x"]}, "HOME ${GONE} ~x"),
        ({"argv": ["printf", "%s|", "~/x", "~"]}, "HOME/x|HOME|"),
        ({"argv": ["printf", "%s", "$HOME"], "expand_argument_vars": False}, "$HOME"),
        ({"argv": ["cat"], "stdin": "x"}, "x"),
        ({"argv": ["cat"], "stdin": "x\n\n", "strip_empty_ends": False}, "x\n\n\n"),
        ({"argv": ["cat"], "stdin": "x", "stdin_add_newline": False, "strip_empty_ends": False}, "x"),
        ({"cmd": "pwd", "chdir": "/"}, "/"),
    ],
)
def test_runs(node: Any, apply: Any, args: dict[str, Any], stdout: str) -> None:
    done = apply("command", **args)
    assert done.state == "changed"
    assert (
        done.result["stdout"] == stdout.replace("HOME", node.home) if args.get("expand_argument_vars", True) else stdout
    )
    assert done.result["stdout_lines"] == done.result["stdout"].splitlines()
    assert {"cmd", "rc", "stderr", "stderr_lines", "start", "end", "delta"} <= set(done.result)


def test_creates_and_removes(tmp_path: Path, apply: Any) -> None:
    (tmp_path / "there").touch()
    for check in (True, False):
        for args in ({"creates": f"{tmp_path}/th*"}, {"creates": "there", "chdir": str(tmp_path)}):
            done = apply("command", check=check, cmd="false", **args)
            assert (done.state, done.msg) == ("ok", f"skipped, since {args['creates']} exists")
        done = apply("command", check=check, cmd="false", removes=f"{tmp_path}/gone")
        assert (done.state, done.msg) == ("ok", f"skipped, since {tmp_path}/gone does not exist")


def test_check_mode_runs_nothing(tmp_path: Path, apply: Any) -> None:
    assert apply("command", check=True, argv=["touch", f"{tmp_path}/x"]).state == "unknown"
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"cmd": "ls /no-such-file"}, "non-zero return code 2: .*no-such-file"),
        ({"cmd": "no-such-program"}, "non-zero return code 127: .*not found"),
        ({"argv": ["sh", "-c", "kill -9 $$"], "expand_argument_vars": False}, "ended by signal 9"),
        ({"cmd": "a 'b"}, "cannot split"),
        ({"cmd": ""}, "no command given"),
        ({}, "one of cmd, argv"),
        ({"cmd": "a", "argv": ["a"]}, "one of cmd, argv"),
        ({"cmd": "true", "chdir": "/no-such-folder"}, "is not a folder"),
    ],
)
def test_failures(apply: Any, args: dict[str, Any], message: str) -> None:
    with pytest.raises(Failure, match=message):
        apply("command", **args)
