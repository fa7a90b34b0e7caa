"""Routes for a reader's own device on its own server: the feeds, and the newest stories before they can be ranked.

These routes exist only under `ownfeed read`, which gives both processes a token of their own. Only programs of this
machine may use them.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

from fastapi import APIRouter, Depends, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from backend.api.openapi import JSON, WITH_BODY, answers, parse, require_media_type
from backend.errors import RequestRefused
from backend.news.discovery import discover_or_take
from backend.news.followed_feeds import FollowedFeed
from backend.news.opml import Subscription, parse_opml, write_opml
from backend.news.public_addresses import networks
from backend.news.sections import chosen_section, section_named, taxonomy
from backend.news.sources.download import Document, fetch
from backend.recall.catalogue import card_of
from backend.settings import is_loopback
from backend.setup.own_feeds import follow_all
from protocol.news import NewsBody
from protocol.own_feeds import (
    NEWEST,
    PREFIX,
    ChangeFeed,
    FeedListing,
    FeedsChanged,
    FeedStatus,
    FindFeeds,
    FollowFeed,
    FoundFeed,
    FoundFeeds,
    NamedFeed,
    NewestStories,
    NotFollowed,
    OpmlFile,
    OpmlReport,
    OwnFeed,
    OwnMessage,
    RefreshFeeds,
    RemovedFeed,
    RenameFolder,
    TextsAnswer,
    TextsRequest,
)

if TYPE_CHECKING:
    from backend.composition import Services

M = TypeVar("M", bound=OwnMessage)
OPML = "text/x-opml"


class NotOwnDevice(RequestRefused):
    """The token of the reader's own device is missing or wrong, or another machine asks."""

    code, status, title = "not-own-device", 401, "Only this reader's own device may ask this"

    def __init__(self) -> None:
        super().__init__("Only the device that was started together with this server may ask this.")


