# One line per target; every target makes `.venv` itself when it is missing or out of date.
# PYTHON names the interpreter that `.venv` is made with (3.11 or later).

PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
JOBS ?= 2
# Kept, so that neither the tests nor the many processes that they start compile everything again.
export PYTHONDONTWRITEBYTECODE =
# The part of the package whose branches are all tested.
COVERED := */callwright/text/*,*/callwright/dialects/*,*/callwright/guard/*,*/callwright/schema*,*/callwright/arguments*,*/callwright/turn*,*/callwright/events*

.DEFAULT_GOAL := help
.PHONY: help setup serve demo test test-all test-loaded test-newest laws check format cover clients clients-quick templates bfcl embedded bench bench-core bench-gateway bench-codex bench-agent fuzz mutate readme lock clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/\1|\2/' | while IFS='|' read -r name text; do printf '  make %-13s %s\n' "$$name" "$$text"; done

setup: .venv/.stamp ## make .venv with the pinned tools and the package itself

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

serve: .venv/.stamp ## serve what the model servers of this machine have, or a small model of its own
	$(BIN)/callwright serve

demo: .venv/.stamp ## parse a sample stream on screen
	$(BIN)/callwright demo

# What the contract tests run in Node; without npm they are skipped, except in continuous integration.
LIBRARIES := tests/contract/node/node_modules/.stamp

$(LIBRARIES): tests/contract/node/package-lock.json .venv/.stamp
	$(BIN)/python -m tests.support.npm

# The real Codex; where it cannot be fetched its tests are skipped, except in continuous integration.
CODEX := .cache/codex/.stamp

$(CODEX): src/callwright/backends/codex/binary.py .venv/.stamp
	$(BIN)/python -m tests.support.codex

test: .venv/.stamp $(LIBRARIES) $(CODEX) ## all tests, long matrices sampled: at most five minutes on two cores
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -q

test-all: .venv/.stamp $(LIBRARIES) $(CODEX) ## all tests in full: at most 40 minutes
	CALLWRIGHT_FULL=1 $(BIN)/python -m pytest -n $(JOBS) --dist worksteal -q

test-loaded: .venv/.stamp $(LIBRARIES) $(CODEX) ## make test while four busy loops occupy the processor
	$(BIN)/python scripts/loaded.py --loops 4 $(MAKE) --no-print-directory test

test-newest: .venv/.stamp ## the unit tests on the newest Python of this machine, if it is newer than that of .venv
	$(BIN)/python scripts/newest_python.py

laws: .venv/.stamp ## the laws with at least 200 examples for each dialect
	CALLWRIGHT_LAW_EXAMPLES=$${CALLWRIGHT_LAW_EXAMPLES:-200} $(BIN)/python -m pytest -n $(JOBS) -q --timeout 1800 tests/properties

check: .venv/.stamp ## format, lint, types, layers, spelling
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell

format: .venv/.stamp ## format the code and apply the safe fixes
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

cover: .venv/.stamp ## branch coverage; 100 % of the core is required
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -q --cov --cov-report=
	$(BIN)/coverage report --include='$(COVERED)' --fail-under=100

clients: .venv/.stamp ## real coding agents against the gateway; writes docs/clients.md (needs npm, downloads 2 GB)
	$(BIN)/python scripts/clients.py

clients-quick: .venv/.stamp ## the quick ones of them
	$(BIN)/python scripts/clients.py --quick

templates: .venv/.stamp ## read back what the chat templates of real models render (downloads test data)
	$(BIN)/python scripts/templates.py

bfcl: .venv/.stamp ## the calls of a public benchmark through every dialect (downloads test data)
	$(BIN)/python scripts/bfcl.py

embedded: .venv/.stamp ## a hundred prompts to the embedded model, by each strategy; writes docs/how-it-decides.md (an hour)
	$(BIN)/python scripts/embedded.py

bench: bench-core bench-gateway bench-codex ## all benchmarks

bench-core: .venv/.bench-stamp ## microseconds per chunk, beside other parsers
	$(BIN)/python scripts/bench_core.py

bench-gateway: .venv/.stamp .cache/litellm/.stamp ## a gateway's cost, beside nginx (to be installed) and LiteLLM
	LITELLM=$(CURDIR)/.cache/litellm/bin/litellm $(BIN)/python scripts/bench_gateway.py

bench-codex: .venv/.stamp $(CODEX) ## memory and latency of kind = "codex"; writes its table in docs/backends.md
	$(BIN)/python scripts/bench_codex.py

bench-agent: .venv/.stamp ## an hour of the agent: memory, and how long it takes to open again
	$(BIN)/python scripts/agent_long.py

# In an environment of its own: its versions are not ours. Not locked: nothing of ours runs on it.
.cache/litellm/.stamp:
	$(PYTHON) -m venv .cache/litellm
	.cache/litellm/bin/python -m pip --disable-pip-version-check --quiet install 'litellm[proxy]<=1.106.2'
	touch $@

fuzz: .venv/.stamp ## fuzz every shape of dialect, see CONTRIBUTING.md
	$(BIN)/python scripts/fuzz.py

mutate: .venv/.stamp ## mutation testing of callwright.text
	$(BIN)/mutmut run
	$(BIN)/mutmut results

readme: .venv/.stamp ## write the generated parts of README.md and of the documents on configuration anew
	$(BIN)/python scripts/readme.py
	$(BIN)/python scripts/configuration.py

lock: ## resolve the requirements anew (the only target that needs uv)
	uv pip compile $(LOCK) pyproject.toml -o requirements/base.txt
	uv pip compile $(LOCK) pyproject.toml --group dev -c requirements/base.txt -o requirements/dev.txt
	uv pip compile $(LOCK) --group bench -c requirements/dev.txt -o requirements/bench.txt

LOCK := --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-header --no-annotate

clean: ## remove .venv and every cache
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache .coverage mutants build dist
