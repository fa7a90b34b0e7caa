"""The browser's device below /reader/: one page at every address, files by hash, and which build is offered.

No answer sets a cookie or depends on who asks. The addresses of the device's pages are fragments of /reader/, which
browsers send to nobody; one that somebody typed as a path is left out of the log (`backend.request_limits`).
"""

from __future__ import annotations

from functools import lru_cache
from html import escape
from pathlib import Path

from fastapi import APIRouter, Request
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse, RedirectResponse, Response

from backend.browser_device.built import BrowserBuild, path_of, plain, read_build
from backend.browser_device.kept_builds import ServedFile
from backend.browser_device.signed_builds import BuildHistory
from backend.errors import NotFound
from backend.request_limits import READER, takes_gzip
from device_app.prose import Prose

WORDS = Prose("backend.browser_device", "words.toml")
IMMUTABLE = "public, max-age=31536000, immutable"
BARE_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def router(folder: Path, history: BuildHistory | None = None) -> APIRouter:
    """Every route below /reader/, over what was built into `folder` when this was called.

    history: of the builds that were served; without it there is no list of them, and no file of another build. Without
    a build all answer 503 with a page that says what is missing.
    """
    routes = APIRouter(include_in_schema=False)
    built = read_build(folder)

    @routes.get(READER.removesuffix("/"))
    def without_slash() -> Response:
        return RedirectResponse(READER, status_code=308)

    if built is None:

        @routes.get(READER + "{path:path}")
        def missing(path: str) -> Response:
            return _missing()

        return routes

    page = _with_script(built)
    # 80 ms of processor for the largest: no browser asks so, but anybody may
    as_seen = lru_cache(maxsize=len(built.files))(plain)

    def find(name: str) -> ServedFile:
        """A file of this build, or one of the last that were served here or by another server."""
        own = built.files.get(name)
        # A newer version may have been installed over this one, which goes on for a while.
        if own is not None and (path := path_of(folder, name, own)).is_file():
            return ServedFile(path, own, built)
        found = None if history is None else history.files.find(name)
        if found is None:
            raise NotFound
        return found

    @routes.get(READER + "build.json")
    def offered() -> Response:
        told = {"build": built.build, "script": built.script}
        return JSONResponse(told, headers=built.headers | {"cache-control": "no-store"})

    if history is not None:

        @routes.get(READER + "builds.json")
        def builds() -> Response:
            return JSONResponse(dict(history.signed()), headers=built.headers | {"cache-control": "no-store"})

    @routes.get(READER + "files/{name}")
    def file(request: Request, name: str) -> Response:
        found = find(name)
        # Of this build, also for a file of another: what the storage says of headers is not believed.
        headers, kind = built.headers | {"cache-control": IMMUTABLE}, found.file.type
        if name == found.build.script:
            headers["service-worker-allowed"] = READER
        if not found.file.gzip:
            return FileResponse(found.path, media_type=kind, headers=headers)
        headers["vary"] = "accept-encoding"
        if takes_gzip(request.headers):
            headers["content-encoding"] = "gzip"
            return FileResponse(found.path, media_type=kind, headers=headers)
        return Response(as_seen(found.path, found.file), media_type=kind, headers=headers)

    @routes.get(READER + "{path:path}")
    def anywhere(request: Request, path: str) -> Response:
        # A path that names a page is answered as any other, and the page's script makes a fragment of it. A redirect to
        # /reader/ would lose what a link was kept for and keep nothing back: the request has told the path by then.
        # Where a build is installed its service worker gives this same page, so that one script serves both.
        if path and "text/html" not in request.headers.get("accept", ""):
            raise NotFound
        return HTMLResponse(page, headers=built.headers | {"cache-control": "no-cache"})

    return routes


def _with_script(built: BrowserBuild) -> str:
    """The page as it comes from the server: besides what is kept of it, it names the service worker to install."""
    named = f'  <meta name="service-worker" content="{escape(built.script)}">\n'
    return built.shell.replace("</head>", f"{named}</head>", 1)


def _missing() -> HTMLResponse:
    title = escape(WORDS("missing_title"))
    body = "".join(f"<p>{escape(line)}</p>" for line in (WORDS("missing"), WORDS("missing_how"), WORDS("meanwhile")))
    return HTMLResponse(
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><main><h1>{title}</h1>{body}</main></html>",
        status_code=503,
        headers=BARE_HEADERS,
    )
