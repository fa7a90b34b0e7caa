"""Mutations of JSON reach the rules of its readers. Oracles: the JSON parser, and the messages' own errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from tests.qa.fuzz.json_mutator import JsonMutator
from tests.qa.fuzz.targets import SEEDS, message_kinds

ROUNDS = 400
MESSAGES = sorted((SEEDS / "messages").iterdir())


def _of_bytes(data: bytes, limit_bytes: int) -> bytes:
    return (data + b"!")[:limit_bytes]


@pytest.mark.parametrize("path", MESSAGES, ids=lambda path: path.name)
def test_mutations_of_a_message_keep_its_type_and_break_every_field(path: Path) -> None:
    mutate = JsonMutator(_of_bytes)
    seed = path.read_bytes()
    name, _, content = seed.partition(b"\n")
    kind, read, wrong = message_kinds()[name], 0, set()
    fields = set(json.loads(content)) & set(kind.model_fields)  # a problem may have more than its own
    for number in range(ROUNDS):
        its_name, _, mutated = mutate(seed, 4_096, number).partition(b"\n")
        assert its_name == name
        try:
            json.loads(mutated)
        except ValueError:
            continue
        read += 1
        try:
            kind.model_validate_json(mutated)
        except ValidationError as refused:
            wrong |= {error["loc"][0] for error in refused.errors() if error["loc"]}
    assert read >= 0.75 * ROUNDS
    assert fields <= wrong


def test_mutator_changes_one_line_of_several_within_the_size_limit() -> None:
    mutate = JsonMutator(_of_bytes)
    lines = (b'{"a": [1, 2]}', b"no JSON", b'{"b": "text"}')
    changed = set()
    for number in range(ROUNDS):
        found = mutate(b"\n".join(lines), 120, number)
        assert len(found) <= 120
        changed |= {place for place, (was, now) in enumerate(zip(lines, found.split(b"\n"), strict=True)) if was != now}
    assert {0, 2} <= changed
    assert mutate(b"no JSON", 120, 1) == b"no JSON!"
