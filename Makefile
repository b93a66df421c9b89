# Sets up its own virtual environment; needs Python 3.11 or newer, git and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/installed

.PHONY: demo test lint bench clean

demo: $(INSTALLED)
	$(BIN)/mmaprobe distinguish carry-bits-ampere -o carry-bits-ampere.jsonl
	$(BIN)/mmaprobe evaluate carry-bits-ampere.jsonl

test: $(INSTALLED)
	$(BIN)/python -m pytest -n 2

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(INSTALLED)
	$(BIN)/python benchmarks/library.py -o benchmarks/library.md

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) build *.egg-info
