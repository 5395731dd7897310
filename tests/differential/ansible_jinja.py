"""The worker: ansible-core's Templar over the cases that come as JSON on stdin. Run with -m, never imported.

stdin:  {"folder": the playbook's folder, "variables": a YAML file, "cases": [{"kind", "text"}]}, kind being template
        (a task's value), condition (a `when`) or file (a template file's name).
stdout: [{"value": typed value} | {"error": message}], in order.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from ansible.parsing.dataloader import DataLoader
from ansible.plugins.loader import init_plugin_loader
from ansible.template import Templar, trust_as_template

from tests.differential.typed import typed


def answer(loader: Any, variables: dict[str, Any], kind: str, text: str) -> Any:
    """What Ansible makes of one case."""
    templar = Templar(loader=loader, variables=variables)
    if kind == "condition":
        return templar.evaluate_conditional(trust_as_template(text))
    if kind == "template":
        return templar.template(trust_as_template(text))
    path = Path(loader.get_basedir(), "templates", text)
    # As plugins/action/template.py does it: no backslash doubling, the file's last newline kept.
    beside = templar.copy_with_new_env(
        searchpath=[str(path.parent), str(Path(loader.get_basedir(), "templates")), loader.get_basedir()],
        available_variables=variables,
    )
    result = beside.template(trust_as_template(path.read_text(encoding="utf-8")), escape_backslashes=False)
    return "" if result is None else str(result)


def main() -> None:
    """Answers all cases."""
    given = json.load(sys.stdin)
    init_plugin_loader()
    loader = DataLoader()
    loader.set_basedir(given["folder"])
    variables = loader.load_from_file(given["variables"], trusted_as_template=True)
    variables["ansible_search_path"] = [given["folder"]]
    # As VariableManager.get_vars does.
    variables["vars"] = dict(variables)
    answers = []
    for case in given["cases"]:
        try:
            answers.append({"value": typed(answer(loader, dict(variables), case["kind"], case["text"]))})
        except Exception as error:
            answers.append({"error": f"{type(error).__name__}: {error}"})
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main()
