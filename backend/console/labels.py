"""Kinds of requests and their stages in plain words."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RequestLabels:
    """A short name for tables and one sentence that says what happens."""

    name: str
    sentence: str


_REQUESTS = {
    "recall": RequestLabels("Recall", "A device sends a report and gets the news near it."),
    "front": RequestLabels("Default list", "The list of recent news that every device gets."),
    "bodies": RequestLabels("Texts", "The texts of a whole returned list at once."),
}
_STAGES = {
    "decode": RequestLabels("Read the request", "The bytes are checked and become a report."),
    "aggregate": RequestLabels("Rebuild directions", "The scores become one direction a channel."),
    "search": RequestLabels("Search", "News near each direction are looked up in the index."),
    "merge": RequestLabels("Merge", "The channels' finds become one list."),
    "encode": RequestLabels("Pack the answer", "The list is written as bytes."),
    "total": RequestLabels("In all", "From the first byte read to the last one written, all waiting included."),
}


def of_request(kind: str) -> RequestLabels:
    """The words of a kind of request; one not known here keeps its name."""
    return _REQUESTS.get(kind) or RequestLabels(kind.replace("_", " ").capitalize(), "")


def of_stage(stage: str) -> RequestLabels:
    """The words of a stage; one not known here keeps its name."""
    return _STAGES.get(stage) or RequestLabels(stage.replace("_", " ").capitalize(), "")
