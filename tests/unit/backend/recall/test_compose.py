"""Aggregation against the golden of ALGORITHMS 2.3 and its facts; the decoders' refusals."""

from __future__ import annotations

import typing

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from backend.errors import InvalidRequest
from backend.recall.bayes import code_weights
from backend.recall.compose import DECODERS, Coded, Interests, Weighted, aggregate, compose, counts_of_shares
from backend.recall.served import ServedCodebook, ServedProjection, ServedRelease
from device_app.wire.recall import (
    BasisL1Report,
    BasisLaplaceReport,
    CodeReport,
    DirectionReport,
    NoReport,
    Report,
    SubsetReport,
    TopicsReport,
)

VALUES = np.array([[2, 0], [0, 2], [1, 1]], dtype=np.float32)
scores_2x3 = arrays(np.float64, (2, 3), elements=st.floats(-50, 50))


def release(channels_limit: int = 5) -> ServedRelease:
    return ServedRelease("r1", "test-encoder", VALUES, channels_limit)


def test_aggregation_gives_the_golden_vectors_of_section_2_3_with_and_without_noise() -> None:
    scores = np.array([[0.6, 0.3, -0.5], [0.5, 0.5, -0.5]])
    np.testing.assert_allclose(aggregate(scores, VALUES), [[1.124986, 0.875014], [1.0, 1.0]], atol=1e-6)


@given(scores_2x3, st.floats(-100, 100))
def test_adding_a_constant_to_a_channel_changes_nothing(scores: np.ndarray, constant: float) -> None:
    np.testing.assert_allclose(aggregate(scores + constant, VALUES), aggregate(scores, VALUES), atol=1e-5)


@given(scores_2x3)
def test_interest_vectors_stay_in_the_hull_of_the_values(scores: np.ndarray) -> None:
    vectors = aggregate(scores, VALUES)
    assert (vectors >= -1e-6).all()
    np.testing.assert_allclose(vectors.sum(axis=1), 2.0, atol=1e-5)  # all three values sum to 2


def test_the_largest_scores_the_wire_allows_do_not_overflow() -> None:
    assert np.isfinite(aggregate(np.array([[1e4, -1e4, 1e4]]), VALUES)).all()


def test_a_report_of_another_width_is_refused_naming_the_basis_size() -> None:
    with pytest.raises(InvalidRequest) as refused:
        compose(BasisLaplaceReport(scores=((0.1, 0.2),), counts=(1,)), release())
    assert refused.value.field == "report.scores"
    assert refused.value.limit == "exactly 3 scores a channel"
    assert "r1" in refused.value.detail


def test_more_channels_than_the_release_takes_are_refused() -> None:
    report = BasisLaplaceReport(scores=((0.0, 0.0, 0.0),) * 3, counts=(1, 1, 1))
    with pytest.raises(InvalidRequest, match="3 channels; release r1 takes at most 2"):
        compose(report, release(channels_limit=2))


def test_no_report_gives_no_channels() -> None:
    interests = compose(NoReport(), release())
    assert interests.counts == ()
    assert interests.vectors.shape == (0, 2)


def test_every_kind_of_report_on_the_wire_has_a_decoder() -> None:
    union = typing.get_args(Report)[0]
    kinds = {kind.model_fields["kind"].default for kind in typing.get_args(union)}
    assert kinds == set(DECODERS)
