"""`sparkops doc` and `sparkops schema` as a user calls them."""

from __future__ import annotations

import json

import pytest

from sparkops.cli.main import main
from sparkops.playbook import modules
from sparkops.playbook.wordbook import WORDS


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(words)
    out, err = capsys.readouterr()
    return int(ended.value.code or 0), out, err


def test_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "doc")
    found, meanings = (part.splitlines()[1:] for part in out.split("\n\n"))
    assert code == 0 and [line.split()[0] for line in found] == list(modules.names())
    assert [line.split()[0] for line in meanings] == list(WORDS)
    assert "Purge a tree's pages from the page cache." in out
    _, out, _ = run(capsys, "doc", "--json")
    assert {key: list(value) for key, value in json.loads(out).items()} == {
        "modules": list(modules.names()), "words": list(WORDS),
    }  # fmt: skip


@pytest.mark.parametrize("name", ["page_cache", "ansible.builtin.page_cache"])
def test_a_manual(capsys: pytest.CaptureFixture[str], name: str) -> None:
    code, out, _ = run(capsys, "doc", name)
    assert code == 0 and out.startswith("page_cache: Purge")
    assert "- scope: path, all  [default: path]" in out and "\nExample:\n  - name:" in out and "\nResult:\n" in out
    assert max(map(len, out.splitlines())) <= 120


def test_a_manual_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "--json", "doc", "stat")
    found = json.loads(out)
    assert found["name"] == "stat" and found["arguments"][0]["required"] is True


def test_a_manual_of_an_action(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "doc", "set_fact")
    assert "Done by the controller" in out and "Any other name is taken too." in out


def test_a_word(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "doc", "until")
    assert code == 0 and out.startswith("until: Run the task again until this holds")
    assert "Takes: a condition" in out and "Word of: task, handler" in out
    _, out, _ = run(capsys, "--json", "doc", "import_tasks")
    assert json.loads(out)["word_of"] == ["import_tasks"]


def test_an_unknown_module(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "doc", "pagecache")
    assert code == 2 and not out and "no module 'pagecache'" in err and "did you mean 'page_cache'?" in err


def test_schema_is_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "schema", "recipe")
    assert code == 0 and json.loads(out)["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    code, out, err = run(capsys, "schema", "recipes")
    assert code == 2 and not out and "'recipe'" in err
