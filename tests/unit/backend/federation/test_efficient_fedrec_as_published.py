"""The preset `efficient_fedrec` from samples to both models' steps.

Oracle: the paper's equations 1 to 8 in NumPy, in float64. Where eq. 2 writes a minus before the mean of losses, eqs. 5
and 7 write a plus before the step, so the step descends.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from backend.federation.bounded_mean import Aggregate
from backend.federation.optimizers import Memory, PublishedAdam
from backend.federation.strategies.news_split import NewsSplit, NewsUnion
from backend.federation.systems import COMPOSED
from device_app.training.gradients import OnnxGradients
from device_app.training.samples import ReaderSamples, RowSamples
from device_app.training.tasks.mark_news import MarkNewsTask
from device_app.training.tasks.split_gradient import NEWS_GRADIENT, SplitGradientTask
from device_app.training.union_draws import UnionDraw
from protocol.protections import SecureSum
from protocol.union import NEWS as MARKS
from protocol.union import UnionMarks
from tests.doubles.nrms_paper import Floats, nrms_gradient
from tests.doubles.secure_sums import cohort, run_sum
from tests.doubles.split_world import (
    DIM,
    NEWS,
    news_id,
    news_model,
    parameters,
    readers,
    table_gradient_graph,
    token_states,
    user_model,
)

PUBLISHED, UNION = COMPOSED["efficient_fedrec"], COMPOSED["news_union_marks"]
ALL = [news_id(row) for row in range(NEWS)]
ETA, BETA_1, BETA_2, TAU = 5e-5, 0.9, 0.99, 1e-3
HEADS = 4


def printed_step(weights: Mapping[str, Floats], gradients: list[Mapping[str, Floats]]) -> dict[str, Floats]:
    """Return the steps of eqs. 5 and 7, round after round."""
    stepped = {}
    for name, value in weights.items():
        momentum, square, now = np.zeros_like(value), np.zeros_like(value), value
        for gradient in gradients:
            momentum = BETA_1 * momentum + (1 - BETA_1) * gradient[name]
            square = BETA_2 * square + (1 - BETA_2) * momentum**2
            now = now - ETA * momentum / (np.sqrt(square) + TAU)
        stepped[name] = now
    return stepped


def local(weights: Mapping[str, Floats], drawn: RowSamples) -> tuple[dict[str, Floats], Floats]:
    """Return the gradients of eqs. 1 to 3: for the user model and every news vector [n, D]."""
    table = drawn.table.astype(np.float64)
    of_user = {name: np.zeros_like(value) for name, value in weights.items()}
    of_news = np.zeros((NEWS, DIM))
    place = [ALL.index(each) for each in drawn.ids]
    for clicks, mask, candidates in zip(drawn.click_rows, drawn.click_mask, drawn.candidate_rows, strict=True):
        read = clicks[mask > 0]
        _, found, to_clicks, to_candidates = nrms_gradient(weights, table[read], table[candidates], HEADS)
        for name, value in found.items():
            of_user[name] += value / len(drawn)
        for rows, pull in ((read, to_clicks), (candidates, to_candidates)):
            for row, each in zip(rows, pull, strict=True):
                of_news[place[row]] += each / len(drawn)
    return of_user, of_news


@pytest.fixture(scope="module")
def cohort_of_five() -> list[ReaderSamples]:
    """Five readers, each shown more than it clicked."""
    return readers(news_model()(*token_states()).detach().numpy().astype(np.float32))


@pytest.fixture(scope="module")
def draws(cohort_of_five: list[ReaderSamples]) -> list[UnionDraw]:
    """Return each device's draw, which it keeps from the union to the gradients."""
    kept: list[UnionDraw] = []
    assert isinstance(UNION.protection, UnionMarks)
    for seed, reader in enumerate(cohort_of_five):
        task = MarkNewsTask(
            ALL, UNION.protection.rows_limit, UNION.negatives, UNION.samples_limit, kept.append, displayed=True
        )
        update = task.run({}, reader, lambda *_: pytest.fail("marks need no gradient"), np.random.default_rng(seed))
        assert update.paid is not None
        update.paid()
        shown = {each for feed in reader.feeds for each in feed.shown} | {each.news_id for each in reader.clicks}
        assert {ALL[row] for row in update.tensors[MARKS].nonzero()[0]} >= shown, "N_u, section 3.3"
    return kept


