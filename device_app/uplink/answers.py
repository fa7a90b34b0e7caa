"""Reading answers: cards, most of which were read before, and the vectors that come with candidates."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidatorFunctionWrapHandler

from device_app.errors import AnswerMalformed
from device_app.wire.news import NewsCard
from device_app.wire.recall import RecallAnswer
from device_app.wire.tensors import TensorError, TensorSpec, dequantise, unpack

CARDS_KEPT = 8_000


class KnownCards:
    """The same JSON gives the same card object again (cards are frozen). A changed card is read anew.

    Beyond CARDS_KEPT it starts afresh. For one thread at a time.
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[dict[str, Any], NewsCard]] = {}

    def card(self, raw: Any, read: ValidatorFunctionWrapHandler) -> NewsCard:
        """The card of a JSON value; errors are those of `read`."""
        news_id = raw.get("id") if isinstance(raw, dict) else None
        if isinstance(news_id, str):
            known = self._known.get(news_id)
            if known is not None and known[0] == raw:
                return known[1]
        card: NewsCard = read(raw)
        if len(self._known) >= CARDS_KEPT:
            self._known.clear()
        self._known[card.id] = (raw, card)
        return card

    def forget(self) -> None:
        """Drop all of them."""
        self._known.clear()


VECTORS_LIMIT_BYTES = 8 * 1024 * 1024
SCALE_LIMIT = 1e6
"""News vectors are of about length 1; squares and products of numbers this large still fit a float32."""


def read_vectors(answer: RecallAnswer, dimensions: int) -> NDArray[np.float32]:
    """float32 [R, D], one row a candidate, in the answer's order. Raises AnswerMalformed."""
    return read_codes(answer.vectors, len(answer.candidates), dimensions, "recall", VECTORS_LIMIT_BYTES)


def read_codes(blob: bytes, rows: int, dimensions: int, what: str, limit_bytes: int) -> NDArray[np.float32]:
    """float32 [rows, dimensions] from a blob of `codes` and `scales`. Raises AnswerMalformed."""
    specs = {"codes": TensorSpec("int8", (rows, dimensions)), "scales": TensorSpec("float32", (rows,))}
    try:
        tensors = unpack(blob, specs, limit_bytes=limit_bytes)
    except TensorError as broken:
        raise AnswerMalformed(what, str(broken)) from broken
    if rows and (largest := float(np.abs(tensors["scales"]).max())) > SCALE_LIMIT:
        raise AnswerMalformed(what, f"tensor scales: at most {SCALE_LIMIT:g}, got {largest:g}")
    return dequantise(tensors["codes"], tensors["scales"])
