"""Keeps other sites, and other users of this machine, out of the reader's own pages.

A page on 127.0.0.1 is reachable by every site the reader has open. Refused are DNS rebinding (the Host must be this
device's own), forged requests (whatever changes something must come from our own pages), and links or embeds from
elsewhere (they would feel out what is on this device). It is reachable by every user of the machine, too, so that
nothing but static files is answered without the key (`page_key`).
"""

from __future__ import annotations

from html import escape
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from device_app.pages.page_key import ENTER_PATH, PageKey
from device_app.prose import Prose

WORDS = Prose("device_app.pages", "words.toml")

SAFE_METHODS = frozenset({"GET", "HEAD"})
CLICK_PATH = "/story/"
"""Following a link of our own pages to a page under this path records a click; see `followed`."""
STATIC_PATH = "/static/"
"""Styles and scripts, the same for everybody: answered without the key."""
METRICS_PATH = "/metrics"
"""What monitoring asks for shows the key as a bearer token, since it keeps no cookies."""

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "manifest-src 'self'; worker-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-dns-prefetch-control": "off",  # else a browser may look up the host of a story's link once the story is shown
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), browsing-topics=()",
}


def own_hosts(port: int) -> frozenset[str]:
    """The Host headers under which this device answers; without a port only where it is HTTP's own."""
    names = ("127.0.0.1", "localhost", "[::1]")
    return frozenset(f"{name}:{port}" for name in names) | (frozenset(names) if port == 80 else frozenset())


def refusal(method: str, path: str, headers: Headers, hosts: frozenset[str]) -> str | None:
    """Why this request is refused, in one sentence for the reader; None lets it in."""
    host = headers.get("host", "").lower()
    if host not in hosts:
        return WORDS("other_host", host=host or WORDS("nameless_host"))
    site = headers.get("sec-fetch-site")
    source = headers.get("origin") or headers.get("referer")
    if source == "null" and site == "same-origin":
        source = None  # under no-referrer, browsers hide the origin of our own forms; Sec-Fetch-Site can't be forged
    ours = source is None or _netloc(source) == host
    if method not in SAFE_METHODS:
        proven = site == "same-origin" or (site is None and headers.get("origin") is not None)
        return None if proven and ours else WORDS("other_site_changes")
    if site not in (None, "same-origin", "none") or not ours:
        return WORDS("other_site_sent")
    if path.startswith(CLICK_PATH) and "prefetch" in headers.get("sec-purpose", headers.get("purpose", "")):
        return WORDS("ahead_of_click")
    return None


def _netloc(address: str) -> str | None:
    try:
        return urlsplit(address).netloc.lower()
    except ValueError:  # such as "http://[", which no browser sends
        return None


def followed(headers: Headers) -> bool:
    """Whether a GET follows a link of our own pages, which is what counts as a click.

    Only a browser says so (Sec-Fetch-Site can't be set by a page or in an address), and it says otherwise of a typed
    address, a restored tab, another program's link, and what it loads ahead. Without the headers nothing is proven.
    """
    ahead = "prefetch" in headers.get("sec-purpose", headers.get("purpose", ""))
    navigates = headers.get("sec-fetch-mode", "navigate") == "navigate"
    return headers.get("sec-fetch-site") == "same-origin" and navigates and not ahead


class LocalOriginMiddleware:
    """ASGI middleware: refuses what `refusal` refuses and who has not the key; puts the security headers on answers.

    Answers are `no-store` unless a route says otherwise: they show what somebody reads. A refusal tells nothing of the
    reader, not even which pages there are.
    """

    def __init__(self, app: ASGIApp, *, port: int, key: PageKey) -> None:
        self.app = app
        self.hosts = own_hosts(port)
        self.key = key

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.setdefault("cache-control", "no-store")
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        await self._answer(scope)(scope, receive, guarded)

    def _answer(self, scope: Scope) -> ASGIApp:
        method, path, headers = scope["method"], scope["path"], Headers(scope=scope)
        why = refusal(method, path, headers, self.hosts)
        if why is None and path == ENTER_PATH and method in SAFE_METHODS and self.key.opens(scope["query_string"]):
            return RedirectResponse("/", status_code=303, headers={"set-cookie": self.key.set_cookie()})
        known = self.key.in_cookies(headers.get("cookie", "")) or (
            path == METRICS_PATH and self.key.in_authorization(headers.get("authorization", ""))
        )
        if why is None and not path.startswith(STATIC_PATH) and not known:
            why = WORDS("asks_for_key")
        if why is not None:
            return HTMLResponse(_refused_page(why), status_code=403)
        # An old link, in a browser that has the cookie already, needn't open anything to lead to the pages.
        return RedirectResponse("/", status_code=303) if path == ENTER_PATH else self.app


def _refused_page(why: str) -> str:
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Refused - Ownfeed</title>'
        f"<main><h1>Refused</h1><p>{escape(why)}</p></main></html>"
    )
