"""Kinds of requests and their stages in plain words."""

from __future__ import annotations

from dataclasses import dataclass

from device_app.prose import Prose

WORDS = Prose("backend.console", "words.toml")


@dataclass(frozen=True)
class RequestLabels:
    """A short name for tables and one sentence that says what happens."""

    name: str
    sentence: str


_REQUESTS = {kind: RequestLabels(*pair) for kind, pair in WORDS.pairs("requests").items()}
_STAGES = {stage: RequestLabels(*pair) for stage, pair in WORDS.pairs("stages").items()}


def of_request(kind: str) -> RequestLabels:
    """The words of a kind of request; one not known here keeps its name."""
    return _REQUESTS.get(kind) or RequestLabels(kind.replace("_", " ").capitalize(), "")


def of_stage(stage: str) -> RequestLabels:
    """The words of a stage; one not known here keeps its name."""
    return _STAGES.get(stage) or RequestLabels(stage.replace("_", " ").capitalize(), "")
