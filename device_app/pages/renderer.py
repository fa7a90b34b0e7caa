"""Sets the reader's pages: templates, the words and figures they use, and the answers the routes give."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Coroutine, Mapping
from datetime import UTC, datetime
from html import escape
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote, urlencode, urlsplit

from fastapi import APIRouter, Path, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from fastapi.routing import APIRoute
from jinja2 import Environment, FunctionLoader, StrictUndefined
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from device_app import figures
from device_app.alerts import LoopAlert
from device_app.errors import BackendUnreachable, DeviceError, NewsNotHere, StoreBroken
from device_app.feed.item import Article
from device_app.logs import fault_in_words
from device_app.pages.art.colours import section_hue
from device_app.pages.assets import read_assets, web_folder
from device_app.pages.openapi import refusals
from device_app.prose import Prose, read_templates
from device_app.view_models.latency import stage_words
from device_app.view_models.status import StatusView
from device_app.wire.news import NewsCard

if TYPE_CHECKING:
    from device_app.device import Device

log = logging.getLogger(__name__)

WORDS = Prose("device_app.pages", "words.toml")

RowId = Annotated[int, Path(ge=1, le=2**63 - 1)]
"""An id in the device's database, as part of an address: SQLite counts in 64 bits."""
BACK_CHARS = 3_000
"""Longest address that a form leads back to: a search of 200 characters of any script, each written as up to 12."""
ERASE_PATH = "/privacy/erase"
SectionName = Annotated[str, Path(max_length=80)]
"""A section as part of an address, no longer than a card's."""

_TONES = {"green": "good", "weak": "due", "amber": "due", "red": "bad"}
YOUR_PAGES = frozenset(
    ("/you", "/interests", "/interests/history", "/privacy", "/training", "/settings", "/latency", "/searches")
)
"""Addresses of the pages that lie under You."""
KEPT = ("clicks", "all", "sources", "views", "lasts")
"""What pages say of where everything is kept; a page that is the device says its own in their places."""


class PageRenderer:
    """Renders templates for one device. Every page gets the shield and the thin line from `Device.status`."""

    def __init__(self, device: Device) -> None:
        self.device = device
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
            ms=figures.milliseconds, size=figures.size, number=figures.number, plural=figures.plural, slug=slug,
            typed=figures.typed, exact_clock=_exact_clock, span=_span, of_stage=stage_words,
            path_of=_path_of, host_of=lambda url: urlsplit(url).netloc,
            age=lambda then: figures.age(then, datetime.now(UTC)), clock=_clock, day_and_clock=_day_and_clock,
            iso=datetime.isoformat, grouped="{:,}".format, day_month="{:%-d %b}".format,
            section_name=section_name, hue=lambda section: f"hue-{section_hue(section)}", art_path=art_path,
            picture_path=lambda card: device.parts.stores.pictures.path(card.id),
        )  # fmt: skip

    def router(self) -> APIRouter:
        """Routes whose errors become a page: what happened, and the way back."""
        renderer = self

        class PageRoute(APIRoute):
            """One route of the reader's pages."""

            def __init__(self, *args: Any, **kwargs: Any) -> None:
                super().__init__(*args, **kwargs)
                self.responses = refusals(self) | self.responses

            def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
                """Answer, and turn a DeviceError, a wrong form or a thing that isn't there into a page."""
                answer = super().get_route_handler()

                async def handle(request: Request) -> Response:
                    before = renderer.device.parts.serving.erasures
                    try:
                        made = await answer(request)
                        erased = renderer.device.parts.serving.erasures != before
                        # what was made of what is erased now is shown no more
                        return see_other("/welcome") if erased and self.path != ERASE_PATH else made
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
                        if first["loc"][0] == "path":  # an address that no page of ours links to
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
                        # What is read from a damaged page can break anything; anything else is a fault of our own.
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
        """A page that says what happened; a bare one where not even the page's own figures can be read."""
        try:
            return self.page(request, "problem", status_code=status_code, title=title, words=words)
        except Exception as failed:
            broken = failed if isinstance(failed, StoreBroken) else self.device.damage()
            if broken is None:
                log.error("the page that says so could not be made: %s", fault_in_words(failed))
            bare = f"<main><h1>{escape(title)}</h1><p>{escape(str(broken or WORDS('fault')))}</p></main>"
            return HTMLResponse(
                f'<!doctype html><html lang="en"><title>Ownfeed</title>{bare}</html>',
                status_code=500 if broken is None else 503,
            )

    def cards(self, request: Request, template: str, *, status_code: int = 200, **values: Any) -> HTMLResponse:
        """A page with cards of news: with what the reader opened, said of single stories, and hides."""
        device = self.device
        said = {
            "reactions": device.reactions(),
            "read": device.read_news(),
            "hides": frozenset(name for name, stance in device.stances().items() if stance == "block"),
            "came": frozenset(),
        }
        return self.page(request, template, status_code=status_code, **(said | values))

    def page(self, request: Request, template: str, *, status_code: int = 200, **values: Any) -> HTMLResponse:
        """A whole page from `web/templates/device/<template>.html`."""
        status = self.device.status()
        text = self.templates.get_template(f"device/{template}.html").render(
            here=request.url.path,
            here_path=request.url.path + (f"?{request.url.query}" if request.url.query else ""),
            said=WORDS.table("said").get(request.query_params.get("said", "")),
            status=status,
            shield=shield(status),
            newsroom=WORDS("own_feeds_server" if status.own_feeds else "server"),
            alerts=[alert_words(alert) for alert in status.alerts if not alert.passing],
            **values,
        )
        return HTMLResponse(text, status_code=status_code)


