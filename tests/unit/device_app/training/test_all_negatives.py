"""Uni-FedRec's negatives. Oracle: "all news that are displayed to but not clicked by this user", as sets."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np

from device_app.store.clicks import Click
from device_app.store.impressions import Shown
from device_app.training.samples import ReaderSamples
from device_app.training.tasks import TASKS

AT = datetime(2026, 11, 28, tzinfo=UTC)
FEEDS = (
    Shown("second", AT + timedelta(hours=1), shown=("a", "e", "f"), clicked=("e",)),
    Shown("first", AT, shown=("a", "b", "c", "d"), clicked=("a",)),
)


def reader() -> ReaderSamples:
    clicks = [
        Click(1, "a", "first", AT + timedelta(minutes=1)),
        Click(2, "e", "second", AT + timedelta(minutes=61)),
    ]
    vectors = {name: np.eye(8, dtype=np.float32)[row] for row, name in enumerate("abcdefgh")}
    return ReaderSamples(feeds=FEEDS, clicks=clicks, vectors=vectors, others=("g",))


def negatives(samples: ReaderSamples) -> set[str]:
    drawn = samples.draw(negatives=64, limit=8, rng=np.random.default_rng(5))
    assert len(drawn) == 1, "only the second feed's click has an earlier one"
    assert drawn.candidates[0, 0].argmax() == "abcdefgh".index("e")
    return {"abcdefgh"[row] for row in drawn.candidates[0, 1:].argmax(axis=1)}


def test_recall_draws_negatives_from_everything_displayed_and_never_clicked() -> None:
    assert negatives(reader().with_all_negatives()) == {"b", "c", "d", "f", "g"}


def test_ranking_draws_negatives_from_the_same_feed() -> None:
    assert negatives(reader()) == {"a", "f"}


def test_only_recall_training_draws_negatives_from_all_displayed_stories() -> None:
    assert [name for name, kind in TASKS.items() if kind.all_negatives] == ["recall"]
