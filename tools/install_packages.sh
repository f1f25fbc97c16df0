#!/usr/bin/env bash
# Installs the Debian packages of the given groups (tools/packages.txt). Does nothing when all are installed.
# Usage: install_packages.sh GROUP...
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

missing=()
for group in "$@"; do
  while read -r package its_group _; do
    [ "$its_group" = "$group" ] || continue
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done < <(grep -v '^#' packages.txt)
done
[ "${#missing[@]}" -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "these Debian packages are missing: ${missing[*]}; install them as root, or install sudo" >&2
    exit 1
  fi
  as_root=(sudo)
fi
echo "installing ${missing[*]}"
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -qq </dev/null
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get install -y -qq --no-install-recommends "${missing[@]}" </dev/null >/dev/null
