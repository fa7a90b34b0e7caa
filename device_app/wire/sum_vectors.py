"""What a device contributes to a secure sum besides gradients: its judgement of a release, and its vector by group.

A judgement is three numbers of a bounded vector:
gain    AUC under the new weights less that under the old, within +-GAIN_LIMIT, over GAIN_LIMIT
level   AUC under the new weights, from -1 (0) to 1 (1), times DETAIL_WEIGHT
square  gain's square, times DETAIL_WEIGHT, which tells how far devices differ

Prototypes are learned from vectors: a reader's stands in the row of its group.
"""

from __future__ import annotations

import math

GAIN_LIMIT = 0.03
"""No device's gain counts for more: a mean of bounded gains falls short of a large fall, and can't invent one."""
DETAIL_WEIGHT = 0.25
"""Of level and square beside gain: they decide nothing alone, so they get less of the vector's length."""
GAIN, LEVEL, SQUARE = "gain", "level", "square"
SHAPES = {GAIN: (1,), LEVEL: (1,), SQUARE: (1,)}
BOUND = math.sqrt(1 + 2 * DETAIL_WEIGHT**2)
"""L2 bound of a device's vector."""


def written(new_auc: float, old_auc: float) -> dict[str, float]:
    """One device's numbers by name."""
    gain = max(-1.0, min(1.0, (new_auc - old_auc) / GAIN_LIMIT))
    return {GAIN: gain, LEVEL: DETAIL_WEIGHT * (2 * new_auc - 1), SQUARE: DETAIL_WEIGHT * gain**2}


PROTOTYPES = "prototypes"
"""The material, and its tensor: float32 [K, D], rows of length 1."""
SUMS = "sums"
MEMBERS = "members"
VECTOR_SHARE = 0.95
"""Length of the vector's row in an update of length 1. The count is one number against D, so little is left to it."""


def member_share() -> float:
    """The count's number in an update of length 1."""
    return math.sqrt(1 - VECTOR_SHARE**2)
