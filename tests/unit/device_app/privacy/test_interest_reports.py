"""The default report: interest clusters decomposed on basic interests, the largest by randomised response.

Oracles: the prototype nearest to the mean click, which is the largest weight by quota for any clusters (the mean of
means is the mean); and the likelihood ratio that epsilon allows, for the attacker.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from device_app.privacy.accounting.ledger import Ledger
from device_app.privacy.mechanisms.code import RandomisedCode, nearest
from device_app.privacy.noise_sources import SeededNoise
from device_app.privacy.reporter import ReportInput, user_vector
from device_app.reading.click_clusters import average_linkage
from device_app.reading.decomposition import on_prototypes
from device_app.reports.reporters import InterestReporter
from device_app.store.database import Database
from device_app.store.ledger_entries import LedgerRepository
from device_app.store.report_memo import DrawnReports, ReportMemo
from protocol.releases import BlobRef, Codebook
from tests.doubles.sealing import allowing, sealed_by
from tests.unit.device_app.privacy.conftest import TurnedClock
from tests.unit.device_app.privacy.test_code_reports import CODE

K, D = 16, 32
NONE = np.zeros(0, dtype=np.int64)


def reporter(seed: int = 0, *, epsilon: float = 4.0) -> InterestReporter:
    prototypes = unit(np.random.default_rng(seed).normal(size=(K, D)))
    book = Codebook(size=K, epsilon=epsilon, prototypes=BlobRef(sha256="ab" * 32, size_bytes=1))
    return InterestReporter(mechanism=RandomisedCode(K, epsilon), codebook=book, prototypes=prototypes)


def unit(rows: NDArray[np.float64]) -> NDArray[np.float32]:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)


def report_input(
    by: InterestReporter, clicks: NDArray[np.float32], labels: NDArray[np.int64], searched: object = None
) -> ReportInput:
    given = ReportInput(clicks, searched=searched)  # type: ignore[arg-type]
    return by.decomposed(given, labels, on_basis=lambda: pytest.fail("the release's graph takes no part"))


def test_interest_with_the_largest_weight_is_the_prototype_nearest_to_the_mean_click() -> None:
    rng = np.random.default_rng(1)
    for seed in range(50):
        by, clicks = reporter(seed), unit(rng.normal(size=(int(rng.integers(1, 50)), D)))
        labels = average_linkage(clicks, 1.3, 5)
        assert by.value(report_input(by, clicks, labels)) == nearest(by.prototypes, user_vector(clicks))
        searched = unit(rng.normal(size=(1, D)))[0]
        both = ReportInput(clicks, searched=searched).vector
        assert by.value(report_input(by, clicks, labels, searched)) == nearest(by.prototypes, both)


def test_total_weights_are_bitwise_equal_for_any_clusters() -> None:
    rng = np.random.default_rng(2)
    by, clicks = reporter(), unit(rng.normal(size=(50, D)))
    whole = on_prototypes(by.prototypes, clicks, np.zeros(50, dtype=np.int64)).sum(axis=0)
    for _ in range(50):
        labels = rng.integers(0, 5, size=50)
        assert (on_prototypes(by.prototypes, clicks, labels).sum(axis=0) == whole).all()
    plain = clicks.astype(np.float64) @ by.prototypes.T
    assert (np.array([sum(column) for column in plain.T]) != plain[::-1].sum(axis=0)).any(), "plain sums would differ"


def test_reader_is_shown_each_interest_and_the_weights_that_chose_the_number() -> None:
    by = reporter()
    clicks = by.prototypes[[3, 3, 3, 8]]
    value, weights, *interests = by.shown(report_input(by, clicks, np.array([0, 0, 0, 1])))
    assert value == (3.0,)
    assert [row[0] for row in interests] == [3, 1]
    assert (interests[0][1 + 3], interests[1][1 + 8]) == (1, 1), "each interest lies on its own prototype"
    by_quota = 0.75 * np.array(interests[0][1:]) + 0.25 * np.array(interests[1][1:])
    assert weights == pytest.approx(by_quota, abs=1e-4)


def test_reader_without_vectors_reports_number_zero_and_invalid_vectors_are_refused() -> None:
    by = reporter()
    assert by.value(report_input(by, np.empty((0, D), np.float32), NONE)) == 0
    assert by.value(None) == -1
    with pytest.raises(ValueError, match="not finite"):
        report_input(by, np.full((1, D), np.inf, np.float32), np.zeros(1, np.int64))


def test_interest_number_is_drawn_and_charged_once_even_if_clusters_change(
    database: Database, memo: ReportMemo, clock: TurnedClock
) -> None:
    settings = CODE.model_copy(update={"mode": "interest"})
    ledger = Ledger(LedgerRepository(database), allowing(settings), clock)
    by = reporter()
    clicks = by.prototypes[[3, 3, 8]]
    sent = {
        sealed_by(by, report_input(by, clicks, np.array(labels)), ledger, memo, clicks=3, settings=settings).payload
        for labels in ([0, 0, 1], [0, 1, 2], [0, 0, 0])
    }
    assert len(sent) == 1
    assert (ledger.total("reports"), DrawnReports(database).distinct("interest")) == (4, 1)
    kept = memo.latest()
    assert kept is not None
    assert kept.clear[0] == (3.0,)
    assert [row[0] for row in kept.clear[2:]] == [3], "the clusters of the latest sealing"


def test_attacker_guesses_no_better_than_epsilon_allows() -> None:
    # An attacker knows both readers and names the one whose number arrived; the bound is e^eps / (1 + e^eps).
    by, draws = reporter(epsilon=1.0), 6_000
    one, other = (report_input(by, by.prototypes[[k, k, k]], np.zeros(3, np.int64)) for k in (3, 8))
    noise = SeededNoise("attacker")
    codes = [np.array([by.make(each, noise)[0].code for _ in range(draws)]) for each in (one, other)]
    found = [np.bincount(each, minlength=K) / draws for each in codes]
    likelier = np.maximum(found[0], found[1]).sum() / 2
    allowed = math.e / (1 + math.e)
    assert likelier <= allowed + 0.02
    truth = by.mechanism.truth
    assert likelier == pytest.approx(0.5 + (truth - (1 - truth) / (K - 1)) / 2, abs=0.03), "the attack isn't blind"
