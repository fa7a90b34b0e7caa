"""Routes of the browser's device below /reader/.

They serve one page at every address, files by hash, and the current build.

No answer sets a cookie or depends on who requests it. The addresses of the device's pages are fragments of /reader/,
which browsers don't send; one typed as a path is left out of the log (`backend.server.request_limits`).
"""

from functools import lru_cache
from html import escape
from pathlib import Path

from fastapi import APIRouter, Request
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse, RedirectResponse, Response

from backend.browser_device.builds import BrowserBuild, BuildHistory, ServedFile, path_of, plain, read_build
from backend.errors import NotFound
from backend.server.request_limits import READER, takes_gzip
from protocol.text_catalogue import TextCatalogue

WORDS = TextCatalogue("backend.browser_device", "words.toml")
IMMUTABLE = "public, max-age=31536000, immutable"
OWN_ORIGIN_ALONE = "connect-src 'self'"
BARE_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def router(folder: Path, history: BuildHistory | None = None, *, api: str | None = None) -> APIRouter:
    """Return every route below /reader/, for what was built into `folder` when this was called.

    history: the builds that were served; without it, there is no list of them, and no file of another build. Without a
    build all routes answer 503 with a page that says what is missing. api: the origin to which the page sends all
    requests except those for its own files; None: the page's own.
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

    own_headers = built.headers if api is None else _asking(built.headers, api)
    page = _with_script(built, api)
    # 80 ms of processor for the largest: no browser requests it uncompressed, but anyone may.
    as_seen = lru_cache(maxsize=len(built.files))(plain)

    def find(name: str) -> ServedFile:
        """A file of this build, or of one of the last that were served here or by another server."""
        own = built.files.get(name)
        # A newer version may have been installed over this one while it still runs.
        if own is not None and (path := path_of(folder, name, own)).is_file():
            return ServedFile(path, own, built)
        found = None if history is None else history.files.find(name)
        if found is None:
            raise NotFound
        return found

    @routes.get(READER + "build.json")
    def offered() -> Response:
        answer = {"build": built.build, "script": built.script}
        return JSONResponse(answer, headers=own_headers | {"cache-control": "no-store"})

    if history is not None:

        @routes.get(READER + "builds.json")
        def builds() -> Response:
            return JSONResponse(dict(history.signed()), headers=own_headers | {"cache-control": "no-store"})

    @routes.get(READER + "files/{name}")
    def file(request: Request, name: str) -> Response:
        found = find(name)
        # Headers of this build, also for a file of another: headers in the storage are not trusted.
        headers, kind = own_headers | {"cache-control": IMMUTABLE}, found.file.type
        if name == found.build.script:
            headers["service-worker-allowed"] = READER
        if not found.file.gzip:
            return FileResponse(found.path, media_type=kind, headers=headers)
        headers["vary"] = "accept-encoding"
        if takes_gzip(request.headers.get("accept-encoding")):
            headers["content-encoding"] = "gzip"
            return FileResponse(found.path, media_type=kind, headers=headers)
        return Response(as_seen(found.path, found.file), media_type=kind, headers=headers)

    @routes.get(READER + "{path:path}")
    def anywhere(request: Request, path: str) -> Response:
        # A path that names a page gets the same page as any other, and the page's script turns the path into a
        # fragment. A redirect to /reader/ would lose what a link points to and protect nothing: the request has
        # revealed the path already. If a build is installed, its service worker returns this same page, so that one
        # script handles both.
        if path and "text/html" not in request.headers.get("accept", ""):
            raise NotFound
        return HTMLResponse(page, headers=own_headers | {"cache-control": "no-cache"})

    return routes


def _asking(headers: dict[str, str], api: str) -> dict[str, str]:
    """A page's headers that let it send requests to one more origin, as in `web/device/service_worker.ts`."""
    policy = headers["content-security-policy"]
    return headers | {"content-security-policy": policy.replace(OWN_ORIGIN_ALONE, f"{OWN_ORIGIN_ALONE} {api}")}


def _with_script(built: BrowserBuild, api: str | None) -> str:
    """The page as the server sends it: the stored page plus the name of the service worker to install."""
    named = f'  <meta name="service-worker" content="{escape(built.script)}">\n'
    if api is not None:
        named += f'  <meta name="api" content="{escape(api)}">\n'
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
