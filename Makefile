# Every target makes .venv when it is missing or out of date, and needs only Python 3.11 or later and make.
#
#   make run      the first look: a table, report.html and regret.pdf (ARGS=... is passed on to `aggbandit run`)
#   make test     all tests                                          (ARGS=... is passed on to pytest)
#   make test-gpu the tests that need an NVIDIA GPU
#   make check    format, lint, types, layers, links and examples in the docs, the map from paper to code
#   make bench    episodes per second of the frozen workloads
#   make mutants  break the code on purpose, line by line; some test must notice each
#   make format   write the code as `make check` wants it
#   make clean    remove .venv, caches and build products

PYTHON ?= $(firstword $(foreach name,python3 python3.14 python3.13 python3.12 python3.11 python,$(if \
	$(shell $(name) -c 'import sys; print(int(sys.version_info >= (3, 11)))' 2>/dev/null | grep 1),$(name))) python3)
BIN := .venv/bin
ARGS ?=

.PHONY: run test test-gpu check bench mutants format clean install-run install-test install-check install-gpu
.NOTPARALLEL:  # all targets share one .venv
.DEFAULT_GOAL := run

install-run:
	@$(PYTHON) tools/venv.py
install-test:
	@$(PYTHON) tools/venv.py test
install-gpu:
	@$(PYTHON) tools/venv.py test cuda
install-check:
	@$(PYTHON) tools/venv.py test check

run: install-run
	$(BIN)/aggbandit run $(ARGS)

# One test process a core, but no more than eight: each compiles what it needs.
test: install-test
	$(BIN)/python -m pytest -n auto --maxprocesses 8 --dist worksteal $(ARGS)

# One process: the tests share the GPU.
test-gpu: install-gpu
	AGGBANDIT_GPU=1 $(BIN)/python -m pytest -n 0 tests/gpu $(ARGS)

check: install-check
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m tools.links
	$(BIN)/python -m tools.paper_map

bench: install-run
	$(BIN)/aggbandit bench $(ARGS)

mutants: install-test
	$(BIN)/python -m tools.mutate $(ARGS)

format: install-check
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests tools benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
