"""Reading a request's body as a message of the wire."""

from __future__ import annotations

from typing import TypeVar

from fastapi import Request
from pydantic import ValidationError

from backend.errors import UnsupportedMediaType
from backend.problems import refusal_of
from device_app.wire.ids import Message

JSON = "application/json"
M = TypeVar("M", bound=Message)


def require_media_type(request: Request, expected: str) -> None:
    """Raises UnsupportedMediaType unless the body is declared as `expected`; parameters such as charset are free."""
    declared = request.headers.get("content-type", "").split(";", 1)[0].strip().lower()
    if declared != expected:
        raise UnsupportedMediaType(expected)


def parse(kind: type[M], body: bytes) -> M:
    """The body as a message. Raises MalformedJson, or InvalidRequest that names the field and its limit."""
    try:
        return kind.model_validate_json(body)
    except ValidationError as broken:
        raise refusal_of(broken) from None
