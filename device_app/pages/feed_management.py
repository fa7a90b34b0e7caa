"""Routes that manage the feeds of `ownfeed read`: add, rename, move, pause, remove, refresh, OPML, the first minute.

These pages exist only on a device that has its own server.
"""

import tomllib
from importlib.resources import files
from itertools import groupby
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Form, HTTPException, Query, Request, UploadFile
from fastapi.responses import Response

from device_app.errors import BackendRefused
from device_app.pages.openapi import bytes_of, form, page
from device_app.pages.renderer import PageRenderer, see_other
from device_app.sync.own_feeds import SEPARATOR, OwnFeedsSync
from protocol.own_feeds import (
    FOLDER_CHARS,
    OPML_LIMIT_BYTES,
    PASTED_CHARS,
    TITLE_CHARS,
    URL_CHARS,
    ChangeFeed,
    OpmlReport,
)
from protocol.text_catalogue import TextCatalogue

WORDS = TextCatalogue("device_app.pages", "feeds.toml")
STATUS = TextCatalogue("device_app.sync", "feeds.toml")

MANAGE = "/feeds/manage"
START = "/feeds/start"
OPML = "text/x-opml"
FOLDER_PATH_CHARS = 2_000
AT_ONCE = 60
"""Maximum number of feeds that one form follows."""
FeedKey = Annotated[str, Form(min_length=1, max_length=URL_CHARS)]
Pasted = Annotated[str, Form(max_length=PASTED_CHARS)]


def starter_feeds() -> dict[str, dict[str, str]]:
    """Return well-known feeds: by subject, with addresses by name."""
    return tomllib.loads(files(__package__).joinpath("starter_feeds.toml").read_text(encoding="utf-8"))


def folder_path(typed: str) -> tuple[str, ...]:
    """Return a folder's names from the outermost in, as typed: 'News / Local'."""
    return tuple(name.strip()[:FOLDER_CHARS] for name in typed.split("/") if name.strip())


