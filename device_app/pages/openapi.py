"""OpenAPI of the reader's pages: every route's answers, including refusals.

No address serves it: it is for tests and tools that have the app. It reveals no more than the source code.
"""

import json
from importlib.resources import files
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.responses import HTMLResponse, RedirectResponse
from fastapi.routing import APIRoute
from starlette.convertors import PathConvertor, register_url_convertor

from device_app.pages.local_origin import ENTER_PATH

HTML, JSON = "text/html", "application/json"
ANYTHING = "*/*"
MEANINGS = {
    204: "Done; for a script, which needs no page.",
    303: "Done, or already so: the page to go to.",
    400: "The form can't be read.",
    403: "Another site or another user asks, or a browser without the key.",
    404: "Not on this device.",
    422: "A field is not valid.",
    503: "Not now: no release yet, nothing reached, or a database at fault.",
}
GUARDED = 403
"""The status of refusals by the middleware.

Every route except static files answers it without the key, and every route answers it to other sites.
"""


class AnyPath(PathConvertor):
    """Matches the rest of any address; Starlette's own `path` ends at a line break."""

    regex = r"[\s\S]*"


register_url_convertor("any", AnyPath())


def page(*also: int) -> dict[str, Any]:
    """Return the keyword arguments of a route that answers with a page; also: further statuses."""
    return {"response_class": HTMLResponse, "responses": answers(*also)}


def form(*also: int) -> dict[str, Any]:
    """Return the keyword arguments of a route that takes a form and redirects to a page."""
    return {"response_class": RedirectResponse, "status_code": 303, "responses": answers(303, *also)}


def bytes_of(media_type: str, *also: int) -> dict[int | str, Any]:
    """Return a route's `responses` if it answers with this media type."""
    content = {media_type: {"schema": {"type": "string", "format": "binary"}}}
    return {200: {"description": "The answer.", "content": content}} | answers(*also)


def answers(*statuses: int, media_type: str = HTML) -> dict[int | str, Any]:
    """Return each status's meaning and content; a redirect and a 204 have no content."""
    schema = {"type": "object" if media_type == JSON else "string"}
    return {
        status: {"description": MEANINGS[status]}
        | ({} if status in (204, 303) else {"content": {media_type: {"schema": schema}}})
        for status in sorted(statuses)
    }


def refusals(route: APIRoute) -> dict[int | str, Any]:
    """Return answers that a page route doesn't declare: database faults and invalid forms.

    An invalid path parameter is answered like an address without a page.
    """
    takes = route.dependant
    may = {503: True, 400: takes.body_params, 404: takes.path_params, 422: takes.query_params or takes.body_params}
    return answers(*(status for status, does in may.items() if does))


def document(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document of the app, including the middleware's answers."""
    schema: dict[str, Any] = get_openapi(title=app.title, version=app.version, routes=app.routes)
    schema["paths"][ENTER_PATH] = {
        "get": {
            "summary": "Enter",
            "description": "The link that the start prints: sets the cookie and takes the key out of the address.",
            "operationId": "enter",
            "parameters": [{"name": "key", "in": "query", "required": True, "schema": {"type": "string"}}],
            "responses": {str(status): each for status, each in answers(303).items()},
        }
    }
    for operations in schema["paths"].values():
        for operation in operations.values():
            operation["responses"] |= {str(status): each for status, each in answers(GUARDED).items()}
    _add_examples(schema)
    return schema


def _add_examples(schema: dict[str, Any]) -> None:
    """Add examples from examples.json to every parameter (by name) and form (by route).

    No example contains a browser's key.
    """
    examples = json.loads(files(__package__).joinpath("examples.json").read_text(encoding="utf-8"))
    for path, operations in schema["paths"].items():
        for method, operation in operations.items():
            for parameter in operation.get("parameters", ()):
                interest = parameter["name"] == "key"
                parameter["example"] = (
                    examples["parameters"][parameter["name"]] if not interest else 7 if path != ENTER_PATH else "k" * 43
                )
            for form in operation.get("requestBody", {}).get("content", {}).values():
                form["example"] = examples["bodies"][f"{method.upper()} {path}"]
