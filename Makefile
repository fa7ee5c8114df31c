# Every target sets up what it needs in .venv and reuses it until pyproject.toml changes.
# Needed beforehand: Python 3.11 or newer, make, a C compiler.

PYTHON ?= python3
VENV := .venv
MINIMUM := .venv-minimum
PEERS := .venv-peers
LABS := .venv-labs
FIELD_ENV := .venv-field
FIELD_TF_ENV := .venv-field-tf
FIELD_SGP_ENV := .venv-field-sgp
TORCH ?= torch==2.13.0
BIN := $(VENV)/bin
WORKERS ?= auto
LOCK := requirements-dev.lock
LOCKED ?=

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help run check test test-portable test-minimum test-peers test-labs test-stress test-slow coverage lint format audit lock bench field docs note release-check clean

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: $(VENV)/.ready-run  ## map the algae bloom of a simulated lake, in one to two minutes; the report goes to build/lake
	$(BIN)/truvar run examples/bloom.toml --truth chlorophyll --report build/lake

check: lint test  ## what a change must pass before it is proposed

test: $(VENV)/.ready-dev $(VENV)/.ready-system  ## run the tests
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --ignore tests/stress

test-portable: $(VENV)/.ready-dev  ## run the tests that depend on floating point as on other processors
	$(BIN)/python .ci/test_portable.py --cores $(CORES) -n $(WORKERS) --dist worksteal $(PORTABLE_TESTS)

test-minimum: $(MINIMUM)/.ready  ## run the core tests with the oldest versions that pyproject.toml allows
	$(MINIMUM)/bin/python -m pytest $(CORE_TESTS)

test-peers: $(PEERS)/.ready  ## run the tests that compare with BoTorch and GPyTorch, which are large
	$(PEERS)/bin/python -m pytest $(PEER_TESTS)

test-labs: $(LABS)/.ready  ## run the tests within Xopt, libEnsemble, Optimas, bluesky, AEPsych's client and MLflow
	$(LABS)/bin/python -m pytest $(LAB_TESTS)

test-stress: $(VENV)/.ready-dev $(VENV)/.ready-system  ## run the tests that kill, overload and race
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile -m "not slow and not alone" tests/stress
	$(BIN)/python -m pytest -m "alone and not slow" tests/stress

test-slow: $(VENV)/.ready-dev $(VENV)/.ready-system  ## run all tests, the slow statistical ones too
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m ""

coverage: $(VENV)/.ready-dev $(VENV)/.ready-system  ## run the tests and report what they do not reach
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --ignore tests/stress --cov

lint: $(VENV)/.ready-dev  ## check style, docstrings, types and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python .ci/check_style.py
	$(BIN)/python .ci/structure.py
	$(BIN)/mypy --strict src
	$(BIN)/lint-imports

format: $(VENV)/.ready-dev  ## let ruff rewrite what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

audit: $(VENV)/.ready-audit  ## look for unsafe code, and for known vulnerabilities of the locked versions
	$(BIN)/bandit --quiet --recursive --configfile pyproject.toml src
	$(BIN)/pip-audit --requirement $(LOCK) --no-deps --disable-pip

lock: $(VENV)/.ready-lock  ## renew the versions of requirements-dev.lock
	$(BIN)/python .ci/lock.py $(LOCK)

bench: $(VENV)/.ready-bench  ## measure speed
	$(BIN)/python -m benchmarks

field: $(FIELD_ENV)/.ready $(FIELD_TF_ENV)/.ready $(FIELD_SGP_ENV)/.ready  ## compare with peers at equal cost, for hours: make field FIELD="--starts 5"
	$(FIELD_TF_ENV)/bin/python -m benchmarks.field --json build/field.jsonl $(FIELD)
	$(FIELD_SGP_ENV)/bin/python -m benchmarks.field --json build/field.jsonl --known $(FIELD)
	$(FIELD_ENV)/bin/python -m benchmarks.field --json build/field.jsonl --known $(FIELD)
	$(FIELD_ENV)/bin/python -m benchmarks.field --json build/field.jsonl $(FIELD)

