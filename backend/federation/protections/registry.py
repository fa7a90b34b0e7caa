"""The protections that this server supports, by kind.

To add one, add a module with `PROTECTIONS` to this folder. The other modules here hold the interface (`protection`),
the base class of masked updates (`secure_sum`), and the rules for single uploads and the bounds of honest devices' sums
(`sum_bounds`).
"""

import importlib
import pkgutil
from collections.abc import Callable
from typing import Any

from backend.federation import protections
from backend.federation.protections.protection import ServerProtection
from protocol.protections import Protection, of_kind

Made = Callable[[Any], ServerProtection]
"""Creates the server's side from the protocol's value of a protection."""


def discovered() -> dict[str, Made]:
    """Return the protections of all modules in this folder.

    Raises ValueError if two modules claim the same kind.
    """
    found: dict[str, Made] = {}
    for module in pkgutil.iter_modules(protections.__path__, f"{protections.__name__}."):
        if module.name == __name__:
            continue
        here: dict[str, Made] = getattr(importlib.import_module(module.name), "PROTECTIONS", {})
        if twice := found.keys() & here.keys():
            raise ValueError(
                f"{module.name}: PROTECTIONS has {', '.join(sorted(twice))}, which another module also defines"
            )
        found |= here
    return found


PROTECTIONS = discovered()


def resolve(protection: Protection) -> ServerProtection:
    """Return the server's side of a protection.

    Raises ValueError for a kind that isn't in `PROTECTIONS`.
    """
    return of_kind(PROTECTIONS, protection)
