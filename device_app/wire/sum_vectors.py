"""What a device contributes to a secure sum besides gradients: its judgement of a release, and its vector by group.

A judgement is three numbers of a bounded vector:
gain    AUC under the new weights less that under the old, within +-REACH, over REACH
level   AUC under the new weights, from -1 (0) to 1 (1), times ASIDE
square  gain's square, times ASIDE, which tells how far devices differ

Prototypes are learned from vectors: a reader's stands in the row of its group.
"""

from __future__ import annotations

import math

REACH = 0.03
"""No device's gain counts for more: a mean of bounded gains falls short of a large fall, and can't invent one."""
ASIDE = 0.25
"""The numbers that only describe get less of the noise's budget."""
GAIN, LEVEL, SQUARE = "gain", "level", "square"
SHAPES = {GAIN: (1,), LEVEL: (1,), SQUARE: (1,)}
BOUND = math.sqrt(1 + 2 * ASIDE**2)
"""L2 bound of a device's vector."""


def written(new_auc: float, old_auc: float) -> dict[str, float]:
    """One device's numbers by name."""
    gain = max(-1.0, min(1.0, (new_auc - old_auc) / REACH))
    return {GAIN: gain, LEVEL: ASIDE * (2 * new_auc - 1), SQUARE: ASIDE * gain**2}


PROTOTYPES = "prototypes"
"""The material, and its tensor: float32 [K, D], rows of length 1."""
SUMS = "sums"
MEMBERS = "members"
VECTOR_SHARE = 0.95
"""Length of the vector's row in an update of length 1. The count is one number against D, so little is left to it."""


def member_share() -> float:
    """The count's number in an update of length 1."""
    return math.sqrt(1 - VECTOR_SHARE**2)
