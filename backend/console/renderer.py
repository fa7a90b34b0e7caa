"""Renders the console's pages from web/templates/console and serves their style sheets and scripts."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse, Response
from jinja2 import Environment, FunctionLoader, StrictUndefined

from backend.console import facts as labels
from backend.console.facts import fact_lines
from protocol.formatting import ago, milliseconds, number, size
from protocol.text_catalogue import TextCatalogue, read_templates

WORDS = TextCatalogue("backend.console", "words.toml")

HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
MEDIA_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


class TemplateRenderer:
    """Templates and static files, read from the package `web`."""

    def __init__(self) -> None:
        root = _web("static")
        self.static = {
            path.relative_to(root).as_posix(): path.read_bytes()
            for path in sorted(root.rglob("*"))
            if path.suffix in MEDIA_TYPES and path.parent != root / "device"
        }
        self.version = hashlib.sha256(b"\0".join(self.static.values())).hexdigest()[:12]
        self.templates = Environment(
            loader=FunctionLoader(read_templates(_web("templates")).get),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self.templates.globals["asset"] = lambda name: f"/console/static/{self.version}/{name}"
        self.templates.filters.update(
            size=size,
            ms=milliseconds,
            number=number,
            fact_lines=fact_lines,
            of_request=labels.of_request,
            of_stage=labels.of_stage,
            ago=lambda then: ago(then, datetime.now(UTC)),
            moment=lambda at: f"{at.astimezone():%-d %b %H:%M:%S}",
        )

    def page(self, request: Request, template: str, *, status_code: int = 200, **values: Any) -> HTMLResponse:
        """A page of the console."""
        text = self.templates.get_template(f"console/{template}.html").render(
            **{
                "here": request.url.path,
                "said": WORDS.table("said").get(request.query_params.get("said", "")),
                "problem": None,
            }
            | values,
        )
        return HTMLResponse(text, status_code=status_code, headers=HEADERS)

    def file(self, version: str, name: str) -> Response:
        """A static file of this version, or 404."""
        if version != self.version or name not in self.static:
            return Response(status_code=404)
        kept = {"cache-control": "private, max-age=31536000, immutable", "x-content-type-options": "nosniff"}
        return Response(self.static[name], media_type=MEDIA_TYPES[Path(name).suffix], headers=kept)


def _web(name: str) -> Path:
    return Path(str(files("web").joinpath(name)))
