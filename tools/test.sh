#!/usr/bin/env bash
# Every test, one step after another; all steps run, and any failure fails the whole.
# `test.sh sanitize` runs the C++ and program tests under AddressSanitizer and UBSan instead.
set -uo pipefail
cd "$(dirname "$0")/.."

failed=()
step() {  # step NAME COMMAND...
  local start=$SECONDS
  printf '\n== %s\n' "$1"
  "${@:2}" || failed+=("$1")
  printf '== %s: %d s\n' "$1" $((SECONDS - start))
}

# NVRTC comes as a Python package.
nvrtc=$(echo "$PWD"/.venv/lib/python3*/site-packages/nvidia/cuda_nvrtc/lib)
export LD_LIBRARY_PATH="$nvrtc${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"

build() {  # build PRESET OPTION...
  cmake --preset "$1" "${@:2}" >/dev/null && cmake --build --preset "$1"
}
python_tests() {  # python_tests PRESET FOLDER
  PYTHONPATH="$PWD/build/$1/python" ONEPASS_BIN="$PWD/build/$1/bin/onepass" \
    .venv/bin/python -m pytest -q --durations=5 "$2"
}
neon() {
  if ! command -v aarch64-linux-gnu-g++ >/dev/null || ! command -v qemu-aarch64 >/dev/null; then
    echo "skipped: g++ for aarch64 or qemu-user is not here"
    return
  fi
  build aarch64 && ctest --preset aarch64
}

if [ "${1:-}" = sanitize ]; then
  step "build" build dev
  step "C++ tests under ASan and UBSan" ctest --preset dev
  step "program tests under ASan and UBSan" python_tests dev tests/cli
else
  step "format" tools/format.sh check-format
  step "build" build release -DONEPASS_WERROR="${CI:-OFF}" -DONEPASS_TESTS=ON \
    -DONEPASS_PYTHON=ON -DPython_EXECUTABLE="$PWD/.venv/bin/python"
  step "C++ tests" ctest --preset release
  step "Python and program tests" python_tests release tests
  step "NEON under qemu" neon
fi

printf '\n%d s in all; ' "$SECONDS"
if [ ${#failed[@]} -gt 0 ]; then
  printf 'failed:'; printf ' [%s]' "${failed[@]}"; echo
  exit 1
fi
echo "every step passed"
