"""The browser's device, built from this checkout once for all workers of a test run. No test writes into it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from filelock import FileLock

WEB = Path(__file__).parents[2] / "web"
BUILT_WITHIN_SEC = 300.0


def built_device(cache: Path) -> Path:
    """Return the folder of the build. cache: what the workers share (`small_world.shared_cache`)."""
    node = shutil.which("node")
    if node is None:
        pytest.fail("node is missing: install Node.js 20 or newer; `make test` says so too")
    folder, making = cache / "reader-build", cache / "reader-build-making"
    with FileLock(cache / "reader-build.lock"):
        if not folder.is_dir():
            ran = subprocess.run(
                [node, str(WEB / "build.mjs"), str(making)],
                env=os.environ | {"PYTHON": sys.executable},
                capture_output=True,
                text=True,
                check=False,
                timeout=BUILT_WITHIN_SEC,
            )
            assert ran.returncode == 0, (ran.stdout + ran.stderr)[-3_000:]
            making.rename(folder)
    return folder
