"""What with_items and its kind loop over, and refusals by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sparkops.errors import InputError, Position
from sparkops.playbook.template import Templar


@pytest.mark.parametrize(
    ("name", "terms", "values"),
    [
        ("items", [1, [2, 3], [[4]]], [1, 2, 3, [4]]),
        ("list", [1, [2]], [1, [2]]),
        ("dict", [{"a": 1}], [{"key": "a", "value": 1}]),
        ("indexed_items", ["a", ["b"]], [[0, "a"], [1, "b"]]),
        ("nested", [[1, 2], ["a"]], [[1, "a"], [2, "a"]]),
        ("together", [[1, 2], ["a"]], [[1, "a"], [2, None]]),
        ("sequence", ["start=1 end=5 stride=2 format=n%02d"], ["n01", "n03", "n05"]),
        ("subelements", [[{"u": 1, "g": ["x", "y"]}], "g"], [[{"u": 1}, "x"], [{"u": 1}, "y"]]),
        ("items", [], []),
        # Terms are values by now, whatever they look like.
        ("items", ["{{ x }}"], ["{{ x }}"]),
    ],
)
def test_query(name: str, terms: list[Any], values: list[Any]) -> None:
    assert Templar().query(name, terms, {"x": 1}) == values


def test_query_of_files(tmp_path: Path) -> None:
    for name in ("files/a.conf", "templates/b.j2", "files/.hidden.conf"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x {{ n }}")
    templar = Templar([tmp_path])
    assert templar.query("fileglob", ["*.conf"], {}) == [str(tmp_path / "files/a.conf")]
    assert templar.query("fileglob", ["none/*.conf"], {}) == []
    assert templar.query("first_found", ["x", "a.conf"], {}, folder="files") == [str(tmp_path / "files/a.conf")]
    assert templar.query("first_found", ["b.j2"], {}, folder="templates") == [str(tmp_path / "templates/b.j2")]
    assert templar.query("first_found", [{"files": ["x"], "skip": True}], {}) == []
    assert templar.query("template", ["b.j2"], {"n": 3}) == ["x 3"]
    with pytest.raises(InputError, match=r"none of these files exists: a\.conf"):
        templar.query("first_found", ["a.conf"], {})


@pytest.mark.parametrize(
    ("template", "hint"),
    [
        ("{{ lookup('pipe', 'id') }}", "delegate_to: localhost"),
        ("{{ lookup('password', '/tmp/x') }}", "lookup('env', ...)"),
        ("{{ query('lines', 'id') }}", "shell command"),
        ("{{ lookup('community.general.x', 'y') }}", "there are: env"),
        ("{{ [] | json_query('x') }}", "selectattr()"),
        ("{{ [] | community.general.json_query('x') }}", "selectattr()"),
        ("{{ [['x']] | map('json_query', 'x') }}", "selectattr()"),
        ("{{ '10.0.0.1' | ansible.utils.ipaddr }}", "ansible.utils"),
        ("{{ 'x' | a.b.c }}", "plugins of collections are not supported"),
        ("{{ 'x' is vault_encrypted }}", "vault is not supported"),
        ("{{ 'x' | unvault('y') }}", "vault is not supported"),
        ("{{ 'x' | regex_repalce('y') }}", "did you mean 'regex_replace'?"),
        ("{{ x is started }}", "async is not supported"),
        ("{% if false %}{{ x | json_query('y') }}{% endif %}{{ 'x' | json_query('y') }}", "selectattr()"),
    ],
)
def test_refused_by_name_with_what_to_write_instead(template: str, hint: str) -> None:
    with pytest.raises(InputError) as caught:
        Templar().render(template, {"x": {}})
    assert hint in (caught.value.hint or "")


def test_the_first_line_of_options(tmp_path: Path) -> None:
    page = tmp_path / "page.j2"
    page.write_text(
        "#jinja2: lstrip_blocks: True, trim_blocks: False\nx\n  {% if true %}\ny\n{% endif %}\n{{ nope }}\n"
    )
    with pytest.raises(InputError, match="'nope' is undefined") as caught:
        Templar([tmp_path]).render_file(page, {})
    assert caught.value.where == Position(str(page), 6, 4)
    assert Templar([tmp_path]).render_file(page, {"nope": 1}) == "x\n\ny\n\n1\n"
    page.write_text("#jinja2: lstrip_block: True\nx\n")
    with pytest.raises(InputError, match="no option 'lstrip_block'") as caught:
        Templar([tmp_path]).render_file(page, {})
    assert caught.value.where == str(page) and caught.value.hint == "did you mean 'lstrip_blocks'?"
