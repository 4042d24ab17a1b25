# Each target makes or updates .venv by itself.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
.DEFAULT_GOAL := help

help: ## say what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "hotset needs Python 3.11 or newer; say PYTHON=/path/to/python3.11 make ..." >&2; exit 2; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "$(PYTHON) has no venv; run: sudo apt-get install python3-venv   (Debian, Ubuntu), then make again" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip -q install --disable-pip-version-check -U 'pip>=25.1'

$(VENV)/.run: $(BIN)/python pyproject.toml constraints.txt
	@$(BIN)/python -m pip -q install --disable-pip-version-check -c constraints.txt -e '.[fast]'
	@touch $@

$(VENV)/.dev: $(VENV)/.run
	@$(BIN)/python -m pip -q install --disable-pip-version-check -c constraints.txt --group check --group test
	@touch $@

install: $(VENV)/.run ## put hotset into .venv

run: install ## show hotset at work on a recorded session, then keep serving
	@$(BIN)/hotset demo

test: $(VENV)/.dev ## run the fast tests, with one path of each kind from end to end
	$(BIN)/python -m pytest -n auto -m "not slow"

test-slow: $(VENV)/.dev ## run the tests that make test leaves out
	$(BIN)/python -m pytest -n auto -m "slow and not browser"

$(VENV)/.browser: $(VENV)/.dev
	@$(BIN)/python -m pip -q install --disable-pip-version-check -c constraints.txt --group browser
	@touch $@

test-browser: $(VENV)/.browser ## run the tests in a real browser; installs Debian's Chromium where there is none
	@tools/browser
	$(BIN)/python -m pytest -m browser tests/browser

pictures: $(VENV)/.browser ## draw the README's picture of the dashboard anew
	@tools/browser
	$(BIN)/python tools/pictures

test-all: test ## run all tests
	$(MAKE) test-slow
	$(MAKE) test-browser

campaign: $(VENV)/.dev ## run the tests with everything that chance decides, in full: hours
	HOTSET_CAMPAIGN=1 $(BIN)/python -m pytest -n auto

check: $(VENV)/.dev ## format, lint, types, layers, fast tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(MAKE) test

bench-%: $(VENV)/.dev ## run one benchmark: bench-overhead, -store, -dashboard, -plan, -replay, -frontier, -fixed, -lines, -peers, -search, -history, -compaction, -code, -code_questions, -hints, -repeats, -tools, -memory, -facts, -telling, -learn, -teach, -trial, -evolve, -pressure, -soak, -soak_tools, -bytes, -startup
	$(BIN)/python -m bench.$*

.PHONY: help pictures install run test test-slow test-browser test-all campaign check
