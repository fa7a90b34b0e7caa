#!/bin/sh
# What docs/deploy/Containerfile runs: Ownfeed's wheel into a virtual environment, every file checked by its hash.
# Usage: container_install.sh PREFIX FOLDER, FOLDER holding requirements*.txt and the wheel.
# TRAIN=1 also installs what trains news models and exports graphs; TORCH_INDEX is then PyTorch's index of CPU wheels
# (docs/commands.md), and without it torch is PyPI's, by requirements-torch.txt.
set -eu
prefix=$1 folder=$2
python3 -m venv "$prefix"
pip="$prefix/bin/python -m pip install --no-cache-dir --disable-pip-version-check --quiet"
$pip --no-deps --require-hashes -r "$folder/requirements.txt"
if [ -n "${TRAIN:-}" ]; then
    if [ -n "${TORCH_INDEX:-}" ]; then
        version=$(sed -n 's/^torch==\([0-9.]*\).*/\1/p' "$folder/requirements-torch.txt")
        $pip --no-deps --index-url "$TORCH_INDEX" "torch==$version"
    else
        $pip --no-deps --require-hashes -r "$folder/requirements-torch.txt"
    fi
    $pip --no-deps --require-hashes -r "$folder/requirements-train.txt"
fi
$pip --no-deps "$folder"/ownfeed-*.whl
"$prefix/bin/python" -m pip check
"$prefix/bin/ownfeed" --help >/dev/null
