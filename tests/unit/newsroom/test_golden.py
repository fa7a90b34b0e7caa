"""Editions bit for bit as they were written when their hashes were last put down.

Whoever changes the newspaper on purpose (a wording, a table, what is drawn) puts the hash that the failing test
names in place of the old one, in the same commit. A change that should not alter the paper must leave them be.
"""

from __future__ import annotations

from dataclasses import astuple
from datetime import UTC, datetime
from hashlib import sha256

import pytest

from newsroom.edition import edition

EDITIONS = [
    (
        datetime(2026, 3, 18, 12, tzinfo=UTC),
        7,
        600,
        14,
        "9db9b8ddfcadcb5753e4431a3b47bf9eecc88143a7ba9b8d8640e1bfcf7761a3",
    ),
    (
        datetime(2026, 7, 1, 6, tzinfo=UTC),
        8,
        300,
        3,
        "db7776b2a5ed4a59856c08e34ad8d3dd26233409bcc2c2994e21516e082f6ef9",
    ),
    (
        datetime(2025, 12, 30, 23, 59, tzinfo=UTC),
        123,
        300,
        21,
        "b10bdb2efd0fdabf1c88fac4bfbe5e43089abf0c4cfcba77130ade4e3609a60b",
    ),
]


@pytest.mark.parametrize(("now", "seed", "articles", "days", "expected"), EDITIONS)
def test_an_edition_is_what_it_was(now: datetime, seed: int, articles: int, days: int, expected: str) -> None:
    found = sha256()
    for article in edition(now, seed=seed, articles=articles, days=days):
        found.update(repr([str(value) for value in astuple(article)]).encode())
    assert found.hexdigest() == expected