def shield(status: StatusView) -> Mapping[str, str]:
    """The shield's colour, its two words on how reports stand, and what stands behind them."""
    if status.own_feeds and status.shield == "green" and status.mode in ("none", "broadcast"):
        return {"tone": "good", "figure": WORDS("all_here"), "words": WORDS("all_here_long")}
    figures = WORDS.table("shield")
    standing = figures["red"] if status.shield == "red" else figures.get(status.mode, figures[status.shield])
    words = WORDS("training_on" if status.training else "training_off", shield=status.shield_words)
    return {"tone": _TONES[status.shield], "figure": standing, "words": words}


def alert_words(alert: LoopAlert) -> Mapping[str, str]:
    """What a page says of an error in the background, what once it is over, and its own words if not plain."""
    what, at = WORDS.table("loops")[alert.loop], _clock(alert.at)
    said = (
        WORDS("said_of", what=what, at=at, words=alert.words) if alert.plain else WORDS("fault_below", what=what, at=at)
    )
    over = WORDS("works_again", what=what)
    return {"loop": alert.loop, "said": said, "over": over, "exact": "" if alert.plain else alert.words}


def local_path(path: str, fallback: str = "/") -> str:
    """A path on this site to go back to; anything else becomes `fallback`."""
    return path if re.fullmatch(rf"/(?![/\\])[^\\\s\x00-\x1f]{{0,{BACK_CHARS - 1}}}", path) else fallback


def see_other(path: str, said: str | None = None) -> RedirectResponse:
    """Answer a form: go and look at `path`, which may say one of [said] in words.toml."""
    target = local_path(path)
    if said is not None:
        before, hash_mark, anchor = target.partition("#")
        target = f"{before}{'&' if '?' in before else '?'}said={said}{hash_mark}{anchor}"
    return RedirectResponse(target, status_code=303)


def answer_form(request: Request, back: str, said: str | None = None) -> Response:
    """204 to a script that only wants the deed done, a redirect to a form without script."""
    if request.headers.get("accept") == "application/json":
        return Response(status_code=204)
    return see_other(back, said)


def minutes_to_read(article: Article) -> int | None:
    """How long its text takes; None where it has none, or stops before the story does."""
    whole = article.paragraphs and article.ending == "whole"
    return figures.reading_minutes(" ".join(article.paragraphs)) if whole else None


def art_path(card: NewsCard) -> str:
    """The address of a card's drawn picture."""
    return f"/art/{quote(card.id)}.svg?" + urlencode({"section": card.section, "topic": card.topic})


def section_name(section: str) -> str:
    """A section or topic as a reader wants to see it: 'food-and-drink' -> 'Food and drink'."""
    words = re.sub(r"[-_]+", " ", section).strip() or "Other"
    return words[0].upper() + words[1:]


def slug(text: str) -> str:
    """A name as an anchor."""
    return "s-" + (re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "other")


def _clock(at: datetime) -> str:
    local = at.astimezone()
    today = datetime.now(UTC).astimezone().date()
    return f"{local:%H:%M}" if local.date() == today else f"{local:%-d %b %H:%M}"


def _path_of(url: str) -> str:
    parts = urlsplit(url)
    return parts.path + (f"?{parts.query}" if parts.query else "")


def _exact_clock(at: datetime) -> str:
    return f"{at.astimezone():%H:%M:%S}"


def _span(first: datetime, last: datetime) -> str:
    """'at 00:30', '00:30 to 00:31', with the day where it is not today."""
    start, end = _clock(first), _clock(last)
    return f"at {end}" if start == end else f"{start} to {last.astimezone():%H:%M}"


def _day_and_clock(at: datetime) -> str:
    return f"{at.astimezone():%A %-d %B %Y, %H:%M}"
