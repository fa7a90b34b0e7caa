"""The followed feeds: their settings, their servers' last answers, and when each is due."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import ColumnElement, Connection, Engine, case, delete, func, insert, or_, select, update

from backend.db.engine import reading, writing
from backend.db.tables import FeedRow, NewsRow
from backend.news.errors import FeedNotFollowed, FeedRefused
from backend.news.feed_addresses import FILE_PREFIX, checked_url, host_of, key_of
from backend.news.ingest_runs import FeedAnswer, loaded
from backend.news.plain_text import one_line, shortened
from backend.news.pool_version import lock_version, raise_version
from backend.news.public_addresses import checked_proxy
from backend.news.sources.download import Validators

FEEDS_LIMIT = 1_000
ERROR_CHARS = 500
TITLE_CHARS = 500
NAME_CHARS = 120
FOLDER_CHARS = 200
FOLDERS_DEEP = 250
CLOCKS_APART = timedelta(minutes=1)
"""Tolerated difference between the clocks of two processes, so that neither treats the other's as being ahead."""
WAIT_LIMIT = timedelta(days=1)  # the longest wait after errors, and for a server's Retry-After or max-age
REMOVED_KEPT = timedelta(days=30)
"""How long a removed feed can be restored with its settings."""


@dataclass(frozen=True, slots=True)
class FollowedFeed:
    """A followed feed; see `FeedRow` for the fields."""

    key: str
    url: str
    added_at: datetime
    fetched_at: datetime | None
    due_at: datetime
    failures: int
    error: str | None
    paused: bool
    section: str | None = None
    pictures: bool = False
    full_text: bool = False
    full_text_error: str | None = None
    title: str = ""
    name: str = ""
    site: str = ""
    folder: tuple[str, ...] = ()
    unverified: bool = False
    proxy: str | None = None
    removed_at: datetime | None = None
    pace_sec: float | None = None
    moved_to: str | None = None
    ended: bool = False
    entries: int | None = None
    taken: int = 0
    refused: int = 0
    refusals: Sequence[dict[str, Any]] = ()

    @property
    def answer(self) -> FeedAnswer | None:
        """The counts of its last document; None before the first."""
        return loaded(self.entries, self.taken, self.refused, self.refusals)

    @property
    def shown(self) -> str:
        """Its display name: the reader's title, else the feed's, else its address."""
        return self.title or self.name or self.url


