"""Cards read before: most of an answer repeats the last one, and checking its cards is most of reading it."""

from __future__ import annotations

from typing import Any

from pydantic import ValidatorFunctionWrapHandler

from device_app.wire.news import NewsCard

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
