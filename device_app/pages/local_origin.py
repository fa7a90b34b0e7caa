"""Keeps other sites and other users of this machine out of the reader's own pages.

Any site that the reader has open can reach a page on 127.0.0.1. The middleware therefore refuses DNS rebinding (the
Host must be this device's own), forged requests (changes must come from our own pages), and links or embeds from other
sites (they could probe what is on this device).

Another user of the same machine can send any header, so everything except static files also needs a key (`PageKey`). It
is printed as a link when the device starts, and the browser keeps it as a cookie.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from html import escape
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from device_app.errors import StoreBroken
from device_app.pages.lan import SIGN_IN, SIGN_IN_POLICY, SIGN_OUT, THROUGH_LAN, LanAccess
from protocol.private_files import make_folder, write_file
from protocol.text_catalogue import TextCatalogue

KEY_NAME = "page.key"
KEY_BYTES = 32
ENTER_PATH = "/enter"
COOKIE_AGE_SEC = 400 * 24 * 3_600
"""The longest time that browsers keep a cookie."""
_COOKIE_USE = b"ownfeed pages cookie 1"
_LINK_USE = b"ownfeed story link 1\n"
_LINK_TOKEN_BYTES = 16


class PageKey:
    """A random 256-bit key, and the cookie derived from it.

    The cookie is an HMAC-SHA256 under the key, so that the link can't be recovered from what a browser stores. Its name
    contains the port: browsers send a host's cookies to all its ports, and two devices on one machine must not
    overwrite each other's.
    """

    def __init__(self, key: str, port: int) -> None:
        self._key, self._port = key, port
        self.cookie_name = f"ownfeed_{port}"
        self._cookie = hmac.new(key.encode(), _COOKIE_USE, hashlib.sha256).hexdigest()

    @classmethod
    def of_profile(cls, home: Path, port: int) -> PageKey:
        """Return the key stored in the profile's folder (0600), created at first start.

        Raises StoreBroken.
        """
        path = home / KEY_NAME
        try:
            if not path.exists():
                make_folder(home)
                write_file(path, secrets.token_urlsafe(KEY_BYTES))
            key = path.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as broken:
            raise StoreBroken(path, str(broken)) from broken
        if len(key) < KEY_BYTES:
            raise StoreBroken(path, "it contains no 256-bit key; remove it, and the next start creates a new one")
        return cls(key, port)

    def link(self, host: str) -> str:
        """Return the address that opens the pages in a browser once; later the cookie does."""
        shown = f"[{host}]" if ":" in host else host
        return f"http://{shown}:{self._port}{ENTER_PATH}?{urlencode({'key': self._key})}"

    def link_token(self, address: str) -> str:
        """Return the token of a link to this address: 128 bits of an HMAC-SHA256, in base64url."""
        digest = hmac.new(self._key.encode(), _LINK_USE + address.encode(), hashlib.sha256).digest()
        return base64.urlsafe_b64encode(digest[:_LINK_TOKEN_BYTES]).decode().rstrip("=")

    def opens(self, query: bytes) -> bool:
        """Return whether a link's query holds the key, in constant time."""
        shown = parse_qs(query.decode("latin-1")).get("key", [""])[-1]
        return hmac.compare_digest(shown.encode(), self._key.encode())

    def in_authorization(self, header: str) -> bool:
        """Return whether an Authorization header holds the key as a bearer token."""
        scheme, _, shown = header.partition(" ")
        return hmac.compare_digest(shown.strip().encode(), self._key.encode()) and scheme.lower() == "bearer"

    def in_cookies(self, header: str) -> bool:
        """Return whether a Cookie header holds this device's cookie."""
        kept = cookie_parser(header).get(self.cookie_name, "")
        return hmac.compare_digest(kept.encode(), self._cookie.encode())

    def set_cookie(self) -> str:
        """Return the Set-Cookie header: this host only, HttpOnly and SameSite=Strict."""
        return f"{self.cookie_name}={self._cookie}; Max-Age={COOKIE_AGE_SEC}; Path=/; HttpOnly; SameSite=Strict"


WORDS = TextCatalogue("device_app.pages", "words.toml")

SAFE_METHODS = frozenset({"GET", "HEAD"})
CLICK_PATH = "/story/"
"""Following a link of our own pages to a page under this path records a click.

See `followed`, `StoryLinks`.
"""
STATIC_PATH = "/static/"
"""Styles and scripts are the same for every reader and need no key."""
LOGIN_PATH, API_PATH = "/accounts/ClientLogin", "/reader/api/0/"
API_PREFIXES = ("", "/api/greader.php")
"""Paths of the API for reader apps: apps expect it where Miniflux or FreshRSS serves it."""
METRICS_PATH = "/metrics"
"""Monitoring sends the key as a bearer token here, since it keeps no cookies."""

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "manifest-src 'self'; worker-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
POLICY = "content-security-policy"
HEADERS = {
    POLICY: CONTENT_SECURITY_POLICY,
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    # otherwise a browser may look up the host of a story's link when the story is shown
    "x-dns-prefetch-control": "off",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), browsing-topics=()",
}


