"""Editions are bit for bit those of the recorded hashes.

An intended change of the newspaper (a wording, a table, what is drawn) replaces the old hash by the one that the
failing test names, in the same commit. Any other change must leave the hashes alone.
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
        "9669a66fbffd18666128aabfc9eb5a57ac3ef4d43a2a922c6d078a2f67a4d529",
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
        "d66cb1c2d043c44fe975cd44426fcdf4e921d78062a9b34cce1e46736b39b500",
    ),
]


@pytest.mark.parametrize(("now", "seed", "articles", "days", "expected"), EDITIONS)
def test_edition_matches_its_golden_hash(now: datetime, seed: int, articles: int, days: int, expected: str) -> None:
    found = sha256()
    for article in edition(now, seed=seed, articles=articles, days=days):
        found.update(repr([str(value) for value in astuple(article)]).encode())
    assert found.hexdigest() == expected
