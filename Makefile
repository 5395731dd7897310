# Every target sets up what it needs in $(VENV) first. PYTHON and VENV can be given: make test PYTHON=python3.12
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: help demo demo-down check test test-engine bench clean
.DEFAULT_GOAL := help

help:
	@echo 'make demo       two simulated nodes, provisioned and serving, on this machine (no root, no GPU)'
	@echo 'make demo-down  end them'
	@echo 'make check      lint, format, types, import rules and unit tests: under a minute'
	@echo 'make test       all tests; as root on Linux also those on nodes that boot systemd'
	@echo 'make test-engine  vLLM itself, on the CPU of a node that boots systemd: root on Linux, 15 GB of disk, half an hour'
	@echo 'make bench      us, the limit and our peers in turns, into docs/bench (long; WHAT=converged,N=16 for a part)'
	@echo 'make clean      take away what the others made, but the venv'

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 10) or sys.exit("sparkops needs Python 3.10 or newer: make PYTHON=...")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.ready: setup.py pyproject.toml | $(BIN)/python
	$(PIP) install --editable '.[lab]'
	@touch $@

$(VENV)/.ready-dev: setup.py pyproject.toml | $(BIN)/python
	$(PIP) install --editable '.[lab,dev]'
	@touch $(VENV)/.ready $@

demo: $(VENV)/.ready
	@PATH="$(abspath $(BIN)):$$PATH" scripts/demo .lab-demo

demo-down: $(VENV)/.ready
	$(BIN)/sparkops lab down --dir .lab-demo

check: $(VENV)/.ready-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy --strict
	$(BIN)/lint-imports
	$(BIN)/pytest -q -m 'not (lab or network or demo or engine or slow)'

test: $(VENV)/.ready-dev
	$(BIN)/pytest -m 'not engine'

# Not part of `make test`. What it fetches is kept in the user's cache folder, under sparkops/engine.
test-engine: $(VENV)/.ready-dev
	$(BIN)/pytest -m engine tests/engine --timeout 1800

# WHAT=converged,N=1+16,peers=sparkops+pyinfra,rounds=3 measures just that; see tests/bench/suite.py.
bench: $(VENV)/.ready-dev
	$(BIN)/python -m tests.bench.suite '$(WHAT)'

clean:
	rm -rf build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find sparkops tests -name __pycache__ -type d -prune -exec rm -rf {} +
