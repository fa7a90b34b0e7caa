"""What the server refuses and why, drawn at the top.

OwnfeedError
├── RequestRefused               400  the request itself is at fault
│   ├── MalformedJson            400  the body is no JSON
│   ├── InvalidRequest           422  a field breaks its limit; names both
│   ├── UnsupportedMediaType     415  the body has another content type than the route takes
│   ├── BodyTooLarge             413  refused before the whole body is read
│   ├── BodyTooSlow              408  the body did not come in time
│   ├── UploadReplaced           409  a later upload of the same place came while this one was coming
│   ├── ProtocolDiffers          400  device and server don't speak the same version of the wire
│   ├── NotSignedIn              401  the operator's token is missing or wrong
│   ├── MetricsTokenNeeded       401  the token for figures is missing or wrong
│   ├── NotFound                 404  nothing at this address
│   └── MethodNotAllowed         405
├── ReleaseNotAnswered           409  recall was asked under a release that was never published here
│   └── ReleaseRetired           410  ... or that is too old by now
├── TooManyRequests              429  one address, or all together, asked more often than the settings allow
├── OverCapacity                 503  too many requests at once; refused before any work on this one
├── Unavailable                  503  what the server works with is away or full; the same may work later
│   └── DiskFull                 503  ... the disk
├── CatalogueBehind              503  the current release's news vectors are still being made
├── IndexBroken                  500  a stored index can't be used; rebuilt from the vectors
└── BackendSettingsRefused              500  a setting makes no sense; ends the start
Packages draw their own branches in their own errors.py: backend.db, backend.news, backend.releases, backend.federation.

Every class has a stable `code` with one status and one title; the problem's type is `urn:ownfeed:problem:<code>`.
A detail is one plain sentence and never quotes what the client sent.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from typing import ClassVar, NamedTuple

from device_app.wire.ids import PROTOCOL_HEADER, PROTOCOL_VERSION


class OwnfeedError(Exception):
    """Base of all errors of the server. `facts` are further members of the problem."""

    code: ClassVar[str] = "unexpected"
    status: ClassVar[int] = 500
    title: ClassVar[str] = "Something broke on the server"
    retry_after_sec: ClassVar[int | None] = None
    """Sent as Retry-After where the same request may be answered later."""

    def __init__(
        self, detail: str, *, field: str | None = None, limit: str | None = None, **facts: str | int | float
    ) -> None:
        super().__init__(detail)
        self.detail, self.field, self.limit, self.facts = detail, field, limit, facts


class Public(NamedTuple):
    """What a code always means to a client."""

    status: int
    title: str


def catalogue() -> dict[str, Public]:
    """Every code of the classes loaded so far. Raises ValueError if two classes give one code different meanings."""
    found: dict[str, Public] = {}
    for error in _family(OwnfeedError):
        public = Public(error.status, error.title)
        if found.setdefault(error.code, public) != public:
            raise ValueError(f"code {error.code!r} means both {found[error.code]} and {public}")
    return found


def _family(root: type[OwnfeedError]) -> Iterator[type[OwnfeedError]]:
    yield root
    for child in root.__subclasses__():
        yield from _family(child)


class RequestRefused(OwnfeedError):
    """The request itself is at fault."""

    code, status, title = "bad-request", 400, "The request can't be answered"


class MalformedJson(RequestRefused):
    """The body is no JSON."""

    code, status, title = "malformed-json", 400, "The body is not JSON"


class InvalidRequest(RequestRefused):
    """A field breaks its limit."""

    code, status, title = "invalid-request", 422, "A field breaks its limit"


class UnsupportedMediaType(RequestRefused):
    """The body came with another content type than the route takes."""

    code, status, title = "unsupported-media-type", 415, "The body has the wrong content type"

    def __init__(self, expected: str) -> None:
        super().__init__(f"The body must be {expected}.", field="Content-Type", limit=expected)


class BodyTooLarge(RequestRefused):
    """The body passes the route's limit; raised before the whole of it is read."""

    code, status, title = "body-too-large", 413, "The body is too large"

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(
            f"The body may have at most {limit_bytes} bytes here.", field="body", limit=f"{limit_bytes} bytes"
        )


class BodyTooSlow(RequestRefused):
    """The body stalled or came too slowly; nothing of it was used."""

    code, status, title = "body-too-slow", 408, "The body came too slowly"

    def __init__(self, limit: str) -> None:
        super().__init__(f"The body did not come in time: {limit}.", field="body", limit=limit)


class UploadReplaced(RequestRefused):
    """Another upload of the same place began while this one was coming in; only the later one counts."""

    code, status, title = "upload-replaced", 409, "A later upload has replaced this one"

    def __init__(self) -> None:
        super().__init__("A later upload of the same place came while this one was coming in.", field="body")


