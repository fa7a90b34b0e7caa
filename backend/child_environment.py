"""What a process that reads strangers' bytes is told of this one: where programs lie, and no setting or secret."""

from __future__ import annotations

import os

NAMES = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT")
"""Python finds its libraries by these; Windows starts none without the last."""


def child_environment() -> dict[str, str]:
    """The whole environment of such a process."""
    return {name: os.environ[name] for name in NAMES if name in os.environ}
