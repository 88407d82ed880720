# The two commands of the README: `make demo` and `make test`. Both do all the set-up they need.
.PHONY: help demo test test-all check bench docs clean

PY := .venv/bin/python

help:
	@echo "make demo      set up, train the sine model, build it for the Pico 2 W, emulate, plot"
	@echo "make test      set up, check the code, run all tests"
	@echo "make test-all  the same with the long sweeps"
	@echo "make bench     measure models x boards, write docs/benchmarks.md and benchmarks/results.json"
	@echo "make docs      write the generated parts of the docs anew"
	@echo "make clean     remove what was built (not .venv)"

demo:
	@tools/setup.sh demo
	@$(PY) examples/sine/demo.py

check:
	@tools/setup.sh test
	$(PY) -m ruff format --check src tests tools examples zoo benchmarks
	$(PY) -m ruff check src tests tools examples zoo benchmarks
	$(PY) -m mypy

test: check
	$(PY) -m pytest -n 2 -m "not slow"

test-all: check
	$(PY) -m pytest -n 2

bench:
	@tools/setup.sh demo
	@$(PY) benchmarks/bench.py

docs:
	@tools/setup.sh demo
	@$(PY) tools/make_docs.py

clean:
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