def test_union_marks_everything_displayed_with_random_ring_elements() -> None:
    assert UNION.task == "mark_displayed"
    assert isinstance(UNION.protection, UnionMarks)
    assert (UNION.protection.counts, UNION.protection.dummies) == (False, 0)
    assert isinstance(UNION.strategy, NewsUnion)
    assert (UNION.strategy.follow, PUBLISHED.begins_with) == (PUBLISHED.name, UNION.name)


def test_round_follows_the_paper_from_samples_to_the_user_models_steps(draws: list[UnionDraw]) -> None:
    assert isinstance(PUBLISHED.protection, SecureSum)
    assert PUBLISHED.optimizer == PublishedAdam(ETA)
    weights = {name: value.astype(np.float64) for name, value in parameters(user_model()).items()}
    table = news_model()(*token_states()).detach().numpy().astype(np.float32)
    graph = OnnxGradients(table_gradient_graph(user_model()))
    updates = []
    for draw in draws:
        task = SplitGradientTask(ALL, table, PUBLISHED.negatives, PUBLISHED.samples_limit, draw=draw)
        updates.append(task.run(parameters(user_model()), [], graph, np.random.default_rng(0)))  # type: ignore[arg-type]

    shapes = {name: each.shape for name, each in updates[0].tensors.items()}
    coordinates = sum(each.size for each in updates[0].tensors.values())
    terms = PUBLISHED.protection.terms("round-1", cohort=5, cohort_minimum=2, coordinates=coordinates)
    layout = PUBLISHED.protection.layout(shapes, terms)
    server, devices = cohort(terms)
    for device, update in zip(devices, updates, strict=True):
        device.vector = layout.encode(update.tensors, update.samples)
    mean = Aggregate.of_opened(layout.sums(run_sum(server, devices, {}).vector)).mean()

    drawn = [draw.samples() for draw in draws]
    sizes = [len(each) for each in drawn]
    assert len(set(sizes)) > 1, "|B_u| differ"
    found = [local(weights, each) for each in drawn]
    of_user = {name: np.average([each[0][name] for each in found], axis=0, weights=sizes) for name in weights}
    of_news = np.average([each[1] for each in found], axis=0, weights=sizes)
    np.testing.assert_allclose(mean.pop(NEWS_GRADIENT), of_news, rtol=0, atol=1e-6, err_msg="eq. 4")
    for name, value in of_user.items():
        np.testing.assert_allclose(mean[f"g.{name}"], value, rtol=0, atol=1e-6, err_msg=f"eq. 4, {name}")

    gradient = {name.removeprefix("g."): value for name, value in mean.items()}
    first, memory = PUBLISHED.optimizer.advance(parameters(user_model()), gradient, Memory())
    second, _ = PUBLISHED.optimizer.advance(first, gradient, memory)
    for name, value in printed_step(weights, [of_user, of_user]).items():
        np.testing.assert_allclose(second[name], value, rtol=0, atol=1e-6, err_msg=f"eq. 5, {name}")


def test_preset_clips_nothing_and_steps_the_news_model_by_equation_7() -> None:
    """Oracle: the paper clips nothing, counts every sample in |B_u|, and has eta = 5e-5, K = 4, groups of 50."""
    protection = PUBLISHED.protection
    assert isinstance(protection, SecureSum)
    assert (protection.sigma, PUBLISHED.negatives) == (0, 4)
    assert protection.weight_limit == PUBLISHED.samples_limit == UNION.samples_limit == 1_024
    assert protection.clip >= 1_000, "gradients of a mean loss are far below"
    assert protection.cohort_limit >= 50
    assert PUBLISHED.strategy == NewsSplit(learning_rate=ETA, printed=True)