def is_api(path: str) -> bool:
    """Return whether an address belongs to the API for reader apps, which has a login of its own."""
    return any(path == prefix + LOGIN_PATH or path.startswith(prefix + API_PATH) for prefix in API_PREFIXES)


def own_hosts(port: int) -> frozenset[str]:
    """Return the Host headers that this device answers; a port may be missing only if it is 80."""
    names = ("127.0.0.1", "localhost", "[::1]")
    return frozenset(f"{name}:{port}" for name in names) | (frozenset(names) if port == 80 else frozenset())


def refusal(method: str, path: str, headers: Headers, hosts: frozenset[str]) -> str | None:
    """Return why this request is refused, in one sentence for the reader; None if it is allowed."""
    host = headers.get("host", "").lower()
    if host not in hosts:
        return WORDS("other_host", host=host or WORDS("nameless_host"))
    site = headers.get("sec-fetch-site")
    source = headers.get("origin") or headers.get("referer")
    if source == "null" and site == "same-origin":
        source = None  # under no-referrer, browsers hide our own forms' origin; Sec-Fetch-Site can't be forged
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
    except ValueError:  # such as "http://[", which browsers never send
        return None


def followed(headers: Headers) -> bool:
    """Return whether a GET follows a link on our own pages, as a click does.

    Only a browser can state this: neither a page nor an address can set Sec-Fetch-Site. Browsers send another value for
    a typed address, a restored tab, a link from another program, and for prefetching. Returns False without the
    headers.
    """
    ahead = "prefetch" in headers.get("sec-purpose", headers.get("purpose", ""))
    return headers.get("sec-fetch-site") == "same-origin" and navigates(headers) and not ahead


def navigates(headers: Headers) -> bool:
    """Return whether a GET opens a page in a tab, rather than for a script."""
    return headers.get("sec-fetch-mode", "navigate") == "navigate"


class LocalOriginMiddleware:
    """ASGI middleware that applies `refusal`, requires the key and adds security headers.

    Answers are `no-store` unless a route sets another policy, because they show what the reader reads. A refusal
    reveals nothing about the reader, not even which pages exist.
    """

    def __init__(self, app: ASGIApp, *, port: int, key: PageKey, lan: LanAccess | None = None) -> None:
        self.app = app
        self.hosts = own_hosts(port)
        self.key = key
        self.lan = lan

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.setdefault("cache-control", "no-store")
                for name, value in HEADERS.items():
                    if name != POLICY or headers.get(POLICY) != SIGN_IN_POLICY:
                        headers[name] = value
            await send(message)

        answer = self._answer_lan(scope, self.lan) if THROUGH_LAN in scope else self._answer(scope)
        await answer(scope, receive, guarded)

    def _answer_lan(self, scope: Scope, lan: LanAccess | None) -> ASGIApp:
        """Return the answer to a request from the home network, where this machine's key doesn't work."""
        method, path, headers = scope["method"], scope["path"], Headers(scope=scope)
        if lan is None:
            return PlainTextResponse("Forbidden\n", status_code=403)
        if is_api(path):
            return self._api(scope, lan.hosts)
        why = refusal(method, path, headers, lan.hosts)
        if why is not None:
            return HTMLResponse(_refused_page(why), status_code=403)
        if not lan.holds_session(headers.get("cookie", "")):
            return lan.answer(scope) or self.app
        if path == SIGN_OUT and method == "POST":
            return lan.sign_out()
        return RedirectResponse("/", status_code=303) if path in (SIGN_IN, ENTER_PATH) else self.app

    def _api(self, scope: Scope, hosts: frozenset[str]) -> ASGIApp:
        if refused_to_apps(Headers(scope=scope), hosts):
            return PlainTextResponse("Forbidden\n", status_code=403)
        return self.app

    def _answer(self, scope: Scope) -> ASGIApp:
        method, path, headers = scope["method"], scope["path"], Headers(scope=scope)
        if is_api(path):
            return self._api(scope, self.hosts)
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
        # An old link, in a browser that already has the cookie, still leads to the pages.
        return RedirectResponse("/", status_code=303) if path == ENTER_PATH else self.app


def refused_to_apps(headers: Headers, hosts: frozenset[str]) -> bool:
    """Return whether a request to the API for reader apps has a wrong host or comes from another site.

    Apps send neither Origin nor Sec-Fetch-Site; the API has its own login.
    """
    origin = headers.get("origin")
    host = headers.get("host", "").lower()
    foreign = headers.get("sec-fetch-site") not in (None, "same-origin", "none")
    return host not in hosts or foreign or (origin is not None and _netloc(origin) != host)


def _refused_page(why: str) -> str:
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Refused - Ownfeed</title>'
        f"<main><h1>Refused</h1><p>{escape(why)}</p></main></html>"
    )
