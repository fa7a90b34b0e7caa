"""The protections whose updates this server can read, by kind. A new one is a file beside this and a line here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from backend.federation.protections.local_laplace import LocalLaplaceUpdates
from backend.federation.protections.protection import ServerProtection
from backend.federation.protections.secure_sum import SecureSumUpdates
from backend.federation.protections.union_marks import UnionMarksUpdates
from device_app.wire.protections import Protection, of_kind

PROTECTIONS: dict[str, Callable[[Any], ServerProtection]] = {
    "local_laplace": LocalLaplaceUpdates,
    "secure_sum": SecureSumUpdates,
    "union_marks": UnionMarksUpdates,
}


def resolve(protection: Protection) -> ServerProtection:
    """The server's side of a protection on the wire. Raises ValueError for a kind that isn't in `PROTECTIONS`."""
    return of_kind(PROTECTIONS, protection)
