# Every target sets up what it needs: Python 3.11 or newer and make are enough.
# Another interpreter gets an environment of its own: PYTHON=python3.14 make test

PYTHON ?= python3
VERSION := $(shell $(PYTHON) -c 'import platform; print(platform.python_version())')
VENV := $(if $(filter python3,$(PYTHON)),.venv,.venv-$(notdir $(PYTHON)))
BIN := $(VENV)/bin
RELEASE := $(VENV)-release/bin
LOCK = $(RELEASE)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --custom-compile-command 'make lock' $(UPGRADE)
CODE := $(wildcard src tests tools bench)
RUST_PEERS := bench-honker bench-awa
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export NO_MKDOCS_2_WARNING := 1

ifeq ($(VERSION),)
$(error $(PYTHON) does not run; set PYTHON to a Python 3.11 or newer)
endif

.DEFAULT_GOAL := help
.PHONY: help demo test check docs browser dashboard bench verify mutants versions format sizes lock audit sbom dist clean
.DELETE_ON_ERROR:

help:  ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-9s %s\n", $$1, $$2 }' Makefile

demo: $(VENV)/.cli-$(VERSION)  ## a live show: workers are killed and paused, and no message is lost
	$(BIN)/holdfast demo

test:  ## everything CI runs: the static checks, the docs, the tests
	$(MAKE) --no-print-directory -j 2 check docs browser dashboard
	$(BIN)/pytest -n auto --maxprocesses 4 --dist loadgroup

check: $(VENV)/.dev-$(VERSION)  ## format, lint, types, import contracts, generated code
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy $(CODE)
	$(BIN)/lint-imports
	$(BIN)/python tools/unasync.py --check
	$(BIN)/python tools/sizes.py --check

docs: $(VENV)/.dev-$(VERSION)  ## build the documentation into site/; a broken link fails
	$(BIN)/mkdocs build --strict

browser: $(VENV)/browser/chromium  ## install the Chromium that tests/browser drives

dashboard: $(VENV)/.dev-$(VERSION)  ## build the TypeScript client and the dashboard of the server
	$(BIN)/python tools/web.py

bench: $(patsubst %,$(VENV)/.%-$(VERSION),bench bench-worker bench-postgres bench-sentinel $(RUST_PEERS)) browser dashboard  ## cost beside raw statements and peers, as ratios in one run
	$(BIN)/python bench/embedded.py
	$(BIN)/python bench/http.py
	$(BIN)/python bench/dashboard.py
	$(BIN)/python bench/worker.py
	$(BIN)/python bench/redis.py
	$(BIN)/python bench/postgres.py
	$(BIN)/python bench/sentinel.py

verify: $(VENV)/.dev-$(VERSION)  ## the long runs, on the disk: processes, kills and pauses for minutes
	PYTEST_DEBUG_TEMPROOT=$${TMPDIR:-/tmp} $(BIN)/pytest -m verify --timeout 1800

mutants: $(VENV)/.dev-$(VERSION) browser dashboard  ## the negative controls: every fault that is planted must be noticed
	$(BIN)/pytest -q -n auto --maxprocesses 4 --dist loadgroup -k 'test_control_ or negative_controls or sql_lua_controls or planted_faults or test_lane_locks or test_lane_deadlocks'

versions: $(VENV)/.dev-$(VERSION)  ## the tests of the networked stores on every PostgreSQL, Redis and Valkey found here
	$(BIN)/python tools/versions.py

format: $(VENV)/.dev-$(VERSION)  ## format, fix what can be fixed, regenerate the sync twins
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format --quiet .
	$(BIN)/python tools/unasync.py
	$(BIN)/python tools/cli_reference.py

sizes: $(VENV)/.dev-$(VERSION)  ## lines per package; long files and functions
	$(BIN)/python tools/sizes.py

lock: $(VENV)-release/.tools-$(VERSION)  ## pin what is installed, with hashes; UPGRADE=--upgrade takes newer releases
	$(LOCK) --extra dev --output-file requirements/dev.txt pyproject.toml
	$(LOCK) --group release --output-file requirements/release.txt

audit: $(VENV)-release/.tools-$(VERSION)  ## ask for published vulnerabilities of all that is pinned
	$(RELEASE)/python tools/audit.py requirements/dev.txt requirements/release.txt

sbom: $(VENV)-release/.tools-$(VERSION)  ## list what comes with Holdfast, bare and with all extras, into dist/
	$(RELEASE)/python tools/sbom.py

dist: sbom dashboard  ## build the sdist and the wheel into dist/, the same bytes for the same commit
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(RELEASE)/python -m build --no-isolation

clean:  ## remove the environments, the built docs and the caches
	rm -rf .venv .venv-* dist site .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis

# What CI runs on: pinned with hashes, so a release that was tampered with is refused.
$(VENV)/.dev-$(VERSION): requirements/dev.txt pyproject.toml | $(VENV)/.python-$(VERSION)
	$(BIN)/python -m pip install --quiet --no-deps --require-hashes --requirement requirements/dev.txt
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)-release/.tools-$(VERSION): requirements/release.txt
	$(PYTHON) -m venv --clear $(VENV)-release
	$(RELEASE)/python -m pip install --quiet --no-deps --require-hashes --requirement requirements/release.txt
	@touch $@

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
