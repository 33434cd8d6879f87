# What a contributor does here, one word each; `make` lists them. `make demo` and `make test` need a Python and pip only.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help demo test style types contract coverage coverage-report interop interop-heavy soak test-all-pythons test-oldest bench bench-core bench-page bench-quick bench-setup bench-soak peers peers-heavy docs clean

# The oldest Python that is supported when it runs here, else whatever python3 is. Name another: make PYTHON=python3.13 test
PYTHON ?= $(shell python3.11 -c '' 2>/dev/null && echo python3.11 || echo python3)
PYTHON_FLAGS ?=
VENV ?= .venv
PEERS ?= .peers
ARGS ?=

PY := $(VENV)/bin/python
READY := $(VENV)/.ready
BENCH := ACPRT_PEERS="$(abspath $(PEERS))" $(PY) benchmarks/bench.py
PYTEST := $(strip $(PY) $(PYTHON_FLAGS)) -m pytest

# Tests that need nothing but this checkout and take seconds.
DEFAULT_TESTS := not interop and not node and not real_peers and not slow
# -X dev turns on asyncio's debug mode, -W error makes a forgotten coroutine or descriptor a failure.
STRICT := -X dev -W error

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-17s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(READY) ## run the echo agent through a whole turn
	@$(PY) examples/raw_prompt.py "$(PY) examples/echo_agent.py" "hello"

test: $(READY) ## run the tests that need nothing else
	$(PYTEST) -m "$(DEFAULT_TESTS)" $(ARGS)

style: $(READY) ## lint and check the format
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .

types: $(READY) ## mypy --strict
	$(PY) -m mypy

contract: $(READY) ## who may import whom
	$(PY) -c 'from importlinter.cli import lint_imports; raise SystemExit(lint_imports(no_cache=True, no_logo=True))'

coverage: $(READY) ## the same tests, measured
	rm -f .coverage .coverage.*
	$(MAKE) --no-print-directory test PYTHON_FLAGS="$(strip $(PYTHON_FLAGS) -m coverage run)"
	$(MAKE) --no-print-directory coverage-report

coverage-report: $(READY) ## what tests under `coverage run` have reached
	$(PY) -m coverage combine --quiet
	$(PY) -m coverage report

soak: $(READY) ## the slow tests: long fuzz runs, memory under load
	$(PYTEST) -m "slow" $(ARGS)

interop: $(READY) peers ## acprt against programs of other projects
	ACPRT_PEERS="$(abspath $(PEERS))" $(PYTEST) -m "interop or node" $(ARGS)

interop-heavy: $(READY) peers-heavy ## acprt against whole agents and clients, with a scripted model, without network
	ACPRT_PEERS="$(abspath $(PEERS))" tools/offline.sh $(PYTEST) -m "real_peers" $(ARGS)

test-all-pythons: ## the tests in dev mode, warnings as errors, on every newer Python that is here
	@tools/test_all_pythons.sh "$(STRICT)" $(ARGS)

test-oldest: ## the tests with the oldest dependencies that pyproject.toml allows
	@tools/test_oldest.sh "$(PYTHON)" $(ARGS)

docs: $(READY) ## build the site into build/site; a link that leads nowhere fails it
	$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[dev,docs]'
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict --quiet --site-dir build/site

bench-setup: $(READY) peers ## install what `make bench` compares with
	@benchmarks/setup.sh "$(PY)" "$(PEERS)"

bench: $(READY) ## acprt against all peers that are installed: table, growth and profile, into benchmarks/results (an hour)
	$(BENCH) --parts table,growth,profile --results benchmarks/results $(ARGS)

bench-quick: $(READY) ## a look at the same, two minutes
	$(BENCH) --quick $(ARGS)

bench-core: $(READY) peers ## acprt against agent-client-protocol and the limits (ARGS=--quick for a first look)
	$(BENCH) --peers core --only w1,w2,w3,w4,w5,w6 $(ARGS)

bench-soak: $(READY) ## memory of both sides over ten minutes at a fixed rate
	$(BENCH) --parts soak --peers acprt --rounds 1 --results benchmarks/results $(ARGS)

bench-page: $(READY) ## write the newest results into docs/performance.md
	@$(PY) benchmarks/publish.py

peers: $(READY) ## install peer programs into .peers, by package name
	@tools/install_peers.sh "$(PY)" "$(PEERS)"

peers-heavy: $(READY) ## install whole agents and clients as well (1.3 GB)
	@tools/install_peers.sh "$(PY)" "$(PEERS)" heavy

clean: ## remove what these commands made
	rm -rf $(VENV) .venvs $(PEERS) build dist .coverage .coverage.* .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache

$(READY): pyproject.toml
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo 'acprt needs Python 3.11 or newer; name one with: make PYTHON=/path/to/python' >&2; exit 1; }
	@[ -x $(PY) ] || "$(PYTHON)" -m venv $(VENV)
	$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@
