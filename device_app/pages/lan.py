"""Access from the home network (`ownfeed read --lan`): by password and session cookie, at one exact address.

The key and cookie that open the pages on this machine don't work here, and the session cookie doesn't work there.
"""

import base64
import hashlib
import hmac
import re
import time
from collections.abc import Callable
from html import escape
from pathlib import Path

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request, cookie_parser
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from device_app.pages.passwords import PasswordFile, PasswordLimiter
from protocol.text_catalogue import TextCatalogue

WORDS = TextCatalogue("device_app.pages", "feeds.toml")

PASSWORD_FILE, CERTIFICATE_FILE = "lan.password", "lan.crt"
THROUGH_LAN = "ownfeed.lan"
"""Key in the ASGI scope that only the listener on the home network sets; a request can't set it."""
SIGN_IN, SIGN_OUT, CERTIFICATE = "/sign-in", "/sign-out", "/ownfeed.crt"
COOKIE = "__Host-ownfeed"
SESSION_SEC = 90 * 24 * 3_600
FORM_LIMIT_BYTES = 4_096
CERTIFICATE_TYPE = "application/x-x509-ca-cert"
PUBLIC_FILES = re.compile(r"/static/[^/]+/(?:icon[\w-]*\.(?:png|svg)|ownfeed\.webmanifest)")
"""Files that a phone requests without a cookie when it installs the page; the same for everyone."""
_USE = b"ownfeed home network 1"
_STYLE = (
    "body{font:1rem/1.5 system-ui,sans-serif;margin:18vh auto 0;max-width:20rem;padding:0 1rem;color-scheme:light dark}"
    "label,input,button{display:block;width:100%;box-sizing:border-box;font:inherit}"
    "input,button{padding:.6rem;margin:.4rem 0 1rem;border:1px solid;border-radius:4px}"
)
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
SIGN_IN_POLICY = (
    f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


class LanRequests:
    """ASGI application that marks each request as coming from the home network."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app({**scope, THROUGH_LAN: True}, receive, send)


class LanAccess:
    """Admits browsers that have signed in, and none while no password is set.

    hosts: the only Host header that is answered. clock: seconds since 1970.
    """

    def __init__(
        self,
        address: str,
        password: PasswordFile,
        certificate: Path,
        guesses: PasswordLimiter | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.hosts = frozenset({address})
        self._password, self._certificate = password, certificate
        self._guesses, self._clock = guesses or PasswordLimiter(), clock

    def holds_session(self, cookies: str) -> bool:
        """Return whether a Cookie header has a valid session under the current password."""
        until, _, shown = cookie_parser(cookies).get(COOKIE, "").partition(".")
        expected = self._signed(until)
        if expected is None or not hmac.compare_digest(shown.encode(), expected.encode()):
            return False
        return self._clock() < int(until)

    def answer(self, scope: Scope) -> ASGIApp | None:
        """Return the answer to a request without a session, usually the page that asks for the password.

        None for a file that needs no session.
        """
        method, path = scope["method"], scope["path"]
        if path == SIGN_IN and method == "POST":
            return self._sign_in
        if path == CERTIFICATE and method == "GET":
            # Public: every TLS connection shows it. A phone on which it is installed doesn't warn any more.
            return Response(self._certificate.read_bytes(), media_type=CERTIFICATE_TYPE)
        if PUBLIC_FILES.fullmatch(path) and method == "GET":
            return None
        if path in ("/", SIGN_IN) and method in ("GET", "HEAD"):
            return _page()
        return _page(401)

    def sign_out(self) -> Response:
        """Return an answer that ends this browser's session and deletes its offline copy of the pages."""
        expired_cookie = f"{COOKIE}=; Max-Age=0; Path=/; Secure; HttpOnly; SameSite=Strict"
        return RedirectResponse(
            SIGN_IN, status_code=303, headers={"set-cookie": expired_cookie, "clear-site-data": '"cache", "storage"'}
        )

    async def _sign_in(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        size = request.headers.get("content-length", "")
        if not size.isdecimal() or int(size) > FORM_LIMIT_BYTES:
            await _page(413)(scope, receive, send)
            return
        async with request.form(max_files=0, max_fields=4) as form:
            password = form.get("password", "")
        address = request.client.host if request.client else ""
        response = await run_in_threadpool(self._try, password if isinstance(password, str) else "", address)
        await response(scope, receive, send)

    def _try(self, password: str, address: str) -> Response:
        if wait_sec := self._guesses.wait_sec(address):
            return _page(429, WORDS("too_many_tries", minutes=-(-wait_sec // 60)), {"retry-after": str(wait_sec)})
        if not self._password.matches(password):
            self._guesses.wrong(address)
            return _page(401, WORDS("wrong_password"))
        self._guesses.right(address)
        until = str(int(self._clock()) + SESSION_SEC)
        session = f"{COOKIE}={until}.{self._signed(until)}; Max-Age={SESSION_SEC}; Path=/"
        flags = "; Secure; HttpOnly; SameSite=Strict"
        return RedirectResponse("/", status_code=303, headers={"set-cookie": session + flags})

    def _signed(self, until: str) -> str | None:
        secret = self._password.derived(_USE)
        if secret is None or not until.isdecimal() or len(until) > 12:
            return None
        return hmac.new(secret.encode(), until.encode(), hashlib.sha256).hexdigest()


def _page(status_code: int = 200, problem: str = "", headers: dict[str, str] | None = None) -> Response:
    alert = f'<p role="alert">{escape(problem)}</p>' if problem else ""
    text = (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{WORDS('sign_in')}</title><style>{_STYLE}</style><main><h1>{WORDS('sign_in')}</h1>{alert}"
        f'<form method="post" action="{SIGN_IN}"><label for="password">{WORDS("lan_password")}</label>'
        '<input id="password" type="password" name="password" autocomplete="current-password" required autofocus>'
        f"<button>{WORDS('sign_in_button')}</button></form>"
        f'<p><a href="{CERTIFICATE}">{WORDS("certificate")}</a></p></main></html>'
    )
    return HTMLResponse(text, status_code, {"content-security-policy": SIGN_IN_POLICY} | (headers or {}))
