# The two commands of the README: `make demo` and `make test`. Both do all the set-up they need.
.PHONY: help setup demo demo-mnist play mnist test test-all check bench docs pictures site clean

PY := .venv/bin/python
# Two test processes on two cores: threads of PyTorch's own would only be in each other's way. Each takes whole
# files (tests/conftest.py): neighbours share images and exported models, which two would make twice.
# Tests start many processes, for which modules are compiled once, whatever the environment says.
PYTEST := PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(PY) -m pytest -n 2 --dist loadscope --no-loadscope-reorder --durations 15
# What uses PyTorch, whose last bits differ from CPU to CPU; and an old CPU, to PyTorch, oneDNN, MKL and OpenBLAS.
TORCH := $(addprefix tests/,cli cluster debug examples explore exports frontends firmware/test_app.py fuzz ir machines measure \
	new_operator npu opinfo ops passes plan quantize report tune \
	units zoo test_api.py test_api_results.py test_blame.py test_check_inputs.py test_code_in_ram.py test_command.py test_docs.py test_road.py \
	test_structure.py test_two_cores.py)
# Of it what reads and quantizes models, for a CPU between the old one and this.
READERS := $(addprefix tests/,frontends opinfo passes quantize zoo ir/test_equivalence.py test_road.py)
OLD_CPU := ATEN_CPU_CAPABILITY=default ONEDNN_MAX_CPU_ISA=SSE41 MKL_ENABLE_INSTRUCTIONS=SSE4_2 OPENBLAS_CORETYPE=Nehalem

help:
	@echo "make setup       install what tests and demos need; the other commands do it too"
	@echo "make demo        set up, train the sine model, build it for the Pico 2 W, emulate, plot"
	@echo "make demo-mnist  read digits through the camera of an emulated Pico4ML: pictures, accuracy, frame rates"
	@echo "make play        rock, paper, scissors in the terminal, with an emulated Cortex-M55 as the referee;"
	@echo "                 BOARD=corstone-300: with its NPU"
	@echo "make mnist       fetch the MNIST digits, measure an int8 model's accuracy on the emulated chip"
	@echo "make check       format, lint and types only"
	@echo "make test        set up, check the code, run all tests"
	@echo "make test-all    make test with the long sweeps, and as on other CPUs"
	@echo "make bench       measure models x boards, write docs/benchmarks.md, benchmarks/results.json and boards.json"
	@echo "make docs        regenerate the generated parts of the docs"
	@echo "make pictures    redraw the pictures of the docs, from what the commands print (minutes)"
	@echo "make site        build the documentation as a website with search, in build/site/html"
	@echo "make clean       remove what was built (not .venv)"

setup:
	@tools/setup.sh test

demo:
	@tools/setup.sh demo
	@$(PY) examples/sine/demo.py

demo-mnist:
	@tools/setup.sh camera
	@$(PY) examples/pico4ml/demo.py

play:
	@tools/setup.sh $(if $(filter corstone%,$(BOARD)),npu,demo)
	@$(PY) examples/rps/play.py $(if $(BOARD),--board $(BOARD))

mnist:
	@tools/setup.sh camera
	@$(PY) examples/mnist/data.py
	@$(PY) -m baretorch evaluate examples/mnist/model.py --board mps2-an386 --target-samples 200

check:
	@tools/setup.sh test
	$(PY) -m ruff format --check src tests tools examples zoo benchmarks
	$(PY) -m ruff check src tests tools examples zoo benchmarks
	$(PY) -m mypy

test: check
	$(PYTEST) -m "not slow"

test-all: check
	$(OLD_CPU) $(PYTEST) -m "not slow" $(TORCH)
	ATEN_CPU_CAPABILITY=avx2 $(PYTEST) -m "not slow" $(READERS)
	$(PYTEST)

bench:
	@tools/setup.sh demo
	@$(PY) benchmarks/bench.py
	@$(PY) benchmarks/boards.py

docs:
	@tools/setup.sh demo
	@$(PY) tools/make_docs.py

pictures:
	@tools/setup.sh test
	@$(PY) tools/draw_pictures.py
	@PYTHONPATH=. $(PY) tools/draw_studio.py

site:
	@tools/setup.sh site
	@.venv/site/bin/python tools/build_site.py

clean:
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
