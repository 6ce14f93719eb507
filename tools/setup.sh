#!/usr/bin/env bash
# Makes this machine ready: `tools/setup.sh program` for the library and the program, `build` for
# the Python module too, `test` for the tests too, `fuzz` for the fuzz targets. Installs what is
# missing where it can (Debian, as root or with sudo), else says what to install. Says nothing and
# takes no time when all is there.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf 'setup: %s\n' "$*" >&2; }

at_least() {  # at_least WANTED FOUND: version comparison
  [ -n "${2:-}" ] && [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]
}
version_of() { "$@" 2>/dev/null | grep -oE '[0-9]+(\.[0-9]+)+' | head -n 1; }
has_header() {
  printf '#if !__has_include(<%s>)\n#error\n#endif\n' "$1" |
    "${CXX:-g++}" -x c++ -E - >/dev/null 2>&1
}
fuzzer_ready() {
  echo 'extern "C" int LLVMFuzzerTestOneInput(const char*, long) { return 0; }' |
    clang++ -fsanitize=fuzzer,address -x c++ - -o /dev/null 2>/dev/null
}
python_ready() {
  "$1" - >/dev/null 2>&1 <<'PY'
import ensurepip, os, sys, sysconfig, venv
ok = sys.version_info >= (3, 9) and os.path.exists(sysconfig.get_path("include") + "/Python.h")
sys.exit(not ok)
PY
}

# The first Python that can make an environment and build a module; Debian's own where none can yet.
choose_python() {
  local candidate
  for candidate in ${PYTHON:-} python3 /usr/bin/python3; do
    if python_ready "$candidate"; then echo "$candidate"; return; fi
  done
}

# Debian packages that this machine lacks, by what they bring.
missing_packages() {
  at_least 11 "$("${CXX:-g++}" -dumpfullversion -dumpversion 2>/dev/null)" || echo g++
  at_least 3.25 "$(version_of cmake --version)" || echo cmake
  command -v ninja >/dev/null || echo ninja-build
  has_header CLI/CLI.hpp || echo libcli11-dev
  has_header xtensor/xnpy.hpp || has_header xtensor/io/xnpy.hpp || echo libxtensor-dev
  if [ "$1" = fuzz ]; then
    fuzzer_ready || echo clang libclang-rt-dev
  fi
  if [ "$1" = build ] || [ "$1" = test ]; then
    [ -n "$(choose_python)" ] || echo python3 python3-venv python3-dev
  fi
  if [ "$1" = test ]; then
    has_header gtest/gtest.h || echo libgtest-dev
    command -v pkg-config >/dev/null || echo pkg-config
    command -v qemu-aarch64 >/dev/null || echo qemu-user
    command -v aarch64-linux-gnu-g++ >/dev/null || echo g++-aarch64-linux-gnu
  fi
}

install_packages() {
  local as_root=()
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null && sudo -n true 2>/dev/null || return 1
    as_root=(sudo -n)
  fi
  command -v apt-get >/dev/null || return 1
  say "installing $*"
  local log; log=$(mktemp)
  if ! { "${as_root[@]}" apt-get -qq update &&
         "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
           apt-get -qq install --no-install-recommends "$@"; } >"$log" 2>&1; then
    grep -E '^[EW]:' "$log" | head -n 5 >&2 || true
    rm -f "$log"
    return 1
  fi
  rm -f "$log"
}

need_packages() {
  local missing; missing=$(missing_packages "$1" | xargs)
  [ -n "$missing" ] || return 0
  # shellcheck disable=SC2086
  install_packages $missing && missing=$(missing_packages "$1" | xargs)
  [ -n "$missing" ] || return 0
  say "missing here: $missing; these must be installed first"
  say "on Debian or Ubuntu, as root: apt-get install $missing"
  say "elsewhere: g++ >= 11, CMake >= 3.25, Ninja, CLI11, xtensor; for the module Python >= 3.9" \
    "with headers; for the tests GoogleTest, pkg-config, qemu-user, g++ for aarch64; to fuzz clang"
  exit 1
}

# need_venv NAME REQUIREMENTS...: the environment .venv with the packages of these files.
need_venv() {
  local python made_with stamp wanted=()
  python=$(choose_python)
  made_with=$("$python" -c 'import sys; print(sys.version, sys.prefix)')
  stamp="$made_with $(cat "${@:2}" | cksum)"
  if [ "$(cat ".venv/$1" 2>/dev/null)" = "$stamp" ]; then return; fi
  say "preparing .venv with ${*:2}"
  if [ "$(cat .venv/made_with 2>/dev/null)" != "$made_with" ]; then
    rm -rf .venv
    "$python" -m venv .venv
    echo "$made_with" >.venv/made_with
  fi
  for file in "${@:2}"; do wanted+=(-r "$file"); done
  if ! .venv/bin/pip install -q --disable-pip-version-check "${wanted[@]}"; then
    say "pip could not install them; with a network, or a local index in PIP_INDEX_URL, run again"
    exit 1
  fi
  echo "$stamp" >".venv/$1"
}

case "${1:-}" in
  program | fuzz) need_packages "$1" ;;
  build) need_packages build; need_venv build tools/requirements.txt ;;
  test) need_packages test; need_venv test tools/requirements.txt tools/requirements-test.txt ;;
  *) say "unknown argument \"${1:-}\"; program, build, test or fuzz is allowed"; exit 2 ;;
esac
