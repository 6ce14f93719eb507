# The front door. Each goal first makes the machine ready (tools/setup.sh), so a fresh Debian will do.
#   make build         library, build/release/bin/onepass, Python module
#   make demo          real attention, its error, its speed, a picture   (MODEL=folder names a model)
#   make test          every test: format, C++, Python, program, consumers, NEON under qemu
#   make sanitize      the C++ and program tests under AddressSanitizer and UBSan
#   make fuzz          the fuzz targets, FUZZ_SECONDS each (default 60)
#   make format        formats every C++ file; make check-format only looks
.PHONY: build demo test sanitize fuzz format check-format setup setup-test clean
.DEFAULT_GOAL := build
MAKEFLAGS += --no-print-directory

ifneq ($(shell command -v ccache),)
export CMAKE_CXX_COMPILER_LAUNCHER ?= ccache
endif
export CMAKE_BUILD_PARALLEL_LEVEL ?= $(shell nproc)
CONFIGURE := cmake --log-level=WARNING --preset
RELEASE := $(CONFIGURE) release -DONEPASS_TESTS=OFF \
           -DONEPASS_PYTHON=ON -DPython_EXECUTABLE=$(CURDIR)/.venv/bin/python

setup:
	@tools/setup.sh build

setup-test:
	@tools/setup.sh test

build: setup
	@$(RELEASE)
	@cmake --build --preset release

demo: setup
	@$(RELEASE)
	@cmake --build --preset release --target onepass_cli
	@tools/demo.sh

test: setup-test
	@tools/test.sh

sanitize: setup-test
	@$(CONFIGURE) dev
	@cmake --build --preset dev
	@ctest --preset dev

fuzz:
	@tools/setup.sh fuzz
	@tools/fuzz.sh

format check-format: setup
	@tools/format.sh $@

clean:
	rm -rf build
