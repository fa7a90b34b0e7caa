"""Routes of the feed, its lists, the first visit and the browser's offline copy."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Form, HTTPException, Path, Query, Request
from fastapi.responses import JSONResponse, Response

from device_app.feed.held_lists import RENEWED_FORM
from device_app.feed.item import Feed, FeedItem
from device_app.feed.more import ADDED
from device_app.feed.preference_reader import named
from device_app.feed.reasons import follow_reason
from device_app.pages.feed_management import WORDS as FEED_WORDS
from device_app.pages.openapi import answers, form, page
from device_app.pages.renderer import BACK_CHARS, WORDS, PageRenderer, answer_form, minutes_to_read, see_other
from device_app.pages.training_pages import ONE_ROUND_EPSILON
from device_app.reports.modes import MODES
from device_app.settings import PrivacySettings
from device_app.view_models.explore import regrouped
from protocol.ids import NewsId
from protocol.news import NewsCard
from protocol.own_feeds import NEWEST, Preparation
from protocol.popularity import POPULAR_LIMIT

Allowance = Literal["reports", "counting", "training"]
FRESH_SHOWN = 120
FRESH_PAGE = 30
"""Cards per page of Fresh; this keeps its HTML below 80 kB."""
LIST_PAGE = 30
"""Cards per page of Popular, Following and Saved."""
LIST_PAGES = 10_000
SAVED_HELD = timedelta(minutes=15)
"""How long a story that is no longer saved keeps its place in Saved.

It leaves at the first visit after this time, or once another story is saved.
"""
EXPLORE_SHOWN, SECTIONS_SHOWN = 3, 24
"""Explore shows three stories each of 24 sections and only names the others.

This keeps it below 80 kB.
"""
SEEN_AT_ONCE = 100
"""Maximum number of stories in one request of a page's script; no feed has more."""
ListName = Annotated[str, Form(pattern=f"^(?:{RENEWED_FORM})$")]
FeedId = Annotated[str, Path(max_length=80)]
CARD_RHYTHM = ("", "", "", "brief", "brief", "brief", "wide", "", "", "", "half", "half", "brief", "brief", "brief")
"""The repeating shapes of a page's cards, which make a long page look like a newspaper."""


