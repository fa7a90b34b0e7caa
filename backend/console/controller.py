"""Shows the console's pages and executes its forms, only for an operator who has signed in.

Operators sign in once with the token in the data folder, then by a cookie.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

from fastapi import Request
from fastapi.responses import JSONResponse, RedirectResponse, Response

from backend.console.renderer import HEADERS, TemplateRenderer
from backend.errors import OwnfeedError
from protocol.text_catalogue import TextCatalogue

if TYPE_CHECKING:
    from backend.composition import Services


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


WORDS = TextCatalogue("backend.console", "words.toml")


Values = dict[str, Any]


class ConsoleController:
    """Operates one console over the services of one server."""

    def __init__(self, services: Services, renderer: TemplateRenderer) -> None:
        self.services = services
        self.renderer = renderer

    def show(self, request: Request, template: str, view: Callable[[], Values], **values: Any) -> Response:
        """A page with the values of `view`; the sign-in page without a valid cookie.

        A redirect removes a token from the address (?token=), so that it isn't kept in a history or log.
        """
        token = self.services.admin_token
        shown = request.query_params.get("token")
        if shown is not None and is_token(shown, token):
            rest = [(name, value) for name, value in request.query_params.multi_items() if name != "token"]
            return let_in(request, token, request.url.path + (f"?{urlencode(rest)}" if rest else ""))
        if not holds_pass(request, token):
            problem = None if shown is None else WORDS("wrong_token")
            return self.renderer.page(request, "sign_in", status_code=401, problem=problem)
        try:
            found = view()
        except OwnfeedError as refused:
            message = refusal_message(refused, {})
            return self.renderer.page(
                request, "refused", status_code=refused.status, title=refused.title, message=message, back="/console"
            )
        return self.renderer.page(request, template, **found, **values)

    def answer(self, request: Request, view: Callable[[], Values]) -> Response:
        """The values of `view` as JSON for a script, or 401."""
        if not holds_pass(request, self.services.admin_token):
            return JSONResponse({"problem": "signed out"}, status_code=401, headers=HEADERS)
        return JSONResponse(view(), headers=HEADERS)

    def do(
        self,
        request: Request,
        action: Callable[[], object],
        back: str,
        message_key: str | Callable[[Any], str],
        *,
        place: str = "",
        labels: Mapping[str, str] | None = None,
        again: Callable[[str, int], Response] | None = None,
    ) -> Response:
        """Execute a form's action, then redirect to `back`, at the element `place` if one is named.

        message_key: of the message that the page then shows, or a function that returns it for the action's result.
        An error is shown with the form's labels instead of field names: by `again`, which gets the message and a status
        and shows the form with its values, or by a separate page.
        """
        if not is_own_form(request):
            return self.refused(request)
        if not holds_pass(request, self.services.admin_token):
            return self.renderer.page(request, "sign_in", status_code=401)
        try:
            done = action()
        except OwnfeedError as refused:
            message = refusal_message(refused, labels or {})
            if again is not None:
                return again(WORDS("nothing_changed", title=refused.title, message=message), refused.status)
            return self.renderer.page(
                request, "refused", status_code=refused.status, title=refused.title, message=message, back=back
            )
        message_key = message_key if isinstance(message_key, str) else message_key(done)
        return RedirectResponse(f"{back}?said={message_key}" + (f"#{place}" if place else ""), status_code=303)

    def refused(self, request: Request) -> Response:
        """The answer to a form that was posted from another site."""
        return self.renderer.page(
            request, "refused", status_code=403, title=WORDS("foreign_form_title"), message=WORDS("foreign_form"),
            back="/console",
        )  # fmt: skip


def refusal_message(refused: OwnfeedError, labels: Mapping[str, str]) -> str:
    """The error's sentence and limit, with the page's label instead of the field's name."""
    message, field = refused.detail, refused.field or ""
    about = f"“{labels[field]}”" if field in labels else field
    if field and message.startswith(f"{field} "):
        message = about + message.removeprefix(field)
    if not refused.limit or refused.limit in message:
        return message
    return f"{message} {about if about and about not in message else 'Allowed'}: {refused.limit}."
