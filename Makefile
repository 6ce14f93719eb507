# The front door. Each goal first makes the machine ready (tools/setup.sh), so a fresh Debian will do.
#   make build         library, build/release/bin/onepass, Python module
#   make demo          real attention, its error, its speed, a picture   (MODEL=folder names a model)
#   make test          every test: format, C++, Python, program, consumers, NEON under qemu
#   make sanitize      the C++ and program tests under AddressSanitizer and UBSan
#   make fuzz          the fuzz targets, FUZZ_SECONDS each (default 60)
#   make format        formats every C++ file; make check-format only looks
.PHONY: build demo test sanitize fuzz format check-format clean
.DEFAULT_GOAL := build
MAKEFLAGS += --no-print-directory

ifneq ($(shell command -v ccache),)
export CMAKE_CXX_COMPILER_LAUNCHER ?= ccache
endif
export CMAKE_BUILD_PARALLEL_LEVEL ?= $(shell nproc)
MODEL ?= $(wildcard ../shared/data/stories260K)
export ONEPASS_MODEL_DIR ?= $(if $(MODEL),$(abspath $(MODEL)))

build:
	@tools/setup.sh build
	@cmake --preset release -DONEPASS_TESTS=OFF -DONEPASS_PYTHON=ON \
	  -DPython_EXECUTABLE=$(CURDIR)/.venv/bin/python >/dev/null
	@cmake --build --preset release

demo:
	@tools/setup.sh program
	@cmake --preset release -DONEPASS_TESTS=OFF >/dev/null
	@cmake --build --preset release --target onepass_cli
	@build/release/bin/onepass demo --text README.md $(if $(MODEL),--model $(MODEL))

test:
	@tools/setup.sh test
	@tools/test.sh

sanitize:
	@tools/setup.sh test
	@tools/test.sh sanitize

fuzz:
	@tools/setup.sh fuzz
	@tools/fuzz.sh

format check-format:
	@tools/setup.sh build
	@tools/format.sh $@

clean:
	rm -rf build
