"""Renders the reader's pages: templates, their text and figures, and the routes' answers."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Coroutine, Mapping
from datetime import UTC, datetime
from html import escape
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlencode, urlsplit

from fastapi import APIRouter, Path, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from fastapi.routing import APIRoute
from jinja2 import Environment, FunctionLoader, StrictUndefined
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from device_app.alerts import LoopAlert
from device_app.errors import BackendUnreachable, DeviceError, NewsNotHere, StoreBroken
from device_app.feed.item import Article
from device_app.pages.art import picture_name, section_hue
from device_app.pages.assets import read_assets, web_folder
from device_app.pages.openapi import refusals
from device_app.pages.story_links import StoryLinks
from device_app.pages.story_text import ShownPicture, story_html
from device_app.process import fault_in_words
from device_app.view_models.latency import stage_words
from device_app.view_models.status import StatusView
from protocol import formatting
from protocol.news import NewsCard
from protocol.pictures import picture_size
from protocol.text_catalogue import TextCatalogue, read_templates

if TYPE_CHECKING:
    from device_app.device import Device

log = logging.getLogger(__name__)

WORDS = TextCatalogue("device_app.pages", "words.toml")

RowId = Annotated[int, Path(ge=1, le=2**63 - 1)]
"""An id in the device's database, as part of an address; SQLite ids have 64 bits."""
BACK_CHARS = 3_000
"""Longest address that a form can return to.

It fits a search of 200 characters, each encoded as up to 12.
"""
ERASE_PATH = "/privacy/erase"
SectionName = Annotated[str, Path(max_length=80)]
"""A section as part of an address, no longer than on a card."""

_TONES = {"green": "", "weak": "due", "amber": "due", "red": "bad"}
YOUR_PAGES = frozenset(
    (
        "/you",
        "/interests",
        "/interests/history",
        "/privacy",
        "/training",
        "/settings",
        "/latency",
        "/searches",
        "/rules",
    )
)
"""Addresses of the pages under You."""
KEPT = ("clicks", "all", "sources", "views", "lasts")
"""What pages say about where data is stored.

A page that is itself the device replaces these.
"""