class ProtocolDiffers(RequestRefused):
    """A device of another version; what it sends might be read as something else here."""

    code, status, title = "protocol-differs", 400, "The device speaks another version of the protocol"

    def __init__(self) -> None:
        super().__init__(
            f"This server speaks version {PROTOCOL_VERSION}; bring both to the same version of Ownfeed.",
            field=PROTOCOL_HEADER,
            limit=str(PROTOCOL_VERSION),
        )


class NotSignedIn(RequestRefused):
    """The operator's token is missing or wrong."""

    code, status, title = "not-signed-in", 401, "The operator's token is needed"

    def __init__(self) -> None:
        super().__init__("Send the operator's token as 'Authorization: Bearer <token>'.", field="Authorization")


class MetricsTokenNeeded(RequestRefused):
    """The token for figures is missing or wrong; the operator's is another one."""

    code, status, title = "metrics-token-needed", 401, "The token for figures is needed"

    def __init__(self) -> None:
        super().__init__(
            "Send what stands in metrics.token, in the server's data folder (the setting data_dir of [backend]), as "
            "'Authorization: Bearer <token>'. The operator's token is another one.",
            field="Authorization",
        )


class NotFound(RequestRefused):
    """Nothing at this address."""

    code, status, title = "not-found", 404, "Nothing is here"

    def __init__(self) -> None:
        super().__init__("There is nothing at this address.")


class MethodNotAllowed(RequestRefused):
    """The address doesn't take this method."""

    code, status, title = "method-not-allowed", 405, "The address does not take this method"

    def __init__(self, allowed: str) -> None:
        super().__init__(f"This address takes {allowed}.", limit=allowed)


class ReleaseNotAnswered(OwnfeedError):
    """A release was named that was never published here; the member `current` names the release to fetch."""

    code, status, title = "release-not-answered", 409, "The release is not known here"

    def __init__(self, short: int, current: str) -> None:
        super().__init__(
            f"No release of the number {short} modulo 16 is answered here; the current one is {current}.",
            field="release",
            limit=f"a release that is still answered; now {current}",
            current=current,
        )


class ReleaseRetired(ReleaseNotAnswered):
    """Recall was asked under a release that is too old, or whose vectors come from another encoder."""

    code, status, title = "release-retired", 410, "The release is retired"


class TooManyRequests(OwnfeedError):
    """One address, or all addresses together, have asked more often than the settings allow."""

    code, status, title = "too-many-requests", 429, "Too many requests"

    def __init__(self, per_minute: int, *, everybody: bool, wait_sec: int) -> None:
        who = "All together have" if everybody else "This address has"
        super().__init__(
            f"{who} asked too often; try again after the time in Retry-After.",
            field=None if everybody else "address",
            limit=f"{per_minute} requests a minute",
        )
        self.wait_sec = wait_sec


class OverCapacity(OwnfeedError):
    """Too many requests at once; this one was refused before any work on it. Nothing is wrong with it."""

    code, status, title, retry_after_sec = "over-capacity", 503, "The server has too much to do", 2

    def __init__(self) -> None:
        super().__init__("The server has too much to do at the moment; try again after the time in Retry-After.")


class Unavailable(OwnfeedError):
    """What the server works with doesn't answer or has no room; nothing is wrong with the request, nor with the round
    that was to be ended, and the same may work later. The detail is for the operator; `told` for whoever asked."""

    code, status, title, retry_after_sec = "unavailable", 503, "The server can't answer now", 5
    told: ClassVar[str] = "The server can't answer this at the moment; try again after the time in Retry-After."


class DiskFull(Unavailable):
    """The disk, or the user's share of it, has no room for what was to be written, or takes none: a system lets nobody
    write any more where a disk has failed. Nothing was kept of it."""

    code, status, title = "disk-full", 503, "The server has no room to keep this"

    def __init__(self, why: str) -> None:
        super().__init__(f"The server's disk is full, or takes nothing ({why}).")


def disk_full(error: BaseException) -> bool:
    """Whether the system refused a write for lack of room, or since the disk is read-only."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS)


def may_pass(error: BaseException) -> bool:
    """Whether the same work may succeed later, without anybody having to mend it."""
    return isinstance(error, Unavailable) or disk_full(error)


class CatalogueBehind(OwnfeedError):
    """The current release has another encoder than the catalogue, whose vectors are still being made."""

    code, status, title = "catalogue-behind", 503, "The news are being prepared"

    def __init__(self, release: str) -> None:
        super().__init__(f"The news vectors of release {release} are still being made; try again soon.")


class IndexBroken(OwnfeedError):
    """A stored index can't be used; the caller rebuilds it from the vectors."""

    code, status, title = "index-broken", 500, "The stored index can't be used"


class BackendSettingsRefused(OwnfeedError):
    """A setting makes no sense; raised at the start and named like the setting."""

    code, status, title = "settings-refused", 500, "A setting makes no sense"
