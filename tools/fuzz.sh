#!/usr/bin/env bash
# Builds the fuzz targets (clang, libFuzzer, sanitizers) and runs each for FUZZ_SECONDS from its
# seeds in tests/fuzz/seeds/TARGET, if any. A finding stops the run; its input lies in build/fuzz.
set -euo pipefail
cd "$(dirname "$0")/.."

cmake --preset fuzz >/dev/null
cmake --build --preset fuzz
for target in build/fuzz/bin/fuzz_*; do
  name=$(basename "$target")
  corpus=build/fuzz/corpus/$name
  mkdir -p "$corpus"
  seeds=tests/fuzz/seeds/${name#fuzz_}
  echo "== $name, ${FUZZ_SECONDS:-60} s"
  "$target" -max_total_time="${FUZZ_SECONDS:-60}" -timeout=20 -print_final_stats=1 -verbosity=0 \
    -artifact_prefix="build/fuzz/$name-" "$corpus" $([ -d "$seeds" ] && echo "$seeds")
done
echo "no finding"
