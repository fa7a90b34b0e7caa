"""The reader's feeds on the reader's own server, and changes to them (`ownfeed read`)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeVar

from device_app.store.news import NewsStore
from device_app.uplink.own_server import OwnServer
from protocol.own_feeds import (
    ChangeFeed,
    FeedListing,
    FeedsChanged,
    FeedStatus,
    FindFeeds,
    FollowFeed,
    FoundFeed,
    NamedFeed,
    OpmlFile,
    OpmlReport,
    OwnFeed,
    OwnMessage,
    Preparation,
    RefreshFeeds,
    RenameFolder,
    TextsRequest,
)
from protocol.text_catalogue import TextCatalogue

T = TypeVar("T", bound=OwnMessage)
WORDS = TextCatalogue("device_app.sync", "feeds.toml")
SEPARATOR = " / "
"""Between the names of nested folders, as a reader sees and types them."""
TONES: Mapping[FeedStatus, Literal["good", "due", "bad"]] = {
    "new": "due", "well": "good", "failing": "bad", "paused": "due", "ended": "bad",
}  # fmt: skip


@dataclass(frozen=True)
class KnownFeed:
    """One feed, known by its publisher's name, which every card carries.

    title: its name for the reader. folder: '' at top level. site: the address of its site, or ''. state: its last
    answer, described in a sentence, or ''; tone: whether that is normal.
    """

    publisher: str
    title: str
    folder: str = ""
    site: str = ""
    state: str = ""
    tone: Literal["good", "due", "bad"] = "good"


class OwnFeedsSync:
    """Keeps the list of feeds up to date, and also the newest stories while they can't be ranked.

    Each change by the reader is sent to the server at once; then the list is fetched again. Calls raise
    BackendUnreachable, BackendRefused or AnswerMalformed.

    Formal guarantees: what `step` requests, and when, depends only on the server's answers; requests contain nothing
    about what is read (tests/privacy/test_own_feeds.py).
    """

    def __init__(self, server: OwnServer, news: NewsStore, clock: Callable[[], datetime]) -> None:
        self._server, self._news, self._clock = server, news, clock
        self.listed: FeedListing | None = None
        """The list as last seen; None before the first answer."""

    def step(self) -> bool:
        """Fetch the list, and the newest stories while they can't be ranked.

        Return whether the server can rank.
        """
        listed = self._server.feeds()
        if listed.preparing is not None and (newest := self._server.newest()) is not None:
            self._news.put_cards(newest.cards, self._clock())
            self._news.put_bodies({body.id: body.body for body in newest.bodies})
        self.listed = listed
        return listed.preparing is None

    @property
    def preparing(self) -> Preparation | None:
        """Return the server's progress in preparing to rank; None if it is ready, or hasn't answered yet."""
        return None if self.listed is None else self.listed.preparing

    def feeds(self) -> tuple[OwnFeed, ...]:
        """Return the followed feeds as last seen, ordered by folder and name."""
        feeds = () if self.listed is None else self.listed.feeds
        return tuple(sorted(feeds, key=lambda one: ([*map(str.casefold, one.folder)], one.shown.casefold())))

    def feed(self, key: str) -> OwnFeed | None:
        """Return the feed with this key; None if it isn't followed."""
        return next((one for one in self.feeds() if one.key == key), None)

    def folders(self) -> tuple[tuple[str, ...], ...]:
        """Return every folder that contains a feed, and its parent folders."""
        paths = {one.folder[:depth] for one in self.feeds() for depth in range(1, len(one.folder) + 1)}
        return tuple(sorted(paths, key=lambda path: [*map(str.casefold, path)]))

    def find(self, pasted: str) -> tuple[FoundFeed, ...]:
        """Return the feeds at what a person has pasted, the best match first."""
        return self._server.find(FindFeeds(pasted=pasted)).feeds

    def follow(self, url: str, *, title: str = "", folder: Sequence[str] = (), site: str = "") -> None:
        self._and_list(self._server.follow(FollowFeed(url=url, title=title, folder=tuple(folder), site=site)))

    def change(self, wanted: ChangeFeed) -> None:
        """Change the named properties of a feed."""
        self._and_list(self._server.change(wanted))

    def remove(self, key: str) -> None:
        """Stop following a feed; `restore` undoes it."""
        self._and_list(self._server.remove(NamedFeed(key=key)))

    def restore(self, key: str) -> None:
        """Follow a removed feed again."""
        self._and_list(self._server.restore(NamedFeed(key=key)))

    def refresh(self, key: str | None = None) -> FeedsChanged:
        """Refresh one feed or all of them now; pauses requested by their servers still apply."""
        return self._and_list(self._server.refresh(RefreshFeeds(key=key)))

    def rename_folder(self, folder: Sequence[str], to: Sequence[str]) -> None:
        """Rename a folder; () dissolves it."""
        self._and_list(self._server.rename_folder(RenameFolder(folder=tuple(folder), to=tuple(to))))

    def take_opml(self, name: str, document: bytes) -> OpmlReport:
        """Follow the feeds of a list."""
        return self._and_list(self._server.take_opml(OpmlFile(name=name, document=document)))

    def texts(self, ids: Sequence[str]) -> dict[str, str]:
        """Return the texts of these articles that the server has.

        Texts of articles in the store are stored, too.
        """
        found = {body.id: body.body for body in self._server.texts(TextsRequest(ids=tuple(ids))).bodies}
        self._news.put_bodies(found)
        return found

    def known(self) -> list[KnownFeed]:
        """Return all followed feeds, by folder and name; answers from memory."""
        return [
            KnownFeed(
                publisher=feed.publisher or feed.url,
                title=feed.shown,
                folder=SEPARATOR.join(feed.folder),
                site=feed.site,
                state=feed.problem or WORDS.table("status")[feed.status],
                tone=TONES[feed.status],
            )
            for feed in self.feeds()
        ]

    def opml(self) -> bytes:
        """Return all feeds as an OPML file."""
        return self._server.opml()

    def close(self) -> None:
        self._server.client.close()

    def _and_list(self, done: T) -> T:
        self.listed = self._server.feeds()
        return done
