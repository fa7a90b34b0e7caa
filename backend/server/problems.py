"""Converts every error to problem+json.

These are our errors, invalid fields, unknown addresses, and unexpected exceptions.
"""

import logging
import traceback
from collections.abc import Mapping
from html import escape
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse
from pydantic import ValidationError
from starlette.exceptions import HTTPException

from backend.errors import (
    CatalogueBehind,
    DiskFull,
    InvalidRequest,
    MalformedJson,
    MethodNotAllowed,
    NotFound,
    OverCapacity,
    OwnfeedError,
    RequestRefused,
    Unavailable,
    disk_full,
)
from protocol.ids import PROBLEM_MEDIA_TYPE, Problem

URN = "urn:ownfeed:problem:"
_BEARER = {"WWW-Authenticate": "Bearer"}
_TAGGED = "report"
"""The member after which pydantic inserts its kind into a path: report.code.code is report.code for a client."""

_log = logging.getLogger(__name__)


def problem_of(error: OwnfeedError) -> Problem:
    """What a client receives about an error."""
    facts: dict[str, Any] = dict(error.facts)
    return Problem(
        type=URN + error.code,
        title=error.title,
        status=error.status,
        detail=error.public_detail if isinstance(error, Unavailable) else error.detail,
        field=error.field,
        limit=error.limit,
        **facts,
    )


def problem_response(error: OwnfeedError, headers: Mapping[str, str] | None = None) -> Response:
    """The answer for an error; members without a value are left out."""
    return Response(
        problem_of(error).model_dump_json(exclude_none=True),
        status_code=error.status,
        headers={
            "Cache-Control": "no-store",
            **(_BEARER if error.status == 401 else {}),
            **({"Retry-After": str(error.retry_after_sec)} if error.retry_after_sec is not None else {}),
            **(headers or {}),
        },
        media_type=PROBLEM_MEDIA_TYPE,
    )


def refusal_of(broken: ValidationError | RequestValidationError) -> OwnfeedError:
    """The first invalid field of a pydantic error with its limit; never the value that was sent.

    A field is given as a path: report.scores.0.3 is the fourth score of the first channel.
    """
    errors = broken.errors() if isinstance(broken, RequestValidationError) else broken.errors(include_url=False)
    first = errors[0]
    kind, context = first["type"], first.get("ctx", {})
    if kind == "json_invalid":
        return MalformedJson("The body can't be read as JSON.", field="body", limit="one JSON object")
    path = [str(part) for part in first["loc"]]
    field = ".".join(part for place, part in enumerate(path) if not place or path[place - 1] != _TAGGED) or "body"
    limit = _limit_of(kind, context)
    return InvalidRequest(f"{field}: {_plain(first['msg'], limit)}", field=field, limit=limit)


def unexpected(error: Exception) -> Response:
    """500 without internals, or 503 for a full disk.

    The log gets the kind of error and where it occurred, but not its message, which may quote a body.
    """
    if disk_full(error):
        _log.error("the disk is full or read-only: %s", error)
        return problem_response(DiskFull(str(error)))
    places = "".join(traceback.format_tb(error.__traceback__))
    _log.error("unexpected %s.%s\n%s", type(error).__module__, type(error).__qualname__, places.rstrip())
    return problem_response(
        OwnfeedError("The server could not answer; its log tells the operator where the error occurred.")
    )


def install_problems(app: FastAPI) -> None:
    """Answer every error of `app` with a problem."""

    async def ours(_: Request, error: Exception) -> Response:
        assert isinstance(error, OwnfeedError)
        if error.status >= 500 and not isinstance(error, OverCapacity | CatalogueBehind):
            _log.error("%s: %s", error.code, error.detail)
        return problem_response(error)

    async def invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        refused = refusal_of(error)
        return _page(request, refused) if _is_read_by_a_person(request) else problem_response(refused)

    async def http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        refused = _of_starlette(error)
        if _is_read_by_a_person(request):
            return _page(request, refused)
        return problem_response(refused, headers=error.headers)

    app.add_exception_handler(OwnfeedError, ours)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, http)


def _is_read_by_a_person(request: Request) -> bool:
    """Whether a browser requests a page; there are no pages under /v1."""
    path, accepts = request.url.path, request.headers.get("accept", "")
    return request.method == "GET" and "text/html" in accepts and not path.startswith("/v1/")


def _page(request: Request, error: OwnfeedError) -> Response:
    """An error page for a person, with links to the pages; it needs neither style nor script."""
    title, words = (
        ("An Ownfeed backend", "Devices request news here. Readers' pages are on their own devices.")
        if request.url.path == "/"
        else (error.title, error.detail)
    )
    return HTMLResponse(
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><main><h1>{escape(title)}</h1><p>{escape(words)}</p>"
        '<p>Its operator\'s pages are <a href="/console">the console</a>.</p></main></html>',
        status_code=200 if request.url.path == "/" else error.status,
        headers={"Cache-Control": "no-store", "Content-Security-Policy": "default-src 'none'"},
    )


def _of_starlette(error: HTTPException) -> OwnfeedError:
    if error.status_code == 404:
        return NotFound()
    if error.status_code == 405:
        return MethodNotAllowed((error.headers or {}).get("Allow", "other methods"))
    return RequestRefused("The request can't be answered.")


def _limit_of(kind: str, context: Mapping[str, Any]) -> str | None:
    bounds = {"ge": "at least {}", "gt": "more than {}", "le": "at most {}", "lt": "less than {}"}
    for name, words in bounds.items():
        if name in context:
            return words.format(_number(context[name]))
    if kind == "too_long" or kind == "string_too_long":
        return f"at most {context['max_length']} {'characters' if kind == 'string_too_long' else 'entries'}"
    if kind == "too_short" or kind == "string_too_short":
        return f"at least {context['min_length']} {'characters' if kind == 'string_too_short' else 'entries'}"
    fixed = {
        "extra_forbidden": "no unknown fields",
        "missing": "required",
        "finite_number": "a finite number",
        "int_type": "an integer",
        "int_parsing": "an integer",
        "int_from_float": "an integer",
        "float_type": "a number",
        "float_parsing": "a number",
        "union_tag_not_found": "required",
    }
    if kind == "union_tag_invalid":
        return f"one of {context['expected_tags']}"
    if kind == "string_pattern_mismatch":
        return f"of the form {context['pattern']}"
    return fixed.get(kind)


def _number(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _plain(message: str, limit: str | None) -> str:
    """Pydantic's own message may quote a value ('got 7').

    If there is a limit, the limit becomes the message.
    """
    if limit is not None:
        return f"{limit}."
    return message.removeprefix("Value error, ").rstrip(".") + "."
