"""The parts of the stand-in for systemd that read and write text."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkops.lab.process.systemd import timespan, unitfile, words
from sparkops.lab.process.systemd.settings import environment_file, settings


@pytest.mark.parametrize(
    ("text", "seconds", "shown"),
    [
        ("90", 90, "1min 30s"),
        ("1min 30s", 90, "1min 30s"),
        ("100ms", 0.1, "100ms"),
        ("2.5s", 2.5, "2s 500ms"),
        ("0", 0, "0"),
        ("1h", 3600, "1h"),
        ("infinity", math.inf, "infinity"),
    ],
)
def test_time_spans(text: str, seconds: float, shown: str):
    assert timespan.parse(text) == seconds
    assert timespan.show(seconds) == shown


@given(st.integers(min_value=0, max_value=10**13))
def test_a_time_span_that_was_shown_reads_the_same(microseconds: int):
    assert round(timespan.parse(timespan.show(microseconds / 1e6)) * 1e6) == microseconds


@pytest.mark.parametrize("text", ["", "soon", "5 parsecs", "-1", "3min later"])
def test_what_is_no_time_span(text: str):
    with pytest.raises(ValueError, match="not a time span"):
        timespan.parse(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/bin/a  b\tc", ["/bin/a", "b", "c"]),
        ("""a "b c" 'd "e"' """, ["a", "b c", 'd "e"']),
        (r"a\x20b c\sd \"q\" \n", ["a b", "c d", '"q"', "\n"]),
        ("""'' "" x""", ["", "", "x"]),
        ('--config={"a":1}', ["--config={a:1}"]),
        ("'--config={\"a\": 1}'", ['--config={"a": 1}']),
    ],
)
def test_splitting_words(text: str, expected: list[str]):
    assert words.split(text) == expected


@pytest.mark.parametrize("text", ["'open", '"open', "end\\", r"\x4", r"\q"])
def test_words_that_are_not_complete(text: str):
    with pytest.raises(ValueError):
        words.split(text)


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")))))
def test_quoted_words_come_out_as_they_were(expected: list[str]):
    quoted = ['"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"' for word in expected]
    assert words.split(" ".join(quoted)) == expected


def test_variables():
    variables = {"A": "1 2", "EMPTY": ""}
    line = ["$A", "x${A}y", "$EMPTY", "${EMPTY}", "$$A", "a$A", "${UNSET}", "$UNSET"]
    assert words.expand(line, variables) == ["1", "2", "x1 2y", "", "$A", "a$A", ""]


def test_specifiers():
    assert words.specify("%h/%%h", {"h": "/home"}) == "/home/%h"
    with pytest.raises(ValueError, match="%y is not known"):
        words.specify("%y", {})


def test_a_unit_file_s_lines():
    text = "# c\n[Unit]\nDescription= a b \n[Service]\nExecStart=/bin/a \\\n; c\n  b \\\n  c\n\nEnvironment=A==1\n"
    assert unitfile.parse(text) == {
        "Unit": [("Description", "a b")],
        "Service": [("ExecStart", "/bin/a    b    c"), ("Environment", "A==1")],
    }
    for wrong in ("A=1\n", "[Unit]\nword\n"):
        with pytest.raises(ValueError, match=r"line \d is neither"):
            unitfile.parse(wrong)


def test_drop_ins_follow_and_templates_are_found(tmp_path):
    (tmp_path / "a@.service").write_text("[Service]\nExecStart=/bin/a\n")
    (tmp_path / "a@b.service.d").mkdir()
    (tmp_path / "a@b.service.d" / "x.conf").write_text("[Service]\nExecStart=\nExecStart=/bin/b\n")
    file = unitfile.read("a@b.service", [tmp_path / "missing", tmp_path])
    assert file
    assert file.path.name == "a@.service"
    assert file.sections == {"Service": [("ExecStart", "/bin/a"), ("ExecStart", ""), ("ExecStart", "/bin/b")]}
    assert unitfile.read("b.service", [tmp_path]) is None


def test_settings():
    text = """
[Unit]
StartLimitIntervalSec=1h
StartLimitBurst=3
[Service]
ExecStartPre=/bin/early
ExecStartPre=
ExecStartPre=-:/bin/pre $$x
ExecStart=%h/run
SuccessExitStatus=143 SIGKILL
Environment=A=1
Environment="B=2 3" C=%h
KillMode=mixed
MemoryMax=1G
ExecStop=/bin/x
[Install]
WantedBy=default.target other.target
"""
    found = settings(unitfile.parse(text), {"h": "/home"})
    assert (found.limit_interval, found.limit_burst, found.kill_mode) == (3600, 3, "mixed")
    assert found.start
    assert found.start.words == ["/home/run"]
    assert [(c.words, c.ignore, c.literal) for c in found.start_pre] == [(["/bin/pre", "$$x"], True, True)]
    assert found.environment == {"A": "1", "B": "2 3", "C": "/home"}
    assert {143, -9, 0, -15} <= found.clean
    assert found.wanted_by == ["default.target", "other.target"]
    assert found.unknown == ["ExecStop"]


@pytest.mark.parametrize(
    "line",
    ["", "ExecStart=", "ExecStart=/a ; /b", "ExecStart=+/a", "ExecStart='", "Type=oneshot\nExecStart=/a", "KillMode=x"],
)
def test_settings_that_make_no_sense(line: str):
    with pytest.raises(ValueError):
        settings(unitfile.parse(f"[Service]\n{line}\n"), {})


def test_an_environment_file():
    text = '# no\n; no\nA=1\n B = two words \nC=\'x "y"\'\nD=""\n=no\nno\nE=a=b\n'
    assert environment_file(text) == {"A": "1", "B": "two words", "C": 'x "y"', "D": "", "E": "a=b"}
