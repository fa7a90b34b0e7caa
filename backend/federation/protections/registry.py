"""The protections whose updates this server can read, by kind. A new one is a file beside this, with its `PROTECTIONS`.

Beside them: the interface (`protection`), what updates under masks share (`masked_updates`), what a single upload must
look like (`upload_rules`) and what honest devices' sums can hold (`sum_bounds`).
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import Any

from backend.federation import protections
from backend.federation.protections.protection import ServerProtection
from device_app.wire.protections import Protection, of_kind

Made = Callable[[Any], ServerProtection]
"""Of a protection's value on the wire."""


def discovered() -> dict[str, Made]:
    """Those of every module in this folder. Raises ValueError for a kind that two of them claim."""
    found: dict[str, Made] = {}
    for module in pkgutil.iter_modules(protections.__path__, f"{protections.__name__}."):
        if module.name == __name__:
            continue
        here: dict[str, Made] = getattr(importlib.import_module(module.name), "PROTECTIONS", {})
        if twice := found.keys() & here.keys():
            raise ValueError(f"{module.name}: PROTECTIONS has {', '.join(sorted(twice))}, which another module has too")
        found |= here
    return found


PROTECTIONS = discovered()


def resolve(protection: Protection) -> ServerProtection:
    """The server's side of a protection on the wire. Raises ValueError for a kind that isn't in `PROTECTIONS`."""
    return of_kind(PROTECTIONS, protection)
