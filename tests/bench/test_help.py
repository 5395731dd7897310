"""`sparkops --help` starts quickly. The ratio is of interleaved runs, so that a busy machine slows both."""

from __future__ import annotations

import subprocess
import sys

from tests.bench.help import LIMIT, measure


def test_help_starts_in_little_more_than_click_takes() -> None:
    ours, base = measure(runs=9)
    assert ours / base < LIMIT


def test_help_imports_neither_ssh_nor_templates() -> None:
    code = (
        "import sys\nfrom sparkops.cli.main import main\ntry:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "sys.exit(', '.join({'paramiko', 'fabric', 'jinja2', 'rich', 'yaml', 'msgspec'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
    assert done.returncode == 0 and "provision" in done.stdout, done.stderr
