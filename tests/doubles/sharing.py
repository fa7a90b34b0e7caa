"""Updates of a model without private parameters, for tests of later steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from device_app.privacy.private_parameters import SharedUpdate
from protocol.releases import ModelEntry

OPEN_MODEL = ModelEntry(architecture="basis", role="recall", graphs={})


def shared(tensors: Mapping[str, NDArray[Any]]) -> SharedUpdate:
    """Return the tensors as an update that may be shared completely."""
    return SharedUpdate(tensors, OPEN_MODEL)
