# Thin front of CMake. `make test` and `make demo` set up everything they need by themselves.
BUILD   ?= build
PRESET  ?= dev
JOBS    ?= $(shell nproc)
VENV     = $(shell scripts/setup.sh --prefix)
CMAKE    = $(VENV)/bin/cmake
WITH_VENV = PATH="$(VENV)/bin:$$PATH" TANDEM_VENV="$(VENV)"

.PHONY: help setup configure build test demo bench parity sanitize dist install format lint clean check-fresh
help:
	@echo "make build     build/bin/tandem"
	@echo "make test      build and run all tests          make demo     build and see it work"
	@echo "make sanitize  tests under ASan+UBSan and TSan  make lint     formatting, layers, clang-tidy"
	@echo "make parity    live comparison with references  make bench    figures, side by side with peers"
	@echo "make dist      relocatable tree in dist/        make install  PREFIX=/usr/local"
	@echo "make setup     dependencies only                make clean    remove build folders"

setup:
	@scripts/setup.sh

# CMake re-runs itself when its files change; only the first configure is ours.
$(BUILD)/build.ninja: | setup
	@$(WITH_VENV) $(CMAKE) --preset $(PRESET) -B $(BUILD) $(if $(CI),-DTANDEM_WERROR=ON)
configure: $(BUILD)/build.ninja

build: setup configure
	@$(WITH_VENV) $(CMAKE) --build $(BUILD) -j $(JOBS)

test: build
	@cd $(BUILD) && $(WITH_VENV) $(VENV)/bin/ctest --output-on-failure -j $(JOBS)

demo: build
	@scripts/demo.sh $(BUILD)/bin/tandem

bench: build
	@bench/run.sh $(BUILD)

parity: build
	@tests/parity/run.sh $(BUILD)

sanitize: setup
	@scripts/sanitize.sh

dist: setup
	@scripts/dist.sh

install: build
	@$(WITH_VENV) $(CMAKE) --install $(BUILD) --prefix $(or $(PREFIX),/usr/local)

check-fresh:
	@scripts/check-fresh.sh

format:
	@git ls-files -z '*.h' '*.cpp' '*.cu' | xargs -0 clang-format -i

lint: build
	@scripts/lint.sh $(BUILD)

clean:
	rm -rf build build-* dist
