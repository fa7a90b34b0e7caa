"""Authenticates the operator in the console: once by the token in the data folder, then by a cookie."""

from __future__ import annotations

import hashlib
import hmac
import re
from urllib.parse import urlsplit

from fastapi import Request
from fastapi.responses import RedirectResponse

COOKIE = "ownfeed_console"
COOKIE_PATH = "/console"
COOKIE_AGE_SEC = 30 * 24 * 3_600
_PORT = re.compile(r":(\d{1,5})\Z")


def pass_of(token: str) -> str:
    """The cookie's value: derived from the token, and useless for the API if it leaks."""
    return hmac.new(token.encode(), b"ownfeed console cookie 1", hashlib.sha256).hexdigest()


def cookie_name(host: str) -> str:
    """The cookie's name for a Host header: it includes the port, since browsers send cookies to all ports of a host.

    So two servers on one machine don't replace each other's cookie. It is the port that the browser uses, not that of
    the settings, since several processes behind a proxy share one console.
    """
    port = _PORT.search(host)
    return f"{COOKIE}_{port[1]}" if port else COOKIE


def is_token(shown: str, token: str) -> bool:
    """Whether this is the token; takes constant time."""
    return hmac.compare_digest(shown.strip().encode(), token.encode())


def holds_pass(request: Request, token: str) -> bool:
    """Whether the browser has signed in with the current token."""
    kept = request.cookies.get(cookie_name(request.headers.get("host", "")), "")
    return hmac.compare_digest(kept.encode(), pass_of(token).encode())


def is_own_form(request: Request) -> bool:
    """Whether a form was posted from the console's own pages: by Sec-Fetch-Site, or by Origin in older browsers.

    Under our no-referrer policy browsers send a form's Origin as 'null', which alone proves nothing.
    """
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    ours = origin is not None and _netloc(origin) == request.headers.get("host", "").lower()
    return site == "same-origin" and (origin in (None, "null") or ours) if site is not None else ours


def _netloc(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:  # malformed, which no browser sends
        return None


def let_in(request: Request, token: str, to: str) -> RedirectResponse:
    """Set the cookie and redirect to `to`, an address without the token."""
    answer = RedirectResponse(to, status_code=303)
    answer.set_cookie(
        cookie_name(request.headers.get("host", "")),
        pass_of(token),
        max_age=COOKIE_AGE_SEC,
        path=COOKIE_PATH,
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )
    return answer
