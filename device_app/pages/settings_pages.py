"""Routes of You and Settings: what may be sent, switches, hidden names, export and erase."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Form, Request, UploadFile
from fastapi.encoders import jsonable_encoder
from fastapi.responses import JSONResponse, Response
from pydantic import ValidationError

from device_app.errors import ExportRefused
from device_app.pages.app_pages import APPS
from device_app.pages.feed_management import MANAGE
from device_app.pages.feed_management import WORDS as FEED_WORDS
from device_app.pages.lan import THROUGH_LAN
from device_app.pages.openapi import form, page
from device_app.pages.renderer import BACK_CHARS, ERASE_PATH, WORDS, PageRenderer, section_name, see_other
from device_app.privacy.settings import ModeName
from device_app.settings import PrivacySettings
from device_app.store.exported import LIMIT_BYTES
from device_app.view_models.privacy import PrivacyView
from protocol.formatting import plural

ERASE_WORD = "erase"
TRAINING = frozenset(("training", "epsilon_per_day_training", "epsilon_lifetime_training"))
"""Training has its own consent, so no level switches it on."""
_USUAL = {name: value for name, value in PrivacySettings().model_dump().items() if name not in TRAINING}
LEVELS: dict[str, dict[str, Any]] = {
    "off": {"mode": "none", "counting": False, "training": False},
    "balanced": _USUAL,
    "strict": {"mode": "broadcast", "counting": False, "training": False},
}
"""What each level sets. Balanced is a new device's default, training aside."""
LEVEL_NAMES = {"off": "Off", "balanced": "Balanced", "strict": "Strict", "custom": "Custom"}


