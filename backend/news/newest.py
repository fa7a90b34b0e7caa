"""The newest articles of every feed, which stay live at any age, so that a feed that rarely publishes is never
empty."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, or_, select, update

from backend.db.statements import among
from backend.db.tables import FeedRow, NewsRow
from backend.news.feed_addresses import FILE_PREFIX, is_feed
from backend.news.item import NewsItem


def is_live(horizon: datetime) -> ColumnElement[bool]:
    """The condition of articles that devices get: published after the horizon, or kept; never those taken down."""
    return and_(NewsRow.taken_down_at.is_(None), or_(NewsRow.published_at > horizon, NewsRow.kept))


def has_expired(horizon: datetime) -> ColumnElement[bool]:
    """The condition of articles to delete: past the horizon, and not kept for a feed that is still followed."""
    followed = NewsRow.source.in_(select(FeedRow.key).where(FeedRow.removed_at.is_(None)))
    kept = and_(NewsRow.kept, or_(followed, NewsRow.source.startswith(FILE_PREFIX, autoescape=True)))
    return and_(NewsRow.taken_down_at.is_(None), NewsRow.published_at <= horizon, ~kept)


def mark_newest(connection: Connection, source: str, count: int) -> set[int]:
    """Mark the newest articles of a feed as kept; return the numbers of those whose mark has changed."""
    if not is_feed(source):
        return set()
    newest = {row.number for row in connection.execute(_newest_of(source, count, NewsRow.number))}
    marked = set(connection.scalars(select(NewsRow.number).where(NewsRow.source == source, NewsRow.kept)))
    for numbers, kept in ((newest - marked, True), (marked - newest, False)):
        if numbers:
            which = among(connection, NewsRow.number, numbers)
            connection.execute(update(NewsRow).where(which).values(kept=kept))
    return newest ^ marked


def among_newest(connection: Connection, source: str, items: Sequence[NewsItem], count: int) -> set[str]:
    """The ids of a feed's newest articles among those in the pool and `items`."""
    columns = (NewsRow.id, NewsRow.dated, NewsRow.published_at)
    order = {row.id: (row.dated, row.published_at) for row in connection.execute(_newest_of(source, count, *columns))}
    order |= {item.id: (item.dated, item.published_at) for item in items if item.dated or item.id not in order}
    return set(sorted(order, key=order.__getitem__, reverse=True)[:count])


def _newest_of(source: str, count: int, *columns: Any) -> Select[Any]:
    """The newest live articles; of undated ones that arrived together, those that the feed lists first."""
    order = (NewsRow.dated.desc(), NewsRow.published_at.desc(), NewsRow.number)
    mine = (NewsRow.source == source) & NewsRow.taken_down_at.is_(None)
    return select(*columns).where(mine).order_by(*order).limit(count)
