"""Names that both ends use, and errors on the wire (problem+json, RFC 9457)."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

PROTOCOL_VERSION = 4
"""Increased when a message changes so that an older end can't read it. An end that names another version is refused."""
PROTOCOL_HEADER = "ownfeed-protocol"
"""Names the version in each request of a device and each answer of the server; a device repeats it at check-in."""

NewsId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:~-]{0,79}$")]
ReleaseId = Annotated[str, StringConstraints(pattern=r"^r[0-9]{1,9}$")]
RoundId = Annotated[str, StringConstraints(pattern=r"^round-[1-9][0-9]{0,8}$")]
"""A round has exactly one name: files and sums are stored under it, so round-01 must not be read as round-1."""
Pseudonym = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{22,64}$")]
SHORT_RELEASES = 16
ShortRelease = Annotated[
    int,
    Field(
        ge=0,
        lt=SHORT_RELEASES,
        description="The release's number modulo 16. Numbers only grow and the last few are answered, so it names one "
        "of an honest server's; of a server that gives each device a release of its own it repeats 4 bits.",
    ),
]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
ShardName = Annotated[str, StringConstraints(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}\.[0-9]{1,4}$")]


class Message(BaseModel):
    """Base of all messages: frozen, no unknown fields, no NaN or infinity, bytes as base64."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, ser_json_bytes="base64", val_json_bytes="base64"
    )


def release_number(release: ReleaseId) -> int:
    """r12 -> 12."""
    return int(release.removeprefix("r"))


def round_number(round_id: RoundId) -> int:
    """round-12 -> 12."""
    return int(round_id.removeprefix("round-"))


def short_release(release: ReleaseId) -> int:
    """r18 -> 2: the number modulo 16, which is what a device sends to name a release."""
    return release_number(release) % SHORT_RELEASES


PROBLEM_MEDIA_TYPE = "application/problem+json"


class Problem(BaseModel):
    """An error.

    type is a stable name from the server's catalogue: 'urn:ownfeed:problem:unknown-release'.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    type: str
    title: str
    status: int
    detail: str
    field: str | None = None
    limit: str | None = None
