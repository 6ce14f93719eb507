#!/usr/bin/env bash
# `format` rewrites every C++ file by .clang-format; `check-format` only reports what differs, and
# files of over 500 lines or with lines of over 100 columns. Always clang-format 14, from .venv.
set -euo pipefail
cd "$(dirname "$0")/.."

folders=(include src reference conformance cli python tests examples benchmarks)
mapfile -t files < <(find "${folders[@]}" \( -name '*.h' -o -name '*.cc' -o -name '*.inl' \
  -o -name '*.cuh' \) 2>/dev/null | sort)
mapfile -t texts < <(find "${folders[@]}" tools cmake -type f \( -name '*.h' -o -name '*.cc' \
  -o -name '*.inl' -o -name '*.cuh' -o -name '*.py' \
  -o -name '*.sh' -o -name '*.cmake' \) 2>/dev/null | sort)

case "${1:-}" in
  format) .venv/bin/clang-format -i "${files[@]}" ;;
  check-format)
    failed=0
    .venv/bin/clang-format --dry-run --Werror "${files[@]}" || failed=1
    for file in "${texts[@]}"; do
      awk -v file="$file" '
        length($0) > 100 { print file ":" FNR ": " length($0) " columns, 100 are allowed"; bad = 1 }
        END { if (FNR > 500) { print file ": " FNR " lines, 500 are allowed"; bad = 1 }
              exit bad }' "$file" || failed=1
    done
    [ "$failed" = 0 ] && echo "format: ${#files[@]} C++ files are as .clang-format says" || exit 1
    ;;
  *) echo "format.sh: unknown argument \"${1:-}\"; format or check-format is allowed" >&2; exit 2 ;;
esac
