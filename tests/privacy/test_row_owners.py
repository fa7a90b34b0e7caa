"""Counts how many devices contribute to each opened row of Efficient-FedRec, for cohorts of 60 of MIND's readers.

The attacker is a server that follows the protocol and looks for rows that are one device's gradient in plaintext. The
oracle counts by brute force, device by device, who contributes to which row.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from device_app.errors import NotEligible
from device_app.fleet.replay import Impression, RealReader, real_readers
from device_app.store.clicks import Click
from device_app.store.impressions import Shown
from device_app.training.gradients import Batch, Gradients, Params, no_gradients
from device_app.training.samples import ReaderSamples
from device_app.training.tasks.mark_news import MarkNewsTask
from device_app.training.tasks.split_gradient import NEWS_GRADIENT, TABLE, SplitGradientTask
from device_app.training.union_draws import NOTHING_DRAWN, UnionDraw, UnionDraws
from protocol.union import NEWS, UnionMarks, alone_chance, opened_rows

pytestmark = pytest.mark.data

COHORT, COHORTS, OWNERS, NEGATIVES, SAMPLES = 60, 3, 3, 4, 32
DROPOUT = 0.1


def samples_of(reader: RealReader, vector: NDArray[np.float32]) -> ReaderSamples:
    """Return the samples as a device would hold them, with the same vector for every article."""
    before = [
        Click(number, news_id, "", reader.first_at - timedelta(minutes=len(reader.history) - number))
        for number, news_id in enumerate(reader.history)
    ]
    feeds = [Shown(one.number, one.at, one.shown, one.clicked) for one in reader.impressions if one.clicked]
    clicks = [
        *before,
        *(
            Click(0, news_id, feed.feed_id, feed.at + timedelta(minutes=1))
            for feed in feeds
            for news_id in feed.clicked
        ),
    ]
    named = {news_id for feed in feeds for news_id in feed.shown} | set(reader.history)
    return ReaderSamples(feeds=feeds, clicks=clicks, vectors=dict.fromkeys(named, vector))


def touched(params: Params, batch: Batch) -> Gradients:
    """Return a gradient in exactly the rows of the batch's samples, in place of the graph's."""
    slopes = np.zeros_like(batch["table"])
    slopes[batch["click_rows"][batch["click_mask"] > 0]] = 1.0
    slopes[batch["candidate_rows"]] = 1.0
    return Gradients(0.0, {TABLE: slopes})


def round_of(replayed: list[ReaderSamples], number: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return owners [rows] of the opened rows as the union counts them, and who contributes to which [COHORT, rows]."""
    rng = np.random.default_rng(number)
    cohort = [replayed[place] for place in rng.choice(len(replayed), COHORT, replace=False)]
    listed = sorted({news_id for samples in cohort for news_id in samples.vectors})
    draws = [UnionDraws() for _ in cohort]
    marks = np.zeros((COHORT, len(listed)), dtype=np.float32)
    for place, samples in enumerate(cohort):
        task = MarkNewsTask(listed, 512, NEGATIVES, SAMPLES, partial(draws[place].keep, "round-1"))
        found = task.run({}, samples, no_gradients, rng)
        marks[place] = found.tensors[NEWS]
        assert found.paid is not None
        found.paid()
    owners = marks.sum(axis=0)
    rows = opened_rows(UnionMarks(owners_minimum=OWNERS), owners.astype(np.float64), COHORT)
    ids = [listed[row] for row in rows]
    gives = [
        SplitGradientTask(
            ids, np.ones((len(ids), 4), np.float32), NEGATIVES, SAMPLES, draw=draws[place].of("round-2", "round-1")
        )
        .run({}, samples, touched, rng)
        .tensors[NEWS_GRADIENT]
        .any(axis=1)
        for place, samples in enumerate(cohort)
    ]
    return owners[rows].astype(np.int64), np.array(gives)


@pytest.fixture(scope="module")
def replayed(shared_data: Path) -> list[ReaderSamples]:
    found = [
        samples_of(reader, np.ones(4, np.float32)) for reader in real_readers(shared_data / "mind-subset" / "dev", 709)
    ]
    return [samples for samples in found if samples.available]


