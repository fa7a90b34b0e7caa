"""Renders the console's pages from web/templates/console and serves their style sheets and scripts.

Measurements of a release or round become lines with units, requests and stages get labels.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse, Response
from jinja2 import Environment, FunctionLoader, StrictUndefined

from protocol.formatting import ago, milliseconds, number, size
from protocol.text_catalogue import TextCatalogue, read_templates

HASH = re.compile(r"[0-9a-f]{32,}")
HASH_SHOWN = 12
NUMBERS_SHOWN = 12


def fact_lines(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(name, value) of each fact; the names of nested mappings are joined."""
    return list(_lines((), facts))


def _lines(path: tuple[str, ...], value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _lines((*path, str(name)), inner)
        return
    names, unit = list(path), ""
    for each in ("_ms", "_sec", "_bytes"):
        place = next((at for at, name in enumerate(names) if name.endswith(each)), None)
        if place is not None:
            names[place], unit = names[place].removesuffix(each), each
    yield ", ".join(name.replace("_", " ") for name in names), _written(value, unit)


def _written(value: Any, unit: str) -> str:
    if isinstance(value, list | tuple):
        shown = " ".join(_written(each, unit) for each in value[:NUMBERS_SHOWN])
        return shown + (f" and {len(value) - NUMBERS_SHOWN:,} more" if len(value) > NUMBERS_SHOWN else "")
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "–"}[value]
    if isinstance(value, int | float):
        match unit:
            case "_ms":
                return milliseconds(value)
            case "_bytes":
                return size(int(value))
            case "_sec":
                return f"{value:,.4g} s"
        return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
    return HASH.sub(lambda found: f"{found[0][:HASH_SHOWN]}…", str(value))


WORDS = TextCatalogue("backend.console", "words.toml")


@dataclass(frozen=True)
class RequestLabels:
    """A short name for tables, and a sentence that describes the request or stage."""

    name: str
    sentence: str


_REQUESTS = {kind: RequestLabels(*pair) for kind, pair in WORDS.pairs("requests").items()}
_MEASURED = {stage: RequestLabels(*pair) for stage, pair in WORDS.pairs("measured").items()}
_STAGES = {stage: RequestLabels(*pair) for stage, pair in WORDS.pairs("stages").items()}


def of_request(kind: str) -> RequestLabels:
    """The labels of a kind of request; an unknown kind keeps its name."""
    return _REQUESTS.get(kind) or RequestLabels(kind.replace("_", " ").capitalize(), "")


def of_stage(stage: str) -> RequestLabels:
    """The labels of a stage; an unknown stage keeps its name."""
    return _STAGES.get(stage) or RequestLabels(stage.replace("_", " ").capitalize(), "")


def of_measured(stage: str, place: str) -> RequestLabels:
    """The labels of a stage between a report and a page; an unknown stage keeps its name."""
    return (None if place == "server" else _MEASURED.get(stage)) or of_stage(stage)


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
            of_request=of_request,
            of_stage=of_stage,
            of_measured=of_measured,
            ago=lambda then: ago(then, datetime.now(UTC)),
            moment=lambda at: f"{at.astimezone():%-d %b %H:%M:%S}",
        )

    def page(self, request: Request, template: str, *, status_code: int = 200, **values: Any) -> HTMLResponse:
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
        if version != self.version or name not in self.static:
            return Response(status_code=404)
        kept = {"cache-control": "private, max-age=31536000, immutable", "x-content-type-options": "nosniff"}
        return Response(self.static[name], media_type=MEDIA_TYPES[Path(name).suffix], headers=kept)


def _web(name: str) -> Path:
    return Path(str(files("web").joinpath(name)))
