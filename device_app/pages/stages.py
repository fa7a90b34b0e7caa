"""The stages of a request in plain words."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class StageWords:
    """A short name for tables and one sentence that says what happens."""

    name: str
    sentence: str


_DEVICE = {
    "store": StageWords("Read the store", "Your clicks, cards and vectors are read from the file on this device."),
    "cluster": StageWords("Group your clicks", "Your last clicks are grouped into interests, here."),
    "decompose": StageWords("Score the interests", "Each interest is written as scores of the basic interests."),
    "noise": StageWords("Add noise", "What would be told is covered with noise, or the report drawn before is taken."),
    "search": StageWords("Search here", "The pool's codes on this device are searched for your news."),
    "encode": StageWords("Pack the request", "The request is written as bytes."),
    "network": StageWords("Wait for the newsroom", "From the first byte sent to the last received; the server's part "
                          "is drawn inside it."),
    "decode": StageWords("Unpack the answer", "The answer's bytes become cards and vectors."),
    "rank": StageWords("Rank", "The candidates are scored for you by the model on this device."),
    "build": StageWords("Lay out the feed", "Each piece of news gets its place on the page and its reason."),
}  # fmt: skip
_SERVER = {
    "decode": StageWords("Read the request", "The server checks the request."),
    "aggregate": StageWords("Rebuild directions", "The scores become one direction a channel."),
    "search": StageWords("Search", "News near each direction are looked up."),
    "merge": StageWords("Merge", "The channels' finds become one list."),
    "encode": StageWords("Pack the answer", "The list is written as bytes."),
}


def stage_words(name: str, place: str) -> StageWords:
    """The words of a stage; one not known here keeps its name and says no more."""
    known = (_SERVER if place == "server" else _DEVICE).get(name)
    return known or StageWords(name.replace("_", " ").capitalize(), "A stage without a description.")
