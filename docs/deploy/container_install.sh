#!/bin/sh
# What docs/deploy/Containerfile runs: Ownfeed's wheel into a virtual environment, every file checked by its hash.
# Usage: container_install.sh PREFIX FOLDER, FOLDER holding requirements.txt and the wheel.
# TORCH_INDEX: PyTorch's index of CPU wheels (docs/commands.md); without it, PyPI's torch by requirements-torch.txt.
set -eu
prefix=$1 folder=$2
python3 -m venv "$prefix"
pip="$prefix/bin/python -m pip install --no-cache-dir --disable-pip-version-check --quiet"
if [ -n "${TORCH_INDEX:-}" ]; then
    version=$(sed -n 's/^torch==\([0-9.]*\).*/\1/p' "$folder/requirements-torch.txt")
    $pip --no-deps --index-url "$TORCH_INDEX" "torch==$version"
else
    $pip --no-deps --require-hashes -r "$folder/requirements-torch.txt"
fi
$pip --no-deps --require-hashes -r "$folder/requirements.txt"
$pip --no-deps "$folder"/ownfeed-*.whl
"$prefix/bin/python" -m pip check
"$prefix/bin/ownfeed" --help >/dev/null
