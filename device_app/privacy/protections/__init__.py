"""The protections that this device can give an update, by kind. A new one is a file beside this and a line here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from device_app.privacy.protections.local_laplace import LocalLaplaceProtection
from device_app.privacy.protections.protection import DeviceProtection
from device_app.privacy.protections.secure_sum import SecureSumProtection
from device_app.privacy.protections.union_marks import UnionMarksProtection
from device_app.wire.protections import Protection, of_kind

PROTECTIONS: dict[str, Callable[[Any], DeviceProtection]] = {
    "local_laplace": LocalLaplaceProtection,
    "secure_sum": SecureSumProtection,
    "union_marks": UnionMarksProtection,
}


def resolve(protection: Protection) -> DeviceProtection:
    """The device's side of a protection on the wire. Raises ValueError for a kind that isn't in `PROTECTIONS`."""
    return of_kind(PROTECTIONS, protection)
