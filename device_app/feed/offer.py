"""Decides whether to offer a new feed page.

The current page stays until the reader asks for another.
"""

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
    """Why a new page would differ from this one, and which pages come before and after it.

    new: how many stories that reached this device since the page was made the next page will show. read: stories read
    since. changed: the reader has liked, dismissed, followed, hidden or switched something since. ranked: another
    release is in use now. before and after are ids of stored feeds, or None; nothing is offered on a page that has a
    later one.
    came: ids of stories in this page that reached this device since the previous page was made.
    """

    new: int = 0
    read: int = 0
    changed: bool = False
    ranked: bool = False
    before: str | None = None
    after: str | None = None
    came: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return self.after is None and bool(self.new or self.read or self.changed or self.ranked)


def offered(feed: Feed, stores: DeviceStores, serving: Serving) -> Offer:
    """Return what a new page would offer in place of this feed; sends no request."""
    if not feed.feed_id:
        return Offer()
    before, after = stores.feeds.beside(feed.feed_id)
    arrived = _came(feed, before, stores, serving)
    models = serving.loaded()
    if models is None or after is not None:
        return Offer(before=before, after=after, came=arrived)
    listed = serving.feed_context.default_list.candidates(models.encoder, models.dimensions)
    new = _new_stories(feed, listed, stores, serving.feed_context.weights.fresh_hours)
    changed = any(one.kind != "save" and one.at > feed.made_at for one in stores.feedback.reactions())
    return Offer(
        new=serving.promised(feed.feed_id, frozenset(new)),
        read=stores.read_marks.count_since(feed.made_at),
        changed=changed or serving.changed_since(),
        ranked=feed.release != models.release,
        before=before,
        after=after,
        came=arrived,
    )


def _came(feed: Feed, before: str | None, stores: DeviceStores, serving: Serving) -> frozenset[str]:
    shown_before = None if before is None else stores.feeds.get(before)
    if shown_before is None:
        return frozenset()
    older = timedelta(hours=serving.feed_context.weights.fresh_hours)
    cards = [item.card for item in feed.items]
    # A story of the pool that was stored only because a page shows it didn't arrive with a list.
    stored_by_page = stores.news.arrived_since(feed.made_at - timedelta(microseconds=1), [card.id for card in cards])
    return came_since(shown_before.made_at, cards, stores.news, older) - stored_by_page


def _new_stories(feed: Feed, listed: Candidates, stores: DeviceStores, fresh_hours: float) -> set[str]:
    """Return ids of articles on the default list that are new since `feed` was made.

    They were published at most `fresh_hours` before it, aren't in it, and the reader hasn't read, seen or ruled them
    out by name. The default list arrives on its own schedule, whatever the reader does.
    """
    recent = listed.only(listed.published_sec > feed.made_at.timestamp() - 3_600 * fresh_hours)
    shown = {item.card.id for item in feed.items} | stores.read_marks.ids()
    unwanted = {one.news_id for one in stores.feedback.reactions("less")}
    blocked = named(stores.stances.blocked())
    hidden = stores.mute_rules.hidden_among(card.id for card in recent.cards)
    ruled_out = recent.named(recent.ids, shown | unwanted | hidden) | recent.named(recent.topics, blocked.topics)
    ruled_out |= recent.named(recent.sections, blocked.sections) | recent.named(recent.publishers, blocked.publishers)
    arrived = stores.news.arrived_since(feed.made_at, [card.id for card in recent.only(~ruled_out).cards])
    return arrived - set(stores.impressions.times_seen(arrived, feed.made_at))
