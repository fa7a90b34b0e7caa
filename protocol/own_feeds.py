"""Messages to the reader's own server on the same machine (`ownfeed read`).

They manage the reader's feeds. No other server answers them, so they are not part of the protocol with publishers.
"""

from typing import Annotated, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from protocol.ids import NewsId
from protocol.news import NewsBody, NewsCard

PREFIX = "/v1/own/"
"""Prefix of the addresses that only a reader's own server has."""
URL_CHARS = 2_000
TITLE_CHARS = 500
FOLDER_CHARS = 200
PASTED_CHARS = 4_000
OPML_LIMIT_BYTES = 5_000_000
NEWEST = 120
"""How many stories are shown before anything can rank them."""

FeedStatus = Literal["new", "well", "failing", "paused", "ended"]
Key = Annotated[str, Field(min_length=1, max_length=URL_CHARS)]
Folder = tuple[Annotated[str, Field(max_length=FOLDER_CHARS)], ...]
"""Names from the outermost in; () for none."""


class OwnMessage(BaseModel):
    """Base of these messages: frozen, no unknown fields, bytes as base64."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_bytes="base64", val_json_bytes="base64")


class OwnFeed(OwnMessage):
    """A followed feed.

    key: its lasting name, which stays when its address changes. publisher: the name shown with its stories, '' before
    the first story. title: the reader's own title, '' for none. taken, refused, reasons: how many entries of its last
    answer were accepted and refused, and why; None if that isn't known. full_text: whether whole articles are fetched.
    """

    key: str
    url: str
    publisher: str = ""
    title: str = ""
    site: str = ""
    folder: Folder = ()
    section: str | None = None
    status: FeedStatus = "new"
    problem: str | None = None
    last_answer_at: AwareDatetime | None = None
    next_at: AwareDatetime | None = None
    taken: int | None = None
    refused: int | None = None
    reasons: tuple[str, ...] = ()
    pictures: bool = False
    full_text: bool = False

    @property
    def shown(self) -> str:
        """The name shown to people."""
        return self.title or self.publisher or self.url


class RemovedFeed(OwnMessage):
    """A feed that can be restored."""

    key: str
    shown: str
    removed_at: AwareDatetime


class Preparation(OwnMessage):
    """The server's progress in preparing to rank: the step, and how much of it is done.

    trouble: why the last attempt failed; the server tries again.
    """

    step: str = ""
    done: int = 0
    total: int | None = None
    trouble: str | None = None


class FeedListing(OwnMessage):
    """All followed feeds.

    sections: names that a feed can be put under. preparing: None once the server can rank.
    """

    feeds: tuple[OwnFeed, ...] = ()
    removed: tuple[RemovedFeed, ...] = ()
    sections: tuple[str, ...] = ()
    preparing: Preparation | None = None


class NewestStories(OwnMessage):
    """The newest stories with their texts, in order of time."""

    cards: tuple[NewsCard, ...] = ()
    bodies: tuple[NewsBody, ...] = ()


class TextsRequest(OwnMessage):
    """Request for the texts of stories that a reader app shows."""

    ids: tuple[NewsId, ...] = Field(max_length=1_000)


class TextsAnswer(OwnMessage):
    """The texts that the server has."""

    bodies: tuple[NewsBody, ...] = ()


class FindFeeds(OwnMessage):
    """Find the feeds of what a person has pasted: the address of a feed or a site, or a host."""

    pasted: str = Field(min_length=1, max_length=PASTED_CHARS)


class FoundFeed(OwnMessage):
    """A feed that was found there, with the titles of its newest entries."""

    url: str
    title: str = ""
    site: str = ""
    newest: tuple[str, ...] = ()
    followed: bool = False


class FoundFeeds(OwnMessage):
    """The feeds that were found, the best match first."""

    feeds: tuple[FoundFeed, ...] = ()


class FollowFeed(OwnMessage):
    """Follow this feed."""

    url: str = Field(min_length=1, max_length=URL_CHARS)
    title: str = Field(default="", max_length=TITLE_CHARS)
    site: str = Field(default="", max_length=URL_CHARS)
    folder: Folder = ()


class ChangeFeed(OwnMessage):
    """Change a feed's named properties.

    title: '' for the feed's own. section: '' to sort each story by its text.
    """

    key: Key
    title: str | None = Field(default=None, max_length=TITLE_CHARS)
    folder: Folder | None = None
    section: str | None = Field(default=None, max_length=80)
    paused: bool | None = None
    pictures: bool | None = None
    full_text: bool | None = None


class NamedFeed(OwnMessage):
    """The feed to remove or to restore."""

    key: Key


class RefreshFeeds(OwnMessage):
    """Refresh one feed or all of them now; pauses requested by their servers still apply."""

    key: Key | None = None


class RenameFolder(OwnMessage):
    """Rename a folder, or move it into another; () dissolves it."""

    folder: Folder = Field(min_length=1)
    to: Folder = ()


class OpmlFile(OwnMessage):
    """A list of feeds from another reader."""

    name: str = Field(max_length=200)
    document: bytes = Field(max_length=OPML_LIMIT_BYTES)


class NotFollowed(OwnMessage):
    """An entry of a list that can't be followed, and why."""

    entry: str
    why: str


class OpmlReport(OwnMessage):
    """The result of importing a list: feeds added, feeds already followed, and entries not followed."""

    added: int
    known: int
    left_out: tuple[NotFollowed, ...] = ()


class FeedsChanged(OwnMessage):
    """A change was made. count: number of feeds changed."""

    count: int = 1