class FollowedFeeds:
    """The followed feeds in one database.

    Methods take a feed's address, or its key, which stays when the address changes, and raise FeedNotFollowed if there
    is no such feed. Only `restore` finds a removed feed.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def last(self, feed: str) -> Validators:
        """The validators of the last complete read; empty for a feed never read."""
        with reading(self._engine) as connection:
            row = connection.execute(select(FeedRow.etag, FeedRow.last_modified).where(_named(feed))).one_or_none()
        return Validators() if row is None else Validators(row.etag, row.last_modified)

    def all(self) -> list[FollowedFeed]:
        """Every feed, ordered by address."""
        return self._feeds(FeedRow.removed_at.is_(None))

    def removed(self) -> list[FollowedFeed]:
        """The feeds that can be restored, the last removed first."""
        found = self._feeds(FeedRow.removed_at.is_not(None))
        return sorted(found, key=lambda one: one.removed_at or one.added_at, reverse=True)

    def one(self, feed: str) -> FollowedFeed:
        """The feed of this address or key. Raises FeedNotFollowed."""
        found = self.find(feed)
        if found is None:
            raise FeedNotFollowed
        return found

    def find(self, feed: str) -> FollowedFeed | None:
        """The feed of this address or key; None if it isn't followed."""
        return next(iter(self._feeds(_named(feed))), None)

    def folders(self) -> list[tuple[str, ...]]:
        """Every folder that contains a feed, and its parents, in alphabetical order."""
        paths = {one.folder for one in self.all()}
        return sorted({path[:depth] for path in paths for depth in range(1, len(path) + 1)})

    def shows_pictures(self) -> bool:
        """Whether a new feed shows pictures by default: yes, unless every other feed's are switched off."""
        feeds = self.all()
        return not feeds or any(feed.pictures for feed in feeds)

    def due(self, now: datetime) -> list[FollowedFeed]:
        """The feeds to refresh at `now`, longest due first, without paused and ended feeds."""
        found = self._feeds(FeedRow.removed_at.is_(None) & _is_read() & (FeedRow.due_at <= now))
        return sorted(found, key=lambda one: one.due_at)

    def next_due_at(self) -> datetime | None:
        """When the next feed is due; None if none is."""
        with reading(self._engine) as connection:
            query = select(func.min(FeedRow.due_at)).where(FeedRow.removed_at.is_(None), _is_read())
            return connection.execute(query).scalar_one()

    def put_right(self, now: datetime, furthest: timedelta) -> int:
        """Make feeds due that were postponed by a clock ahead of `now`; return how many.

        A feed counts as postponed if its last answer is later than now, or if it is due later than `furthest`, the
        longest possible wait. A feed that failed under such a clock may stay postponed for up to that long.
        """
        later = FeedRow.fetched_at > now + CLOCKS_APART
        put_off = later | (FeedRow.due_at > now + furthest + CLOCKS_APART)
        # Set the answer's time to now at the latest: otherwise a feed that fails from here on is due at every check.
        values = {"due_at": now, "fetched_at": case((later, now), else_=FeedRow.fetched_at)}
        with reading(self._engine) as connection:
            if not connection.execute(select(func.count()).where(put_off)).scalar_one():
                return 0
        with writing(self._engine) as connection:
            return connection.execute(update(FeedRow).where(put_off).values(values)).rowcount

    def add(
        self,
        url: str,
        now: datetime,
        section: str | None = None,
        pictures: bool = False,
        *,
        title: str = "",
        folder: Sequence[str] = (),
        site: str = "",
    ) -> None:
        """Follow a feed from now on; it is due at once. A removed feed is restored with its settings.

        section: for all its articles. title: the reader's own. Raises FeedRefused.
        """
        values: dict[str, Any] = {"section": section, "pictures": pictures or None, "site": _site(site)}
        values |= {"title": _title(title), "folder": list(_path(folder))}
        with writing(self._engine) as connection:
            if not self._added(connection, checked_url(url), now, {name: one for name, one in values.items() if one}):
                raise FeedRefused("it is followed already")

    def rename(self, feed: str, title: str) -> None:
        """Set the reader's own title, '' for the feed's; its articles get the new name at once.

        Raises FeedNotFollowed.
        """
        with writing(self._engine) as connection:
            lock_version(connection)
            row = connection.execute(select(FeedRow).where(_named(feed))).one_or_none()
            if row is None:
                raise FeedNotFollowed
            own = _title(title)
            # Without the reader's title, read the feed again for its own.
            again: dict[str, Any] = {} if own else {"etag": None, "last_modified": None, "due_at": row.added_at}
            name = _unlike(own, _places(row.url), _other_names(connection, row.key)) if own else row.name
            connection.execute(update(FeedRow).where(FeedRow.key == row.key).values(title=own, name=name, **again))
            _publish_as(connection, row.key, name)

    def named(self, key: str, url: str, title: str) -> str:
        """The publisher's name of a feed's articles: the reader's title or its own, made unique among feeds.

        It stays as long as that title does, even once the other feed with the same title is gone.
        """
        with writing(self._engine) as connection:
            lock_version(connection)  # of two feeds that are read at once, the second sees the first one's name
            row = connection.execute(select(FeedRow.title, FeedRow.name).where(FeedRow.key == key)).one_or_none()
            own, others = (row.title if row else "") or title or host_of(url), _other_names(connection, key)
            if row and row.name.casefold() not in others and _is_of(row.name, own):
                return str(row.name)
            name = _unlike(own, _places(url), others)
            connection.execute(update(FeedRow).where(FeedRow.key == key).values(name=name))
        return name

    def name_of_file(self, source: str, path: str, title: str) -> str:
        """The publisher's name of the articles of a feed in a file, which isn't followed; made unique as in `named`."""
        file = Path(path)
        own = title or file.stem
        others_files = NewsRow.source.startswith(FILE_PREFIX, autoescape=True) & (NewsRow.source != source)
        with reading(self._engine) as connection:
            published = connection.scalars(select(NewsRow.publisher).where(others_files).distinct())
            others = _other_names(connection, source) | {name.casefold() for name in published}
            mine = connection.scalar(select(NewsRow.publisher).where(NewsRow.source == source).limit(1)) or ""
        if mine.casefold() not in others and _is_of(mine, own):
            return mine
        return _unlike(own, (file.name, f"{file.parent.name}/{file.name}"), others)

    def move_to(self, feed: str, folder: Sequence[str]) -> None:
        """Put the feed into a folder, given as names from the outermost; () for none. Raises FeedNotFollowed."""
        self._change(feed, {"folder": list(_path(folder))})

    def rename_folder(self, folder: Sequence[str], to: Sequence[str]) -> int:
        """Move all feeds of a folder and its subfolders to another folder; return how many."""
        old, new = _path(folder), _path(to)
        inside = [one for one in self.all() if old and one.folder[: len(old)] == old]
        with writing(self._engine) as connection:
            for one in inside:
                path = [*new, *one.folder[len(old) :]]
                connection.execute(update(FeedRow).where(FeedRow.key == one.key).values(folder=path))
        return len(inside)

    def allow_pictures(self, feed: str, allowed: bool) -> None:
        """Allow or forbid fetching and showing its publisher's pictures. Raises FeedNotFollowed."""
        self._change(feed, {"pictures": allowed})

    def want_full_text(self, feed: str, wanted: bool) -> None:
        """Fetch the full texts of its new stories from their pages, or stop. Raises FeedNotFollowed."""
        self._change(feed, {"full_text": wanted, "full_text_error": None})

    def note_full_text(self, key: str, faults: Sequence[str]) -> None:
        """Record why stories kept their teasers at this reading; does nothing for a removed feed."""
        more = f" ({len(faults)} stories kept their teasers)" if len(faults) > 1 else ""
        error = f"{faults[0][: ERROR_CHARS - len(more)]}{more}" if faults else None
        with writing(self._engine) as connection:
            connection.execute(update(FeedRow).where(FeedRow.key == key).values(full_text_error=error))

    def sort_into(self, feed: str, section: str | None, now: datetime) -> None:
        """Put its articles into this section, None: each by its vector; makes the feed due.

        Raises FeedNotFollowed.
        """
        self._change(feed, {"section": section, "due_at": now, "etag": None, "last_modified": None})

    def check_certificate(self, feed: str, checked: bool, now: datetime) -> None:
        """Turn the check of its server's certificate on or off. Raises FeedNotFollowed.

        Whoever is between this machine and an unverified server can read and replace what it sends.
        """
        self._change(feed, {"unverified": not checked, "due_at": now})

    def read_through(self, feed: str, proxy: str | None, now: datetime) -> None:
        """Read the feed through an HTTP proxy; None: directly. Raises FeedNotFollowed, FeedRefused.

        The proxy resolves the feed's host names, so it decides which addresses can be reached.
        """
        self._change(feed, {"proxy": None if proxy is None else checked_proxy(proxy), "due_at": now})

    def pause(self, feed: str) -> None:
        """Stop refreshing the feed until `resume`. Raises FeedNotFollowed."""
        self._change(feed, {"paused": True})

    def resume(self, feed: str, now: datetime) -> None:
        """Continue at once, as if it had never failed or ended. Raises FeedNotFollowed."""
        self._change(feed, {"paused": False, "ended": False, "due_at": now, "failures": 0, "error": None})

    def ask_now(self, now: datetime, feed: str | None = None) -> None:
        """Make a feed due at once, or all that are neither paused nor ended. Raises FeedNotFollowed.

        Pauses that a host requires still apply.
        """
        if feed is not None:
            self._change(feed, {"due_at": now})
            return
        with writing(self._engine) as connection:
            connection.execute(update(FeedRow).where(FeedRow.due_at > now, _is_read()).values(due_at=now))

    def remove(self, feed: str, now: datetime) -> None:
        """Stop following the feed. Its articles stay, and `restore` undoes this for 30 days. Raises FeedNotFollowed."""
        self._change(feed, {"removed_at": now})

    def restore(self, feed: str, now: datetime) -> None:
        """Follow a removed feed again, with its settings and its last answer.

        Raises FeedNotFollowed, FeedRefused.
        """
        with writing(self._engine) as connection:
            gone = FeedRow.removed_at.is_not(None) & or_(FeedRow.url == feed, FeedRow.key == feed)
            if connection.execute(select(FeedRow.key).where(gone)).one_or_none() is None:
                raise FeedNotFollowed
            _make_room(connection)
            connection.execute(update(FeedRow).where(gone).values(removed_at=None, due_at=now))

    def forget_removed(self, now: datetime) -> int:
        """Delete the feeds that were removed more than 30 days ago; return how many."""
        old = FeedRow.removed_at < now - REMOVED_KEPT
        with reading(self._engine) as connection:
            if not connection.execute(select(func.count()).where(old)).scalar_one():
                return 0
        with writing(self._engine) as connection:
            return connection.execute(delete(FeedRow).where(old)).rowcount

    def keep(self, url: str, validators: Validators, at: datetime, due_at: datetime) -> None:
        """Follow a feed whose current articles are all in the pool."""
        with writing(self._engine) as connection:
            self._added(connection, checked_url(url), at, {})
        self.answered(url, at=at, due_at=due_at, validators=validators)

    def answered(
        self,
        feed: str,
        *,
        at: datetime,
        due_at: datetime,
        validators: Validators | None = None,
        pace: timedelta | None = None,
        moved_to: str = "",
        says: dict[str, str] | None = None,
    ) -> bool:
        """Record an answer, with validators if all its articles are in the pool; return whether its address changed.

        pace: the interval at which it publishes. moved_to: where permanent redirects lead. If two answers in a row
        lead there, the feed's address changes, unless another feed has that address. says: the columns `name` and
        `site`. Does nothing for a removed feed.
        """
        values: dict[str, Any] = {"fetched_at": at, "due_at": due_at, "failures": 0, "error": None, "ended": False}
        values |= {"moved_to": moved_to or None, **(says or {})}
        if validators is not None:
            values |= validators._asdict()
        if pace is not None:
            values["pace_sec"] = pace.total_seconds()
        with writing(self._engine) as connection:
            row = connection.execute(select(FeedRow.key, FeedRow.url, FeedRow.moved_to).where(_named(feed))).first()
            if row is None:
                return False
            moves = bool(moved_to) and row.moved_to == moved_to and _is_free(connection, moved_to, row.key)
            if moves:
                values |= {"url": moved_to, "moved_to": None}
            connection.execute(update(FeedRow).where(FeedRow.key == row.key).values(values))
        return moves

    def failed(self, feed: str, error: str, *, failures: int, due_at: datetime, ended: bool = False) -> None:
        """Record a failure; does nothing for a removed feed.

        failures: how many in a row. ended: its server says that it is gone permanently, so it isn't requested again.
        """
        values = {"error": error[:ERROR_CHARS], "failures": failures, "due_at": due_at, "ended": ended}
        with writing(self._engine) as connection:
            connection.execute(update(FeedRow).where(_named(feed)).values(values))

    def _feeds(self, which: ColumnElement[bool]) -> list[FollowedFeed]:
        columns = [getattr(FeedRow, name) for name in FollowedFeed.__slots__]
        with reading(self._engine) as connection:
            rows = connection.execute(select(*columns).where(which).order_by(FeedRow.url)).all()
        return [FollowedFeed(**{**row._mapping, "folder": tuple(row.folder)}) for row in rows]

    def _change(self, feed: str, values: dict[str, Any]) -> None:
        with writing(self._engine) as connection:
            if not connection.execute(update(FeedRow).where(_named(feed)).values(values)).rowcount:
                raise FeedNotFollowed

    def _added(self, connection: Connection, url: str, now: datetime, values: dict[str, Any]) -> bool:
        """Insert or restore the feed with these values; return whether it is new."""
        known = connection.execute(
            select(FeedRow.key, FeedRow.removed_at).where(or_(FeedRow.url == url, FeedRow.key == key_of(url)))
        ).first()
        if known is not None and known.removed_at is None:
            return False
        _make_room(connection)
        if known is not None:
            back = {"removed_at": None, "due_at": now, **values}
            connection.execute(update(FeedRow).where(FeedRow.key == known.key).values(back))
            return True
        connection.execute(insert(FeedRow), {"key": key_of(url), "url": url, "added_at": now, "due_at": now, **values})
        return True


