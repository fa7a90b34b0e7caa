"""How a reader's vector and its group stand in an update from which prototypes are learned."""

from __future__ import annotations

import math

PROTOTYPES = "prototypes"
"""The material, and its tensor: float32 [K, D], rows of length 1."""
SUMS = "sums"
MEMBERS = "members"
VECTOR_SHARE = 0.95
"""Length of the vector's row in an update of length 1. The count is one number against D, so little is left to it."""


def member_share() -> float:
    """The count's number in an update of length 1."""
    return math.sqrt(1 - VECTOR_SHARE**2)
