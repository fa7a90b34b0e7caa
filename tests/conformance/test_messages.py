"""Every message of the wire in both runtimes. Oracle: the Python wire.

Random messages of each kind (100; 1,000 in `make qa`) have equal bytes. Both runtimes refuse invalid ones and name the
same field.
"""

from __future__ import annotations

import inspect
from importlib import import_module
from pkgutil import iter_modules
from random import Random
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

import protocol
from protocol.ids import Message
from protocol.recall import DefaultListAnswer
from tests.conformance.edges import at_the_edges
from tests.conformance.node_end import ask_node
from tests.conformance.random_messages import KINDS, NOT_OF_A_DEVICE, Drawing, as_json, damaged
from tests.doubles.long_form import by_length
from tests.doubles.wire_messages import CARD, EXAMPLES

DRAWN, DAMAGED, WHOLE = by_length(100, long=1_000), by_length(30, long=60), 40
"""Messages of a kind; of them so many with one thing changed, and so many in which fields are put at their limits."""
TOLD_APART = {"release": ("constrained-int", "constrained-str")}
"""Fields of two types, and what pydantic adds to the way to them."""

pytestmark = [pytest.mark.node, pytest.mark.long_form]


def outcome(kind: type[BaseModel], text: str) -> dict[str, Any]:
    """Return the bytes that the Python wire makes of a text, or the paths of all its errors."""
    try:
        return {"written": kind.model_validate_json(text).model_dump_json()}
    except ValidationError as refused:
        ways = [error["loc"] for error in refused.errors(include_url=False, include_input=False, include_context=False)]
        return {"ways": [_without_types(way) for way in ways]}


def _without_types(way: tuple[str | int, ...]) -> list[str | int]:
    return [step for place, step in enumerate(way) if place == 0 or step not in TOLD_APART.get(str(way[place - 1]), ())]


@pytest.fixture(scope="module")
def outcomes() -> dict[str, list[tuple[str, dict[str, Any], dict[str, Any]]]]:
    """Return by 'drawn', 'damaged', 'edges' and 'examples' each text with the outcome at both ends."""
    texts: list[tuple[str, str, str]] = []
    seen: set[tuple[str, str]] = set()
    for name, kind in KINDS.items():
        rng = Random(f"conformance {name}")
        drawing = Drawing(kind, rng)
        drawn = [drawing.message() for _ in range(DRAWN)]
        texts += [("drawn", name, as_json(each)) for each in drawn]
        texts += [("damaged", name, as_json(damaged(rng.choice(drawn), rng))) for _ in range(DAMAGED)]
        for each in drawn[:WHOLE]:
            texts += [("edges", name, as_json(changed)) for changed in at_the_edges(drawing.schema, each, seen)]
    texts += [
        ("examples", type(each).__name__, each.model_dump_json()) for each in EXAMPLES if type(each).__name__ in KINDS
    ]
    questions = [("message", (name, text)) for _, name, text in texts]
    answers = ask_node(questions)
    found: dict[str, list[tuple[str, dict[str, Any], dict[str, Any]]]] = {group: [] for group, _, _ in texts}
    for (group, name, text), answer in zip(texts, answers, strict=True):
        found[group].append((f"{name}: {text[:2_000]}", outcome(KINDS[name], text), answer))
    return found


def test_every_wire_message_is_generated() -> None:
    modules = [import_module(f"protocol.{each.name}") for each in iter_modules(protocol.__path__)]
    kinds = {
        name
        for module in modules
        for name, each in inspect.getmembers(module, inspect.isclass)
        if issubclass(each, Message) and each is not Message
    }
    assert kinds - NOT_OF_A_DEVICE <= KINDS.keys()
    assert len(KINDS) > 50


def test_random_messages_have_equal_bytes_in_both_runtimes(outcomes: dict[str, Any]) -> None:
    assert len(outcomes["drawn"]) == DRAWN * len(KINDS)
    for text, python, browser in (*outcomes["drawn"], *outcomes["examples"]):
        assert "written" in python, (text, python)
        assert browser == python, text


def test_both_runtimes_refuse_the_same_messages_naming_the_same_field(outcomes: dict[str, Any]) -> None:
    refused = 0
    for text, python, browser in (*outcomes["damaged"], *outcomes["edges"]):
        if "written" in python:
            assert browser == python, text
            continue
        refused += 1
        assert "path" in browser, (text, python, browser)
        assert browser["path"] in python["ways"], (text, python, browser)
    assert refused > DAMAGED * len(KINDS) / 2 + 200
    assert len(outcomes["edges"]) > 500


def listed_after(answer: DefaultListAnswer, earlier: list[str]) -> dict[str, Any]:
    try:
        return {"listed": answer.listed(earlier)}
    except ValueError as refused:
        return {"refused": str(refused)}


def test_both_runtimes_make_the_same_list_of_changes() -> None:
    rng = Random("changes")
    asked = []
    for _ in range(200):
        earlier = [f"old{at}" for at in range(rng.randrange(6))]
        news = tuple(CARD.model_copy(update={"id": f"new{at}"}) for at in range(rng.randrange(3)))
        order = tuple(rng.choices(range(7), k=rng.randrange(6))) if rng.random() < 0.9 else None
        answer = DefaultListAnswer(release="r1", encoder="e", candidates=news, vectors=b"", order=order)
        asked.append((answer, earlier))
    found = [*ask_node([("listed_after", [each.model_dump_json(), earlier]) for each, earlier in asked])]
    assert found == [listed_after(*each) for each in asked]
    assert 20 < sum("refused" in each for each in found) < 180
    assert sum(len(each.get("listed", ())) > 1 for each in found) > 10


def test_browser_lacking_is_well_formed_accepts_and_refuses_the_same_messages() -> None:
    """Browsers have had String.prototype.isWellFormed since 2023."""
    text = '{"type":"t","title":"TITLE","status":400,"detail":"d"}'
    asked = [("Problem", text.replace("TITLE", title)) for title in ("plain", "😀", "\\ud83d", "\\ude00 \\ud83d")]
    older, newer = ([*ask_node([(what, each) for each in asked])] for what in ("message_by_older", "message"))
    assert older == newer
    assert ["written" in each for each in older] == [True, True, False, False]
