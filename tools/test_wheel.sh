#!/usr/bin/env bash
# Builds the Python package as a wheel, installs it into a fresh virtual environment, and runs tests/python there with the
# program of build/release. Usage: tools/test_wheel.sh    The last line is "N passed, N failed, N skipped". Takes 5 to 20 minutes on 2 cores.
# Where the tools cannot be installed: "0 passed, 0 failed, 1 skipped".
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env" && "$folder/env/bin/pip" install -q scikit-build-core pybind11 pytest || { echo "0 passed, 0 failed, 1 skipped"; exit 0; }
# Of this tree as it is; not the isolated build, which would download its tools again.
"$folder/env/bin/pip" wheel -q --no-deps --no-build-isolation -w "$folder/wheels" . || { echo "0 passed, 1 failed"; exit 1; }
"$folder/env/bin/pip" install -q "$folder"/wheels/headroom-*.whl || { echo "0 passed, 1 failed"; exit 1; }
ls -l "$folder"/wheels
tree=$PWD report=$folder/report.xml
cd "$folder" && HEADROOM=$tree/build/release/bin/headroom env/bin/python -B -m pytest -q -p no:cacheprovider --junitxml "$report" "$tree/tests/python"
python3 "$tree/tools/sum_tests.py" "$report"
