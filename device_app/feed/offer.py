"""What a page of the feed is offered in its place: the page itself stays until its reader asks for another."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from device_app.feed.candidates import Candidates
from device_app.feed.held_lists import came_since
from device_app.feed.item import Feed
from device_app.feed.preference_reader import named
from device_app.feed.serving import Serving
from device_app.stores import DeviceStores


@dataclass(frozen=True)
class Offer:
    """Why another page would differ from this one, and which pages lie before it and after it.

    new: stories that came to this device since it was made and that its reader may want; read: stories opened since;
    told: something was liked, unwanted, followed, hidden or switched since; ranked: another release ranks now. before
    and after are ids of feeds that are kept, None at either end; nothing is offered on a page that has one after it.
    came: ids of stories in the page itself that came to this device since the page before it was made.
    """

    new: int = 0
    read: int = 0
    told: bool = False
    ranked: bool = False
    before: str | None = None
    after: str | None = None
    came: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return self.after is None and bool(self.new or self.read or self.told or self.ranked)


def offered(feed: Feed, stores: DeviceStores, serving: Serving) -> Offer:
    """What is offered in the place of a feed; nothing is asked of anybody for it."""
    if not feed.feed_id:
        return Offer()
    before, after = stores.feeds.beside(feed.feed_id)
    came = _came(feed, before, stores, serving)
    models = serving.loaded()
    if models is None or after is not None:
        return Offer(before=before, after=after, came=came)
    listed = serving.feed_context.default_list.candidates(models.encoder, models.dimensions)
    told = any(one.kind != "save" and one.at > feed.made_at for one in stores.feedback.reactions())
    return Offer(
        new=len(_new_stories(feed, listed, stores, serving.feed_context.weights.fresh_hours)),
        read=stores.clicks.count_since(feed.made_at),
        told=told or serving.told_since(),
        ranked=feed.release != models.release,
        before=before,
        after=after,
        came=came,
    )


def _came(feed: Feed, before: str | None, stores: DeviceStores, serving: Serving) -> frozenset[str]:
    shown_before = None if before is None else stores.feeds.get(before)
    if shown_before is None:
        return frozenset()
    older = timedelta(hours=serving.feed_context.weights.fresh_hours)
    return came_since(shown_before.made_at, [item.card for item in feed.items], stores.news, older)


def _new_stories(feed: Feed, listed: Candidates, stores: DeviceStores, fresh_hours: float) -> set[str]:
    """News of the default list that came here since `feed` was made and was published at most so many hours before, is
    not in it, and that its reader hasn't opened, looked at or ruled out by name.

    The list comes on a schedule of its own, whatever the reader does.
    """
    recent = listed.only(listed.published_sec > feed.made_at.timestamp() - 3_600 * fresh_hours)
    shown = {item.card.id for item in feed.items} | stores.clicks.clicked()
    unwanted = {one.news_id for one in stores.feedback.reactions("less")}
    blocked = named(stores.stances.blocked())
    ruled_out = recent.named(recent.ids, shown | unwanted) | recent.named(recent.topics, blocked.topics)
    ruled_out |= recent.named(recent.sections, blocked.sections) | recent.named(recent.publishers, blocked.publishers)
    arrived = stores.news.arrived_since(feed.made_at, [card.id for card in recent.only(~ruled_out).cards])
    return arrived - set(stores.impressions.times_seen(arrived, feed.made_at))
