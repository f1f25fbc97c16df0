#!/usr/bin/env bash
# Checks that the C++ sources are formatted as .clang-format says; changes nothing. Skips when clang-format is missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

format=
for name in clang-format-14 clang-format; do
  if command -v "$name" >/dev/null; then format=$name; break; fi
done
if [ -z "$format" ]; then
  echo "skipped: clang-format-14 is not installed (apt install clang-format-14)"
  exit 0
fi

mapfile -d '' files < <(find src include tests -type f \( -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' \) -print0 | sort -z)
# One process for many files: loading the program takes longer than reading a file.
if output=$(printf '%s\0' "${files[@]}" | xargs -0 -P "$(nproc)" -n 32 "$format" --dry-run --Werror 2>&1); then bad=(); else
  mapfile -t bad < <(sed -n 's/^\([^:]*\):[0-9]*:[0-9]*: error: .*-Wclang-format-violations.*/\1/p' <<< "$output" | sort -u)
  if [ "${#bad[@]}" -eq 0 ]; then printf '%s\n' "$output"; exit 1; fi
fi
echo "${#files[@]} files, ${#bad[@]} not formatted"
if [ "${#bad[@]}" -gt 0 ]; then
  printf '%s\n' "${bad[@]}"
  echo "run: $format -i FILE"
  exit 1
fi
