# `make` alone lists the targets. Each target sets up what it needs in .venv, once.

PY := .venv/bin/python
JOBS ?= auto
PYTEST_ARGS ?=
BENCH_ARGS ?=
FUZZ_ARGS ?=
N ?= 1000

# An installation in place belongs to one place: the stamps carry the checkout's path, so a moved one is redone.
PLACE := $(shell pwd | cksum | cut -d' ' -f1)
ready = .venv/.ready-$(PLACE)-$(1)

COMPARE_ARGS ?=

.PHONY: help setup demo aot compare test test-heavy test-optimised test-all lint oracles bench bench-kinds bench-nets bench-compile bench-ways bench-spellings fuzz sanitize docs wheel layers clean distclean

help:  ## this list
	@sed -nE 's/^([a-z%-]+):.*## (.*)/  make \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 18

setup: $(call ready,test) layers  ## .venv with layerc in place and all that the tests need

demo: $(call ready,demo) layers  ## compile the example layers and train a net with them
	$(PY) examples/digits.py

example-%: $(call ready,demo) layers  ## one training job: example-lenet, -letters, -spiral, -strips, -tabular, -vae
	$(PY) examples/$*.py

compare: $(call ready,demo) $(call ready,oracles) layers  ## all training jobs and their PyTorch twins, in a table
	$(PY) examples/compare.py $(COMPARE_ARGS)

aot: $(call ready,demo) layers  ## train a net, build it whole, run it from a C program
	$(PY) examples/ahead.py

test: $(call ready,test) layers  ## the quick test suite
	$(PY) -m pytest -n $(JOBS) --dist loadfile -m "not slow and not heavy" --ignore=tests/oracles $(PYTEST_ARGS)

test-heavy: $(call ready,test) layers  ## what compiles large layer files for minutes
	$(PY) -m pytest -n $(JOBS) --dist loadfile -m "heavy and not slow" --ignore=tests/oracles $(PYTEST_ARGS)

test-optimised: $(call ready,test) layers  ## both, with all layers compiled as users have them: long
	$(PY) -m pytest -n $(JOBS) --dist loadfile -m "not slow" --optimised --ignore=tests/oracles $(PYTEST_ARGS)

test-all: $(call ready,test) layers  ## the quick suite and what takes minutes
	$(PY) -m pytest -n $(JOBS) --dist loadfile --ignore=tests/oracles $(PYTEST_ARGS)

lint: $(call ready,test)  ## ruff, its formatter (check only) and mypy
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	.ci/typecheck

oracles: $(call ready,test) $(call ready,oracles) layers  ## compare with PyTorch and JAX (installs both)
	$(PY) -m pytest -n $(JOBS) --dist loadfile tests/oracles $(PYTEST_ARGS)

bench: $(call ready,bench) layers  ## measure against PyTorch, JAX and Numba (installs them)
	$(PY) benchmarks/run.py $(BENCH_ARGS)

bench-kinds: $(call ready,bench) layers  ## more cases, of the kinds that layer authors write
	$(PY) benchmarks/run.py --suite kinds $(BENCH_ARGS)

bench-nets: $(call ready,bench) layers  ## nets beside PyTorch and ONNX Runtime
	$(PY) benchmarks/nets.py $(BENCH_ARGS)
	$(PY) benchmarks/convolutions.py

bench-compile: $(call ready,bench) layers  ## what builds take, and the import of a package
	$(PY) benchmarks/compile_times.py $(BENCH_ARGS)

bench-ways: $(call ready,test) layers  ## threads, portable and specialised libraries, products beside OpenBLAS
	$(PY) benchmarks/ways.py $(BENCH_ARGS)

bench-spellings: $(call ready,test) layers  ## the same layers, written in several ways
	$(PY) benchmarks/spellings.py

fuzz: $(call ready,test) layers  ## random programs: NumPy, compiled code and gradients must agree (N=20000 SEED=1)
	$(PY) tests/fuzz.py -n $(N) $(if $(SEED),--seed $(SEED)) $(FUZZ_ARGS)

sanitize: N = 200
sanitize: $(call ready,test) layers  ## compiled code under AddressSanitizer and UBSan: tests and random programs (N=200)
	.ci/sanitize $(N)

docs: $(call ready,test)  ## write what is generated in docs/
	$(PY) docs/language.py
	$(PY) docs/quoted.py
	$(PY) docs/runtime.py

wheel: $(call ready,test)  ## build the wheel into dist/
	$(PY) -m pip wheel --no-build-isolation --no-deps --wheel-dir dist .

layers:
	@.ci/layers

.venv/.ready-$(PLACE)-%: pyproject.toml .ci/setup
	@.ci/setup $*
	@touch $@

# The stamps are made by a pattern rule: not to be taken for intermediate files and removed.
.PRECIOUS: .venv/.ready-$(PLACE)-%

clean:  ## remove what was built; .venv stays (make distclean removes it)
	rm -rf .build dist layerc.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis examples/out .venv/.layers
	find . -name .venv -prune -o \( -name '*_compiled' -o -name __pycache__ \) -type d -prune -exec rm -rf {} +

distclean: clean
	rm -rf .venv
