"""The basis of reports, trained in simulated rounds on readers of planted topics. Oracle: recall of the lists."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from backend.federation.systems import COMPOSED
from experiments.recall.basis_rounds import BasisPlan, ClickSamples, TrainedReaders, found_by, votes
from experiments.recall.measure import WarmSplit, held_out
from experiments.recall.modes import EmbeddedSplit
from protocol.protections import SecureSum

BASIS = COMPOSED["basis/secure/mean"]
BASIS_EXACT = COMPOSED["basis/exact/mean"]

DIM, TOPICS, NEWS, READERS = 24, 16, 960, 240


def unit(rows: np.ndarray) -> np.ndarray:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)


@pytest.fixture(scope="module")
def readers() -> TrainedReaders:
    """Readers of eight stories of one topic each."""
    draw = np.random.default_rng(5)
    centres = unit(draw.normal(size=(TOPICS, DIM)))
    topic = np.arange(NEWS) % TOPICS
    news = unit(centres[topic] + 0.8 * draw.normal(size=(NEWS, DIM)) / np.sqrt(DIM))
    mine = [
        draw.choice(np.flatnonzero(topic == reader % TOPICS), size=8, replace=False) for reader in range(READERS + 80)
    ]
    split = WarmSplit(tuple(mine[:READERS]), held_out(mine[READERS:]), NEWS)
    study = EmbeddedSplit(split, news, split.recent_clicks())
    return TrainedReaders(study, ClickSamples.of(split.train, news, 0), unit(centres + 0.01))


@pytest.fixture(scope="module")
def start() -> np.ndarray:
    """A basis that contains little of the topics."""
    draw = np.random.default_rng(6)
    return unit(draw.normal(size=(1, DIM)) + 0.3 * draw.normal(size=(TOPICS, DIM)))


def test_rounds_improve_the_lists_which_are_published_after_the_vote(
    readers: TrainedReaders, start: np.ndarray
) -> None:
    done = readers.train(BasisPlan(BASIS_EXACT, 60, READERS, 2), start, seed=1)
    before, after = (found_by(readers.study, each).mean(axis=0) for each in (start, done.served[-1]))
    assert done.published >= 1
    assert done.noise == 0
    assert after[0] > before[0] + 0.05


def test_draft_of_pure_noise_is_not_published_and_its_noise_is_reported(
    readers: TrainedReaders, start: np.ndarray
) -> None:
    loud = replace(BASIS, protection=SecureSum(clip=0.1, sigma=49_000))
    done = readers.train(BasisPlan(loud, 60, 60, 2), start, seed=1)
    assert done.published == 0
    assert done.noise > 0.9
    np.testing.assert_array_equal(done.served, np.stack([start] * 3))


def test_reader_without_clicks_votes_zeros(readers: TrainedReaders, start: np.ndarray) -> None:
    lists = readers.lists(start, np.zeros((0, DIM), np.float32))
    mine = readers.samples.of_readers(np.arange(3), held=True)
    none = replace(mine, reader=mine.reader[:0], vectors=mine.vectors[:0], clicked=mine.clicked[:0], held=mine.held[:0])
    assert not votes(lists, lists, none, 3, 4.0).any()
