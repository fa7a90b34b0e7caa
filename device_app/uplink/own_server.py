"""The client for the reader's own server on this machine, which reads the reader's feeds."""

from typing import TypeVar

from pydantic import ValidationError

from device_app.errors import AnswerMalformed
from device_app.privacy.requests import is_this_machine, seal_for_own_server
from device_app.uplink.http import Answer, HttpClient, etag_of
from protocol.own_feeds import (
    PREFIX,
    ChangeFeed,
    FeedListing,
    FeedsChanged,
    FindFeeds,
    FollowFeed,
    FoundFeeds,
    NamedFeed,
    NewestStories,
    OpmlFile,
    OpmlReport,
    OwnMessage,
    RefreshFeeds,
    RenameFolder,
    TextsAnswer,
    TextsRequest,
)
from protocol.text_catalogue import TextCatalogue

REQUESTS = TextCatalogue("device_app.uplink", "requests.toml")
PURPOSE = "own_server"
LIST_LIMIT_BYTES = 16 * 1024 * 1024
NEWEST_LIMIT_BYTES = 32 * 1024 * 1024
TIMEOUT_SEC = 90.0
"""Finding the feeds of a site can take several requests to a slow server."""

T = TypeVar("T", bound=OwnMessage)


class OwnServer:
    """Manages the feeds of one reader.

    Each call raises BackendUnreachable, BackendRefused or AnswerMalformed. client: sends the token of this run with
    each request. Raises ValueError unless its server is on this machine.
    """

    def __init__(self, client: HttpClient) -> None:
        if not is_this_machine(client.base_url):
            raise ValueError(f"{client.base_url} is not on this machine, so it can't be this reader's own server")
        self.client = client
        self._listed: tuple[str | None, FeedListing] | None = None
        self._newest: str | None = None

    def feeds(self) -> FeedListing:
        etag = self._listed[0] if self._listed else None
        answer = self.client.get(
            f"{PREFIX}feeds", words=REQUESTS("own_list"), purpose=PURPOSE, etag=etag, limit_bytes=LIST_LIMIT_BYTES
        )
        if answer.status == 304 and self._listed is not None:
            return self._listed[1]
        self._listed = (etag_of(answer), _parsed(FeedListing, answer))
        return self._listed[1]

    def newest(self) -> NewestStories | None:
        """Return the newest stories with their texts; None if they are the same as last time."""
        answer = self.client.get(
            f"{PREFIX}newest",
            words=REQUESTS("own_newest"),
            purpose=PURPOSE,
            etag=self._newest,
            limit_bytes=NEWEST_LIMIT_BYTES,
        )
        if answer.status == 304:
            return None
        self._newest = etag_of(answer)
        return _parsed(NewestStories, answer)

    def opml(self) -> bytes:
        """Return all feeds as an OPML file."""
        answer = self.client.get(f"{PREFIX}opml", words=REQUESTS("own_opml_out"), purpose=PURPOSE, accept="text/x-opml")
        return answer.body

    def texts(self, wanted: TextsRequest) -> TextsAnswer:
        """Return the texts of stories that a reader app shows."""
        return self._ask("texts", wanted, TextsAnswer, REQUESTS("own_texts", count=len(wanted.ids)))

    def find(self, request: FindFeeds) -> FoundFeeds:
        """Return the feeds found for what a person has pasted."""
        return self._ask("find", request, FoundFeeds, REQUESTS("own_find"))

    def follow(self, wanted: FollowFeed) -> FeedsChanged:
        return self._ask("follow", wanted, FeedsChanged, REQUESTS("own_follow"))

    def change(self, wanted: ChangeFeed) -> FeedsChanged:
        """Rename, move, sort, pause or resume a feed, or switch its pictures."""
        return self._ask("change", wanted, FeedsChanged, REQUESTS("own_change"))

    def remove(self, named: NamedFeed) -> FeedsChanged:
        """Stop following a feed."""
        return self._ask("remove", named, FeedsChanged, REQUESTS("own_remove"))

    def restore(self, named: NamedFeed) -> FeedsChanged:
        """Follow a removed feed again."""
        return self._ask("restore", named, FeedsChanged, REQUESTS("own_restore"))

    def refresh(self, wanted: RefreshFeeds) -> FeedsChanged:
        return self._ask("refresh", wanted, FeedsChanged, REQUESTS("own_refresh"))

    def rename_folder(self, wanted: RenameFolder) -> FeedsChanged:
        """Rename or dissolve a folder."""
        return self._ask("rename-folder", wanted, FeedsChanged, REQUESTS("own_folder"))

    def take_opml(self, file: OpmlFile) -> OpmlReport:
        """Follow the feeds of a list."""
        return self._ask("opml", file, OpmlReport, REQUESTS("own_opml_in"))

    def _ask(self, path: str, message: OwnMessage, kind: type[T], words: str) -> T:
        sealed = seal_for_own_server(message, self.client.base_url, words)
        return _parsed(kind, self.client.deliver(sealed, PREFIX + path, purpose=PURPOSE))


def _parsed(kind: type[T], answer: Answer) -> T:
    try:
        return kind.model_validate_json(answer.body)
    except ValidationError as broken:
        first = broken.errors(include_url=False, include_input=False)[0]
        raise AnswerMalformed("your feeds", f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from broken
