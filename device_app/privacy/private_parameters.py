"""Removes private parameters from a training update, before any clipping or noise."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from protocol.releases import ModelEntry

PREFIX = "g."
ALWAYS_PRIVATE = frozenset({"user_embedding"})
"""Last names of parameters that this program never shares, even if a release declares them shared."""


class PrivateParameterShared(ValueError):
    """A private parameter was about to be shared; the message names it."""

    def __init__(self, tensor: str) -> None:
        super().__init__(f"tensor {tensor}: a private parameter stays on this device")
        self.tensor = tensor


@dataclass(frozen=True)
class SharedUpdate:
    """Tensors that contain no gradient of a private parameter of `model`.

    This is checked when it is made. Gradients are named `g.<parameter>`. `Clipped` can only be made from it, and noise
    can only be added to a `Clipped`. Raises PrivateParameterShared.

    Formal guarantees: no value computed as the gradient of a private parameter is in it. A release could fail to mark a
    parameter as private; those in ALWAYS_PRIVATE are kept under any release.
    """

    tensors: Mapping[str, NDArray[np.float32]]
    model: ModelEntry | None

    def __post_init__(self) -> None:
        for name in self.tensors:
            if is_private(name, self.model):
                raise PrivateParameterShared(name)


def zero_update(shapes: Mapping[str, tuple[int, ...]], model: ModelEntry | None) -> SharedUpdate:
    """Return the update of a device without data: zeros of these shapes, by name.

    Raises PrivateParameterShared.

    Formal guarantees: it does not depend on the reader; after clipping, noise and masks it is as indistinguishable from
    another update as these make it.
    """
    return SharedUpdate({name: np.zeros(shape, np.float32) for name, shape in shapes.items()}, model)


def divide(
    tensors: Mapping[str, NDArray[np.float32]], model: ModelEntry | None
) -> tuple[SharedUpdate, dict[str, NDArray[np.float32]]]:
    """Split an update into a part that may be shared and gradients that stay here.

    The second part has the gradients of private parameters. model: the model that the gradients belong to; None for
    tensors that belong to no model.

    Formal guarantees: the first part has those of `SharedUpdate`; the second is neither clipped nor noisy and may not
    leave. A model's parameter names are public; their values are not.
    """
    own = {name for name in tensors if is_private(name, model)}
    shared = SharedUpdate({name: each for name, each in tensors.items() if name not in own}, model)
    return shared, {name.removeprefix(PREFIX): tensors[name] for name in own}


def shared_part(tensors: Mapping[str, NDArray[np.float32]], model: ModelEntry | None) -> SharedUpdate:
    """Return an update without its private parameters.

    Formal guarantees: those of `divide`, whose first part it is.
    """
    return divide(tensors, model)[0]


def is_private(tensor: str, model: ModelEntry | None) -> bool:
    """Return whether `g.<parameter>` belongs to a parameter that this device keeps for itself."""
    parameter = tensor.removeprefix(PREFIX)
    declared = () if model is None else model.private
    return parameter in declared or parameter.rsplit(".", 1)[-1] in ALWAYS_PRIVATE
