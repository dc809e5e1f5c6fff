# Thin front of CMake. `make test` and `make demo` set up everything they need by themselves.
BUILD   ?= build
PRESET  ?= dev
JOBS    ?= $(shell nproc)
# More for the first configure, for example CMAKE_ARGS=-DTANDEM_CUDA=OFF; a change of these configures anew.
CMAKE_ARGS ?=
VENV     = $(eval VENV := $(shell scripts/setup.sh --prefix))$(VENV)
CMAKE    = $(VENV)/bin/cmake
WITH_VENV = PATH="$(VENV)/bin:$$PATH" TANDEM_VENV="$(VENV)"
CONFIGURE = --preset $(PRESET) -B $(BUILD) $(if $(CI),-DTANDEM_WERROR=ON) $(CMAKE_ARGS)

.PHONY: help setup configure build test demo bench parity slurm soak sanitize fuzz dist install format lint clean check-fresh
help:
	@echo "make build     build/bin/tandem"
	@echo "make test      build and run all tests          make demo     build and see it work"
	@echo "make sanitize  tests under ASan+UBSan and TSan  make lint     formatting, layers, clang-tidy"
	@echo "make parity    live comparison with references  make bench    figures, side by side with peers"
	@echo "make fuzz      libFuzzer on all file readers    make soak     64 callers for a minute, 100 killed runs"
	@echo "make dist      relocatable tree in dist/        make install  PREFIX=/usr/local"
	@echo "               (TESTS=ON: with gpu_tests)"
	@echo "make setup     dependencies only                make clean    remove build folders"
	@echo "make format    clang-format in place            make check-fresh  all of it on a bare Debian (root)"
	@echo "make slurm     the job scripts on a real SLURM (installs it from Debian when asked: SLURM=--install)"

setup:
	@scripts/setup.sh

# CMake re-runs itself when its files change. We configure the first time, and again from nothing when the
# arguments or the environment are others than then; a folder configured by hand is left as it is.
configure: setup
	@asked='$(strip $(VENV) $(CONFIGURE))'; stamp=$(BUILD)/.configured; \
	if [ ! -e $(BUILD)/build.ninja ] || { [ -e $$stamp ] && [ "$$(cat $$stamp)" != "$$asked" ]; }; then \
	  rm -f $$stamp && $(WITH_VENV) $(CMAKE) --fresh $(CONFIGURE) && echo "$$asked" >$$stamp; fi

build: configure
	@$(WITH_VENV) $(CMAKE) --build $(BUILD) -j $(JOBS)

# One more than there are cores: a third of the tests' time is spent waiting.
test: build
	@cd $(BUILD) && $(WITH_VENV) $(VENV)/bin/ctest --output-on-failure -j $$(($(JOBS) + 1))

demo: build
	@scripts/demo.sh $(BUILD)/bin/tandem

bench: build
	@bench/run.sh $(BUILD)

parity: build
	@tests/parity/run.sh $(BUILD)

slurm: build
	@tests/parity/slurm.sh $(BUILD) $(SLURM)

sanitize: setup
	@scripts/sanitize.sh

# `make soak SOAK=600`: seconds. Not by ctest, whose limits are those of the short runs.
soak: build
	@for tests in core_tests program_tests; do \
	  TANDEM_CONFIG_DIR="$(CURDIR)/configs" TANDEM_TEST_SECONDS=7200 TANDEM_SOAK_SECONDS=$(or $(SOAK),60) TANDEM_KILLS=100 \
	  $(BUILD)/bin/$$tests --gtest_filter='*Soak.*' || exit 1; done

# Ten minutes a target; `make fuzz FUZZ="-s 60 wav"` is shorter.
fuzz: setup
	@scripts/fuzz.sh $(FUZZ)

dist: setup
	@scripts/dist.sh

install: build
	@$(WITH_VENV) $(CMAKE) --install $(BUILD) --prefix $(or $(PREFIX),/usr/local)

check-fresh:
	@scripts/check-fresh.sh

format:
	@git ls-files -z '*.h' '*.cpp' '*.cu' '*.cuh' | xargs -0 clang-format -i

# `make lint LINT=all`: clang-tidy over everything, which takes long. Make itself has a LINT, which is not ours.
lint: configure
	@scripts/lint.sh $(BUILD) $(if $(filter default,$(origin LINT)),,$(LINT))

clean:
	rm -rf build build-* dist