def router(renderer: PageRenderer) -> APIRouter:
    """Return the routes of You and Settings, and of their forms."""
    device = renderer.device
    routes = renderer.router()

    def whole(request: Request, problem: str | None = None, switches: bool = False) -> Response:
        view = device.privacy.overview()
        hidden = sorted(each for each, stance in device.interests.stances().items() if stance == "block")
        return renderer.page(
            request, "settings", privacy=view, problem=problem, erase_word=ERASE_WORD, level=level_of(view.own),
            unusable=unusable(view), switches_open=switches, hidden=hidden, unwanted=device.library.unwanted(),
            pictures_shown=device.parts.stores.pictures.shown(),
            rare_first=device.interests.wants_rare_first(), tools=WORDS.table("tools"),
            first_use=None,  # shown only by a page that is itself the device, since a site can clear its storage
            status_code=422 if problem else 200,
        )  # fmt: skip

    def feed_places() -> list[tuple[str, str, str]]:
        if device.own_server is None:
            return []
        feeds = device.own_server.feeds()
        bad = sum(one.status in ("failing", "ended") for one in feeds)
        trouble = FEED_WORDS("trouble", count=bad) if bad else ""
        managed = FEED_WORDS("feeds_place", feeds=plural(len(feeds), "feed"), trouble=trouble)
        return [(MANAGE, "Manage feeds", managed), (APPS, "Reader apps", FEED_WORDS("apps_place"))]

    @routes.get("/you", **page())
    def you(request: Request) -> Response:
        view, status, kept = device.privacy.overview(), device.status(), device.library.searches()
        clusters = device.interests.clusters() if device.release() is not None else ()
        found = [section_name(label) for label in list(dict.fromkeys(each.label for each in clusters))[:3]]
        searches = len(kept.searches) + len(kept.topics)
        reports = not status.own_feeds
        places = (
            *feed_places(),
            ("/interests", "Interests", ", ".join(found) if found else WORDS("no_interests")),
            ("/saved", "Saved", plural(len(device.library.saved()), "story", "stories")),
            ("/searches", "Searches", f"{plural(searches, 'search or topic', 'searches and topics')} saved"),
            ("/interests/history", "History", f"{plural(status.clicks, 'story', 'stories')} opened"),
            ("/privacy", "Privacy", WORDS("privacy_place")),
            ("/training", "Training", "On" if status.training else "Off"),
            ("/settings", "Settings", LEVEL_NAMES[level_of(view.own)] if reports else WORDS("settings_place")),
            ("/latency", "Speed", WORDS("speed_place")),
        )
        return renderer.page(request, "you", privacy=view, places=places, signed_in=THROUGH_LAN in request.scope)

    @routes.get("/settings", **page())
    def settings(request: Request, switches: Literal["open"] | None = None) -> Response:
        return whole(request, switches=switches is not None)

    @routes.post("/settings/pictures", **form())
    def pictures(shown: Annotated[Literal["on", "off"], Form()]) -> Response:
        with device.parts.choosing():
            device.parts.stores.pictures.show(shown == "on")
        return see_other("/settings#pictures", "pictures_on" if shown == "on" else "pictures_off")

    @routes.post("/settings/rare-first", **form())
    def rare_first(rare: Annotated[Literal["on", "off"], Form()]) -> Response:
        device.interests.rare_first(rare == "on")
        return see_other("/settings#rare", "settings")

    @routes.post("/settings/level", **form())
    def level(
        level: Annotated[Literal["off", "balanced", "strict", "custom"], Form()],
        back: Annotated[str, Form(max_length=BACK_CHARS)] = "/settings",
    ) -> Response:
        if level == "custom":
            return see_other("/settings?switches=open#custom")
        trained = device.privacy.overview().own.training
        device.privacy.change(**LEVELS[level])
        untrained = trained and LEVELS[level].get("training") is False
        return see_other(back, "settings_without_training" if untrained else "settings")

    @routes.post("/privacy/switches", **form())
    def switches(
        request: Request,
        mode: Annotated[ModeName, Form()],
        epsilon_per_day_reports: Annotated[float, Form()],
        epsilon_per_day_training: Annotated[float, Form()],
        clicks_per_report: Annotated[int, Form()],
        training: Annotated[Literal["on", "off"], Form()] = "off",
        searches_in_reports: Annotated[list[Literal["on", "off"]], Form()] = [],  # noqa: B006
        epsilon_per_report: Annotated[float | None, Form()] = None,
        epsilon_lifetime_reports: Annotated[float | None, Form()] = None,
        epsilon_lifetime_training: Annotated[float | None, Form()] = None,
        counting: Annotated[list[Literal["on", "off"]], Form()] = [],  # noqa: B006
        epsilon_per_day_counts: Annotated[float | None, Form()] = None,
        epsilon_per_sum_alone: Annotated[float | None, Form()] = None,
        epsilon_per_click_alone: Annotated[float | None, Form()] = None,
        epsilon_per_day_alone: Annotated[float | None, Form()] = None,
        epsilon_lifetime_alone: Annotated[float | None, Form()] = None,
    ) -> Response:
        changes = {
            "epsilon_per_report": epsilon_per_report,
            "epsilon_lifetime_reports": epsilon_lifetime_reports,
            "epsilon_lifetime_training": epsilon_lifetime_training,
            "searches_in_reports": "on" in searches_in_reports if searches_in_reports else None,
            "counting": "on" in counting if counting else None,
            "epsilon_per_day_counts": epsilon_per_day_counts,
            "epsilon_per_sum_alone": epsilon_per_sum_alone,
            "epsilon_per_click_alone": epsilon_per_click_alone,
            "epsilon_per_day_alone": epsilon_per_day_alone,
            "epsilon_lifetime_alone": epsilon_lifetime_alone,
        }
        try:
            device.privacy.change(
                mode=mode,
                epsilon_per_day_reports=epsilon_per_day_reports,
                epsilon_per_day_training=epsilon_per_day_training,
                clicks_per_report=clicks_per_report,
                training=training == "on",
                **{name: value for name, value in changes.items() if value is not None},
            )
        except ValidationError as refused:
            first = refused.errors()[0]
            field = " ".join(map(str, first["loc"])).replace("_", " ")
            return whole(request, WORDS("nothing_changed", field=field, what=first["msg"]))
        return see_other("/settings", "settings")

    @routes.get("/privacy/export")
    def export() -> Response:
        return JSONResponse(
            jsonable_encoder(device.privacy.export()),
            headers={"content-disposition": 'attachment; filename="ownfeed-everything.json"'},
        )

    @routes.post("/privacy/import", **form())
    def take_over(
        request: Request,
        file: UploadFile,
        used: Annotated[Literal["yes", "no"], Form()],
        settings: Annotated[Literal["on", "off"], Form()] = "off",
    ) -> Response:
        try:
            device.moving.take_over(file.file.read(LIMIT_BYTES + 1), used=used == "yes", settings=settings == "on")
        except ExportRefused as refused:
            return whole(request, str(refused))
        return see_other("/settings", "taken_over")

    @routes.post(ERASE_PATH, **form())
    def erase(request: Request, confirm: Annotated[str, Form(max_length=40)] = "") -> Response:
        if confirm.strip().lower() != ERASE_WORD:
            return whole(request, WORDS("nothing_erased", word=ERASE_WORD))
        device.privacy.erase()
        answer = see_other("/welcome", "erased")
        answer.headers["clear-site-data"] = '"cache", "storage"'  # also removes what the browser kept of the pages
        return answer

    return routes


def level_of(settings: PrivacySettings) -> str:
    """Return which level these settings match; 'custom' if none."""
    return next(
        (
            name
            for name, sets in LEVELS.items()
            if all(getattr(settings, switch) == value for switch, value in sets.items())
        ),
        "custom",
    )


def unusable(view: PrivacyView) -> frozenset[str]:
    """Return the levels that this server can't support at present."""
    modes = {mode.name for mode in view.modes if mode.unusable}
    return frozenset(name for name, sets in LEVELS.items() if sets["mode"] in modes)
