# make demo and make test need nothing but this checkout and Python 3.11 or newer.

PYTHON ?= $(shell for p in python3.11 python3 python3.12 python3.13; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin
READY := .venv/ready
TABLES := com/grammar.tables
export PATH := $(CURDIR)/$(BIN):$(PATH)

.PHONY: help setup demo test check format lock clean

help:  ## what can be made
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' Makefile | expand -t 10

setup: $(READY) $(TABLES)  ## build .venv from the lock file
	@$(BIN)/python -m compileall -q com

$(READY): requirements.lock pyproject.toml hatch_build.py
	@test -n "$(PYTHON)" || { echo "com needs Python 3.11 or newer"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "Installing what com needs into .venv ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile \
		--require-hashes --requirement requirements.lock
	@$(BIN)/python -m compileall -qq -j 0 .venv/lib || true
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

$(TABLES): com/grammar.lark com/compiler/parse.py | $(READY)
	@$(BIN)/python -c 'from pathlib import Path; from com.compiler.parse import build_tables; build_tables(Path("$@"))'
	@touch $@

demo: setup  ## one program: checked, previewed, run, replayed
	@bash examples/fruit_shop/demo.sh

test: setup  ## all tests
	@$(BIN)/python -m pytest -n 2 --dist worksteal $(ARGS)

check: setup  ## format, lint, types, arrows, all tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -n 2 --dist worksteal $(ARGS)

format: setup  ## format the code, mend what can be mended
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lock:  ## choose versions anew (needs uv)
	uv pip compile pyproject.toml --all-extras --group dev --universal --python-version 3.11 --generate-hashes \
		--upgrade --no-header --no-annotate --no-emit-index-url --no-emit-find-links --quiet --output-file requirements.lock

clean:  ## remove what was made
	rm -rf .venv build dist $(TABLES) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
