"""Before a wheel is packed the browser's device is built, so that who installs the wheel needs no Node.js."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).parent / "web"))


class BrowserDeviceHook(BuildHookInterface):
    """Builds web/static/device for a wheel; an editable installation has `make setup` for that."""

    def dependencies(self) -> list[str]:
        """Node.js, where this machine has none."""
        import build_device

        return [] if shutil.which("node") and shutil.which("npm") else [build_device.NODE_PACKAGE]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before the files are gathered."""
        import build_device

        if version != "editable":
            build_device.build(may_install=False)