def _named(feed: str) -> ColumnElement[bool]:
    return FeedRow.removed_at.is_(None) & or_(FeedRow.url == feed, FeedRow.key == feed)


def _is_read() -> ColumnElement[bool]:
    return FeedRow.paused.is_(False) & FeedRow.ended.is_(False)


def _make_room(connection: Connection) -> None:
    followed = select(func.count()).select_from(FeedRow).where(FeedRow.removed_at.is_(None))
    if connection.execute(followed).scalar_one() >= FEEDS_LIMIT:
        raise FeedRefused(f"at most {FEEDS_LIMIT:,} feeds can be followed")


def _is_free(connection: Connection, url: str, key: str) -> bool:
    """Whether no other feed, not even a removed one, has this address or was first followed there."""
    taken = or_(FeedRow.url == url, FeedRow.key == key_of(url)) & (FeedRow.key != key)
    return connection.execute(select(FeedRow.key).where(taken)).first() is None


def _other_names(connection: Connection, key: str) -> set[str]:
    return {name.casefold() for name in connection.scalars(select(FeedRow.name).where(FeedRow.key != key))}


def _places(url: str) -> tuple[str, str]:
    """Return what distinguishes a feed from others with the same title: its host, or its whole address."""
    return host_of(url), url.partition("://")[2].rstrip("/")


