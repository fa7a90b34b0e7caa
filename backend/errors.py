"""The server's errors and the HTTP status of each.

Subpackages define further ones in their errors.py.

Every class has a stable `code` with one status and one title; the problem's type is `urn:ownfeed:problem:<code>`. A
detail is one plain sentence and never quotes what the client sent.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from importlib.util import find_spec
from typing import ClassVar, NamedTuple

from protocol.ids import PROTOCOL_HEADER, PROTOCOL_VERSION


class OwnfeedError(Exception):
    """Base class of all server errors. `facts` are additional members of the problem document."""

    code: ClassVar[str] = "unexpected"
    status: ClassVar[int] = 500
    title: ClassVar[str] = "Something went wrong on the server"
    retry_after_sec: ClassVar[int | None] = None
    """Seconds to send as Retry-After if the same request may succeed later."""

    def __init__(
        self, detail: str, *, field: str | None = None, limit: str | None = None, **facts: str | int | float
    ) -> None:
        super().__init__(detail)
        self.detail, self.field, self.limit, self.facts = detail, field, limit, facts


class Public(NamedTuple):
    """The HTTP status and title that clients see for an error code."""

    status: int
    title: str


def catalogue() -> dict[str, Public]:
    """Return every code of the classes loaded so far.

    Raises ValueError if two classes give one code different meanings.
    """
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
    """The body is not valid JSON."""

    code, status, title = "malformed-json", 400, "The body is not JSON"


class InvalidRequest(RequestRefused):
    """A field is not valid."""

    code, status, title = "invalid-request", 422, "A field is not valid"


class UnsupportedMediaType(RequestRefused):
    """The body has another content type than the route accepts."""

    code, status, title = "unsupported-media-type", 415, "The body has the wrong content type"

    def __init__(self, expected: str) -> None:
        super().__init__(f"The body must be {expected}.", field="Content-Type", limit=expected)


class BodyTooLarge(RequestRefused):
    """The body exceeds the route's limit; raised before all of it is read."""

    code, status, title = "body-too-large", 413, "The body is too large"

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(
            f"The body may have at most {limit_bytes} bytes here.", field="body", limit=f"{limit_bytes} bytes"
        )


class BodyTooSlow(RequestRefused):
    """The body stalled or arrived too slowly; nothing of it was used."""

    code, status, title = "body-too-slow", 408, "The body arrived too slowly"

    def __init__(self, limit: str) -> None:
        super().__init__(f"The body did not arrive in time: {limit}.", field="body", limit=limit)


class UploadReplaced(RequestRefused):
    """Another upload for the same place started while this one was arriving.

    Only the later one counts.
    """

    code, status, title = "upload-replaced", 409, "A later upload has replaced this one"

    def __init__(self) -> None:
        super().__init__("A later upload for the same place started before this one was complete.", field="body")


class ProtocolDiffers(RequestRefused):
    """The device uses another protocol version, so the server might misread what it sends."""

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
    """The metrics token is missing or wrong; it differs from the operator's token."""

    code, status, title = "metrics-token-needed", 401, "The token for figures is needed"

    def __init__(self) -> None:
        super().__init__(
            "Send the content of metrics.token, in the server's data folder (setting data_dir of [backend]), as "
            "'Authorization: Bearer <token>'. It is not the operator's token.",
            field="Authorization",
        )


class NotFound(RequestRefused):
    """Nothing at this address."""

    code, status, title = "not-found", 404, "Not found"

    def __init__(self) -> None:
        super().__init__("There is nothing at this address.")


class MethodNotAllowed(RequestRefused):
    """The address doesn't support this method."""

    code, status, title = "method-not-allowed", 405, "The address does not take this method"

    def __init__(self, allowed: str) -> None:
        super().__init__(f"This address supports {allowed}.", limit=allowed)


