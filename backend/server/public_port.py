"""Restricts what the internet sees of a server: its own name only, and none of the operator's pages.

Also checks before the start that the settings are fit for the internet.
"""

import stat
from collections.abc import Iterator
from ipaddress import ip_address, ip_network
from urllib.parse import urlsplit

from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backend.errors import BackendSettingsRefused, NotFound
from backend.server.problems import problem_response
from backend.settings import BackendSettings
from backend.storage.opening import mounted_folder
from protocol.ids import PROTOCOL_HEADER

OPERATORS = ("/console", "/v1/admin", "/metrics")
"""Prefixes of the operator's addresses."""
BELOW_OPERATORS = tuple(f"{each}/" for each in OPERATORS)
HEALTH = "/v1/health"
TOKEN_CHARS = 32
PROXIES_BITS = 8
"""Shortest prefix of a network that one operator can own: 10.0.0.0/8, fd00::/8."""
OTHERS_MAY = stat.S_IRWXG | stat.S_IRWXO
OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH
API, READER = "/v1/", "/reader/"
ANSWERS_FOR_READERS = {
    "access-control-expose-headers": f"etag, retry-after, server-timing, {PROTOCOL_HEADER}",
}
PREFLIGHT = {
    "access-control-allow-methods": "GET, POST, PUT",
    "access-control-allow-headers": f"content-type, if-none-match, {PROTOCOL_HEADER}",
    "access-control-max-age": "86400",
}
"""CORS headers for the reader's page, whose requests never have cookies."""
HSTS = (b"strict-transport-security", b"max-age=31536000")


class PublicPort:
    """ASGI middleware: separates the operator's port from the public one, and serves only the public name.

    With a console port, the public port serves none of the operator's addresses, and the console's port nothing else.
    Pages of readers and of the operator then have different origins, so that neither's scripts can access the other.
    With a public origin, the public port answers requests for that host only: another name that resolves here is
    another origin, whose readers' devices would use another store, and may belong to someone who wants to read these
    answers.

    With a reader's origin, that host serves the reader's page and nothing else, and the public host everything but it.
    Only a page of the reader's origin may read the public host's answers, and it sends no cookies.
    """

    def __init__(
        self, app: ASGIApp, *, origin: str | None, console_port: int | None, reader_origin: str | None = None
    ) -> None:
        self._app, self._console_port, self._reader_origin = app, console_port, reader_origin
        self._host, self._reader_host = _host_of(origin), _host_of(reader_origin)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection."""
        if scope["type"] != "http" or scope["path"] == HEALTH:
            await self._app(scope, receive, send)
            return
        server = scope.get("server")
        is_console = self._console_port is not None and server is not None and server[1] == self._console_port
        path = scope["path"]
        operators = path in OPERATORS or path.startswith(BELOW_OPERATORS)
        hosts = [value.lower() for name, value in scope["headers"] if name == b"host"]
        at_readers = self._reader_host is not None and hosts == [self._reader_host]
        elsewhere = self._host is not None and not is_console and hosts != [self._host] and not at_readers
        readers = path.startswith(READER) or path == READER.removesuffix("/")
        if self._reader_origin is not None and not is_console and not elsewhere and readers is not at_readers:
            if path in (READER, READER.removesuffix("/")):
                await RedirectResponse(self._reader_origin + READER, status_code=308)(scope, receive, send)
                return
            elsewhere = True
        if elsewhere or (self._console_port is not None and operators is not is_console):
            # Answer as if the page did not exist, so that a probe learns nothing.
            await problem_response(NotFound())(scope, receive, send)
            return

        if self._host is None or is_console:
            await self._app(scope, receive, send)
            return
        shared: list[tuple[bytes, bytes]] = []
        if self._reader_origin is not None and path.startswith(API) and not operators:
            allowed = {"access-control-allow-origin": self._reader_origin}
            if scope["method"] == "OPTIONS":
                await Response(status_code=204, headers=allowed | PREFLIGHT)(scope, receive, send)
                return
            shared = [(name.encode(), value.encode()) for name, value in (allowed | ANSWERS_FOR_READERS).items()]

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), HSTS, *shared]}
            await send(message)

        await self._app(scope, receive, send_safely)


def _host_of(origin: str | None) -> bytes | None:
    return None if origin is None else urlsplit(origin).netloc.lower().encode()


def require_public(settings: BackendSettings) -> None:
    """Raise BackendSettingsRefused, which lists all that is missing, unless the settings are fit for the internet."""
    missing = list(_missing(settings))
    if missing:
        listed = " ".join(f"({number}) {each}" for number, each in enumerate(missing, 1))
        raise BackendSettingsRefused(
            f"The public server was not started, because {len(missing)} things are missing: {listed} "
            "docs/operate.md has examples."
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
    if settings.own_feeds_token_file is not None:
        yield "The setting own_feeds_token_file has to be empty: it is for one reader on one machine."
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
        return False  # an invalid network stops every start


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
