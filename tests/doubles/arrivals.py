"""New stories that reach a device with its default list."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from device_app.device import Device
from protocol.news import NewsCard


def stories_arrive(device: Device, cards: Sequence[NewsCard], at: datetime) -> None:
    """Put these stories in front of the default list, with vectors of stories that were on it."""
    stores, feed_context = device.parts.stores, device.parts.serving.feed_context
    listed, models = stores.default_list.current(), device.parts.serving.models()
    assert listed is not None
    vectors = feed_context.default_list.candidates(models.encoder, models.dimensions).vectors[: len(cards)]
    stores.news.put(list(cards), vectors, models.encoder, at)
    stores.default_list.keep(
        etag=f"of {at}",
        release=listed.release,
        encoder=models.encoder,
        news_ids=[*(card.id for card in cards), *listed.news_ids],
        at=at,
    )
