"""Routes of the Reader apps page: make an app password, show it once, switch access off."""

import secrets

from fastapi import APIRouter, Request
from fastapi.responses import Response

from device_app.pages.greader import OPENED_AT_ONCE
from device_app.pages.openapi import form, page
from device_app.pages.passwords import PasswordFile
from device_app.pages.renderer import PageRenderer, see_other

APPS = "/apps"
ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"
"""Characters that can't be confused with each other when typed on a phone."""
GROUPS, GROUP_CHARS = 5, 4


def new_password() -> str:
    """Return a password of 100 random bits, in groups that can be typed."""
    return "-".join("".join(secrets.choice(ALPHABET) for _ in range(GROUP_CHARS)) for _ in range(GROUPS))


def router(renderer: PageRenderer, password: PasswordFile) -> APIRouter:
    """Return the routes of the page."""
    routes = renderer.router()

    def shown(request: Request, made: str | None = None) -> Response:
        address = f"{request.url.scheme}://{request.headers.get('host', '')}"
        return renderer.page(
            request,
            "apps",
            on=password.is_set(),
            made=made,
            address=address,
            profile=renderer.device.settings.profile,
            opened_at_once=OPENED_AT_ONCE,
        )

    @routes.get(APPS, **page())
    def apps(request: Request) -> Response:
        return shown(request)

    @routes.post(f"{APPS}/password", **page())
    def make(request: Request) -> Response:
        """Make a new password; the previous one stops working."""
        made = new_password()
        password.set(made)
        return shown(request, made)

    @routes.post(f"{APPS}/off", **form())
    def off() -> Response:
        password.clear()
        return see_other(APPS, "apps_off")

    return routes
