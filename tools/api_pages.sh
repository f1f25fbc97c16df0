#!/usr/bin/env bash
# Writes the pages of the C++ API (include/headroom) into build/docs/html, by Debian's doxygen. Fails for anything public
# without a comment, and for every other warning.
# Usage: api_pages.sh [FOLDER]      instead of build/docs
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

folder=${1:-build/docs}
if ! command -v doxygen >/dev/null; then
  echo "doxygen is missing: install Debian's package doxygen (tools/install_packages.sh ci)" >&2
  exit 1
fi
mkdir -p "$folder"
version=$(sed -n 's/^project(headroom VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
doxygen - <<SETTINGS
PROJECT_NAME           = headroom
PROJECT_NUMBER         = $version
PROJECT_BRIEF          = "training and serving inside a memory budget"
OUTPUT_DIRECTORY       = "$folder"
INPUT                  = include/headroom
STRIP_FROM_PATH        = include
STRIP_FROM_INC_PATH    = include
FILE_PATTERNS          = *.h
JAVADOC_AUTOBRIEF      = YES
EXTRACT_ALL            = NO
HIDE_UNDOC_MEMBERS     = NO
SORT_MEMBER_DOCS       = NO
BUILTIN_STL_SUPPORT    = YES
GENERATE_LATEX         = NO
HAVE_DOT               = NO
QUIET                  = YES
WARNINGS               = YES
WARN_IF_UNDOCUMENTED   = YES
WARN_IF_DOC_ERROR      = YES
WARN_AS_ERROR          = FAIL_ON_WARNINGS
SETTINGS
echo "$folder/html/index.html"
