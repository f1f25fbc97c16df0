#!/usr/bin/env bash
# Every check and every figure that the project wants of a GPU, in about an hour: checks first, then the profile, then speed.
# Usage: first_hour.sh OUT [--headroom PROGRAM] [--kernel-tests PROGRAM] [--torch-python PYTHON] [--shared DIR] [--small]
# OUT     a folder: logs/, one record per step, profile.json, summary.md. A second call goes on where the first one stopped; a step
#         that failed is done again.
# --small one tiny model and short limits: an hour on a GPU becomes minutes on the CPU's shim, and no figure means anything.
# Each step has a time limit. What is not there (torch, compute-sanitizer, ncu) is skipped and said so. The last line is
# "N passed, N failed, N skipped"; exit 1 when a step failed. Needs a driver, bash and python3, no packages.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)

usage() { sed -n '2,8s/^# \?//p' "${BASH_SOURCE[0]}"; }

# The program of a bundle (tools/bundle.sh) or of a build.
first_of() { for path in "$@"; do if [ -x "$path" ]; then echo "$path"; return; fi; done; }
out="" torch="" small=""
headroom=$(first_of "$root/../bin/headroom" "$root/build/release/bin/headroom")
kernel_tests=$(first_of "$root/../bin/test_cuda_on_device" "$root/build/release/tests/cuda_on_device/test_cuda_on_device")
shared=$root/../shared
while [ $# -gt 0 ]; do
  case $1 in
    --headroom) headroom=$2; shift 2 ;;
    --kernel-tests) kernel_tests=$2; shift 2 ;;
    --torch-python) torch=$2; shift 2 ;;
    --shared) shared=$2; shift 2 ;;
    --small) small=yes; shift ;;
    -h|--help) usage; exit 0 ;;
    -*) echo "no such option: $1" >&2; exit 2 ;;
    *) out=$1; shift ;;
  esac
done
[ -n "$out" ] || { usage >&2; exit 2; }
[ -x "$headroom" ] || { echo "no headroom program: give --headroom PROGRAM" >&2; exit 2; }
mkdir -p "$out/logs" "$out/done" "$out/records"
out=$(cd "$out" && pwd)
export HEADROOM_RESULTS=$out/records   # where the benchmarks write (gpu_run.py)

passed=0 failed=0 skipped=0
table=$out/steps.tsv
: > "$table"

# note NAME OUTCOME SECONDS WHAT: a row of the summary.
note() { printf '%s\t%s\t%s\t%s\n' "$@" >> "$table"; printf '%-24s %-8s %5s s  %s\n' "$@"; }

# step NAME LIMIT_SECONDS COMMAND...: runs it once; its last line of figures, or else its last line, goes into the summary.
step() {
  local name=$1 limit=$2 began=$SECONDS status what
  shift 2
  if [ -f "$out/done/$name" ]; then
    passed=$((passed + 1))
    note "$name" before - "$(cat "$out/done/$name")"
    return
  fi
  timeout --kill-after=20 "$limit" "$@" > "$out/logs/$name.log" 2>&1 </dev/null
  status=$?
  what=$(grep -E '[0-9]+ (passed|tests ran|PASSED)|ERROR SUMMARY|^\[  (PASSED|FAILED)' "$out/logs/$name.log" | tail -n 1)
  [ -n "$what" ] || what=$(tail -n 1 "$out/logs/$name.log")
  what=${what:0:160}
  case $status in
    0) passed=$((passed + 1)); printf '%s' "$what" > "$out/done/$name"; note "$name" passed $((SECONDS - began)) "$what" ;;
    77) skipped=$((skipped + 1)); note "$name" skipped $((SECONDS - began)) "$what" ;;
    124|137) failed=$((failed + 1)); note "$name" "too long" $((SECONDS - began)) "ended after $limit s; logs/$name.log" ;;
    *) failed=$((failed + 1)); note "$name" failed $((SECONDS - began)) "exit $status: $what" ;;
  esac
}

skip() { skipped=$((skipped + 1)); note "$1" skipped 0 "$2"; }

python=$(command -v python3) || { echo "python3 is needed" >&2; exit 2; }
models=$root/tests/data_files/models
tiny=$root/tests/data_files/stories260K
text=$root/tests/data_files/text/tinyshakespeare.txt
[ -d "$shared/data/models" ] && models=$(cd "$shared/data/models" && pwd)
llmq=qwen2.5-0.5b,qwen2.5-1.5b,llama-3.2-3b sequences=1024,4096 batch=32 peer_batch=8 least=(--fractions 1.0,0.5,0.0)
precisions="32-true bf16-mixed bf16-true" steps=() offload=() tokens=64
if [ -n "$small" ]; then
  models=$out/small
  mkdir -p "$models/tiny"
  cp "$tiny/config.json" "$models/tiny/"
  llmq=tiny sequences=32 batch=2 peer_batch=2 least=(--fractions 0.0)
  precisions=bf16-mixed steps=(--steps 2 --sequence 32) tokens=4 offload=(--model tiny --memory 2GiB --host-memory 4GiB --batch 2 --sequence 32)
fi
shape=$out/shapes   # the scripts look for SHARED/data/models
mkdir -p "$shape/data"
ln -sfn "$models" "$shape/data/models"

model=$out/model   # the tiny one of the checks, with weights of its own
train=("$headroom" train --device cuda:0 --model "$model" --data "$text" --max-seq-length 128 --global-batch-size 4 --max-steps 3 --learning-rate 1e-3)