def _unlike(title: str, places: tuple[str, ...], taken: Iterable[str]) -> str:
    """Return the title; if other feeds have that name, add one of `places` or a number in brackets."""
    used = set(taken)
    title = one_line(title)
    behind = ["", *(f" ({place})" for place in places)]
    behind += [f" ({number})" for number in range(2, FEEDS_LIMIT + 2)]
    for each in behind:
        name = shortened(title, max(NAME_CHARS - len(each), 20)) + each
        if len(name) <= NAME_CHARS and name.casefold() not in used:
            return name
    raise AssertionError("more names than feeds")


def _is_of(name: str, title: str) -> bool:
    """Return whether a name was made from this title."""
    title = shortened(one_line(title), NAME_CHARS)
    return bool(name) and (name == title or name.startswith(f"{title} ("))


def _publish_as(connection: Connection, key: str, name: str) -> None:
    """Set the publisher of a feed's articles."""
    mine = (NewsRow.source == key) & (NewsRow.publisher != name) & NewsRow.taken_down_at.is_(None)
    numbers = connection.scalars(select(NewsRow.number).where(mine)).all()
    if numbers:
        connection.execute(update(NewsRow).where(mine).values(publisher=name))
        raise_version(connection, numbers)


def _title(title: str) -> str:
    return shortened(one_line(title), TITLE_CHARS)


def _site(site: str) -> str:
    return site if site.lower().startswith(("http://", "https://")) and len(site) <= 2_000 else ""


def _path(folder: Sequence[str]) -> tuple[str, ...]:
    """A folder's names without empty ones. Raises FeedRefused for one that is nested too deep."""
    names = tuple(shortened(one_line(name), FOLDER_CHARS) for name in folder if name.strip())
    if len(names) > FOLDERS_DEEP:
        raise FeedRefused(f"its folder is nested {len(names)} deep, at most {FOLDERS_DEEP} are allowed")
    return names
