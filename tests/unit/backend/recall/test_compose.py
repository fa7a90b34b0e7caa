"""Aggregation compared with an example of Uni-FedRec by hand, its properties, and the decoders' refusals."""

from __future__ import annotations

import typing
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from backend.errors import InvalidRequest
from backend.recall.decode import (
    DECODERS,
    Coded,
    InterestVectors,
    PrototypeWeights,
    aggregate,
    compose,
    counts_of_shares,
)
from backend.recall.posterior import ScorePrior, code_weights
from backend.recall.served_releases import ServedCodebook, ServedRelease
from protocol.recall import (
    BasisL1Report,
    BasisLaplaceReport,
    CodeReport,
    NoReport,
    Report,
    SubsetReport,
    TopicsReport,
)

VALUES = np.array([[2, 0], [0, 2], [1, 1]], dtype=np.float32)
AS_SENT = ScorePrior(np.zeros(3), np.eye(3))
"""What is usual where there is no noise: the report is the scores."""
scores_2x3 = arrays(np.float64, (2, 3), elements=st.floats(-50, 50))


def release(channels_limit: int = 5) -> ServedRelease:
    priors = {"basis_laplace": AS_SENT, "basis_l1": AS_SENT}
    return ServedRelease("r1", "test-encoder", VALUES, channels_limit, score_readings=priors)


def test_aggregation_matches_the_golden_vectors_of_section_2_3() -> None:
    scores = np.array([[0.6, 0.3, -0.5], [0.5, 0.5, -0.5]])
    np.testing.assert_allclose(aggregate(scores, VALUES), [[1.124986, 0.875014], [1.0, 1.0]], atol=1e-6)


@given(scores_2x3, st.floats(-100, 100))
def test_constant_added_to_a_channel_changes_nothing(scores: np.ndarray, constant: float) -> None:
    np.testing.assert_allclose(aggregate(scores + constant, VALUES), aggregate(scores, VALUES), atol=1e-5)


@given(scores_2x3)
def test_interest_vectors_stay_in_the_hull_of_the_values(scores: np.ndarray) -> None:
    vectors = aggregate(scores, VALUES)
    assert (vectors >= -1e-6).all()
    np.testing.assert_allclose(vectors.sum(axis=1), 2.0, atol=1e-5)  # all three values sum to 2


def test_largest_allowed_scores_do_not_overflow() -> None:
    assert np.isfinite(aggregate(np.array([[1e4, -1e4, 1e4]]), VALUES)).all()


def test_report_of_another_width_is_refused_naming_the_basis_size() -> None:
    with pytest.raises(InvalidRequest) as refused:
        compose(BasisLaplaceReport(scores=((0.1, 0.2),), counts=(1,)), release())
    assert refused.value.field == "report.scores"
    assert refused.value.limit == "exactly 3 scores a channel"
    assert "r1" in refused.value.detail


def test_too_many_channels_are_refused() -> None:
    report = BasisLaplaceReport(scores=((0.0, 0.0, 0.0),) * 3, counts=(1, 1, 1))
    with pytest.raises(InvalidRequest, match="3 channels; release r1 takes at most 2"):
        compose(report, release(channels_limit=2))


def test_missing_report_gives_no_channels() -> None:
    interests = compose(NoReport(), release())
    assert isinstance(interests, InterestVectors)
    assert interests.counts == ()
    assert interests.vectors.shape == (0, 2)


def test_every_report_kind_on_the_wire_has_a_decoder() -> None:
    union = typing.get_args(Report)[0]
    kinds = {kind.model_fields["kind"].default for kind in typing.get_args(union)}
    assert kinds == set(DECODERS)


def coded_release(epsilon: float = 4.0) -> ServedRelease:
    """Codebooks of 4 and 8: axes of 16 dimensions."""
    books = {
        size: ServedCodebook(f"book{size}", epsilon, np.eye(size, 16, dtype=np.float32), np.full(size, 1 / size))
        for size in (4, 8)
    }
    return ServedRelease("r3", "test-encoder", np.eye(3, 16, dtype=np.float32), 5, books)


def test_code_report_is_decoded_to_its_codebook_and_code() -> None:
    wanted = compose(CodeReport(codebook=4, code=2), coded_release())
    assert isinstance(wanted, Coded)
    assert (wanted.codebook.name, wanted.code) == ("book4", 2)


@pytest.mark.parametrize(
    "report",
    [
        CodeReport(codebook=16, code=2),
        TopicsReport(codebook=16, weights=(0.0,) * 16),
        SubsetReport(codebook=16, topics=(1, 2)),
    ],
    ids=lambda report: report.kind,
)
def test_unknown_codebook_is_refused_naming_the_available_sizes(report: Report) -> None:
    with pytest.raises(InvalidRequest) as refused:
        compose(report, coded_release())
    assert (refused.value.field, refused.value.limit) == ("report.codebook", "one of 4, 8")
    assert "r3 has no codebook of 16" in refused.value.detail


def test_subset_is_weighted_by_bayes() -> None:
    wanted = compose(SubsetReport(codebook=4, topics=(3,)), coded_release())
    assert isinstance(wanted, PrototypeWeights)
    np.testing.assert_array_equal(wanted.weights, code_weights(np.full(4, 0.25), 4.0, 3))


def test_topics_report_gives_most_weight_to_the_prototype_with_the_largest_share() -> None:
    wanted = compose(TopicsReport(codebook=4, weights=(0.1, -0.2, 0.9, 0.1)), coded_release())
    assert isinstance(wanted, PrototypeWeights)
    assert wanted.weights.argmax() == 2
    assert wanted.weights.sum() == pytest.approx(1)


def test_extreme_topics_report_gives_finite_weights() -> None:
    wanted = compose(TopicsReport(codebook=4, weights=(1e4, -1e4, 1e4, -1e4)), coded_release(epsilon=64.0))
    assert isinstance(wanted, PrototypeWeights)
    assert np.isfinite(wanted.weights).all()


def test_l1_report_is_aggregated_like_the_papers_with_shares_as_counts() -> None:
    report = BasisL1Report(scores=((0.6, 0.3, -0.5), (0.5, 0.5, -0.5)), shares=(0.6, -0.2))
    interests = compose(report, release())
    assert isinstance(interests, InterestVectors)
    np.testing.assert_allclose(interests.vectors, [[1.124986, 0.875014], [1.0, 1.0]], atol=1e-6)  # 2.3's golden
    assert interests.counts == (1_000, 0)


def test_noisy_scores_are_replaced_by_their_estimate_under_the_prior() -> None:
    usual = ScorePrior(np.array([0.6, 0.3, -0.5]), np.zeros((3, 3)))
    deaf = replace(release(), score_readings={"basis_laplace": usual})
    interests = compose(BasisLaplaceReport(scores=((9.0, -9.0, 9.0),), counts=(4,)), deaf)
    assert isinstance(interests, InterestVectors)
    np.testing.assert_allclose(interests.vectors, [[1.124986, 0.875014]], atol=1e-6)  # 2.3's golden


def test_channel_shares_give_proportional_counts_or_equal_ones_if_none_is_positive() -> None:
    assert counts_of_shares((0.5, 0.25, 0.0), 3) == (1_000, 500, 0)
    assert counts_of_shares((-0.1, -0.3), 2) == (1, 1)
    assert counts_of_shares((), 3) == (1, 1, 1)