echo "== checks"
if command -v nvidia-smi > /dev/null; then
  step device 60 nvidia-smi --query-gpu=name,driver_version,memory.total,pcie.link.gen.current --format=csv,noheader
else
  skip device "no nvidia-smi"
fi
[ -f "$out/done/model" ] || rm -rf "$model"
step model 60 "$headroom" init --config "$tiny/config.json" --tokenizer "$tiny/tokenizer.json" --output-dir "$model"
if [ -x "$kernel_tests" ]; then
  step kernels 600 "$kernel_tests" --gtest_brief=1
  step kernels-without-cudnn 300 env HEADROOM_CUDA_WITHOUT=cudnn "$kernel_tests" --gtest_brief=1
  step kernels-our-own 300 env HEADROOM_CUDA_WITHOUT=cudnn,cublaslt "$kernel_tests" --gtest_brief=1
else
  skip kernels "no test_cuda_on_device: build with CUDA, or give --kernel-tests"
fi
for precision in $precisions; do
  step "losses-$precision" 300 "$python" "$here/losses.py" "$headroom" "$model" "$text" --precision "$precision" "${steps[@]}"
done
step "losses-nf4" 300 "$python" "$here/losses.py" "$headroom" "$model" "$text" --precision bf16-mixed "${steps[@]}" \
  --extra "--lora-r 8 --technique quantize-weights=nf4"
step "losses-heads-of-64" 300 "$python" "$here/losses.py" "$headroom" "$model" "$text" --precision bf16-mixed --head-size 64 "${steps[@]}"
[ -n "$small" ] || step "losses-heads-of-128" 300 "$python" "$here/losses.py" "$headroom" "$model" "$text" --precision bf16-mixed --head-size 128 "${steps[@]}"
if [ -f "$shared/accept/golden.py" ] && [ -z "$small" ]; then
  step golden 300 "$python" "$shared/accept/golden.py" "$headroom" --extra "--device cuda:0" --memory 8GiB
fi
# What lies outside the arena is held to 5 % by the figures of this GPU, not by those of the shipped profile.
measured=""
if [ -z "$small" ]; then
  step profile 300 "$headroom" profile --device cuda:0 -o "$out/profile.json"
  [ ! -f "$out/profile.json" ] || measured="--profile $out/profile.json"
else
  skip profile "a calibration takes too long on the shim"
fi
step budget 300 "$python" "$root/tests/gpu/budget.py" "$headroom" "$model" "$text" "${least[@]}" --extra "$measured"
step budget-tiers 300 "$python" "$root/tests/gpu/budget.py" "$headroom" "$model" "$text" "${least[@]}" \
  --extra "$measured --disk-memory $out:2GiB --host-memory 1GiB"
step serve 300 "$python" "$root/tests/gpu/serve.py" "$headroom" "$model" --tokens "$tokens"
# Tools hold memory of the device in this process, which a plan by the GPU's own profile would refuse.
watched=$out/watched.json
[ ! -f "$out/profile.json" ] || sed -E 's/("(host_)?context_bytes": *)[0-9]+/\14294967296/' "$out/profile.json" > "$watched"
if command -v compute-sanitizer > /dev/null; then
  for tool in memcheck racecheck synccheck; do
    [ -f "$out/done/sanitizer-$tool" ] || rm -rf "$out/sanitized-$tool"
    # The other two don't follow the barriers of NVIDIA's libraries: they report cuDNN's own kernels.
    without=cudnn,cublaslt
    [ "$tool" != memcheck ] || without=
    step "sanitizer-$tool" 300 env "HEADROOM_CUDA_WITHOUT=$without" compute-sanitizer --error-exitcode 1 --tool "$tool" "${train[@]}" \
      --precision bf16-mixed --memory 8GiB --profile "$watched" --output-dir "$out/sanitized-$tool"
  done
else
  skip sanitizer "no compute-sanitizer"
fi

echo "== speed"
step llmq 900 "$python" "$here/llmq.py" "$headroom" --shared "$shape" --models "$llmq" --batch "$batch" --sequence "${sequences%%,*}" --work "$out/work"
if [ -n "$torch" ]; then
  step torch 1500 "$python" "$here/compare_torch.py" "$headroom" --torch-python "$torch" --shared "$shape" --models "$llmq" \
    --sequences "$sequences" --batch "$peer_batch" --work "$out/work"
else
  skip torch "no --torch-python"
fi
step offload-7b 900 "$python" "$here/offload_7b.py" "$headroom" --shared "$shape" "${offload[@]}" --work "$out/work"
if command -v ncu > /dev/null; then
  step ncu 300 ncu --clock-control none --set basic --launch-skip 200 --launch-count 60 --csv --log-file "$out/records/ncu.csv" "${train[@]}" \
    --precision bf16-mixed --memory 8GiB --profile "$watched" --output-dir "$out/counted"
else
  skip ncu "no ncu"
fi
rm -rf "$out/work" "$out"/sanitized-* "$out/counted"

{
  echo "# The first hour on a GPU"
  echo
  printf '%s, %s\n\n' "$(date -u +%F)" "$(cat "$out/done/device" 2> /dev/null || echo 'no device')"
  echo '| step | outcome | seconds | what it said |'
  echo '|---|---|---|---|'
  awk -F '\t' '{ gsub(/\|/, "/"); printf "| %s | %s | %s | %s |\n", $1, $2, $3, $4 }' "$table"
  for record in "$out"/records/*.md; do [ -f "$record" ] && { echo; sed 's/^# /## /' "$record"; }; done
} > "$out/summary.md"
echo
echo "$out/summary.md"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
