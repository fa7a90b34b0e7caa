"""Updates of a model that has nothing private, for tests of what comes after sharing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from device_app.privacy.private_parameters import SharedUpdate
from device_app.wire.releases import ModelEntry

OPEN_MODEL = ModelEntry(architecture="basis", role="recall", graphs={})


def shared(tensors: Mapping[str, NDArray[Any]]) -> SharedUpdate:
    """The tensors as an update that may be shared whole."""
    return SharedUpdate(tensors, OPEN_MODEL)