docs: $(VENV)/.ready-docs $(VENV)/.ready-system  ## run the tutorials, build the documentation into site/, check its links and try it on a phone
	$(BIN)/python docs/pages.py $(wildcard docs/tutorials/*.md)
	$(BIN)/python -m zensical build --strict --clean
	$(BIN)/python docs/check_links.py site

note: $(VENV)/.ready-note $(VENV)/.ready-system  ## print the technical note, docs/note.md, as build/note.pdf
	$(BIN)/python docs/note.py

release-check: $(VENV)/.ready-release  ## build wheel and sdist into dist/, and try the wheel in an empty environment
	$(BIN)/python .ci/release_check.py $(TAG)

clean:  ## remove what was built, but not .venv
	rm -rf build dist site .cache $(MINIMUM) $(PEERS) $(LABS) $(FIELD_ENV) $(FIELD_TF_ENV) $(FIELD_SGP_ENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .coverage
	find src tests $(wildcard examples benchmarks) -name __pycache__ -type d -prune -exec rm -rf {} +

# Which extras a stamp stands for.
$(VENV)/.ready-run: EXTRAS := plot
$(VENV)/.ready-dev: EXTRAS := test,lint
$(VENV)/.ready-bench: EXTRAS := bench
$(VENV)/.ready-docs: EXTRAS := docs
$(VENV)/.ready-note: EXTRAS := note
$(VENV)/.ready-release: EXTRAS := release
$(VENV)/.ready-audit: EXTRAS := audit
$(VENV)/.ready-lock: EXTRAS := lock

$(VENV)/.ready-%: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(if $(LOCKED),--constraint $(LOCK)) --editable ".[$(EXTRAS)]"
	@touch $@

# The packages below the integrations. Tests that need other extras than these three are skipped, by name.
CORE_TESTS := $(addprefix tests/,acquisition algorithm domain engines inference models problem storage study theory)

# Core types of OpenBLAS, and the tests whose results depend on floating point.
CORES ?= Prescott,Sandybridge,Haswell
PORTABLE_TESTS ?= $(addprefix tests/,acquisition algorithm backtest docs engines inference integrations models paper \
    report study theory)

$(MINIMUM)/.ready: pyproject.toml .ci/minimum_versions.py
	$(PYTHON) -m venv --clear $(MINIMUM)
	$(MINIMUM)/bin/python .ci/minimum_versions.py plot store service >$(MINIMUM)/requirements.txt
	$(MINIMUM)/bin/python -m pip install --quiet --disable-pip-version-check --requirement $(MINIMUM)/requirements.txt \
	    "pytest>=8" "hypothesis>=6.100"
	$(MINIMUM)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

# The tests that need PyTorch. Where pip finds a build for processors alone, such as 2.9.0+cpu, it takes that one.
PEER_TESTS := $(addprefix tests/,integrations/test_botorch.py models/test_learned_tasks.py benchmarks/test_scratch.py \
    benchmarks/test_field.py docs/test_integrations_page.py)

$(PEERS)/.ready: pyproject.toml
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check --editable ".[bench,botorch]" \
	    "pytest>=8" "hypothesis>=6.100"
	@touch $@

# Programs of laboratories, which bring PyTorch. Where they are missing these tests are skipped, by name.
LAB_TESTS := $(addprefix tests/,labs integrations/test_gest.py docs/test_integrations_page.py)

$(LABS)/.ready: pyproject.toml
	$(PYTHON) -m venv $(LABS)
	$(LABS)/bin/python -m pip install --quiet --disable-pip-version-check --editable ".[test-labs]"
	@touch $@

# Programs that some tests need. Without them those tests are skipped, by name.
$(VENV)/.ready-system: | $(BIN)/python
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    command -v chromium >/dev/null && ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || \
	    { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends postgresql chromium; } \
	    >$(VENV)/system.log 2>&1 || echo "PostgreSQL and Chromium could not be installed (see $(VENV)/system.log)"; fi
	@touch $@

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo "truvar needs Python 3.11 or newer and $(PYTHON) is not; try: make PYTHON=python3.12 ..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# What `benchmarks.field` compares with: PyTorch and TensorFlow do not share an environment, nor do two versions of TensorFlow.
$(FIELD_ENV)/.ready: EXTRAS := bench,peers,field
$(FIELD_TF_ENV)/.ready: EXTRAS := bench,field-tf
$(FIELD_SGP_ENV)/.ready: EXTRAS := bench,field-sgp

# PyTorch comes first, in a version that can be chosen (make field TORCH=...), so that no larger build is fetched as a dependency.
$(FIELD_ENV)/.ready: FIRST = $(TORCH)

$(FIELD_ENV)/.ready $(FIELD_TF_ENV)/.ready $(FIELD_SGP_ENV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(@D)
	$(if $(FIRST),$(@D)/bin/python -m pip install --quiet --disable-pip-version-check $(FIRST))
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --editable ".[$(EXTRAS)]"
	@touch $@
