# Every target creates or updates `.venv` when necessary.
# PYTHON is the interpreter for `.venv` (3.11 or later).

PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# One more than the cores that this is measured on: tests that start processes wait for them.
JOBS ?= 3
# Kept, so that neither the tests nor the many processes that they start compile everything again.
export PYTHONDONTWRITEBYTECODE =
# The part of the package whose branches are all tested.
COVERED := */callwright/text/*,*/callwright/dialects/*,*/callwright/guard/*,*/callwright/schema*,*/callwright/arguments*,*/callwright/turn*,*/callwright/events*

.DEFAULT_GOAL := help
.PHONY: help setup serve demo test test-all test-loaded test-newest laws check format cover clients clients-quick templates faults bfcl embedded bench bench-core bench-gateway bench-codex bench-agent bench-limits fuzz mutate readme lock clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/\1|\2/' | while IFS='|' read -r name text; do printf '  make %-13s %s\n' "$$name" "$$text"; done

setup: .venv/.stamp ## create .venv with the pinned tools and the package

.venv/.stamp: requirements/dev.txt requirements/local.txt pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(PIP) install --require-hashes -r requirements/dev.txt
	$(PIP) install --require-hashes --no-deps -r requirements/local.txt
	$(PIP) install --no-deps --no-build-isolation -e .
	$(BIN)/python -m compileall -q src  # as pip does where it installs for real: half a second less to start
	touch $@

.venv/.bench-stamp: requirements/bench.txt .venv/.stamp
	$(PIP) install --require-hashes -r requirements/bench.txt
	touch $@

serve: .venv/.stamp ## serve the models on this machine, or a small embedded model
	$(BIN)/callwright serve

demo: .venv/.stamp ## watch a sample stream being parsed
	$(BIN)/callwright demo

# What the contract tests run in Node; without npm they are skipped, except in continuous integration.
LIBRARIES := tests/contract/node/node_modules/.stamp

$(LIBRARIES): tests/contract/node/package-lock.json .venv/.stamp
	$(BIN)/python -m tests.support.npm

# The real Codex; where it cannot be fetched its tests are skipped, except in continuous integration.
CODEX := .cache/codex/.stamp

$(CODEX): src/callwright/backends/codex/binary.py .venv/.stamp
	$(BIN)/python -m tests.support.codex

test: .venv/.stamp $(LIBRARIES) $(CODEX) ## run all tests, with samples of long matrices (at most five minutes on two cores)
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -q

test-all: .venv/.stamp $(LIBRARIES) $(CODEX) ## run all tests in full (at most 40 minutes)
	CALLWRIGHT_FULL=1 $(BIN)/python -m pytest -n $(JOBS) --dist worksteal -q

test-loaded: .venv/.stamp $(LIBRARIES) $(CODEX) ## run the tests while four busy loops occupy the processor
	$(BIN)/python scripts/loaded.py --loops 4 $(MAKE) --no-print-directory test

test-newest: .venv/.stamp ## run the unit tests on the newest Python of this machine
	$(BIN)/python scripts/newest_python.py

laws: .venv/.stamp ## run the laws with at least 200 examples for each dialect
	CALLWRIGHT_LAW_EXAMPLES=$${CALLWRIGHT_LAW_EXAMPLES:-200} $(BIN)/python -m pytest -n $(JOBS) -q --timeout 1800 tests/properties

check: .venv/.stamp ## check format, lint, types, layers and spelling
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell

format: .venv/.stamp ## format the code and apply safe fixes
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

cover: .venv/.stamp ## measure branch coverage; the core must have 100 %
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -q --cov --cov-report=
	$(BIN)/coverage report --include='$(COVERED)' --fail-under=100

clients: .venv/.stamp ## run real coding agents against the gateway; writes docs/clients.md (needs npm, downloads 2 GB)
	$(BIN)/python scripts/clients.py

clients-quick: .venv/.stamp ## run only the fast coding agents
	$(BIN)/python scripts/clients.py --quick

templates: .venv/.stamp ## parse the output of real chat templates (downloads test data)
	$(BIN)/python scripts/templates.py

faults: .venv/.stamp ## read faulty output in every dialect; writes docs/faults.md
	$(BIN)/python scripts/faults.py

bfcl: .venv/.stamp ## parse the calls of a public benchmark in every dialect (downloads test data)
	$(BIN)/python scripts/bfcl.py

embedded: .venv/.stamp ## test the embedded model with each strategy; writes docs/how-it-decides.md (an hour)
	$(BIN)/python scripts/embedded.py

bench: bench-core bench-gateway bench-codex ## run bench-core, bench-gateway and bench-codex

bench-core: .venv/.bench-stamp ## measure the parsers, compared with others
	$(BIN)/python scripts/bench_core.py

bench-gateway: .venv/.stamp .cache/litellm/.stamp ## measure the gateway, compared with nginx (must be installed) and LiteLLM
	LITELLM=$(CURDIR)/.cache/litellm/bin/litellm $(BIN)/python scripts/bench_gateway.py

bench-codex: .venv/.stamp $(CODEX) ## measure kind = "codex"; writes a table in docs/backends.md
	$(BIN)/python scripts/bench_codex.py

bench-agent: .venv/.stamp ## measure an hour of the agent: memory, and time to open the session again
	$(BIN)/python scripts/agent_long.py

bench-limits: .venv/.stamp ## measure deep, large and hostile input at three sizes
	$(BIN)/python scripts/bench_limits.py

# In an environment of its own: its versions are not ours. Not locked: nothing of ours runs on it.
.cache/litellm/.stamp:
	$(PYTHON) -m venv .cache/litellm
	.cache/litellm/bin/python -m pip --disable-pip-version-check --quiet install 'litellm[proxy]<=1.106.2'
	touch $@

fuzz: .venv/.stamp ## fuzz every shape of dialect (see CONTRIBUTING.md)
	$(BIN)/python scripts/fuzz.py

mutate: .venv/.stamp ## run mutation testing of callwright.text
	$(BIN)/mutmut run
	$(BIN)/mutmut results

readme: .venv/.stamp ## regenerate parts of README.md, docs/configuration.md and callwright.example.toml
	$(BIN)/python scripts/readme.py
	$(BIN)/python scripts/configuration.py

lock: ## update the pinned requirements (needs uv)
	uv pip compile $(LOCK) pyproject.toml -o requirements/base.txt
	uv pip compile $(LOCK) pyproject.toml --group dev -c requirements/base.txt -o requirements/dev.txt
	uv pip compile $(LOCK) --group bench -c requirements/dev.txt -o requirements/bench.txt

LOCK := --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-header --no-annotate

clean: ## remove .venv and all caches
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache .coverage mutants build dist