def router(renderer: PageRenderer) -> APIRouter:
    """Return the routes; each answers 404 on a device that doesn't have its own server."""
    device = renderer.device
    routes = renderer.router()

    def own() -> OwnFeedsSync:
        if device.own_server is None:
            raise HTTPException(404, "Feeds are managed here only under `ownfeed read`")
        return device.own_server

    def managed(request: Request, problem: str = "", status_code: int = 200, **values: Any) -> Response:
        feeds = own()
        listed = feeds.listed
        shown: dict[str, Any] = {"found": None, "pasted": "", "report": None, "gone": None}
        return renderer.page(
            request,
            "feed_manage",
            known=listed is not None,
            groups=[(folder, list(inside)) for folder, inside in groupby(feeds.feeds(), key=lambda one: one.folder)],
            folders=feeds.folders(),
            removed=listed.removed if listed else (),
            total=len(feeds.feeds()),
            failing=sum(one.status in ("failing", "ended") for one in feeds.feeds()),
            problem=problem,
            separator=SEPARATOR,
            status_words=STATUS.table("status"),
            status_code=status_code,
            **(shown | values),
        )

    @routes.get(START, **page(303, 404))
    def start(request: Request, problem: Annotated[str, Query(max_length=20)] = "") -> Response:
        own()
        return renderer.page(
            request, "feed_start", starters=starter_feeds(), problem=WORDS.table("problem").get(problem)
        )

    @routes.get(MANAGE, **page(404))
    def manage(request: Request, gone: Annotated[str, Query(max_length=URL_CHARS)] = "") -> Response:
        listed = own().listed
        lately = next((one for one in listed.removed if one.key == gone), None) if listed else None
        return managed(request, gone=lately)

    @routes.post(f"{MANAGE}/find", response_class=Response, responses=form(404)["responses"])
    def find(request: Request, pasted: Pasted = "", back: Annotated[Literal["start", ""], Form()] = "") -> Response:
        """Follow the only feed that is found; offer a choice of several."""
        if not pasted.strip():
            return see_other(f"{START}?problem=nothing" if back else MANAGE)
        try:
            found = own().find(pasted.strip())
            if len(found) == 1 and not found[0].followed:
                own().follow(found[0].url, title="", site=found[0].site)
                return see_other("/" if back else MANAGE, "feed_added")
        except BackendRefused as refused:
            return managed(request, refused.problem.detail, 422, pasted=pasted)
        return managed(request, found=found, pasted=pasted, problem="" if found else WORDS("none_found"))

    @routes.post(f"{MANAGE}/follow", **form(404, 422))
    def follow(
        request: Request,
        url: Annotated[list[str], Form(max_length=AT_ONCE)] = [],  # noqa: B006
        folder: Annotated[str, Form(max_length=FOLDER_PATH_CHARS)] = "",
        back: Annotated[Literal["start", ""], Form()] = "",
    ) -> Response:
        feeds = own()
        if not url:
            return see_other(f"{START}?problem=nothing" if back else MANAGE)
        subjects = {address: subject for subject, each in starter_feeds().items() for address in each.values()}
        refusals = []
        for address in url:
            known_as = subjects.get(address, "") if back else ""
            try:
                feeds.follow(address, folder=folder_path(folder or known_as))
            except BackendRefused as refused:
                refusals.append(refused.problem.detail)
        if refusals:
            return managed(request, " ".join(refusals), 422)
        return see_other("/" if back else MANAGE, "feed_added" if len(url) == 1 else "feeds_added")

    @routes.get(f"{MANAGE}/feed", **page(404))
    def one(request: Request, feed: Annotated[str, Query(min_length=1, max_length=URL_CHARS)]) -> Response:
        known = own().feed(feed)
        if known is None:
            raise HTTPException(404, "This feed is not followed")
        listed = own().listed
        return renderer.page(
            request,
            "feed_one",
            feed=known,
            folders=own().folders(),
            sections=listed.sections if listed else (),
            separator=SEPARATOR,
            status_words=STATUS.table("status"),
        )

    @routes.post(f"{MANAGE}/change", **form(404, 422))
    def change(
        request: Request,
        key: FeedKey,
        title: Annotated[str | None, Form(max_length=TITLE_CHARS)] = None,
        folder: Annotated[str | None, Form(max_length=FOLDER_PATH_CHARS)] = None,
        section: Annotated[str | None, Form(max_length=80)] = None,
        paused: Annotated[Literal["yes", "no"] | None, Form()] = None,
        pictures: Annotated[list[Literal["on", "off"]], Form()] = [],  # noqa: B006
        full_text: Annotated[list[Literal["on", "off"]], Form()] = [],  # noqa: B006
    ) -> Response:
        wanted = ChangeFeed(
            key=key,
            title=title,
            folder=None if folder is None else folder_path(folder),
            section=section,
            paused=None if paused is None else paused == "yes",
            pictures="on" in pictures if pictures else None,
            full_text="on" in full_text if full_text else None,
        )
        try:
            own().change(wanted)
        except BackendRefused as refused:
            return managed(request, refused.problem.detail, 422)
        if paused is None:
            return see_other(MANAGE, "feed_changed")
        return see_other(MANAGE, "feed_paused" if paused == "yes" else "feed_resumed")

    @routes.post(f"{MANAGE}/remove", **form(404))
    def remove(key: FeedKey) -> Response:
        own().remove(key)
        return Response(status_code=303, headers={"location": f"{MANAGE}?{urlencode({'gone': key})}"})

    @routes.post(f"{MANAGE}/restore", **form(404, 422))
    def restore(request: Request, key: FeedKey) -> Response:
        try:
            own().restore(key)
        except BackendRefused as refused:
            return managed(request, refused.problem.detail, 422)
        return see_other(MANAGE, "feed_restored")

    @routes.post(f"{MANAGE}/refresh", **form(404))
    def refresh(
        key: Annotated[str | None, Form(max_length=URL_CHARS)] = None,
        back: Annotated[str, Form(max_length=URL_CHARS)] = MANAGE,
    ) -> Response:
        own().refresh(key or None)
        return see_other(back, "feed_asked" if key else "feeds_asked")

    @routes.post(f"{MANAGE}/folder", **form(404))
    def rename_folder(
        folder: Annotated[str, Form(min_length=1, max_length=FOLDER_PATH_CHARS)],
        to: Annotated[str, Form(max_length=FOLDER_PATH_CHARS)] = "",
    ) -> Response:
        own().rename_folder(folder_path(folder), folder_path(to))
        return see_other(MANAGE, "folder_renamed")

    @routes.post(f"{MANAGE}/opml", **form(404, 422))
    def take_opml(request: Request, file: UploadFile, back: Annotated[Literal["start", ""], Form()] = "") -> Response:
        document = file.file.read(OPML_LIMIT_BYTES + 1)
        if len(document) > OPML_LIMIT_BYTES:
            return managed(request, WORDS("file_too_large", megabytes=OPML_LIMIT_BYTES // 1_000_000), 422)
        try:
            report: OpmlReport = own().take_opml((file.filename or WORDS("your_file"))[-200:], document)
        except BackendRefused as refused:
            return managed(request, refused.problem.detail, 422)
        if back and report.added and not report.left_out:
            return see_other("/", "feeds_added")
        return managed(request, report=report)

    @routes.get(f"{MANAGE}/feeds.opml", response_class=Response, responses=bytes_of(OPML, 404))
    def export() -> Response:
        return Response(
            own().opml(), media_type=OPML, headers={"content-disposition": 'attachment; filename="ownfeed-feeds.opml"'}
        )

    return routes
