# Every target sets up what it needs: Python 3.11 or newer and make are enough.
# Another interpreter gets an environment of its own: PYTHON=python3.14 make test

PYTHON ?= python3
VERSION := $(shell $(PYTHON) -c 'import platform; print(platform.python_version())')
VENV := $(if $(filter python3,$(PYTHON)),.venv,.venv-$(notdir $(PYTHON)))
BIN := $(VENV)/bin
CODE := $(wildcard src tests tools bench)
RUST_PEERS := bench-honker bench-awa
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export NO_MKDOCS_2_WARNING := 1

ifeq ($(VERSION),)
$(error $(PYTHON) does not run; set PYTHON to a Python 3.11 or newer)
endif

.DEFAULT_GOAL := help
.PHONY: help demo test check docs browser bench verify versions format sizes clean
.DELETE_ON_ERROR:

help:  ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-9s %s\n", $$1, $$2 }' Makefile

demo: $(VENV)/.cli-$(VERSION)  ## a live show: workers are killed and paused, and no message is lost
	$(BIN)/holdfast demo

test: check docs browser  ## everything CI runs: the static checks, the docs, the tests
	$(BIN)/pytest -n auto --maxprocesses 4 --dist loadgroup

check: $(VENV)/.dev-$(VERSION)  ## format, lint, types, import contracts, generated code
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy $(CODE)
	$(BIN)/lint-imports
	$(BIN)/python tools/unasync.py --check

docs: $(VENV)/.dev-$(VERSION)  ## build the documentation into site/; a broken link fails
	$(BIN)/mkdocs build --strict

browser: $(VENV)/browser/chromium  ## install the Chromium that tests/browser drives

bench: $(patsubst %,$(VENV)/.%-$(VERSION),bench bench-worker bench-postgres bench-sentinel $(RUST_PEERS))  ## cost beside raw statements and peers, as ratios in one run
	$(BIN)/python bench/embedded.py
	$(BIN)/python bench/http.py
	$(BIN)/python bench/worker.py
	$(BIN)/python bench/redis.py
	$(BIN)/python bench/postgres.py
	$(BIN)/python bench/sentinel.py

verify: $(VENV)/.dev-$(VERSION)  ## the long runs: processes, kills and pauses for minutes
	$(BIN)/pytest -m verify --timeout 1800

versions: $(VENV)/.dev-$(VERSION)  ## the tests of the networked stores on every PostgreSQL, Redis and Valkey found here
	$(BIN)/python tools/versions.py

format: $(VENV)/.dev-$(VERSION)  ## format, fix what can be fixed, regenerate the sync twins
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format --quiet .
	$(BIN)/python tools/unasync.py
	$(BIN)/python tools/cli_reference.py

sizes: $(VENV)/.dev-$(VERSION)  ## lines per package; long files and functions
	$(BIN)/python tools/sizes.py

clean:  ## remove the environments, the built docs and the caches
	rm -rf .venv .venv-* site .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis

# One stamp for each extra and Python version, renewed when pyproject.toml changes.
$(VENV)/.%-$(VERSION): pyproject.toml | $(VENV)/.python-$(VERSION)
	$(BIN)/python -m pip install --quiet --editable '.[$*]'
	@touch $@

# Peers that may need a Rust toolchain: where one cannot be installed, the benchmarks run without it and say so.
$(RUST_PEERS:%=$(VENV)/.%-$(VERSION)): $(VENV)/.%-$(VERSION): $(VENV)/.bench-$(VERSION)
	$(BIN)/python -m pip install --quiet --editable '.[$*]' || echo '$* could not be installed: it is left out'
	@touch $@

$(VENV)/browser/chromium: tools/browser.py | $(VENV)/.dev-$(VERSION)
	$(BIN)/python tools/browser.py

# The stamp of another Python version means that the interpreter changed: start afresh.
$(VENV)/.python-$(VERSION):
	$(PYTHON) -m venv $(if $(filter-out $@,$(wildcard $(VENV)/.python-*)),--clear) $(VENV)
	@touch $@