def router(services: Services, token_file: Path) -> APIRouter:
    """The routes of one reader's feeds. token_file: holds the token that the device sends."""
    token = token_file.read_text(encoding="utf-8").strip()
    scheduler, followed = services.feeds, services.feeds.followed

    def own_device(request: Request) -> None:
        scheme, _, shown = request.headers.get("authorization", "").partition(" ")
        is_known = hmac.compare_digest(shown.strip().encode(), token.encode()) and scheme.lower() == "bearer"
        if not is_known or request.client is None or not is_loopback(request.client.host):
            raise NotOwnDevice

    routes = APIRouter(prefix=PREFIX.rstrip("/"), dependencies=[Depends(own_device)], responses=answers(401))

    def listed() -> FeedListing:
        return FeedListing(
            feeds=tuple(_described(feed) for feed in followed.all()),
            removed=tuple(
                RemovedFeed(key=feed.key, shown=feed.shown, removed_at=feed.removed_at)
                for feed in followed.removed()
                if feed.removed_at is not None
            ),
            sections=tuple(section.name for section in taxonomy()),
            preparing=None if services.first_release is None else services.first_release.status(),
        )

    @routes.get("/feeds", response_class=Response)
    def feeds(request: Request) -> Response:
        """Everything that is followed; 304 if the device already has it."""
        payload = listed().model_dump_json().encode()
        etag = f'"{blake2b(payload, digest_size=16).hexdigest()}"'
        if request.headers.get("if-none-match") == etag:
            return Response(status_code=304, headers={"etag": etag})
        return Response(payload, media_type=JSON, headers={"etag": etag, "cache-control": "no-store"})

    @routes.get("/newest", response_class=Response)
    def newest(limit: Annotated[int, Query(ge=1, le=NEWEST)] = NEWEST) -> Response:
        rows = services.pool.newest(datetime.now(UTC), limit)
        bodies = services.pool.bodies([row.id for row in rows])
        return _json(
            NewestStories(
                cards=tuple(map(card_of, rows)),
                bodies=tuple(NewsBody(id=news_id, body=body) for news_id, body in bodies.items()),
            )
        )

    @routes.get("/opml", response_class=Response)
    def export() -> Response:
        subscriptions = [
            Subscription(one.url, one.title or one.name, one.folder, section=one.section, site=one.site)
            for one in sorted(followed.all(), key=lambda feed: feed.added_at)
        ]
        return Response(write_opml(subscriptions, "Feeds followed by Ownfeed"), media_type=OPML)

    def changes(path: str, kind: type[M], change: Callable[[M], OwnMessage]) -> None:
        """Add a route that parses its body as `kind`, and answers what `change` returns."""

        async def changed(request: Request) -> Response:
            require_media_type(request, JSON)
            message = parse(kind, await request.body())
            return _json(await run_in_threadpool(change, message))

        routes.add_api_route(
            path, changed, methods=["POST"], name=change.__name__, response_class=Response,
            responses=answers(*WITH_BODY, 404),
        )  # fmt: skip

    def texts(wanted: TextsRequest) -> TextsAnswer:
        found = services.pool.bodies(wanted.ids)
        return TextsAnswer(bodies=tuple(NewsBody(id=news_id, body=body) for news_id, body in found.items()))

    def get(url: str) -> Document:
        document = fetch(url, allowed=networks(services.settings.feed_networks))
        assert isinstance(document, Document)  # only a conditional GET returns anything else
        return document

    def find(query: FindFeeds) -> FoundFeeds:
        known = {feed.url for feed in followed.all()}
        found = discover_or_take(query.pasted, get)
        return FoundFeeds(
            feeds=tuple(
                FoundFeed(
                    url=one.url,
                    title=one.title,
                    site=one.site,
                    newest=tuple(title for title, _ in one.newest),
                    followed=one.url in known,
                )
                for one in found
            )
        )

    def follow(wanted: FollowFeed) -> FeedsChanged:
        section = section_named(wanted.folder[-1]) if wanted.folder else None
        followed.add(
            wanted.url, datetime.now(UTC), section, followed.shows_pictures(),
            title=wanted.title, folder=wanted.folder, site=wanted.site,
        )  # fmt: skip
        scheduler.wake()
        return FeedsChanged()

    def change(wanted: ChangeFeed) -> FeedsChanged:
        now, key = datetime.now(UTC), wanted.key
        followed.one(key)
        if wanted.title is not None:
            followed.rename(key, wanted.title)
        if wanted.folder is not None:
            followed.move_to(key, wanted.folder)
        if wanted.section is not None:
            followed.sort_into(key, chosen_section(wanted.section) if wanted.section else None, now)
        if wanted.pictures is not None:
            followed.allow_pictures(key, wanted.pictures)
            services.pictures.wake()
        if wanted.full_text is not None:
            followed.want_full_text(key, wanted.full_text)
        if wanted.paused is not None:
            followed.pause(key) if wanted.paused else followed.resume(key, now)
        scheduler.wake()
        return FeedsChanged()

    def remove(named: NamedFeed) -> FeedsChanged:
        followed.remove(named.key, datetime.now(UTC))
        return FeedsChanged()

    def restore(named: NamedFeed) -> FeedsChanged:
        followed.restore(named.key, datetime.now(UTC))
        scheduler.wake()
        return FeedsChanged()

    def refresh(wanted: RefreshFeeds) -> FeedsChanged:
        count = 1 if wanted.key else sum(not (one.paused or one.ended) for one in followed.all())
        followed.ask_now(datetime.now(UTC), wanted.key)
        scheduler.wake()
        return FeedsChanged(count=count)

    def rename_folder(wanted: RenameFolder) -> FeedsChanged:
        return FeedsChanged(count=followed.rename_folder(wanted.folder, wanted.to))

    def take_opml(file: OpmlFile) -> OpmlReport:
        listed = parse_opml(file.document, file.name)
        known = sum(followed.find(one.url) is not None for one in listed.feeds)
        newly = follow_all(followed, listed.feeds, pictures_of_new=followed.shows_pictures())
        scheduler.wake()
        left_out = (
            NotFollowed(entry=one.name or one.where, why=one.reason) for one in (*listed.refused, *newly.refused)
        )
        return OpmlReport(added=newly.added, known=known, left_out=tuple(left_out))

    changes("/texts", TextsRequest, texts)
    changes("/find", FindFeeds, find)
    changes("/follow", FollowFeed, follow)
    changes("/change", ChangeFeed, change)
    changes("/remove", NamedFeed, remove)
    changes("/restore", NamedFeed, restore)
    changes("/refresh", RefreshFeeds, refresh)
    changes("/rename-folder", RenameFolder, rename_folder)
    changes("/opml", OpmlFile, take_opml)
    return routes


def _json(message: OwnMessage) -> Response:
    return Response(message.model_dump_json(), media_type=JSON, headers={"cache-control": "no-store"})


def _described(feed: FollowedFeed) -> OwnFeed:
    answer = feed.answer
    unusable = answer is not None and answer.is_unusable
    return OwnFeed(
        key=feed.key,
        url=feed.url,
        publisher=feed.name,
        title=feed.title,
        site=feed.site,
        folder=feed.folder,
        section=feed.section,
        status=_status(feed),
        problem=feed.error or (f"It {answer}." if unusable else None),
        last_answer_at=feed.fetched_at,
        next_at=None if feed.paused or feed.ended else feed.due_at,
        taken=None if answer is None else answer.taken,
        refused=None if answer is None else answer.refused,
        reasons=() if answer is None else tuple(map(str, answer.refusals)),
        pictures=feed.pictures,
        full_text=feed.full_text,
    )


def _status(feed: FollowedFeed) -> FeedStatus:
    if feed.ended:
        return "ended"
    if feed.paused:
        return "paused"
    if feed.error or (feed.answer is not None and feed.answer.is_unusable):
        return "failing"
    return "new" if feed.fetched_at is None else "well"
