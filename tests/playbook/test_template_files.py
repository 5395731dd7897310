from __future__ import annotations

from pathlib import Path

import pytest

from sparkops.errors import InputError, Position, UndefinedName
from sparkops.playbook.template import Templar
from sparkops.project.yaml import loads

NAMES = loads("x: 3\nflag: yes\ndeep: '{{ x + 1 }}'\n", "vars.yml")


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


# What ansible-core 2.19.14's template module writes for the same files (but for the words of ansible_managed).
@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("a {{ deep }}\n", "a 4\n"),
        ("{{ x }}\n", "3"),
        ("{{ x }}", "3"),
        ("{% if flag %}\nyes\n{% endif %}\n", "yes\n"),
        ("  {% if flag %}\nyes\n  {% endif %}\nend\n", "  yes\n  end\n"),
        ("{# note #}\nx\n", "x\n"),
        ("a\n\n\n", "a\n\n\n"),
        ("{{ none }}\n", ""),
        ("{% if not flag %}x{% endif %}", ""),
        ("'\\n' {{ 'a\\nb' }}\n", "'\\n' a\nb\n"),
        ("# {{ ansible_managed }}\n", "# Managed by sparkops\n"),
    ],
)
def test_files(tmp_path: Path, source: str, text: str) -> None:
    assert Templar().render_file(written(tmp_path / "t.j2", source), NAMES) == text


def test_includes_and_extends_are_found_beside_the_file(tmp_path: Path) -> None:
    written(tmp_path / "part.j2", "part {{ x }}\n")
    written(tmp_path / "base.j2", "[{% block body %}{% endblock %}]\n")
    page = written(
        tmp_path / "page.j2", "{% extends 'base.j2' %}{% block body %}{% include 'part.j2' %}{% endblock %}\n"
    )
    assert Templar().render_file(page, NAMES) == "[part 3]\n"
    assert Templar().file_names(page, NAMES) == {"x"}


def test_errors_name_the_file_and_line(tmp_path: Path) -> None:
    page = written(tmp_path / "page.j2", "one\n{% include 'part.j2' %}\n")
    part = written(tmp_path / "part.j2", "one\ntwo {{ nope }}\n")
    with pytest.raises(UndefinedName) as undefined:
        Templar().render_file(page, NAMES)
    assert undefined.value.where == Position(str(part), 2, 8)
    part.write_text("one\n\n{% endfor %}\n")
    for act in (Templar().render_file, Templar().file_names):
        with pytest.raises(InputError) as wrong:
            act(page, NAMES)
        assert wrong.value.where == Position(str(part), 3, 1)
    part.unlink()
    with pytest.raises(InputError, match=r"no template 'part\.j2'"):
        Templar().render_file(page, NAMES)


def test_a_file_that_is_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "t.j2"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="UTF-8") as caught:
        Templar().render_file(path, {})
    assert isinstance(caught.value.where, Position) and caught.value.where.file == str(path)


def test_an_include_cannot_leave_its_folders(tmp_path: Path) -> None:
    written(tmp_path / "secret", "s\n")
    page = written(tmp_path / "templates" / "page.j2", "{% include '../secret' %}")
    with pytest.raises(InputError, match="no template"):
        Templar().render_file(page, {})


def test_lookups_of_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path / "files" / "key.pub", "key {{ x }}\n")
    written(tmp_path / "templates" / "t.j2", "t {{ x }}\n")
    monkeypatch.setenv("SPARKOPS_TEST_NAME", "value")
    templar = Templar([tmp_path])

    def rendered(template: str) -> object:
        return templar.render(template, NAMES)

    # A file's text is data.
    assert rendered("{{ lookup('file', 'key.pub') }}") == "key {{ x }}"
    assert rendered("{{ lookup('template', 't.j2') }}") == "t 3\n"
    assert rendered("{{ lookup('template', 't.j2', template_vars={'x': 9}) }}") == "t 9\n"
    assert rendered("{{ lookup('env', 'SPARKOPS_TEST_NAME') }}") == "value"
    assert rendered("{{ lookup('env', 'SPARKOPS_TEST_NONE') }}") == ""
    assert rendered("{{ lookup('first_found', ['none', 'files/key.pub']) }}") == str(tmp_path / "files" / "key.pub")
    assert rendered("{{ query('first_found', ['none'], skip=true) }}") == []
    assert rendered("{{ query('fileglob', '*.pub') }}") == [str(tmp_path / "files" / "key.pub")]
    with pytest.raises(InputError, match="none"):
        rendered("{{ lookup('first_found', ['none']) }}")
    with pytest.raises(InputError, match=r"no file 'gone'"):
        rendered("{{ lookup('file', 'gone') }}")
    assert rendered("{{ lookup('file', 'gone', errors='ignore') }}") is None
