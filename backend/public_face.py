"""What the internet sees of a backend: its own name only, and nothing of the operator's; and what is needed for that
before it starts."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from ipaddress import ip_address, ip_network
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backend.errors import BackendSettingsRefused, NotFound
from backend.problems import problem_response
from backend.settings import BackendSettings
from backend.storage.opening import mounted_folder

OPERATORS = ("/console", "/v1/admin", "/metrics")
"""What an address of the operator's begins with."""
HEALTH = "/v1/health"
TOKEN_CHARS = 32
PROXIES_BITS = 8
"""Of a network that may be somebody's own, at least: 10.0.0.0/8, fd00::/8."""
OTHERS_MAY = stat.S_IRWXG | stat.S_IRWXO
OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH
HSTS = (b"strict-transport-security", b"max-age=31536000")


class PublicFace:
    """ASGI middleware: parts the operator's port from the public one, and answers for the public name alone.

    With a console port the public one has no address of the operator's, and the console's port nothing else; pages of
    readers and of the operator are then different origins, so that no script of the one is the other's. With a public
    origin the public port answers requests for that host only: another name that leads here is another origin, whose
    readers' devices would keep another store, and may be somebody's who wants to read what is answered here.
    """

    def __init__(self, app: ASGIApp, *, origin: str | None, console_port: int | None) -> None:
        self._app, self._console_port = app, console_port
        self._host = None if origin is None else urlsplit(origin).netloc.lower().encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection."""
        if scope["type"] != "http" or scope["path"] == HEALTH:
            await self._app(scope, receive, send)
            return
        server = scope.get("server")
        is_console = self._console_port is not None and server is not None and server[1] == self._console_port
        operators = any(scope["path"] == each or scope["path"].startswith(f"{each}/") for each in OPERATORS)
        hosts = [value.lower() for name, value in scope["headers"] if name == b"host"]
        elsewhere = self._host is not None and not is_console and hosts != [self._host]
        if elsewhere or (self._console_port is not None and operators is not is_console):
            # as if there were nothing: who looks learns no more
            await problem_response(NotFound())(scope, receive, send)
            return

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start" and self._host is not None and not is_console:
                message = {**message, "headers": [*message.get("headers", ()), HSTS]}
            await send(message)

        await self._app(scope, receive, send_safely)


def require_public(settings: BackendSettings) -> None:
    """Raises BackendSettingsRefused, which says all that is missing, unless the settings are fit for the internet."""
    missing = list(_missing(settings))
    if missing:
        listed = " ".join(f"({number}) {each}" for number, each in enumerate(missing, 1))
        raise BackendSettingsRefused(
            f"Not started for the public, as {len(missing)} things are missing: {listed} docs/operate.md has examples."
        )


def _missing(settings: BackendSettings) -> Iterator[str]:
    yield from _token_at_fault(settings)
    yield from _folders_at_fault(settings)
    if settings.public_origin is None:
        yield "The setting public_origin, such as 'https://news.example.org'; TLS ends in front, at Caddy say."
    if not settings.trusted_proxies:
        yield "The setting trusted_proxies: without the proxy's network in it all readers count as one address."
    for wide in (each for each in settings.trusted_proxies if _is_wide(each)):
        yield f"Networks of your own in trusted_proxies: whoever is in {wide} would choose the address it counts as."
    if settings.console_port is None:
        yield "The setting console_port, other than the port: the console belongs on a port that only you reach."
    if settings.unbounded_addresses:
        yield "The setting unbounded_addresses has to be empty: no limit holds for what is in it."
    if not settings.requests_per_minute or not settings.requests_per_minute_in_all or not settings.places_per_address:
        yield "Limits: requests_per_minute, requests_per_minute_in_all and places_per_address have to be above 0."
    if _is_global(settings.host):
        yield f"A host that isn't public: {settings.host} would answer without TLS. Listen on a private one."


def _token_at_fault(settings: BackendSettings) -> Iterator[str]:
    path = settings.admin_token_file
    try:
        found = path.lstat()
        token = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        yield (
            f"The operator's token, {path}: at least {TOKEN_CHARS} characters that nobody guesses, mode 0600. "
            f"To make one: `(umask 077; openssl rand -hex 32 > {path})`."
        )
        return
    if not stat.S_ISREG(found.st_mode) or stat.S_IMODE(found.st_mode) & OTHERS_MAY:
        yield f"Permissions of the operator's token: others may open {path}. `chmod 600 {path}`, and make a new token."
    if len(token) < TOKEN_CHARS:
        yield f"A longer operator's token: {path} has {len(token)} characters, at least {TOKEN_CHARS} are needed."


def _is_wide(network: str) -> bool:
    try:
        return ip_network(network).prefixlen < PROXIES_BITS
    except ValueError:
        return False  # what is no network stops every start


def _folders_at_fault(settings: BackendSettings) -> Iterator[str]:
    data, of_token = settings.data_dir, settings.admin_token_file.parent
    if data.is_dir() and stat.S_IMODE(data.stat().st_mode) & OTHERS_MAY:
        yield f"Permissions of the data folder: others may look into {data}, at uploads and keys. `chmod 700 {data}`."
    shared = mounted_folder(settings.storage)
    if shared is not None and shared.is_dir() and stat.S_IMODE(shared.stat().st_mode) & OTHERS_MAY:
        yield f"Permissions of the storage: others may look into {shared}, at uploads. `chmod 700 {shared}`."
    if of_token == data or not of_token.is_dir():
        return
    mode = stat.S_IMODE(of_token.stat().st_mode)
    if mode & OTHERS_MAY_WRITE and not mode & stat.S_ISVTX:
        yield f"Permissions of the token's folder: others may put theirs into {of_token}. `chmod go-w {of_token}`."


def _is_global(host: str) -> bool:
    try:
        return ip_address(host).is_global
    except ValueError:
        return False
