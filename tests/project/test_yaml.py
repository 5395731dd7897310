from __future__ import annotations

import copy
import datetime
import json
import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkops.errors import InputError, Position
from sparkops.project.excerpt import excerpt
from sparkops.project.values import Integer, Mapping, Text, Unsafe
from sparkops.project.yaml import key_position, load, loads, original, position

SOURCE = """\
on_boot: yes
mode: 0644
at: 22:22
version: 1.10
plain: 8080
items: [1, text, {inner: 2}]
block: |
  one
  two
folded: >
  a
  b
raw: !unsafe "{{ x }}"
base: &base {p: 1, q: 2}
merged:
  <<: *base
  q: 3
"""


def document() -> Mapping:
    value = loads(SOURCE, "f.yml")
    assert isinstance(value, Mapping)
    return value


def test_values_are_those_of_yaml_1_1() -> None:
    value = document()
    assert (value["on_boot"], value["mode"], value["at"], value["version"]) == (True, 0o644, 1342, 1.1)
    assert value["merged"] == {"p": 1, "q": 3}
    assert value["block"] == "one\ntwo\n"
    assert loads("d: 2024-01-02", "f")["d"] == datetime.date(2024, 1, 2)


def test_what_was_written_is_kept() -> None:
    value = document()
    assert isinstance(value["mode"], Integer) and value["mode"].text == "0644"
    assert value["at"].text == "22:22"
    assert type(value["plain"]) is int
    assert (original(value, "on_boot"), original(value, "version"), original(value, "raw")) == ("yes", "1.10", None)
    assert original(value["items"], 0) == "1"


def test_positions() -> None:
    value = document()
    assert position(value, "mode") == Position("f.yml", 2, 7)
    assert key_position(value, "mode") == Position("f.yml", 2, 1)
    assert position(value["items"]) == Position("f.yml", 6, 8)
    assert position(value["items"], 1) == Position("f.yml", 6, 12)
    assert position(value["items"][1]) == Position("f.yml", 6, 12)
    assert position(value["merged"], "p") == Position("f.yml", 14, 17)
    assert value["block"].at_line(2) == Position("f.yml", 9, 1)
    assert position({"a": 1}, "a") is None


def test_unsafe_is_marked_and_survives_copying() -> None:
    for value in (document(), pickle.loads(pickle.dumps(document())), copy.deepcopy(document())):
        assert isinstance(value["raw"], Unsafe)
        assert position(value, "raw") == Position("f.yml", 13, 6)
        assert position(value["raw"]) == Position("f.yml", 13, 6)


@pytest.mark.parametrize(
    ("text", "line", "column", "says"),
    [
        ("a: 1\na: 2\n", 2, 1, "f.yml:1:1"),
        ("a:\n\tb: 1\n", 2, 1, "cannot start any token"),
        ("a: b: c\n", 1, 5, "mapping values"),
        ("a: 'x\n", 1, 4, "end of stream"),
        ("a: [1,\n", 2, 1, "did not find expected"),
        ("a: {{ x }}\n", 1, 5, "cannot be a key"),
        ("a: 1\n---\nb: 2\n", 2, 1, "second document"),
        ("a: !foo 1\n", 1, 4, "!foo"),
        ("a: !!python/object/apply:os.system [id]\n", 1, 4, "!!python/object"),
        ("a: !vault |\n  61\n", 1, 4, "ansible-vault"),
        ("$ANSIBLE_VAULT;1.1;AES256\n61\n", 1, 1, "ansible-vault"),
        ("a: &a [*a]\n", 1, 4, "contains itself"),
        ("ok: 1\na: \x07\n", 2, 4, "character"),
        ("a: 2024-13-45\n", 1, 4, "timestamp"),
        ("a: *nope\n", 1, 4, "nope"),
        ("<<: 3\n", 1, 5, "'<<'"),
    ],
)
def test_errors_say_what_and_where(text: str, line: int, column: int, says: str) -> None:
    with pytest.raises(InputError) as caught:
        loads(text, "f.yml")
    assert (caught.value.where, says in str(caught.value)) == (Position("f.yml", line, column), True)


def test_a_syntax_error_shows_the_line_with_a_caret() -> None:
    with pytest.raises(InputError) as caught:
        loads("a: b: c\n", "f.yml")
    assert caught.value.message.split("\n")[1:] == ["    a: b: c", "        ^"]
    assert caught.value.hint and "quote" in caught.value.hint


def test_a_small_file_cannot_grow_without_end() -> None:
    levels = [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    with pytest.raises(InputError, match="aliases"):
        loads("\n".join(["a0: &a0 x", *levels]), "f.yml")
    with pytest.raises(InputError, match="deep"):
        loads("[" * 900 + "]" * 900, "f.yml")
    with pytest.raises(InputError):
        loads("[" * 100_000, "f.yml")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        load(tmp_path / "none.yml")
    with pytest.raises(InputError, match="directory"):
        load(tmp_path)
    latin = tmp_path / "latin.yml"
    latin.write_bytes("a: 1\nb: é\n".encode("latin-1"))
    with pytest.raises(InputError, match="not UTF-8") as caught:
        load(latin)
    assert caught.value.where == Position(str(latin), 2, 4)


def test_a_byte_order_mark_is_no_content(tmp_path: Path) -> None:
    path = tmp_path / "bom.yml"
    path.write_bytes(b"\xef\xbb\xbfa: 1\n")
    assert position(load(path), "a") == Position(str(path), 1, 4)


def test_excerpt(tmp_path: Path) -> None:
    path = tmp_path / "x.yml"
    path.write_text("one\n\ttwo words\n")
    assert excerpt(Position(str(path), 2, 6)) == "    \ttwo words\n    \t    ^"
    assert excerpt(Position(str(path), 9, 1)) == ""
    assert excerpt("x.yml") == ""
    assert excerpt(Position(str(tmp_path / "gone"), 1, 1)) == ""


def test_excerpt_of_a_long_line_keeps_the_caret_in_sight(tmp_path: Path) -> None:
    path = tmp_path / "x.yml"
    path.write_text("x" * 5000 + "HERE" + "y" * 5000)
    line, caret = excerpt(Position(str(path), 1, 5001)).split("\n")
    assert line[caret.index("^") :].startswith("HERE") and len(line) < 130


@given(st.text())
def test_any_text_is_a_value_or_an_input_error(text: str) -> None:
    try:
        loads(text, "f.yml")
    except InputError as error:
        assert error.where is not None


@given(st.dictionaries(st.text(st.characters(codec="ascii", categories=["L"])), st.integers() | st.text(), max_size=5))
def test_json_is_yaml_and_every_value_has_a_position(value: dict[str, object]) -> None:
    loaded = loads(json.dumps(value), "f.json")
    assert loaded == value
    assert all(position(loaded, key) for key in value)


def test_text_is_a_str() -> None:
    assert Text("a") + "b" == "ab" and type(Text("a") + "b") is str