@pytest.fixture(scope="module")
def rounds(replayed: list[ReaderSamples]) -> list[tuple[NDArray[np.int64], NDArray[np.bool_]]]:
    return [round_of(replayed, number) for number in range(COHORTS)]


@pytest.mark.parametrize("number", range(COHORTS))
def test_exactly_the_devices_counted_for_a_row_contribute_to_it(
    rounds: list[tuple[NDArray[np.int64], NDArray[np.bool_]]], number: int
) -> None:
    owners, gives = rounds[number]
    assert len(owners) > 20
    assert gives.sum(axis=0).tolist() == owners.tolist()
    assert not (gives.sum(axis=0) == 1).any(), "no row is one device's alone"


def test_dropout_isolates_rows_at_the_stated_rate(
    rounds: list[tuple[NDArray[np.int64], NDArray[np.bool_]]],
) -> None:
    rng, alone, chances = np.random.default_rng(5), [], []
    for owners, gives in rounds:
        chances.append(np.mean([alone_chance(int(each), DROPOUT) for each in owners]))
        alone.append([((gives[rng.random(COHORT) >= DROPOUT]).sum(axis=0) == 1).mean() for _ in range(400)])
    found, error = np.mean(alone), np.std(np.mean(alone, axis=0)) / 20
    assert found == pytest.approx(np.mean(chances), abs=float(4 * error)), "of 1,200 rounds; four standard errors"
    assert found < alone_chance(OWNERS, DROPOUT) == pytest.approx(0.027)


def test_drawing_new_gradient_samples_would_leave_rows_with_one_contributor(
    replayed: list[ReaderSamples],
) -> None:
    """Shows why the samples stay fixed: the same readers, each with a new draw for its gradients."""
    rng = np.random.default_rng(0)
    cohort = [replayed[place] for place in rng.choice(len(replayed), COHORT, replace=False)]
    named = [
        [set(samples.draw_rows(negatives=NEGATIVES, limit=SAMPLES, rng=rng).ids) for samples in cohort] for _ in "12"
    ]
    listed = sorted(set().union(*named[0]))
    owners, gives = ([sum(news_id in each for each in draw) for news_id in listed] for draw in named)
    opened = [row for row, count in enumerate(owners) if count >= OWNERS]
    assert sum(gives[row] == 1 for row in opened) > 0


def test_device_outside_the_union_sends_nothing_and_failed_marks_send_zeros() -> None:
    draws = UnionDraws()
    draws.keep("round-1", NOTHING_DRAWN)
    with pytest.raises(NotEligible, match="does not follow a union of articles"):
        draws.of("round-2", None)
    with pytest.raises(NotEligible, match="only devices that drew samples for round-3 take part"):
        draws.of("round-4", "round-3")
    with pytest.raises(ValueError, match="nothing was drawn"):
        draws.of("round-2", "round-1").samples()
    assert draws.of("round-3", "round-2") is NOTHING_DRAWN, "opened in the place of a failed one"


def test_draw_returns_requested_features_and_its_error_names_missing_ones() -> None:
    samples = samples_of(reader_of_two(), np.ones(4, np.float32))
    drawn = samples.draw_rows(negatives=1, limit=1, rng=np.random.default_rng(0))
    columns = np.arange(4, dtype=np.float32).reshape(1, 2, 2)
    draw = UnionDraw(type(drawn)(**{**vars(drawn), "features": columns}), frozenset(drawn.ids), ("similarity", "age"))
    found = draw.samples(("age",)).features
    assert found is not None
    assert found.tolist() == [[[1.0], [3.0]]]
    assert draw.samples().features is None
    with pytest.raises(ValueError, match="features: clicks"):
        draw.samples(("age", "clicks"))


def reader_of_two() -> RealReader:
    """A reader with one click before a list of two stories, of which one is opened."""
    at = datetime(2026, 11, 20, 8, tzinfo=UTC)
    return RealReader("U1", ("n0",), at, (Impression("1", at, ("n1", "n2"), ("n1",)),))
