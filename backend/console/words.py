"""Kinds of requests and their stages in plain words."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Words:
    """A short name for tables and one sentence that says what happens."""

    name: str
    sentence: str


_REQUESTS = {
    "recall": Words("Recall", "A device sends a report and gets the news near it."),
    "front": Words("Common list", "The list of recent news that every device gets."),
    "bodies": Words("Texts", "The texts of a whole returned list at once."),
}
_STAGES = {
    "decode": Words("Read the request", "The bytes are checked and become a report."),
    "aggregate": Words("Rebuild directions", "The scores become one direction a channel."),
    "search": Words("Search", "News near each direction are looked up in the index."),
    "merge": Words("Merge", "The channels' finds become one list."),
    "encode": Words("Pack the answer", "The list is written as bytes."),
    "total": Words("In all", "From the first byte read to the last one written, all waiting included."),
}


def of_request(kind: str) -> Words:
    """The words of a kind of request; one not known here keeps its name."""
    return _REQUESTS.get(kind) or Words(kind.replace("_", " ").capitalize(), "")


def of_stage(stage: str) -> Words:
    """The words of a stage; one not known here keeps its name."""
    return _STAGES.get(stage) or Words(stage.replace("_", " ").capitalize(), "")
