# The commands of this repository; `make help` explains them.
# Everything is installed under .venv/, from the hash-pinned files in requirements/.

PYTHON ?= $(shell for each in python3.13 python3.12 python3.11 python3 python; do \
	$$each -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& { echo $$each; break; }; done)
RUN := .venv/bin/python
SHELL_FILES = .ci/run $(shell git ls-files "*.sh")
# Tests that run side by side: most of the time they wait for a machine to boot, so more than there are cores.
WORKERS ?= 4

.DEFAULT_GOAL := help
.PHONY: help demo test check bench bench-gpu mutants lock clean python

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

demo: python ## A 16-node cluster on this machine: break a GPU, approve, watch (AUTO=1: by itself; PORT=8080)
	@$(PYTHON) -m tools.setup demo
	@exec $(RUN) -m tools.demo

test: python ## All tests, on real parts; sets up what is missing (ARGS='-k reboot' runs some)
	@$(PYTHON) -m tools.setup test
	@exec $(RUN) -m pytest -n $(WORKERS) --dist loadgroup --no-loadscope-reorder $(ARGS)

check: python ## Format, lint, types, import contracts, shell, Dockerfile, locks: what CI runs first
	@$(PYTHON) -m tools.setup check
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	.venv/bin/mypy
	.venv/bin/lint-imports
	.venv/bin/shellcheck $(SHELL_FILES)
	.venv/bin/hadolint --failure-threshold style Dockerfile
	$(RUN) .ci/locks.py
	$(RUN) -m tools.state_diagram --check
	$(RUN) -m tools.settings_page --check
	$(RUN) -m tools.cited_tests --check
	@if command -v kubectl >/dev/null; then set -x; kubectl kustomize manifests/base >/dev/null; fi

bench: python ## How long from a kernel line to Slack and from an approval to a cordon; what the agent costs a node
	@$(PYTHON) -m tools.setup test
	@$(RUN) -m tools.bench.loop $(ARGS)
	@$(RUN) -m tools.bench.agent --out artifacts/bench-agent.json
	@$(RUN) -m tools.bench.gpu --stand-in --agent-minutes 0 --out artifacts/bench-nvml.json

bench-gpu: python ## What asking this machine's NVIDIA GPUs costs (ARGS='--load "command"': also while it runs)
	@$(PYTHON) -m tools.setup check
	@exec $(RUN) -m tools.bench.gpu --out artifacts/bench-gpu.json $(ARGS)

mutants: python ## Small changes to modules that no test notices (ARGS='reconciler/repair/guard.py'); not in CI
	@$(PYTHON) -m tools.setup check
	@exec $(RUN) -m tools.mutants $(ARGS)

lock: python ## Resolve the dependencies again and pin them in requirements/
	@$(PYTHON) -m tools.setup demo
	$(RUN) .ci/locks.py --write

clean: ## Remove .venv and what tools cached here (not the built control plane in ~/.cache)
	find bot checks reconciler tests tools -name __pycache__ -prune -exec rm -rf {} +
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache artifacts build dist

python:
	@test -n '$(PYTHON)' || { echo 'Python 3.11 or newer with its venv module is needed; on Debian: apt-get install python3-venv. Name another with make PYTHON=/path/to/python3' >&2; exit 1; }
