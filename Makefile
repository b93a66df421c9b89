# Sets up its own virtual environment; needs Python 3.11 or newer, git and make.
PYTHON ?= python3
VENV := .venv
WORKERS ?= 2
BIN := $(VENV)/bin
INSTALLED := $(VENV)/installed
TORCH := .venv-torch

.PHONY: demo test test-fast test-torch proofs wheel lint bench evidence man schemas tables lock site clean

demo: $(INSTALLED)
	$(BIN)/mmaprobe distinguish carry-bits-ampere -o carry-bits-ampere.jsonl
	$(BIN)/mmaprobe evaluate tests/data/recorded.jsonl.gz

# ANSWERS_OF_TESTS=FOLDER make test: a folder in which what solvers said is kept for the next run; without it all is asked
test: $(INSTALLED)
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

# what is in no group (the markers of pyproject.toml); a group alone: .venv/bin/python -m pytest -n 2 -m solvers
test-fast: $(INSTALLED)
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "fast and not slow"

proofs: $(INSTALLED)
	$(BIN)/python -m pytest -n $(WORKERS) -m slow

# mmaprobe.torch, in an environment of its own: PyTorch brings some GB of libraries for GPUs on some systems
test-torch: $(TORCH)/installed
	$(TORCH)/bin/python -m pytest -n 0 tests/frameworks tests/pages/test_documentation.py -k "frameworks or torch.md" -m "not slow"

# the wheel: built, installed in a bare environment, used away from the checkout
wheel: $(INSTALLED)
	$(BIN)/python -m pytest -n 0 -m slow --durations=3 tests/package/test_wheel.py

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(INSTALLED)
	$(BIN)/python benchmarks/library.py -o benchmarks/library.md
	$(BIN)/python -m benchmarks.simulate -o benchmarks/simulate.md
	$(BIN)/python -m benchmarks.properties
	$(BIN)/python -m benchmarks.bounds
	$(BIN)/python -m benchmarks.where_time_goes -o benchmarks/where_time_goes.md

# what is made of the program's own help and types, and tested to be up to date
man: $(INSTALLED)
	$(BIN)/python -m mmaprobe.cli.manual > docs/mmaprobe.1
	$(BIN)/python -m mmaprobe.cli.glossary > docs/glossary.md

tables: $(INSTALLED)
	$(BIN)/python -m mmaprobe.smtmodel.tables.catalogue

schemas: $(INSTALLED)
	$(BIN)/python -m tests.schemas
	$(BIN)/python -m tests.reference
	$(BIN)/python -m tests.nodes_page

# the versions of constraints.txt with the hashes of all their files, for every platform; needs uv (pip install uv)
lock:
	uv pip compile pyproject.toml --extra dev --extra docs -c constraints.txt --generate-hashes --universal \
	  --python-version 3.11 --no-header --no-annotate -o requirements.lock

# the pages of docs/ as a site, in site/
site: $(INSTALLED)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

# on a machine with an NVIDIA GPU, after: .venv/bin/python -m pip install -e '.[cuda12]' (or cuda13); see docs/hardware.md
evidence: $(INSTALLED)
	$(BIN)/python -m benchmarks.evidence

# every file that is installed has the hash of requirements.lock, setuptools too, which then builds without the network
$(INSTALLED): pyproject.toml requirements.lock
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

$(TORCH)/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(TORCH)
	$(TORCH)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[torch]' pytest pytest-xdist gmpy2
	touch $@

clean:
	rm -rf $(VENV) $(TORCH) build site *.egg-info