class PageRenderer:
    """Renders templates for one device.

    Every page gets the shield and status line from `Device.status`.
    """

    def __init__(self, device: Device, links: StoryLinks) -> None:
        self.device = device
        self.links = links
        self.assets = read_assets()
        self.templates = Environment(
            loader=FunctionLoader(read_templates(web_folder("templates")).get),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self.templates.globals["asset"] = self.assets.path
        self.templates.globals["your_pages"] = YOUR_PAGES
        self.templates.globals["kept_where"] = {name: WORDS.table("kept")[name] for name in KEPT}
        self.templates.filters.update(
            ms=formatting.milliseconds, size=formatting.size, number=formatting.number, plural=formatting.plural,
            slug=slug, typed=formatting.typed, exact_clock=_exact_clock, span=_span, of_stage=stage_words,
            path_of=_path_of, without_scheme=_without_scheme, host_of=lambda url: urlsplit(url).netloc,
            age=lambda then: formatting.age(then, datetime.now(UTC)), clock=_clock, day_and_clock=_day_and_clock,
            iso=datetime.isoformat, grouped="{:,}".format, day_month="{:%-d %b}".format,
            section_name=section_name, hue=lambda section: f"hue-{section_hue(section)}", art_path=self.art_path,
            story_link=links.link,
            also_in=lambda card: device.reading.other_sources(card),
            picture_path=lambda card: device.parts.stores.pictures.path(card.id),
        )  # fmt: skip

    def art_path(self, card: NewsCard) -> str:
        """Return the address of a card's drawn picture."""
        return self.assets.path(f"art/{picture_name(card.section, card.id, card.topic)}.svg")

    def text_of(self, article: Article) -> str:
        """Return a story's text as HTML of its page."""
        pictures = self.device.parts.stores.pictures

        def here(number: int) -> ShownPicture | None:
            address = pictures.path(article.card.id, number)
            content = pictures.content(article.card.id, number) if address else None
            return ShownPicture(address, *picture_size(content)) if content else None

        return story_html(article.pieces, here)

    def router(self) -> APIRouter:
        """Return a router whose errors become a page that says what happened and leads back."""
        renderer = self

        class PageRoute(APIRoute):
            """One route of the reader's pages."""

            def __init__(self, *args: Any, **kwargs: Any) -> None:
                super().__init__(*args, **kwargs)
                self.responses = refusals(self) | self.responses

            def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
                """Return a handler that turns a DeviceError, an invalid form or a missing page into a page."""
                answer = super().get_route_handler()

                async def handle(request: Request) -> Response:
                    before = renderer.device.parts.serving.erasures
                    try:
                        response = await answer(request)
                        erased = renderer.device.parts.serving.erasures != before
                        # don't show a page that was made from data erased meanwhile
                        return see_other("/welcome") if erased and self.path != ERASE_PATH else response
                    except NewsNotHere as missing:
                        return await run_in_threadpool(
                            renderer.problem, request, 404, WORDS("story_gone_title"), str(missing)
                        )
                    except BackendUnreachable:
                        return await run_in_threadpool(
                            renderer.problem, request, 503, WORDS("not_now_title"), WORDS("unanswered")
                        )
                    except DeviceError as trouble:
                        return await run_in_threadpool(
                            renderer.problem, request, 503, WORDS("not_now_title"), str(trouble)
                        )
                    except RequestValidationError as wrong:
                        first = wrong.errors()[0]
                        if first["loc"][0] == "path":  # an address that none of our pages links to
                            return await run_in_threadpool(
                                renderer.problem, request, 404, WORDS("nowhere_title"), WORDS("nowhere")
                            )
                        words = WORDS("field_wrong", field=first["loc"][-1], what=first["msg"])
                        return await run_in_threadpool(renderer.problem, request, 422, WORDS("not_taken_title"), words)
                    except HTTPException as refused:
                        title = WORDS("nowhere_title" if refused.status_code == 404 else "not_read_title")
                        words = f"{refused.detail}."
                        return await run_in_threadpool(renderer.problem, request, refused.status_code, title, words)
                    except Exception as fault:
                        # A damaged database can break anything; any other exception is our own bug.
                        damaged = await run_in_threadpool(renderer.device.damage)
                        if damaged is None:
                            log.error("%s could not be answered: %s", self.path, fault_in_words(fault))
                            return await run_in_threadpool(
                                renderer.problem, request, 500, WORDS("fault_title"), WORDS("fault")
                            )
                        return await run_in_threadpool(
                            renderer.problem, request, 503, WORDS("not_now_title"), str(damaged)
                        )

                return handle

        return APIRouter(route_class=PageRoute)

    def problem(self, request: Request, status_code: int, title: str, words: str) -> HTMLResponse:
        """Return a page that says what happened.

        It is a minimal page if the figures shown on every page can't be read.
        """
        try:
            return self.page(request, "problem", status_code=status_code, title=title, words=words)
        except Exception as failed:
            broken = failed if isinstance(failed, StoreBroken) else self.device.damage()
            if broken is None:
                log.error("the error page could not be made: %s", fault_in_words(failed))
            bare = f"<main><h1>{escape(title)}</h1><p>{escape(str(broken or WORDS('fault')))}</p></main>"
            return HTMLResponse(
                f'<!doctype html><html lang="en"><title>Ownfeed</title>{bare}</html>',
                status_code=500 if broken is None else 503,
            )

    def cards(self, request: Request, template: str, *, status_code: int = 200, **values: Any) -> HTMLResponse:
        """Return a page with cards, including which stories the reader opened, reacted to or hides."""
        device = self.device
        defaults = {
            "reactions": device.library.reactions(),
            "read": device.library.read_news(),
            "hides": frozenset(name for name, stance in device.interests.stances().items() if stance == "block"),
            "came": frozenset(),
        }
        return self.page(request, template, status_code=status_code, **(defaults | values))

    def _marked(self, request: Request) -> dict[str, Any] | None:
        """Return the mark that this page offers to undo, or None."""
        batch = request.query_params.get("marked", "")
        stories = self.device.library.marked(int(batch)) if re.fullmatch(r"[0-9]{1,15}", batch) else 0
        if not stories:
            return None
        rest = [(name, value) for name, value in request.query_params.multi_items() if name not in ("marked", "said")]
        back = request.url.path + (f"?{urlencode(rest)}" if rest else "")
        return {"batch": batch, "stories": stories, "back": back}

    def page(self, request: Request, template: str, *, status_code: int = 200, **values: Any) -> HTMLResponse:
        """Return a whole page from `web/templates/device/<template>.html`."""
        status = self.device.status()
        text = self.templates.get_template(f"device/{template}.html").render(
            here=request.url.path,
            here_path=request.url.path + (f"?{request.url.query}" if request.url.query else ""),
            said=WORDS.table("said").get(request.query_params.get("said", "")),
            marked=self._marked(request),
            status=status,
            shield=shield(status),
            newsroom=WORDS("own_feeds_server" if status.own_feeds else "server"),
            alerts=[alert_words(alert) for alert in status.alerts if not alert.passing],
            **values,
        )
        return HTMLResponse(text, status_code=status_code)


def answer_mark(request: Request, back: str, batch: int) -> Response:
    """Return 204 to a script, else a redirect to a page that offers to undo this mark.

    batch: 0 if nothing was marked."""
    if request.headers.get("accept") == "application/json":
        return Response(status_code=204)
    if not batch:
        return see_other(back, "all_read")
    path, _, query = local_path(back).partition("#")[0].partition("?")
    parameters = [pair for pair in query.split("&") if pair and not pair.startswith(("marked=", "said="))]
    return RedirectResponse(f"{path}?{'&'.join([*parameters, f'marked={batch}'])}", status_code=303)


def shield(status: StatusView) -> Mapping[str, str]:
    """Return the status icon and its colour, its short label on the state of reports, and the explanation.

    A shield appears only while nothing is sent: while reports are sent, the icon is an arrow that leaves a box, without
    a colour.
    """
    nothing_leaves = status.shield == "green" and status.mode in ("none", "broadcast")
    if status.own_feeds and nothing_leaves:
        return {"icon": "shield", "tone": "good", "figure": WORDS("all_here"), "words": WORDS("all_here_long")}
    figures = WORDS.table("shield")
    standing = figures["red"] if status.shield == "red" else figures.get(status.mode, figures[status.shield])
    words = WORDS("training_on" if status.training else "training_off", shield=status.shield_words)
    icon = "shield" if nothing_leaves or status.shield == "red" else "shared"
    tone = "good" if nothing_leaves else _TONES[status.shield]
    return {"icon": icon, "tone": tone, "figure": standing, "words": words}


def alert_words(alert: LoopAlert) -> Mapping[str, str]:
    """Return a page's messages about a background error: the current one, and one for later.

    The second is shown once the error is over. The exact details are empty if the error's message is already a sentence
    for readers.
    """
    what, at = WORDS.table("loops")[alert.loop], _clock(alert.at)
    message = (
        WORDS("said_of", what=what, at=at, words=alert.words) if alert.plain else WORDS("fault_below", what=what, at=at)
    )
    over = WORDS("works_again", what=what)
    return {"loop": alert.loop, "said": message, "over": over, "exact": "" if alert.plain else alert.words}


def local_path(path: str) -> str:
    """Return the path if it is on this site, else that of the feed."""
    return path if re.fullmatch(rf"/(?![/\\])[^\\\s\x00-\x1f]{{0,{BACK_CHARS - 1}}}", path) else "/"


def see_other(path: str, message: str | None = None) -> RedirectResponse:
    """Answer a form with a redirect to `path`, which may show one of [said] in words.toml."""
    target = local_path(path)
    if message is not None:
        before, hash_mark, anchor = target.partition("#")
        target = f"{before}{'&' if '?' in before else '?'}said={message}{hash_mark}{anchor}"
    return RedirectResponse(target, status_code=303)


def answer_form(request: Request, back: str, message: str | None = None) -> Response:
    """Return 204 to a script that only wants the action done, else a redirect."""
    if request.headers.get("accept") == "application/json":
        return Response(status_code=204)
    return see_other(back, message)


def minutes_to_read(article: Article) -> int | None:
    """Return how many minutes the text takes; None if it is missing or incomplete."""
    whole = article.paragraphs and article.ending == "whole"
    return formatting.reading_minutes(" ".join(article.paragraphs)) if whole else None


def section_name(section: str) -> str:
    """Return a section or topic as a reader sees it: 'food-and-drink' -> 'Food and drink'."""
    words = re.sub(r"[-_]+", " ", section).strip() or "Other"
    return words[0].upper() + words[1:]


def slug(text: str) -> str:
    """Return a name in a form usable as an anchor."""
    return "s-" + (re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "other")


def _clock(at: datetime) -> str:
    local = at.astimezone()
    today = datetime.now(UTC).astimezone().date()
    return f"{local:%H:%M}" if local.date() == today else f"{local:%-d %b %H:%M}"


def _without_scheme(shown: str) -> str:
    """Return a feed's name; an address stands in for one without http:// and a final slash."""
    scheme, separator, rest = shown.partition("://")
    return rest.removesuffix("/") if separator and scheme in ("http", "https") else shown


def _path_of(url: str) -> str:
    parts = urlsplit(url)
    return parts.path + (f"?{parts.query}" if parts.query else "")


def _exact_clock(at: datetime) -> str:
    return f"{at.astimezone():%H:%M:%S}"


def _span(first: datetime, last: datetime) -> str:
    """Return 'at 00:30' or '00:30 to 00:31', with the day unless it is today."""
    start, end = _clock(first), _clock(last)
    return f"at {end}" if start == end else f"{start} to {last.astimezone():%H:%M}"


def _day_and_clock(at: datetime) -> str:
    return f"{at.astimezone():%A %-d %B %Y, %H:%M}"