def router(renderer: PageRenderer) -> APIRouter:
    """Return the routes of the pages a reader starts from."""
    device = renderer.device
    routes = renderer.router()

    @routes.get("/", **page(303))
    def for_you(request: Request) -> Response:
        own = device.own_server
        if own is not None and own.listed is not None and not own.feeds():
            return see_other("/feeds/start")
        if device.reading.preparing is not None:
            return newest_first(request, device.reading.preparing)
        status = device.status()
        if not status.own_feeds and status.chosen_sections is None and status.clicks == 0:
            return see_other("/welcome")
        return page_of(request, device.reading.feed())

    def newest_first(request: Request, preparing: Preparation) -> Response:
        """Show the newest stories in order of time, before anything can rank them."""
        cards = device.reading.newest(NEWEST)
        return renderer.cards(
            request,
            "newest",
            spans=by_span(cards, datetime.now(UTC)),
            preparing=preparing_words(preparing, bool(cards)),
        )

    def page_of(request: Request, feed: Feed) -> Response:
        offer, path = device.reading.offer(feed), device.reading.page_path(feed.feed_id)
        return renderer.cards(request, "for_you", feed=feed, offer=offer, path=path, came=offer.came, **_columns(feed))

    @routes.get("/page/{feed_id}", **page(404))
    def page_before(request: Request, feed_id: FeedId) -> Response:
        feed = device.reading.page(feed_id)
        if feed is None:
            raise HTTPException(404, "This page of your feed is no longer kept")
        return page_of(request, feed)

    @routes.post("/seen", status_code=204, response_class=Response, responses=answers(204))
    def seen(
        feed: Annotated[str, Form(min_length=1, max_length=80)],
        news: Annotated[list[NewsId], Form(max_length=SEEN_AT_ONCE)] = [],  # noqa: B006
    ) -> Response:
        device.reading.view(feed, news)
        return Response(status_code=204)

    @routes.post("/feed/refresh", **form())
    def refresh() -> Response:
        feed = device.reading.feed(refresh=True)
        return see_other("/", None if feed.mode == "offline" else "refreshed")

    @routes.post("/feed/more", **form(204, 404))
    def more(request: Request, feed: Annotated[str, Form(min_length=1, max_length=80)]) -> Response:
        longer = device.reading.more(feed)
        if longer is None:
            raise HTTPException(404, "This page of your feed is no longer kept")
        added = longer.in_slot("more")
        first = added[-ADDED:][0].card.id if added else None
        return answer_form(request, device.reading.page_path(feed) + (f"#n-{first}" if first else ""))

    @routes.get("/fresh", **page())
    def fresh(request: Request, page: Annotated[int, Query(ge=1, le=FRESH_SHOWN // FRESH_PAGE)] = 1) -> Response:
        cards = {card.id: card for each in device.reading.explore() if each.stance != "block" for card in each.cards}
        newest = sorted(cards.values(), key=lambda card: (card.dated, card.published_at), reverse=True)
        held = device.lists.hold("fresh", one_per_event(newest)[:FRESH_SHOWN])
        upto = page * FRESH_PAGE
        shown = held.cards[upto - FRESH_PAGE : upto]
        spans = by_span(shown, held.made_at)
        older = page + 1 if len(held.cards) > upto else None
        return renderer.cards(
            request, "fresh", spans=spans, shown=shown, held=held, came=held.came, page=page, older=older
        )

    @routes.get("/popular", **page())
    def popular(request: Request, page: Annotated[int, Query(ge=1, le=-(-POPULAR_LIMIT // LIST_PAGE))] = 1) -> Response:
        held = device.lists.hold("popular", device.reading.popular() if device.release() is not None else ())
        return renderer.cards(
            request,
            "popular",
            held=held,
            came=held.came,
            counted_at=device.reading.popular_since(),
            **part(held.cards, page),
        )

    @routes.get("/explore", **page())
    def explore(request: Request) -> Response:
        listed = [card for each in device.reading.explore() for card in one_per_event(each.cards)[:EXPLORE_SHOWN]]
        held = device.lists.hold("explore", listed)
        sections = regrouped(held.cards, device.interests.stances())
        return renderer.cards(
            request, "explore", listed=sections[:SECTIONS_SHOWN], others=sections[SECTIONS_SHOWN:], held=held,
            came=held.came,
        )  # fmt: skip

    @routes.get("/following", **page())
    def following(request: Request, page: Annotated[int, Query(ge=1, le=LIST_PAGES)] = 1) -> Response:
        followed = named(pair for pair, stance in device.interests.stances().items() if stance == "follow")
        with device.lists.still():
            held = device.lists.hold_ids("following", device.whole_pool.following())
            upto = page * LIST_PAGE
            listed = device.whole_pool.cards_of(held.ids[upto - LIST_PAGE : upto])
            device.whole_pool.show(listed)
        # A story whose name is no longer followed leaves the list at once.
        reasons = {card.id: reason for card in listed if (reason := follow_reason(card, followed)) is not None}
        return renderer.cards(
            request, "following", follows=bool(followed), reasons=reasons, held=held,
            came=device.lists.came(held, listed), cards=[card for card in listed if card.id in reasons],
            page=page, older=page + 1 if len(held.ids) > upto else None,
        )  # fmt: skip

    @routes.post("/list/refresh", **form())
    def refresh_list(name: ListName, back: Annotated[str, Form(max_length=BACK_CHARS)] = "/") -> Response:
        device.lists.renew(name)
        return see_other(back)

    @routes.get("/saved", **page())
    def saved(request: Request, page: Annotated[int, Query(ge=1, le=LIST_PAGES)] = 1) -> Response:
        """Show saved stories.

        One that is no longer saved keeps its place for a while, so that the reader can undo it.
        """
        cards = device.library.saved()
        held = device.lists.hold("saved", cards)
        if page == 1 and (held.new or datetime.now(UTC) - held.made_at > SAVED_HELD):
            device.lists.renew("saved")
            held = device.lists.hold("saved", cards)
        return renderer.cards(request, "saved", count=len(cards), **part(held.cards, page))

    @routes.get("/kept", **page())
    def kept(request: Request) -> Response:
        """Show the feed with its texts, for the browser's offline copy; record and request nothing.

        Stories without a text on this device are left out. The copy contains neither reasons nor reading history, so
        that no deletion has to reach into a browser's copy; an erase removes all of it.
        """
        feed = device.reading.feed()
        articles = [device.reading.open(item.card.id, feed.feed_id, clicked=False) for item in feed.items]
        stories = [
            (each, minutes_to_read(each), renderer.text_of(each)) for each in articles if each.ending != "absent"
        ]
        return renderer.page(request, "kept", feed=feed, stories=stories)

    @routes.get("/pulse")
    def pulse() -> Response:
        status = device.status()
        stand = sorted({alert.loop for alert in status.alerts if not alert.passing})
        pulse_values: dict[str, object] = {"online": status.online, "alerts": stand}
        if device.own_server is not None:
            preparing = device.reading.preparing
            pulse_values["preparing"] = None if preparing is None else preparing_words(preparing, stories=True)
        return JSONResponse(pulse_values)

    @routes.get("/welcome", **page())
    def welcome(request: Request) -> Response:
        status = device.status()
        chosen = status.chosen_sections or ()
        sections = sorted({each.section for each in device.reading.explore()} | set(chosen))
        first = status.chosen_sections is None and status.clicks == 0
        privacy = device.privacy.overview()
        allowed = allowed_by(privacy.settings) if first else ()
        worth = next((mode.in_short for mode in privacy.modes if mode.name == privacy.settings.mode), "")
        return renderer.page(
            request,
            "welcome",
            sections=sections,
            chosen=chosen,
            first=first,
            allowed=allowed,
            worth=worth,
            privacy=privacy,
            first_use=None,  # shown only by a page that is itself the device, since a site can clear its storage
        )

    @routes.post("/welcome", **form())
    def choose(
        section: Annotated[list[str], Form(max_length=200)] = [],  # noqa: B006
        skip: Annotated[str, Form()] = "",
        allow: Annotated[list[Allowance], Form(max_length=3)] = [],  # noqa: B006
        first: Annotated[str, Form()] = "",
    ) -> Response:
        changes = allowing(frozenset(allow), device.privacy.overview().settings) if first else {}
        if changes:
            device.privacy.change(**changes)
        device.interests.choose_sections(() if skip else tuple(section))
        device.reading.feed(refresh=True)
        return see_other("/")

    return routes


def preparing_words(preparing: Preparation, stories: bool) -> str:
    """Return the text for a page while the first release is being prepared. stories: whether there are any yet."""
    if preparing.trouble is not None:
        return FEED_WORDS("reading_failed", why=preparing.trouble)
    if not stories:
        return FEED_WORDS("waiting")
    if not preparing.step:
        return FEED_WORDS("reading_soon")
    step = preparing.step[0].lower() + preparing.step[1:]
    if preparing.total is None:
        return FEED_WORDS("reading", step=step)
    return FEED_WORDS("reading_part", step=step, done=preparing.done, total=preparing.total)


def part(cards: Sequence[NewsCard], page: int) -> dict[str, Any]:
    """Return the cards of one page of a list, its number, and the next page's number or None."""
    upto = page * LIST_PAGE
    return {"cards": cards[upto - LIST_PAGE : upto], "page": page, "older": page + 1 if len(cards) > upto else None}


def one_per_event(cards: Sequence[NewsCard]) -> list[NewsCard]:
    """Return the cards, keeping only the first of several about the same event."""
    first = {card.story: card.id for card in reversed(cards) if card.story}
    return [card for card in cards if not card.story or first[card.story] == card.id]


def batched(items: Sequence[FeedItem], size: int) -> list[Sequence[FeedItem]]:
    """Return the items in runs of `size`; the last may be shorter."""
    return [items[first : first + size] for first in range(0, len(items), size)]


def _columns(feed: Feed) -> dict[str, Any]:
    """Return the items of a feed by their place on the page."""
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
    """Return what these settings allow to be sent."""
    stands: dict[Allowance, bool] = {
        "reports": MODES[settings.mode].finds == "server",
        "counting": settings.counting,
        "training": settings.training,
    }
    return frozenset(name for name, on in stands.items() if on)


def allowing(allowed: frozenset[Allowance], before: PrivacySettings) -> dict[str, Any]:
    """Return the changed settings that allow exactly these things to be sent.

    Leaves switches that are already right unchanged.
    """
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
    """Return each item with the shape of its card; the last row is widened to leave no gap."""
    shapes = [CARD_RHYTHM[at % len(CARD_RHYTHM)] for at in range(len(items))]
    sixths = [{"wide": 6, "half": 3}.get(shape, 2) for shape in shapes]
    over = sum(sixths) % 6
    if over in (2, 3):
        shapes[-1] = "wide"
    elif over == 4:
        shapes[-2:] = ["half", "half"]
    return list(zip(items, shapes, strict=True))


def threads(items: Iterable[FeedItem]) -> list[list[FeedItem]]:
    """Return the developing stories, each with its items, in feed order."""
    return [list(group) for _, group in groupby(items, key=lambda item: item.card.story or item.card.id)]


def by_span(cards: Iterable[NewsCard], now: datetime) -> list[tuple[str, list[NewsCard]]]:
    """Return cards (newest first) grouped into the last hour, six hours, day, and before that."""

    spans = WORDS.table("spans")

    def span(card: NewsCard) -> str:
        since = now - card.counted_at
        if since < timedelta(hours=1):
            return spans["hour"]
        if since < timedelta(hours=6):
            return spans["six_hours"]
        return spans["day" if since < timedelta(days=1) else "before"]

    return [(label, list(group)) for label, group in groupby(cards, key=span)]
