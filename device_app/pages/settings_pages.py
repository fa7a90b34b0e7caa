"""You as one place, and the settings: how much may leave, every switch, what is hidden, export and erase."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Form, Request, UploadFile
from fastapi.encoders import jsonable_encoder
from fastapi.responses import JSONResponse, Response
from pydantic import ValidationError

from device_app.errors import ExportRefused
from device_app.figures import plural
from device_app.pages.openapi import form, page
from device_app.pages.renderer import BACK_CHARS, ERASE_PATH, WORDS, PageRenderer, section_name, see_other
from device_app.privacy.settings import ModeName
from device_app.settings import PrivacySettings
from device_app.store.exported import LIMIT_BYTES
from device_app.view_models.privacy import PrivacyView

ERASE_WORD = "erase"
TRAINING = frozenset(("training", "epsilon_per_day_training", "epsilon_lifetime_training"))
"""Training is asked for by itself, so that no level switches it on."""
_USUAL = {name: value for name, value in PrivacySettings().model_dump().items() if name not in TRAINING}
LEVELS: dict[str, dict[str, Any]] = {
    "off": {"mode": "none", "counting": False, "training": False},
    "balanced": _USUAL,
    "strict": {"mode": "broadcast", "counting": False, "training": False},
}
"""What each level sets. Balanced is how a device comes, training apart."""
LEVEL_NAMES = {"off": "Off", "balanced": "Balanced", "strict": "Strict", "custom": "Custom"}


def router(renderer: PageRenderer) -> APIRouter:
    """The pages You and Settings, and the forms that change or take what this device keeps."""
    device = renderer.device
    routes = renderer.router()

    def whole(request: Request, problem: str | None = None, switches: bool = False) -> Response:
        view = device.privacy()
        hidden = sorted(each for each, stance in device.stances().items() if stance == "block")
        return renderer.page(
            request, "settings", privacy=view, problem=problem, erase_word=ERASE_WORD, level=level_of(view.own),
            unusable=unusable(view), switches_open=switches, hidden=hidden, unwanted=device.unwanted(),
            pictures_shown=device.parts.stores.pictures.shown(),
            status_code=422 if problem else 200,
        )  # fmt: skip

    @routes.get("/you", **page())
    def you(request: Request) -> Response:
        view, status, kept = device.privacy(), device.status(), device.searches()
        clusters = device.interests() if device.release() is not None else ()
        found = [section_name(label) for label in list(dict.fromkeys(each.label for each in clusters))[:3]]
        searches = len(kept.searches) + len(kept.topics)
        reports = not status.own_feeds
        places = (
            ("/interests", "Interests", ", ".join(found) if found else WORDS("no_interests")),
            ("/saved", "Saved", plural(len(device.saved()), "story", "stories")),
            ("/searches", "Searches", f"{plural(searches, 'search or topic', 'searches and topics')} saved"),
            ("/interests/history", "History", f"{plural(status.clicks, 'story', 'stories')} opened"),
            ("/privacy", "Privacy", WORDS("privacy_place")),
            ("/training", "Training", "On" if status.training else "Off"),
            ("/settings", "Settings", LEVEL_NAMES[level_of(view.own)] if reports else WORDS("settings_place")),
            ("/latency", "Speed", WORDS("speed_place")),
        )
        return renderer.page(request, "you", privacy=view, places=places)

    @routes.get("/settings", **page())
    def settings(request: Request, switches: Literal["open"] | None = None) -> Response:
        return whole(request, switches=switches is not None)

    @routes.post("/settings/pictures", **form())
    def pictures(shown: Annotated[Literal["on", "off"], Form()]) -> Response:
        with device.choosing():
            device.parts.stores.pictures.show(shown == "on")
        return see_other("/settings#pictures", "pictures_on" if shown == "on" else "pictures_off")

    @routes.post("/settings/level", **form())
    def level(
        level: Annotated[Literal["off", "balanced", "strict", "custom"], Form()],
        back: Annotated[str, Form(max_length=BACK_CHARS)] = "/settings",
    ) -> Response:
        if level == "custom":
            return see_other("/settings?switches=open#custom")
        device.set_privacy(**LEVELS[level])
        return see_other(back, "settings")

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
        given = {
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
            device.set_privacy(
                mode=mode,
                epsilon_per_day_reports=epsilon_per_day_reports,
                epsilon_per_day_training=epsilon_per_day_training,
                clicks_per_report=clicks_per_report,
                training=training == "on",
                **{name: value for name, value in given.items() if value is not None},
            )
        except ValidationError as refused:
            first = refused.errors()[0]
            field = " ".join(map(str, first["loc"])).replace("_", " ")
            return whole(request, WORDS("nothing_changed", field=field, what=first["msg"]))
        return see_other("/settings", "settings")

    @routes.get("/privacy/export")
    def export() -> Response:
        return JSONResponse(
            jsonable_encoder(device.export()),
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
        device.erase()
        answer = see_other("/welcome", "erased")
        answer.headers["clear-site-data"] = '"cache", "storage"'  # what the browser kept of the pages goes, too
        return answer

    return routes


def level_of(settings: PrivacySettings) -> str:
    """Which level these settings are; 'custom' where a switch stands as no level sets it."""
    return next(
        (
            name
            for name, sets in LEVELS.items()
            if all(getattr(settings, switch) == value for switch, value in sets.items())
        ),
        "custom",
    )


def unusable(view: PrivacyView) -> frozenset[str]:
    """Levels that can't be had from this newsroom just now."""
    modes = {mode.name for mode in view.modes if mode.unusable}
    return frozenset(name for name, sets in LEVELS.items() if sets["mode"] in modes)
