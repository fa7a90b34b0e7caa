"""Formats measurements of a release or round as lines with units, and labels requests and stages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from protocol.formatting import milliseconds, size
from protocol.text_catalogue import TextCatalogue

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
_STAGES = {stage: RequestLabels(*pair) for stage, pair in WORDS.pairs("stages").items()}


def of_request(kind: str) -> RequestLabels:
    """The labels of a kind of request; an unknown kind keeps its name."""
    return _REQUESTS.get(kind) or RequestLabels(kind.replace("_", " ").capitalize(), "")


def of_stage(stage: str) -> RequestLabels:
    """The labels of a stage; an unknown stage keeps its name."""
    return _STAGES.get(stage) or RequestLabels(stage.replace("_", " ").capitalize(), "")
