#!/usr/bin/env bash
# Unpacks the arm64 libraries that headroom links (the -dev packages of tools/packages.txt, without MPI) into FOLDER/root, for
# cmake/toolchains/aarch64.cmake. apt works on lists of its own in FOLDER: nothing is installed, added or removed on this
# system. Does nothing when FOLDER has them. Usage: arm64_packages.sh FOLDER
set -euo pipefail
mkdir -p "$1"
folder=$(cd "$1" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")"

mapfile -t packages < <(awk '$1 ~ /-dev$/ && ($2 == "build" || $2 == "test") && $1 !~ /mpi/ { print $1 }' packages.txt)
packages+=(libgmock-dev)
if [ -f "$folder/unpacked" ] && [ "$(cat "$folder/unpacked")" = "${packages[*]}" ]; then exit 0; fi

rm -rf "$folder/root"
mkdir -p "$folder"/{lists/partial,cache/archives/partial,root}
: > "$folder/status"
apt=(apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State="$folder" -o Dir::State::Lists="$folder/lists"
     -o Dir::State::status="$folder/status" -o Dir::Cache="$folder/cache" -o Debug::NoLocking=1 -o APT::Sandbox::User="$(id -un)")
"${apt[@]}" update </dev/null
"${apt[@]}" install -y --no-install-recommends --download-only "${packages[@]}" </dev/null

# The compiler brings its own C and C++ libraries.
for package in "$folder"/cache/archives/*.deb; do
  case $(basename "$package") in
    libc6_* | libgcc-s1_* | libstdc++6_* | libgomp1_* | gcc-*) ;;
    *) dpkg-deb -x "$package" "$folder/root" ;;
  esac
done
echo "${packages[*]}" > "$folder/unpacked"
