#!/usr/bin/env bash
# Compiles for arm64 with Debian's cross compiler and runs the tests of the ops, the planner and the tokenizer under qemu's
# user-mode emulator: the portable kernels, reference and Highway. The last line is "N passed, N failed, N skipped".
# Usage: test_arm64.sh [MODULE...]      modules: those of tests/ (all of the above)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

modules=("$@")
[ "${#modules[@]}" -gt 0 ] || modules=(ops_attention ops_linear ops_linear_cross_entropy ops_moe ops_stream planner tokenizer)

tools/install_packages.sh build test arm64
tools/arm64_packages.sh build/arm64-packages
cmake --preset arm64
cmake --build build/arm64 -j "$(nproc)" --target "${modules[@]/#/test_}"

emulate=(qemu-aarch64 -L /usr/aarch64-linux-gnu -E "LD_LIBRARY_PATH=$PWD/build/arm64-packages/root/usr/lib/aarch64-linux-gnu")
passed=0 failed=0 skipped=0
for module in "${modules[@]}"; do
  log=build/arm64/$module.log
  began=$SECONDS
  status=0
  "${emulate[@]}" "build/arm64/tests/$module/test_$module" > "$log" 2>&1 || status=$?
  count() { sed -nE "s/^\[  $1  \] ([0-9]+) tests?.*/\1/p" "$log" | tail -n 1; }
  its_passed=$(count PASSED) its_failed=$(count FAILED) its_skipped=$(count SKIPPED)
  if [ "$status" -ne 0 ]; then
    grep -E '^\[  FAILED  \]|Failure|^terminate|qemu: ' "$log" | head -n 40 || true
    [ "${its_failed:-0}" -gt 0 ] || its_failed=1  # it died
  fi
  printf '%s: %s passed, %s failed, %s skipped, %s s\n' "$module" "${its_passed:-0}" "${its_failed:-0}" "${its_skipped:-0}" "$((SECONDS - began))"
  passed=$((passed + ${its_passed:-0})) failed=$((failed + ${its_failed:-0})) skipped=$((skipped + ${its_skipped:-0}))
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
