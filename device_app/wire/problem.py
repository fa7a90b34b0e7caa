"""Errors on the wire: problem+json (RFC 9457)."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

PROBLEM_MEDIA_TYPE = "application/problem+json"


class Problem(BaseModel):
    """`type` is a stable name from the server's catalogue: 'urn:ownfeed:problem:unknown-release'."""

    model_config = ConfigDict(frozen=True, extra="allow")

    type: str
    title: str
    status: int
    detail: str
    field: str | None = None
    limit: str | None = None
