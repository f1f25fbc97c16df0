#!/usr/bin/env bash
# One archive with what a bare machine with a driver needs: the program, the tests of the CUDA kernels, the libraries that are
# not the system's, the benchmarks, and small data. Nothing is installed there: unpack, then bin/headroom.
# Usage: bundle.sh [OUT.tar.gz] [--libraries DIR]...    (build/headroom-bundle.tar.gz)
# Takes build/release (HEADROOM_BUILD) as it is. --libraries DIR adds NVIDIA's shared libraries in DIR (cuBLASLt, cuDNN: a gigabyte or two),
# for machines that have a driver and no toolkit. Models and checks of ../shared go along where they are there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

out=build/headroom-bundle.tar.gz
nvidia=()
while [ $# -gt 0 ]; do
  case $1 in
    --libraries) nvidia+=("${2:?--libraries needs a folder}"); shift 2 ;;
    -h|--help) sed -n '2,7s/^# \?//p' "$0"; exit 0 ;;
    -*) echo "no such option: $1" >&2; exit 2 ;;
    *) out=$1; shift ;;
  esac
done
built=${HEADROOM_BUILD:-build/release}
[ -x "$built/bin/headroom" ] || { echo "$built/bin/headroom is not there: build the release preset first" >&2; exit 1; }

name=$(basename "$out" .tar.gz)
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
root=$stage/$name
mkdir -p "$root"/{bin,lib/glibc,libexec}

# Libraries of glibc lie apart: they are taken only where the machine's own are too old.
programs=("$built/bin/headroom")
for test in "$built/tests/cuda_on_device/test_cuda_on_device"; do
  [ ! -x "$test" ] || programs+=("$test")
done
cp "${programs[@]}" "$root/libexec/"
ldd "${programs[@]}" | awk '$2 == "=>" && $3 ~ /^\// {print $3} $1 ~ /^\/.*ld-linux/ {print $1}' | sort -u | while read -r library; do
  case $(basename "$library") in
    ld-linux*|libc.so.*|libm.so.*|libdl.so.*|librt.so.*|libpthread.so.*) cp -L "$library" "$root/lib/glibc/" ;;
    *) cp -L "$library" "$root/lib/" ;;
  esac
done
for folder in "${nvidia[@]}"; do cp -P "$folder"/*.so* "$root/lib/"; done

cat > "$root/libexec/start" <<'SCRIPT'
#!/bin/sh
# Starts libexec/NAME, by the bundle's own glibc where the machine's is older than the program.
here=$(cd "$(dirname "$0")/.." && pwd)
program=$here/libexec/$(basename "$0")
if ! LD_LIBRARY_PATH=$here/lib ldd "$program" 2>&1 | grep -q 'GLIBC.*not found'; then
  LD_LIBRARY_PATH=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  export LD_LIBRARY_PATH
  exec "$program" "$@"
fi
exec "$here"/lib/glibc/ld-linux-x86-64.so.2 --library-path "$here/lib/glibc:$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" "$program" "$@"
SCRIPT
chmod +x "$root/libexec/start"
for program in "${programs[@]}"; do cp "$root/libexec/start" "$root/bin/$(basename "$program")"; done
rm "$root/libexec/start"

mkdir -p "$root/headroom/tests"
cp -r benchmarks "$root/headroom/"
rm -rf "$root/headroom/benchmarks/results" "$root/headroom/benchmarks/doctor_data"
mkdir -p "$root/headroom/benchmarks/results"
cp -r tests/gpu tests/data_files tests/child_peak.py tests/served.py "$root/headroom/tests/"
if [ -d ../shared/accept ]; then
  mkdir -p "$root/shared/data/models"
  cp -r ../shared/accept "$root/shared/"
  for model in ../shared/data/models/*/config.json; do
    folder=$root/shared/data/models/$(basename "$(dirname "$model")")
    mkdir -p "$folder" && cp "$model" "$folder/"
  done
  cp -r ../shared/data/stories260K "$root/shared/data/"
fi
cat > "$root/README" <<'TEXT'
headroom for a machine with an NVIDIA driver; nothing needs to be installed.

  bin/headroom --help                         the program
  bin/test_cuda_on_device                     its kernels against the CPU's, on the first GPU
  headroom/benchmarks/gpu/first_hour.sh OUT   every check and every figure, in an hour
TEXT
tar -C "$stage" -czf "$out" "$name"
echo "$out: $(du -h "$out" | cut -f1), $(find "$root" -type f | wc -l) files"