class ReleaseNotAnswered(OwnfeedError):
    """Recall was requested for a release that was never published here.

    `current` names the release to fetch.
    """

    code, status, title = "release-not-answered", 409, "Unknown release"

    def __init__(self, short: int, current: str) -> None:
        super().__init__(
            f"This server has no answers for release number {short} (modulo 16); the current release is {current}.",
            field="release",
            limit=f"a release that is still answered; now {current}",
            current=current,
        )


class ReleaseRetired(ReleaseNotAnswered):
    """Recall was requested for a release that is too old, or whose vectors come from another encoder."""

    code, status, title = "release-retired", 410, "The release is retired"


class TooManyRequests(OwnfeedError):
    """One address, or all addresses together, sent more requests than the settings allow."""

    code, status, title = "too-many-requests", 429, "Too many requests"

    def __init__(self, per_minute: int, *, everybody: bool, wait_sec: int) -> None:
        who = "All together have" if everybody else "This address has"
        super().__init__(
            f"{who} sent too many requests; try again after the time in Retry-After.",
            field=None if everybody else "address",
            limit=f"{per_minute} requests a minute",
        )
        self.wait_sec = wait_sec


class OverCapacity(OwnfeedError):
    """Too many requests arrived at once; this one is valid, but was refused before any work on it."""

    code, status, title, retry_after_sec = "over-capacity", 503, "The server is overloaded", 2

    def __init__(self) -> None:
        super().__init__("The server is overloaded at the moment; try again after the time in Retry-After.")


class Unavailable(OwnfeedError):
    """Something the server depends on doesn't answer or has no room.

    The same request may succeed later.

    Neither the request nor the round that was to end is at fault. The detail is for the operator; the
    client receives `public_detail`.
    """

    code, status, title, retry_after_sec = "unavailable", 503, "The server can't answer now", 5
    public_detail: ClassVar[str] = (
        "The server can't answer this at the moment; try again after the time in Retry-After."
    )


class DiskFull(Unavailable):
    """The disk or the user's quota is full, or the disk is read-only, as after a disk failure.

    Nothing was stored.
    """

    code, status, title = "disk-full", 503, "The server has no space left"

    def __init__(self, why: str) -> None:
        super().__init__(f"The server's disk is full or read-only ({why}).")


def disk_full(error: BaseException) -> bool:
    """Whether the system refused a write because the disk or quota is full or the disk is read-only."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS)


def may_pass(error: BaseException) -> bool:
    """Whether the same work may succeed later without anyone fixing something."""
    return isinstance(error, Unavailable) or disk_full(error)


class CatalogueBehind(OwnfeedError):
    """The current release has another encoder than the catalogue, and its vectors are still being computed."""

    code, status, title = "catalogue-behind", 503, "The articles are being prepared"

    def __init__(self, release: str) -> None:
        super().__init__(f"The article vectors of release {release} are still being computed; try again soon.")


class IndexBroken(OwnfeedError):
    """A stored index can't be used; the caller rebuilds it from the vectors."""

    code, status, title = "index-broken", 500, "The stored index can't be used"


class BackendSettingsRefused(OwnfeedError):
    """A setting is not valid; raised at start, and the message names the setting."""

    code, status, title = "settings-refused", 500, "A setting is not valid"


class TrainingNotInstalled(OwnfeedError):
    """Torch is not installed here.

    Args:
        what: what needs it, as the beginning of a sentence.
    """

    code, status, title = "training-not-installed", 503, "The training software is not installed on the server"

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} needs torch, which is not installed: pip install 'ownfeed[train]'.")


TRAINING_LIBRARIES = ("torch", "transformers", "onnx", "onnxscript")


def training_is_installed() -> bool:
    """Whether the libraries of the extra `train` are installed. Imports none of them."""
    return all(map(_is_installed, TRAINING_LIBRARIES))


def _is_installed(library: str) -> bool:
    try:
        return find_spec(library) is not None
    except ModuleNotFoundError:
        return False


def require_training(what: str) -> None:
    """Raise TrainingNotInstalled unless the libraries of the extra `train` are installed."""
    if not training_is_installed():
        raise TrainingNotInstalled(what)
