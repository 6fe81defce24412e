# `make` alone lists what there is. Needs Python 3.11 or newer, make and git; everything else is set up here.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: help setup run test deaths bench fmt reembed link lock clean

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(READY): requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Cairn needs Python 3.11 or newer; $$($(PYTHON) --version) is what '$(PYTHON)' is. Say which to use: make PYTHON=python3.12 ..."; exit 1; }
	@echo "Setting up the virtual environment in $(VENV) (once, about a minute) ..."
	@$(PYTHON) -m venv $(VENV) || { echo "No virtual environment could be made. On Debian and Ubuntu: apt install python3-venv"; exit 1; }
	@$(BIN)/python -m pip install --disable-pip-version-check --quiet --progress-bar on --no-compile --require-hashes -r requirements.lock || { \
	  echo; echo "The Python packages could not be installed. Is the package registry reachable? Behind a proxy, set HTTPS_PROXY; with a mirror, set PIP_INDEX_URL. Then run the same command again."; exit 1; }
	@touch $(READY)

setup: $(READY) ## set everything up, start nothing
	@$(BIN)/python -m api setup

run: $(READY) ## set up on first use, then start the service
	@exec $(BIN)/python -m api run

test: $(READY) ## format, lint, types, layers and the tests, on real stores
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	@$(BIN)/python -m api setup
	$(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder

deaths: $(READY) ## the tests of dying services, at every step of every mutation (make test tries some)
	@$(BIN)/python -m api setup
	CAIRN_TEST_EVERY_DEATH=1 $(BIN)/pytest -n 2 --dist loadfile -rP tests/crash/test_crash.py tests/crash/test_sessions_crash.py

bench: $(READY) ## measure the service beside its bare stores
	@$(BIN)/python -m api setup
	$(BIN)/python -m tests.bench $(PART)

fmt: $(READY) ## format and mend what ruff can mend
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

reembed: $(READY) ## index everything anew, with the embedder that is set (stop the service first)
	@exec $(BIN)/python -m api reembed

link: $(READY) ## join memories that share rare words, names or tags (stop the service first)
	@exec $(BIN)/python -m api link

lock: $(READY) ## write requirements.lock anew from pyproject.toml (needs uv)
	uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --output-file requirements.lock

clean: ## remove the virtual environment and caches; data in .cairn stays
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
