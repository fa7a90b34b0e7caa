"""Rounds of FL-MV-DSSM: what is shared, what stays, and the effect of noise. Oracles: Algorithm 1, eq. 7, numpy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from backend.federation.optimizers import Adam, StatefulOptimizer
from experiments.datasets.movielens import GENRES, MovieLens
from experiments.papers.fl_mv_dssm.baselines import Factorising, Shared, device_gradients, factorise, user_factors
from experiments.papers.fl_mv_dssm.cohort import Films, ItemSpace, LocalSgd, Moved, descend, passes
from experiments.papers.fl_mv_dssm.features import ItemFactors, Vocabulary, demographics
from experiments.papers.fl_mv_dssm.protocols import MovieLensSplit, cold_users, warm
from experiments.papers.fl_mv_dssm.rounds import (
    SYSTEMS,
    Choices,
    Features,
    Towers,
    ViewSystem,
    aggregate,
    first_towers,
    fit_personal_towers,
    predict,
    train,
)
from protocol.ring import FixedPoint, UpdateLayout
from tests.doubles.secure_sums import cohort as sum_cohort
from tests.doubles.secure_sums import run_sum
from tests.doubles.secure_sums import terms as sum_terms

SMALL = Choices(rounds=3, cohort=8, negatives=10, batches=2)
USERS = np.arange(40)


def generated(held: int = 0) -> MovieLens:
    """Return data of 40 users and 60 films; `held` changes only the data of `cold_users`."""
    rng = np.random.default_rng(2)
    seen = (rng.random((40, 60)) < 0.4).astype(np.float32)
    ages, genders = rng.integers(10, 70, 40), rng.choice(["F", "M"], 40)
    occupations, flags = rng.integers(0, 21, 40), (rng.random((60, GENRES)) < 0.2).astype(np.int64)
    if held:
        rows = np.sort(np.random.default_rng(7).permutation(40)[:4])
        other = np.random.default_rng(held)
        seen[rows], occupations[rows] = other.random((4, 60)) < 0.4, other.integers(0, 21, 4)
        ages[rows] = other.integers(60, 99, 4)
    titles = tuple(f"Film {name} ({1990 + name % 9})" for name in range(60))
    jobs, watched = tuple(f"job {one}" for one in range(21)), csr_array(seen)
    return MovieLens(ages, tuple(genders), occupations, jobs, titles, flags, watched, np.arange(watched.nnz))


def features(data: MovieLens, split: MovieLensSplit) -> Features:
    folded = ItemFactors.of(split.train[split.trained]).fold_in(split.train)
    films = ItemSpace(Vocabulary.of(data.titles).films(data))
    return Features({"view_1": demographics(data, split.trained), "view_2": folded}, films)


@pytest.fixture(scope="module")
def features_and_split() -> tuple[Features, MovieLensSplit]:
    data = generated()
    split = warm(data, np.random.default_rng(1))
    return features(data, split), split


def same(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> bool:
    return all(torch.equal(value, second[name]) for name, value in first.items())


@pytest.mark.parametrize("name", list(SYSTEMS))
def test_all_users_share_an_item_tower_and_user_towers_differ_only_under_semi(
    features_and_split: tuple[Features, MovieLensSplit], name: str
) -> None:
    system = SYSTEMS[name]
    towers = train(system, *features_and_split, SMALL, seed=0)
    begun = first_towers(system, features_and_split[0], 0)
    assert not same(towers.item, begun.item)
    assert {each: tuple(value.shape) for each, value in towers.item.items()} == {
        each: tuple(value.shape) for each, value in begun.item.items()
    }
    assert tuple(towers.users) == system.views
    for view in system.views:
        held = towers.of(view, USERS)
        spread = max(float((value - value[:1]).abs().max()) for value in held.values())
        assert (spread > 0) == system.personal
        assert not same(towers.users[view], begun.users[view])


def test_device_never_selected_keeps_the_initial_towers_under_semi(
    features_and_split: tuple[Features, MovieLensSplit],
) -> None:
    system, split = SYSTEMS["SEMI-FL-MV-DSSM"], features_and_split[1]
    few = replace(split, trained=np.arange(8), train=csr_array(split.train.toarray() * (USERS < 8)[:, None]))
    towers, begun = (
        train(system, features_and_split[0], few, SMALL, seed=0),
        first_towers(system, features_and_split[0], 0),
    )
    for view in system.views:
        assert same(towers.of(view, USERS[8:]), begun.of(view, USERS[8:]))
        moved = [not same(towers.of(view, USERS[[row]]), begun.of(view, USERS[[row]])) for row in range(8)]
        assert all(moved)


def test_one_view_without_noise_or_clip_equals_fl_dssm_exactly(
    features_and_split: tuple[Features, MovieLensSplit],
) -> None:
    """FL-DSSM written out: FedAvg of w - w_u over devices into Adam, without local_secure_aggregate."""
    system, choices = ViewSystem(("view_2",), personal=False), replace(SMALL, clip=np.inf, rounds=2)
    found = train(system, *features_and_split, choices, seed=4)
    towers, split = first_towers(system, features_and_split[0], 4), features_and_split[1]
    item, user = towers.item, towers.users["view_2"]
    draw = passes(Films.of(split.train, split.catalogue), choices.negatives, choices.batches)
    servers = [StatefulOptimizer(Adam(1.0)), StatefulOptimizer(Adam(1.0))]
    for turn in range(2):
        cohort = np.sort(np.random.default_rng((4, turn)).choice(split.trained, size=8, replace=False))
        drawn = [draw(int(one), np.random.default_rng((4, turn, int(one), 1))) for one in cohort]
        own = {name: value.expand(8, *value.shape) for name, value in user.items()}
        rows = torch.from_numpy(features_and_split[0].users["view_2"][cohort])
        moved = descend(features_and_split[0].films, item, own, rows, drawn, LocalSgd(0.2, choices.gamma), np.inf)
        gradients = (
            {name: value / 8 for name, value in moved.item.items()},
            {
                name: (value - moved.users[name].double().mean(dim=0)).numpy().astype(float)
                for name, value in user.items()
            },
        )
        stepped = []
        for server, weights, gradient in zip(servers, (item, user), gradients, strict=True):
            server.optimizer = Adam(choices.server_rate_of(turn), tau=choices.server_tau)
            after = server.step({name: value.numpy() for name, value in weights.items()}, gradient)
            stepped.append({name: torch.from_numpy(value) for name, value in after.items()})
        item, user = stepped
    assert same(found.item, item)
    assert same(found.users["view_2"], user)


def test_cold_users_contribute_to_no_training_message() -> None:
    """Training is bitwise the same whatever their data is."""
    trained: list[Towers] = []
    for held in (0, 11):
        data = generated(held)
        split = cold_users(data, np.random.default_rng(7))
        assert not np.isin(split.asked, split.trained).any()
        trained.append(train(SYSTEMS["FL-MV-DSSM"], features(data, split), split, SMALL, seed=0))
    assert (generated().seen.toarray() != generated(11).seen.toarray()).any()
    assert same(trained[0].item, trained[1].item)
    for view in ("view_1", "view_2"):
        assert same(trained[0].users[view], trained[1].users[view])


def moved_by(values: list[float]) -> list[Moved]:
    empty = np.zeros(1)
    return [Moved({"w": np.full((300, 200), value)}, {}, empty, empty) for value in values]


def test_aggregate_is_the_mean_over_views_and_devices_plus_their_noise() -> None:
    rng = np.random.default_rng(0)
    clear = aggregate(moved_by([4.0, 2.0]), 10, SMALL, rng)["w"]
    assert (clear == 6 / 20).all()
    noisy = aggregate(moved_by([4.0, 2.0]), 10, replace(SMALL, sigma=2.0), rng)["w"]
    assert noisy.mean() == pytest.approx(0.3, abs=0.01)
    assert noisy.std() == pytest.approx(2.0 * 0.5 / np.sqrt(2 * 10), rel=0.02)  # sigma C / sqrt(views devices)


def test_secure_sum_of_updates_equals_the_plain_sum_within_one_rounding_step() -> None:
    """remote_secure_aggregate: the masked sum of real devices, compared with the sum that the simulation takes."""
    rng = np.random.default_rng(3)
    updates = [{"layers.0.weight": rng.normal(scale=0.05, size=(4, 3)), "layers.0.bias": rng.normal(scale=0.05, size=4)}
               for _ in range(5)]  # fmt: skip
    fixed = FixedPoint(bits=32, fraction_bits=20, bound=1.0, contributors=5)
    layout = UpdateLayout({"layers.0.weight": (4, 3), "layers.0.bias": (4,)}, fixed, 1)
    server, devices = sum_cohort(sum_terms(5, layout.length, fraction_bits=20, bound=1.0))
    for device, update in zip(devices, updates, strict=True):
        device.vector = layout.encode(update, 1)
    opened = layout.decode(run_sum(server, devices).vector)
    assert opened.samples == 5
    for name, value in opened.tensors.items():
        plain = sum(update[name] for update in updates) / 5
        np.testing.assert_allclose(value, plain, atol=fixed.step / 2)


def test_prediction_is_a_distribution_and_paper_noise_destroys_it(
    features_and_split: tuple[Features, MovieLensSplit],
) -> None:
    towers = train(SYSTEMS["SEMI-FL-MV-DSSM"], *features_and_split, SMALL, seed=0)
    clear = predict(towers, features_and_split[0], SMALL.gamma)
    assert clear.sum(axis=1) == pytest.approx(np.ones(40), rel=1e-4)
    noisy = predict(towers, features_and_split[0], SMALL.gamma, deviation=0.5, rng=np.random.default_rng(0))
    assert abs(np.corrcoef(clear.ravel(), noisy.ravel())[0, 1]) < 0.1
    with pytest.raises(ValueError, match="rng must be given"):
        predict(towers, features_and_split[0], SMALL.gamma, deviation=0.5)


def test_fine_tuning_changes_only_personal_towers_and_lowers_their_loss(
    features_and_split: tuple[Features, MovieLensSplit],
) -> None:
    shared = train(SYSTEMS["FL-MV-DSSM"], *features_and_split, SMALL, seed=0)
    assert fit_personal_towers(shared, *features_and_split, SMALL, 0) is shared
    towers = train(SYSTEMS["SEMI-FL-MV-DSSM"], *features_and_split, SMALL, seed=0)
    settled = fit_personal_towers(towers, *features_and_split, replace(SMALL, settling=4), 0)
    assert same(settled.item, towers.item)
    own = features_and_split[1].train.toarray() > 0

    def chosen(which: Towers) -> float:
        return float(np.log(predict(which, features_and_split[0], SMALL.gamma)[own]).mean())

    assert chosen(settled) > chosen(towers)


def test_invalid_choices_are_named_in_the_error() -> None:
    with pytest.raises(ValueError, match="gamma must be above 0, got 0"):
        Choices(gamma=0)
    with pytest.raises(ValueError, match="sigma and settling must be 0 or more"):
        Choices(sigma=-1)
    with pytest.raises(ValueError, match="clip must be finite where there is noise"):
        Choices(sigma=1, clip=np.inf)


def test_user_factors_minimise_the_fed_mvmf_loss_and_its_gradients_are_correct() -> None:
    """Compared with the loss itself: its slope at p is zero, and finite differences in Q and U."""
    rng = np.random.default_rng(5)
    how = Factorising(factors=3, confidence=4.0, ridge=0.7, user_weight=0.6)
    seen = csr_array((rng.random((4, 9)) < 0.4).astype(np.float32))
    x = rng.normal(size=(4, 5))
    shared = Shared(rng.normal(size=(9, 3)), rng.normal(size=(5, 3)), rng.normal(size=(2, 3)))
    r = seen.toarray().astype(float)

    def loss(p: np.ndarray, Q: np.ndarray, U: np.ndarray) -> float:
        fit = ((1 + 4.0 * r) * (r - p @ Q.T) ** 2).sum()
        return float(fit + 0.7 * (p**2).sum() + 0.6 * ((x - p @ U.T) ** 2).sum())

    p = user_factors(shared, seen, x, how)
    least = loss(p, shared.Q, shared.U)
    assert all(loss(p + 1e-3 * rng.normal(size=p.shape), shared.Q, shared.U) > least for _ in range(20))
    dQ, dU = device_gradients(shared, p, seen, x, how)
    for slope, at in ((dQ, 0), (dU, 1)):
        step = np.zeros_like(slope)
        step[1, 2] = 1e-5
        ends = [[shared.Q, shared.U], [shared.Q, shared.U]]
        ends[0][at], ends[1][at] = ends[0][at] + step, ends[1][at] - step
        assert slope[1, 2] == pytest.approx((loss(p, *ends[0]) - loss(p, *ends[1])) / 2e-5, rel=1e-4)


def test_factorisation_learns_which_films_are_watched_together() -> None:
    groups = np.kron(np.eye(2), np.ones((10, 15))).astype(np.float32)
    shown = groups * (np.random.default_rng(1).random(groups.shape) < 0.7)
    rows, films = np.arange(20), np.arange(30)
    split = MovieLensSplit("x", csr_array(shown), csr_array(groups - shown), rows, rows, films, films)
    nothing = csr_array(np.zeros((30, 4), np.float32))
    found = factorise(split, np.zeros((20, 2), np.float32), nothing, Factorising(4, cohort=10, rounds=60, rate=0.05), 0)
    assert found[groups - shown > 0].mean() > found[groups == 0].mean() + 0.3
