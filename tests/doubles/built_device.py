"""The browser's device, built from this checkout once for all workers of a test run. No test writes into it."""

from __future__ import annotations

from pathlib import Path

from filelock import FileLock

from web.build_device import OUT, build


def built_device(cache: Path) -> Path:
    """Return the folder of the build, which `make test` has made already unless a source changed since.

    cache: what the workers share (`small_world.shared_cache`). Raises BuildFailed without Node.js.
    """
    with FileLock(cache / "reader-build.lock"):
        build(may_install=False)
    return OUT
