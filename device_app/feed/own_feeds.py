"""Reads the reader's own feeds: folders, unread counts, and every story of a feed in order of time."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from device_app.store.articles import Place, Selection
from device_app.store.preferences import FEEDS_ONLY_UNREAD
from device_app.stores import DeviceStores
from device_app.sync.own_feeds import KnownFeed

PAGE = 30


@dataclass(frozen=True)
class FeedLine:
    """A feed with the numbers of its stories here, and of the unread ones."""

    feed: KnownFeed
    stories: int
    unread: int


@dataclass(frozen=True)
class Folder:
    """Feeds in a folder; name '' holds those at top level."""

    name: str
    feeds: tuple[FeedLine, ...]

    @property
    def unread(self) -> int:
        """How many unread stories its feeds have."""
        return sum(line.unread for line in self.feeds)


@dataclass(frozen=True)
class Overview:
    folders: tuple[Folder, ...]
    only_unread: bool

    @property
    def unread(self) -> int:
        return sum(folder.unread for folder in self.folders)

    @property
    def stories(self) -> int:
        """How many stories there are."""
        return sum(line.stories for folder in self.folders for line in folder.feeds)


@dataclass(frozen=True)
class FeedScope:
    """The subject of a list: one feed, one folder, or, with neither, everything."""

    feed: str | None = None
    folder: str | None = None


@dataclass(frozen=True)
class StoryPage:
    """One page of a list, newest first.

    line: the feed whose stories are listed. titles: the reader's names of feeds, by publisher. newest: the first place
    of the whole list. hidden: how many stories a mute rule leaves out. after: the place of the last story, if more
    follow.
    """

    places: tuple[Place, ...]
    stories: int
    unread: int
    hidden: int
    line: FeedLine | None
    titles: Mapping[str, str]
    newest: Place | None
    after: Place | None


class OwnFeeds:
    """The feeds of a reader whose server is their own.

    known: returns the followed feeds, in the reader's order; each publisher with stories that isn't among them counts
    as a feed at top level.
    """

    def __init__(
        self, stores: DeviceStores, known: Callable[[], Sequence[KnownFeed]], clock: Callable[[], datetime]
    ) -> None:
        self.known = known
        self._stores, self._clock = stores, clock

    def overview(self) -> Overview:
        """Return all folders and feeds. A publisher that isn't in the list of feeds is at top level."""
        folders: dict[str, list[FeedLine]] = {"": []}
        for line in self._lines():
            folders.setdefault(line.feed.folder, []).append(line)
        return Overview(
            tuple(Folder(name, tuple(lines)) for name, lines in folders.items() if lines), self.only_unread()
        )

    def only_unread(self) -> bool:
        """Return whether lists leave out what was read."""
        return bool(self._stores.preferences.get(FEEDS_ONLY_UNREAD))

    def show_only_unread(self, only: bool) -> None:
        """Store whether lists leave out what was read."""
        self._stores.preferences.set(FEEDS_ONLY_UNREAD, only or None)

    def page(
        self, which: FeedScope, after: Place | None = None, since: datetime | None = None, *, hidden: bool = False
    ) -> StoryPage:
        """Return a page of a list; after: the last place of the page before. hidden: also what a mute rule hides.

        since: only unread stories and those read since this time, so that none vanishes while the reader uses the list.
        """
        everything = self.selection(which)
        listed = Selection(everything.publishers, hidden, since)
        articles = self._stores.articles
        found = articles.page(listed, PAGE + 1, after)
        first = found[:1] if after is None else articles.page(listed, 1)
        all_lines = self._lines()
        lines = [line for line in all_lines if self._is_in(line.feed, which)]
        return StoryPage(
            places=tuple(found[:PAGE]),
            stories=sum(line.stories for line in lines),
            unread=sum(line.unread for line in lines),
            hidden=0 if hidden else articles.count_hidden(everything),
            line=lines[0] if which.feed is not None and lines else None,
            titles={line.feed.publisher: line.feed.title for line in all_lines},
            newest=next(iter(first), None),
            after=found[PAGE - 1] if len(found) > PAGE else None,
        )

    def mark_all(
        self, which: FeedScope, *, upto: Place | None = None, above: Place | None = None, below: Place | None = None
    ) -> int:
        """Mark the stories of a list as read, and return the number of the mark; 0 if all were read.

        upto: the newest that the reader was shown. above, below: only those above or below this place in the list.
        """
        return self._stores.read_marks.mark_all(
            self.selection(which), self._clock(), upto=upto, above=above, below=below
        )

    def selection(self, which: FeedScope) -> Selection:
        """Return the articles of a list."""
        if which.feed is not None:
            return Selection((which.feed,))
        if which.folder is None:
            return Selection()
        return Selection(tuple(one.publisher for one in self.known() if one.folder == which.folder))

    def _lines(self) -> list[FeedLine]:
        counts = dict(self._stores.articles.counts())
        listed = [(feed, counts.pop(feed.publisher, (0, 0))) for feed in self.known()]
        unlisted = [(KnownFeed(name, name), count) for name, count in sorted(counts.items(), key=_by_name)]
        return [FeedLine(feed, *count) for feed, count in (*listed, *unlisted)]

    @staticmethod
    def _is_in(feed: KnownFeed, which: FeedScope) -> bool:
        if which.feed is not None:
            return feed.publisher == which.feed
        return which.folder is None or feed.folder == which.folder


def _by_name(pair: tuple[str, object]) -> str:
    return pair[0].casefold()
