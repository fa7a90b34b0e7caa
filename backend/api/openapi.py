"""Completes the OpenAPI document of our routes, and parses request bodies as messages of the protocol.

FastAPI doesn't know bodies that the routes read themselves, nor errors as problem+json.
"""

import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any, TypeVar

from fastapi import FastAPI, Request
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel, ValidationError

from backend.errors import UnsupportedMediaType
from backend.server.problems import refusal_of
from protocol.ids import PROBLEM_MEDIA_TYPE, Message, Problem

JSON = "application/json"
REFERENCE = "#/components/schemas/{model}"
MEANINGS: Mapping[int, str] = {
    204: "Nothing now.",
    304: "The client has it already.",
    400: "The request can't be read, or is of another version of the protocol.",
    401: "The operator's token is needed.",
    403: "No place in the round.",
    404: "No such thing here.",
    408: "The body arrived too slowly.",
    409: "It doesn't fit what is under way or came before.",
    410: "Too old by now.",
    413: "The body is too large.",
    415: "The body has the wrong content type.",
    422: "A field is not valid.",
    429: "This address asks too often.",
    503: "Not now: too much to do, or still being made.",
}
EVERYWHERE = (400, 429, 503)
"""Errors of every route: another protocol version, too many requests from one address, or from all."""
WITH_BODY = (408, 413, 415, 422)
_BINARY = {"type": "string", "format": "binary"}


def answers(*refusals: int, also: Mapping[int, type[BaseModel] | str | None] | None = None) -> dict[int | str, Any]:
    """A route's `responses`: a problem for each error status, including those of every route, and other answers.

    also: other answers by status: a message, bytes of a media type, or nothing.
    """
    found: dict[int | str, Any] = {}
    for status, content in (also or {}).items():
        found[status] = {"description": MEANINGS.get(status, "The answer.")}
        if isinstance(content, str):
            found[status]["content"] = {content: {"schema": _BINARY}}
        elif content is not None:
            found[status]["model"] = content
    problem = {"schema": {"$ref": REFERENCE.format(model=Problem.__name__)}}
    for status in sorted({*refusals, *EVERYWHERE}):
        found[status] = {"description": MEANINGS[status], "content": {PROBLEM_MEDIA_TYPE: problem}}
    return found


def takes(kind: type[Message] | str) -> dict[str, Any]:
    """A route's `openapi_extra`: a body that is this message as JSON, or bytes of this media type."""
    if isinstance(kind, str):
        content = {kind: {"schema": _BINARY}}
    else:
        content = {JSON: {"schema": {"$ref": REFERENCE.format(model=kind.__name__)}}}
        _TAKEN[kind.__name__] = kind
    return {"requestBody": {"required": True, "content": content}}


def document(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document of an app with all messages that its routes name."""
    made = get_openapi(title=app.title, version=app.version, routes=app.routes)
    schemas = made.setdefault("components", {}).setdefault("schemas", {})
    kinds: list[type[BaseModel]] = [*_TAKEN.values(), Problem]
    for kind in kinds:
        schema = kind.model_json_schema(ref_template=REFERENCE)
        for name, part in schema.pop("$defs", {}).items():
            schemas.setdefault(name, part)
        schemas.setdefault(kind.__name__, schema)
    _count_characters(schemas)
    _add_examples(made)
    return made


def _add_examples(made: dict[str, Any]) -> None:
    """Add an example to every parameter, and to every JSON body and answer, from examples.json.

    Parameters are keyed by name, messages by their name, and answers that are no message by their route.
    """
    examples = json.loads(files(__package__).joinpath("examples.json").read_text(encoding="utf-8"))
    for path, operations in made["paths"].items():
        for method, operation in operations.items():
            for parameter in operation.get("parameters", ()):
                parameter["example"] = examples["parameters"][parameter["name"]]
            done = [answer for status, answer in operation["responses"].items() if status.startswith("2")]
            for content in (each.get("content", {}) for each in (operation.get("requestBody", {}), *done)):
                for media_type in (each for each in content if each.endswith("json")):
                    part = content[media_type]
                    part["example"] = _example(examples, f"{method.upper()} {path}", part["schema"])


def _example(examples: Mapping[str, Any], route: str, schema: Mapping[str, Any]) -> Any:
    if schema.get("type") == "array" and "$ref" in schema["items"]:
        return [_example(examples, route, schema["items"])]
    return examples["messages"][schema["$ref"].rpartition("/")[2]] if "$ref" in schema else examples["answers"][route]


def _count_characters(schema: Any) -> None:
    """Convert length limits of bytes fields, which pydantic gives in bytes, to characters of their base64 form."""
    if isinstance(schema, dict):
        if schema.get("contentEncoding") == "base64" or schema.get("format") == "base64url":
            if "minLength" in schema:
                schema["minLength"] = -(-schema["minLength"] * 4 // 3)  # without padding
            if "maxLength" in schema:
                schema["maxLength"] = -(-schema["maxLength"] // 3) * 4
        for part in schema.values():
            _count_characters(part)
    elif isinstance(schema, list):
        for part in schema:
            _count_characters(part)


_TAKEN: dict[str, type[Message]] = {}


M = TypeVar("M", bound=BaseModel)


def require_media_type(request: Request, expected: str) -> None:
    """Raise UnsupportedMediaType unless the body is declared as `expected`.

    Parameters such as charset are ignored.
    """
    declared = request.headers.get("content-type", "").split(";", 1)[0].strip().lower()
    if declared != expected:
        raise UnsupportedMediaType(expected)


def parse(kind: type[M], body: bytes) -> M:
    """Parse the body as a message.

    Raises MalformedJson, or InvalidRequest that names the field and its limit.
    """
    try:
        return kind.model_validate_json(body)
    except ValidationError as broken:
        raise refusal_of(broken) from None
