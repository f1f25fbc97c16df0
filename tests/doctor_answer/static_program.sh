#!/usr/bin/env bash
# headroom-doctor is one static file of at most 12 MiB, runs in an empty root folder without any other file, and without
# root's rights. Usage: static_program.sh HEADROOM_DOCTOR
set -euo pipefail
program=$1
size=$(stat -c %s "$program")
if [ "$size" -gt $((12 << 20)) ]; then
  echo "$program has $size bytes" >&2
  exit 1
fi
if readelf -d "$program" 2>/dev/null | grep -q NEEDED; then
  echo "$program needs shared libraries" >&2
  exit 1
fi
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"
cp "$program" "$root/doctor"
message='torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 15.77 GiB of which 1.14 GiB is free. Including non-PyTorch memory, this process has 14.62 GiB memory in use. Of the allocated memory 13.94 GiB is allocated by PyTorch, and 318.06 MiB is reserved by PyTorch but unallocated.'
[ "$(id -u)" = 0 ] && command -v chroot >/dev/null || { echo "needs root to change the root folder"; exit 77; }
answer=$(chroot --userspec=65534:65534 "$root" /doctor --json - <<<"$message")
grep -q '"requested_bytes": 2147483648' <<<"$answer"
grep -q '"framework": "pytorch-cuda"' <<<"$answer"
chroot --userspec=65534:65534 "$root" /doctor --params 7B --gpu 24GiB >"$root/screen" && code=0 || code=$?
[ "$code" = 3 ]
grep -q '^FITS' "$root/screen"
