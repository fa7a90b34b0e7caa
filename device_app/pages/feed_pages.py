"""For you, Popular now, Fresh, Explore, Following, saved stories, and the first visit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Annotated, Any

from fastapi import APIRouter, Form, Request
from fastapi.responses import Response

from device_app.feed.item import Feed, FeedItem
from device_app.pages.openapi import form, page
from device_app.pages.renderer import PageRenderer, SectionName, see_other
from device_app.wire.news import NewsCard

FRESH_SHOWN = 90
CARD_RHYTHM = ("", "", "", "brief", "brief", "brief", "wide", "", "", "", "half", "half", "brief", "brief", "brief")
"""The shapes of a page's cards in turn, so that a long page reads like a newspaper and not like a wall of tiles."""


def router(renderer: PageRenderer) -> APIRouter:
    """The pages a reader starts from."""
    device = renderer.device
    routes = renderer.router()

    @routes.get("/", **page(303))
    def for_you(request: Request) -> Response:
        status = device.status()
        if status.chosen_sections is None and status.clicks == 0:
            return see_other("/welcome")
        feed = device.feed()
        return renderer.page(request, "for_you", feed=feed, reactions=device.reactions(), **_columns(feed))

    @routes.post("/feed/refresh", **form())
    def refresh() -> Response:
        feed = device.feed(refresh=True)
        return see_other("/", None if feed.mode == "offline" else "refreshed")

    @routes.get("/fresh", **page())
    def fresh(request: Request) -> Response:
        cards = {card.id: card for each in device.explore() if each.stance != "block" for card in each.cards}
        newest = sorted(cards.values(), key=lambda card: card.published_at, reverse=True)[:FRESH_SHOWN]
        spans = by_span(newest, datetime.now(UTC))
        return renderer.page(request, "fresh", spans=spans, reactions=device.reactions())

    @routes.get("/popular", **page())
    def popular(request: Request) -> Response:
        cards = device.popular() if device.release() is not None else ()
        counted_at = device.popular_since()
        return renderer.page(request, "popular", cards=cards, counted_at=counted_at, reactions=device.reactions())

    @routes.get("/explore", **page())
    def explore(request: Request) -> Response:
        return renderer.page(request, "explore", listed=device.explore(), only=None, reactions=device.reactions())

    @routes.get("/explore/{section}", **page(404))
    def explore_section(request: Request, section: SectionName) -> Response:
        listed = [each for each in device.explore() if each.section == section]
        return renderer.page(
            request,
            "explore",
            listed=listed,
            only=section,
            reactions=device.reactions(),
            status_code=200 if listed else 404,
        )

    @routes.get("/following", **page())
    def following(request: Request) -> Response:
        items = device.following() if device.release() is not None else ()
        return renderer.page(request, "following", items=items, reactions=device.reactions(), feed_id=None)

    @routes.get("/saved", **page())
    def saved(request: Request) -> Response:
        return renderer.page(request, "saved", cards=device.saved(), reactions=device.reactions())

    @routes.get("/welcome", **page())
    def welcome(request: Request) -> Response:
        chosen = device.status().chosen_sections or ()
        sections = sorted({each.section for each in device.explore()} | set(chosen))
        return renderer.page(request, "welcome", sections=sections, chosen=chosen)

    @routes.post("/welcome", **form())
    def choose(
        section: Annotated[list[str], Form(max_length=200)] = [],  # noqa: B006
        skip: Annotated[str, Form()] = "",
    ) -> Response:
        device.choose_sections(() if skip else tuple(section))
        return see_other("/")

    return routes


def _columns(feed: Feed) -> dict[str, Any]:
    """Where the items of a feed stand on the page."""
    following = feed.in_slot("following")
    main = [item for item in feed.items if item.slot == "for_you" or (item.slot == "following" and len(following) > 4)]
    return {
        "lead": feed.lead,
        "cards": with_shapes(main),
        "threads": threads(feed.in_slot("developing")),
        "fresh": feed.in_slot("fresh"),
        "explore": feed.in_slot("explore"),
        "following": following if len(following) <= 4 else (),
    }


def with_shapes(items: Sequence[FeedItem]) -> list[tuple[FeedItem, str]]:
    """Each item with the shape of its card; the last row is filled out where a lone card would leave a hole."""
    shapes = [CARD_RHYTHM[at % len(CARD_RHYTHM)] for at in range(len(items))]
    sixths = [{"wide": 6, "half": 3}.get(shape, 2) for shape in shapes]
    over = sum(sixths) % 6
    if over in (2, 3):
        shapes[-1] = "wide"
    elif over == 4:
        shapes[-2:] = ["half", "half"]
    return list(zip(items, shapes, strict=True))


def threads(items: Iterable[FeedItem]) -> list[list[FeedItem]]:
    """Developing stories, each with its items, in feed order."""
    return [list(group) for _, group in groupby(items, key=lambda item: item.card.story or item.card.id)]


def by_span(cards: Iterable[NewsCard], now: datetime) -> list[tuple[str, list[NewsCard]]]:
    """Cards (newest first) under 'The last hour', 'The last six hours', 'The last day', 'Before that'."""

    def span(card: NewsCard) -> str:
        since = now - card.published_at
        if since < timedelta(hours=1):
            return "The last hour"
        if since < timedelta(hours=6):
            return "The last six hours"
        return "The last day" if since < timedelta(days=1) else "Before that"

    return [(label, list(group)) for label, group in groupby(cards, key=span)]
