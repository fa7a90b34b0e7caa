"""For you, Popular now, Fresh, Explore, Following, saved stories, the first visit, and what a browser keeps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Form, HTTPException, Path, Query, Request
from fastapi.responses import JSONResponse, Response

from device_app.feed.following import FOLLOWING_LIMIT
from device_app.feed.held_lists import RENEWED_FORM
from device_app.feed.item import Feed, FeedItem
from device_app.feed.more import ADDED
from device_app.pages.openapi import answers, form, page
from device_app.pages.renderer import BACK_CHARS, WORDS, PageRenderer, answer_form, minutes_to_read, see_other
from device_app.pages.training_pages import ONE_ROUND_EPSILON
from device_app.privacy.modes import MODES
from device_app.settings import PrivacySettings
from device_app.view_models.explore import regrouped
from device_app.wire.ids import NewsId
from device_app.wire.news import NewsCard
from device_app.wire.popularity import POPULAR_LIMIT

Allowance = Literal["reports", "counting", "training"]
FRESH_SHOWN = 120
FRESH_PAGE = 40
"""Cards of one page of Fresh, whose HTML stays below 80 kB so."""
LIST_PAGE = 30
"""Cards of one page of Popular, Following and Saved."""
SAVED_PAGES = 10_000
SAVED_HELD = timedelta(minutes=15)
"""What is saved no longer goes from its place at a visit after this time, or once something else is saved."""
EXPLORE_SHOWN, SECTIONS_SHOWN = 3, 24
"""Of how many sections Explore shows how many stories each; further ones are named, so that it stays below 80 kB."""
SEEN_AT_ONCE = 100
"""Most stories of one post by a page's script; a feed has no more."""
ListName = Annotated[str, Form(pattern=f"^(?:{RENEWED_FORM})$")]
FeedId = Annotated[str, Path(max_length=80)]
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
        return page_of(request, device.feed())

    def page_of(request: Request, feed: Feed) -> Response:
        offer, path = device.offer(feed), device.page_path(feed.feed_id)
        return renderer.cards(request, "for_you", feed=feed, offer=offer, path=path, came=offer.came, **_columns(feed))

    @routes.get("/page/{feed_id}", **page(404))
    def page_before(request: Request, feed_id: FeedId) -> Response:
        feed = device.page(feed_id)
        if feed is None:
            raise HTTPException(404, "This page of your feed is no longer kept")
        return page_of(request, feed)

    @routes.post("/seen", status_code=204, response_class=Response, responses=answers(204))
    def seen(
        feed: Annotated[str, Form(min_length=1, max_length=80)],
        news: Annotated[list[NewsId], Form(max_length=SEEN_AT_ONCE)] = [],  # noqa: B006
    ) -> Response:
        device.view(feed, news)
        return Response(status_code=204)

    @routes.post("/feed/refresh", **form())
    def refresh() -> Response:
        feed = device.feed(refresh=True)
        return see_other("/", None if feed.mode == "offline" else "refreshed")

    @routes.post("/feed/more", **form(204, 404))
    def more(request: Request, feed: Annotated[str, Form(min_length=1, max_length=80)]) -> Response:
        longer = device.more(feed)
        if longer is None:
            raise HTTPException(404, "This page of your feed is no longer kept")
        added = longer.in_slot("more")
        first = added[-ADDED:][0].card.id if added else None
        return answer_form(request, device.page_path(feed) + (f"#n-{first}" if first else ""))

    @routes.get("/fresh", **page())
    def fresh(request: Request, page: Annotated[int, Query(ge=1, le=FRESH_SHOWN // FRESH_PAGE)] = 1) -> Response:
        cards = {card.id: card for each in device.explore() if each.stance != "block" for card in each.cards}
        newest = sorted(cards.values(), key=lambda card: card.published_at, reverse=True)[:FRESH_SHOWN]
        held = device.lists.hold("fresh", newest)
        upto = page * FRESH_PAGE
        spans = by_span(held.cards[upto - FRESH_PAGE : upto], held.made_at)
        older = page + 1 if len(held.cards) > upto else None
        return renderer.cards(request, "fresh", spans=spans, held=held, came=held.came, page=page, older=older)

    @routes.get("/popular", **page())
    def popular(request: Request, page: Annotated[int, Query(ge=1, le=-(-POPULAR_LIMIT // LIST_PAGE))] = 1) -> Response:
        held = device.lists.hold("popular", device.popular() if device.release() is not None else ())
        return renderer.cards(
            request, "popular", held=held, came=held.came, counted_at=device.popular_since(), **part(held.cards, page)
        )

    @routes.get("/explore", **page())
    def explore(request: Request) -> Response:
        listed = [card for each in device.explore() for card in each.cards[:EXPLORE_SHOWN]]
        held = device.lists.hold("explore", listed)
        sections = regrouped(held.cards, device.stances())
        return renderer.cards(
            request, "explore", listed=sections[:SECTIONS_SHOWN], others=sections[SECTIONS_SHOWN:], held=held,
            came=held.came,
        )  # fmt: skip

    @routes.get("/following", **page())
    def following(request: Request, page: Annotated[int, Query(ge=1, le=FOLLOWING_LIMIT // LIST_PAGE)] = 1) -> Response:
        items = device.following() if device.release() is not None else ()
        held = device.lists.hold("following", [item.card for item in items])
        reasons = {item.card.id: item for item in items}
        # What is no longer among the newest keeps its place; what is no longer followed doesn't.
        followed = {name for name, stance in device.stances().items() if stance == "follow"}
        cards = [
            card
            for card in held.cards
            if followed & {("topic", card.topic), ("section", card.section), ("publisher", card.publisher)}
        ]
        return renderer.cards(
            request, "following", follows=bool(followed), reasons=reasons, held=held, came=held.came,
            **part(cards, page),
        )  # fmt: skip

    @routes.post("/list/refresh", **form())
    def refresh_list(name: ListName, back: Annotated[str, Form(max_length=BACK_CHARS)] = "/") -> Response:
        device.lists.renew(name)
        return see_other(back)

    @routes.get("/saved", **page())
    def saved(request: Request, page: Annotated[int, Query(ge=1, le=SAVED_PAGES)] = 1) -> Response:
        """What is saved no longer keeps its place for a while, so that pressing again undoes it."""
        cards = device.saved()
        held = device.lists.hold("saved", cards)
        if page == 1 and (held.new or datetime.now(UTC) - held.made_at > SAVED_HELD):
            device.lists.renew("saved")
            held = device.lists.hold("saved", cards)
        return renderer.cards(request, "saved", count=len(cards), **part(held.cards, page))

    @routes.get("/kept", **page())
    def kept(request: Request) -> Response:
        """Nothing is recorded, and nothing is asked of anybody: a story whose text isn't here is left out.

        Neither reasons nor what was read stand in it, so that no deletion has to reach into a browser's copy; an erase
        takes the whole of it.
        """
        feed = device.feed()
        articles = [device.open(item.card.id, feed.feed_id, clicked=False) for item in feed.items]
        stories = [(each, minutes_to_read(each)) for each in articles if each.ending != "absent"]
        return renderer.page(request, "kept", feed=feed, stories=stories)

    @routes.get("/pulse")
    def pulse() -> Response:
        status = device.status()
        stand = sorted({alert.loop for alert in status.alerts if not alert.passing})
        return JSONResponse({"online": status.online, "alerts": stand})

    @routes.get("/welcome", **page())
    def welcome(request: Request) -> Response:
        status = device.status()
        chosen = status.chosen_sections or ()
        sections = sorted({each.section for each in device.explore()} | set(chosen))
        first = status.chosen_sections is None and status.clicks == 0
        privacy = device.privacy()
        allowed = allowed_by(privacy.settings) if first else ()
        worth = next((mode.worth for mode in privacy.modes if mode.name == privacy.settings.mode), "")
        return renderer.page(
            request,
            "welcome",
            sections=sections,
            chosen=chosen,
            first=first,
            allowed=allowed,
            worth=worth,
            privacy=privacy,
        )

    @routes.post("/welcome", **form())
    def choose(
        section: Annotated[list[str], Form(max_length=200)] = [],  # noqa: B006
        skip: Annotated[str, Form()] = "",
        allow: Annotated[list[Allowance], Form(max_length=3)] = [],  # noqa: B006
        first: Annotated[str, Form()] = "",
    ) -> Response:
        changes = allowing(frozenset(allow), device.privacy().settings) if first else {}
        if changes:
            device.set_privacy(**changes)
        device.choose_sections(() if skip else tuple(section))
        device.feed(refresh=True)
        return see_other("/")

    return routes


def part(cards: Sequence[NewsCard], page: int) -> dict[str, Any]:
    """The thirty cards of one page of a list, its number, and that of the page below it where there is one."""
    upto = page * LIST_PAGE
    return {"cards": cards[upto - LIST_PAGE : upto], "page": page, "older": page + 1 if len(cards) > upto else None}


def batched(items: Sequence[FeedItem], size: int) -> list[Sequence[FeedItem]]:
    """In runs of so many, the last perhaps shorter."""
    return [items[first : first + size] for first in range(0, len(items), size)]


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
        "batches": batched(feed.in_slot("more"), ADDED),
    }


def allowed_by(settings: PrivacySettings) -> frozenset[Allowance]:
    """What these settings let leave."""
    stands: dict[Allowance, bool] = {
        "reports": MODES[settings.mode].finds == "server",
        "counting": settings.counting,
        "training": settings.training,
    }
    return frozenset(name for name, on in stands.items() if on)


def allowing(allowed: frozenset[Allowance], before: PrivacySettings) -> dict[str, Any]:
    """The changes that let these leave and nothing else; a switch that stands so already is left alone."""
    changes: dict[str, Any] = {}
    for name in allowed ^ allowed_by(before):
        if name == "reports":
            changes["mode"] = PrivacySettings().mode if name in allowed else "none"
        else:
            changes[name] = name in allowed
    if changes.get("training") and not before.epsilon_per_day_training:
        changes["epsilon_per_day_training"] = ONE_ROUND_EPSILON
    return changes


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

    spans = WORDS.table("spans")

    def span(card: NewsCard) -> str:
        since = now - card.published_at
        if since < timedelta(hours=1):
            return spans["hour"]
        if since < timedelta(hours=6):
            return spans["six_hours"]
        return spans["day" if since < timedelta(days=1) else "before"]

    return [(label, list(group)) for label, group in groupby(cards, key=span)]
