"""What the server refuses and why, drawn at the top.

BackendError
├── RequestRefused               the request itself is at fault
│   ├── MalformedJson            400  the body is no JSON
│   ├── InvalidRequest           422  a field breaks its limit; names both
│   ├── UnsupportedMediaType     415
│   ├── BodyTooLarge             413
│   ├── NotSignedIn              401  the operator's token is missing or wrong
│   └── NotFound                 404  no such page
│       ├── UnknownBlob          404
│       ├── UnknownShard         404
│       ├── UnknownNews          404
│       └── UnknownRound         404
├── ReleaseMismatch              the two ends hold different releases; carries the current one
│   ├── UnknownRelease           409  never published here
│   └── RetiredRelease           410  too old to be answered any more
├── NoRelease                    503  nothing is published yet
├── RoundRefused                 a round can't take this message now
│   ├── UnknownPseudonym         403  not chosen for this round
│   ├── RoundClosed              409  the round is over or not open for this
│   ├── RoundUnderWay            409  another round has not ended
│   ├── UpdateConflict           409  other bytes under the same pseudonym
│   ├── UpdateRefused            422  the tensors are not what the manifest declares
│   └── UnknownSystem            422  no system of that name
├── IllegalTransition            409  a round can't go from this state to that
├── ReleaseNotPublished          500  a release failed a check and stays unpublished
├── IndexBroken                  500  a stored index can't be used
└── SettingsRefused              500  a setting is missing or makes no sense; raised at the start

Every class has a `code`; `CATALOGUE` gives each code its status and title, and the problem's type is
`urn:ownfeed:problem:<code>`. Messages never quote what the client sent.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple


class Public(NamedTuple):
    """What a client sees of an error besides its detail."""

    status: int
    title: str


CATALOGUE: dict[str, Public] = {
    "malformed-json": Public(400, "The body is not JSON"),
    "invalid-request": Public(422, "A field breaks its limit"),
    "unsupported-media-type": Public(415, "The body has the wrong content type"),
    "body-too-large": Public(413, "The body is too large"),
    "not-signed-in": Public(401, "The operator's token is needed"),
    "not-found": Public(404, "Nothing is here"),
    "method-not-allowed": Public(405, "The address does not take this method"),
    "unknown-blob": Public(404, "No such blob"),
    "unknown-shard": Public(404, "No such vector shard"),
    "unknown-news": Public(404, "No such news"),
    "unknown-round": Public(404, "No such round"),
    "unknown-release": Public(409, "The release is not known here"),
    "retired-release": Public(410, "The release is retired"),
    "no-release": Public(503, "No release is published yet"),
    "unknown-pseudonym": Public(403, "The round does not know this pseudonym"),
    "round-closed": Public(409, "The round does not take this now"),
    "round-under-way": Public(409, "Another round is under way"),
    "update-conflict": Public(409, "Another update came under this pseudonym"),
    "update-refused": Public(422, "The update is not what the round declares"),
    "unknown-system": Public(422, "No such system"),
    "illegal-transition": Public(409, "The round can't change in this way"),
    "release-not-published": Public(500, "The release failed its checks"),
    "index-broken": Public(500, "The stored index can't be used"),
    "settings-refused": Public(500, "A setting makes no sense"),
    "bad-request": Public(400, "The request can't be answered"),
    "unexpected": Public(500, "Something broke on the server"),
}


class BackendError(Exception):
    """Base of all errors of the server; `detail` is one plain sentence, `facts` are further members of the problem."""

    code: ClassVar[str] = "unexpected"

    def __init__(
        self, detail: str, *, field: str | None = None, limit: str | None = None, **facts: str | int | float
    ) -> None:
        super().__init__(detail)
        self.detail, self.field, self.limit, self.facts = detail, field, limit, facts


class RequestRefused(BackendError):
    """The request itself is at fault."""

    code = "bad-request"


class MalformedJson(RequestRefused):
    """The body is no JSON."""

    code = "malformed-json"


class InvalidRequest(RequestRefused):
    """A field breaks its limit."""

    code = "invalid-request"


class UnsupportedMediaType(RequestRefused):
    """The body came with another content type than the route takes."""

    code = "unsupported-media-type"

    def __init__(self, expected: str) -> None:
        super().__init__(f"The body must be {expected}.", field="Content-Type", limit=expected)


class BodyTooLarge(RequestRefused):
    """The body passes the route's limit; raised before the whole of it is read."""

    code = "body-too-large"

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(
            f"The body may have at most {limit_bytes} bytes here.", field="body", limit=f"{limit_bytes} bytes"
        )


class NotSignedIn(RequestRefused):
    """The operator's token is missing or wrong."""

    code = "not-signed-in"

    def __init__(self) -> None:
        super().__init__("Send the operator's token as 'Authorization: Bearer <token>'.", field="Authorization")


class NotFound(RequestRefused):
    """No such page."""

    code = "not-found"


class UnknownBlob(NotFound):
    """No blob of that hash."""

    code = "unknown-blob"


class UnknownShard(NotFound):
    """No vector shard of that name."""

    code = "unknown-shard"


class UnknownNews(NotFound):
    """No news of that id."""

    code = "unknown-news"


class UnknownRound(NotFound):
    """No round of that id."""

    code = "unknown-round"


class ReleaseMismatch(BackendError):
    """The two ends hold different releases; the problem's member `current` names the server's."""

    code = "unknown-release"


class UnknownRelease(ReleaseMismatch):
    """A release that was never published here."""

    code = "unknown-release"

    def __init__(self, release: str, current: str) -> None:
        super().__init__(
            f"Release {release} was never published here; the current one is {current}.",
            field="release",
            limit=f"a published release; now {current}",
            current=current,
        )


class RetiredRelease(ReleaseMismatch):
    """A release too old to be answered any more."""

    code = "retired-release"

    def __init__(self, release: str, current: str) -> None:
        super().__init__(
            f"Release {release} is no longer answered; the current one is {current}.",
            field="release",
            limit=f"one of the last releases; now {current}",
            current=current,
        )


class NoRelease(BackendError):
    """Nothing is published yet."""

    code = "no-release"

    def __init__(self) -> None:
        super().__init__("The server has published no release yet; try again soon.")


class RoundRefused(BackendError):
    """A round can't take this message now."""

    code = "round-closed"


class UnknownPseudonym(RoundRefused):
    """The pseudonym was not chosen for this round."""

    code = "unknown-pseudonym"


class RoundClosed(RoundRefused):
    """The round is over, or not in the state that takes this message."""

    code = "round-closed"


class RoundUnderWay(RoundRefused):
    """Another round has not ended."""

    code = "round-under-way"


class UpdateConflict(RoundRefused):
    """Other bytes came before under the same pseudonym."""

    code = "update-conflict"


class UpdateRefused(RoundRefused):
    """The tensors are not what the manifest declares."""

    code = "update-refused"


class UnknownSystem(RoundRefused):
    """No system of that name."""

    code = "unknown-system"


class IllegalTransition(BackendError):
    """A round can't go from this state to that."""

    code = "illegal-transition"


class ReleaseNotPublished(BackendError):
    """A release failed a check and stays unpublished."""

    code = "release-not-published"


class IndexBroken(BackendError):
    """A stored index can't be used; the caller rebuilds it from the vectors."""

    code = "index-broken"


class SettingsRefused(BackendError):
    """A setting is missing or makes no sense; raised at the start, named like the setting."""

    code = "settings-refused"
