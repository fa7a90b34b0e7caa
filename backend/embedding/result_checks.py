"""Whether what a node gives for a batch has the form of such a result. What it should have been nobody here knows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import DTypeLike


class ResultRefused(ValueError):
    """A result has another form than its task gives, or numbers that are none."""


def check_array(name: str, found: object, dtype: DTypeLike, shape: Sequence[int | None]) -> None:
    """shape: None for a length that isn't known. Raises ResultRefused."""
    wanted = np.dtype(dtype)
    if not isinstance(found, np.ndarray):
        raise ResultRefused(f"{name}: an array was expected, not {type(found).__name__}")
    if found.dtype != wanted:
        raise ResultRefused(f"{name}: {wanted.name} was expected, not {found.dtype.name}")
    if found.ndim != len(shape) or any(
        one is not None and one != other for one, other in zip(shape, found.shape, strict=True)
    ):
        expected = ", ".join("any" if each is None else str(each) for each in shape)
        raise ResultRefused(f"{name}: shape ({expected}) was expected, not {found.shape}")
    if not np.isfinite(found).all():
        raise ResultRefused(f"{name}: not every number is finite")


def check_states(found: object, lengths: Sequence[int], width: int | None) -> None:
    """Token states [L_i, S] of each title. lengths: L_i. width: S; None where it isn't known, but it is one for all.

    Raises ResultRefused."""
    if not isinstance(found, list) or len(found) != len(lengths):
        raise ResultRefused(f"states: a list of {len(lengths)} was expected")
    for row, (states, length) in enumerate(zip(found, lengths, strict=True)):
        check_array(f"states of row {row}", states, np.float16, (length, width))
        width = states.shape[1]
