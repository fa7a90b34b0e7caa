"""FINDING's baselines.

Oracles: hand-made numbers, closed forms of quadratics, the published algorithms of SCAFFOLD and pFedMe written out here
on quadratics, and each other where they must agree.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray

from backend.federation.grouping import Layers
from backend.federation.optimizers import Adam, MemoryOptimizer, Sgd
from experiments.simulation.strategies.cfl import Cfl, bipartition
from experiments.simulation.strategies.fedper import FedPer
from experiments.simulation.strategies.fedprox import FedProx
from experiments.simulation.strategies.method import Method, RunningMean, Vanilla
from experiments.simulation.strategies.pfedme import PFedMe
from experiments.simulation.strategies.scaffold import Scaffold
from tests.doubles.quadratics import LOW, TOP, Quadratics, start

READERS, RATE, EXACT = 20, 0.1, 1e-9
EVERYBODY = list(range(READERS))
BOTH = pytest.mark.parametrize("optimizer", [Sgd(RATE), Adam(0.05)])


def one_quadratic(centre: float = 1.0) -> Quadratics:
    return Quadratics(np.ones(1), np.full((1, 2), centre), np.array([4]))


def at(value: float) -> dict[str, NDArray[np.float64]]:
    return {LOW: np.array([value]), TOP: np.array([value])}


def cohort(number: int) -> list[int]:
    return [int(reader) for reader in np.random.default_rng(number).choice(READERS, 6, replace=False)]


def rounds(method: Method, count: int = 15) -> None:
    for number in range(count):
        method.run_round(number, cohort(number))


def agree(first: Vanilla, second: Vanilla) -> None:
    for name in (LOW, TOP):
        np.testing.assert_allclose(first.model.weights[name], second.model.weights[name], rtol=0, atol=EXACT)


def test_vanilla_learning_steps_along_the_sample_weighted_mean() -> None:
    quadratics = Quadratics(np.ones(2), np.array([[0.0, 0.0], [2.0, 2.0]]), np.array([1, 3]))
    plain = Vanilla(quadratics, at(2.0), Sgd(RATE))
    plain.run_round(0, [0, 1])
    assert float(plain.model.weights[LOW][0]) == pytest.approx(2 - 0.1 * (1 * 2 + 3 * 0) / 4, abs=EXACT)


@BOTH
def test_fedprox_with_one_local_step_equals_vanilla_learning(optimizer: MemoryOptimizer) -> None:
    plain = Vanilla(Quadratics.some(READERS), start(), optimizer)
    prox = FedProx(Quadratics.some(READERS), start(), optimizer, mu=0.7, steps=1, rate=0.3)
    rounds(plain)
    rounds(prox)
    agree(plain, prox)


def test_two_fedprox_steps_on_a_quadratic_match_the_hand_computation() -> None:
    # y1 = .1; y2 = .1 - .1 ((.1 - 1) + 1 (.1 - 0)) = .18, and a server at the devices' own rate stands there.
    prox = FedProx(one_quadratic(), at(0.0), Sgd(RATE), mu=1.0, steps=2, rate=RATE)
    prox.run_round(0, [0])
    assert float(prox.model.weights[LOW][0]) == pytest.approx(0.18, abs=EXACT)


def test_fedprox_keeps_devices_nearer_the_server_than_fedavg() -> None:
    ends = []
    for mu in (0.0, 5.0):
        prox = FedProx(Quadratics.some(READERS), start(), Sgd(RATE), mu=mu, steps=20, rate=RATE)
        prox.run_round(0, EVERYBODY)
        ends.append(np.abs(prox.model.weights[LOW] - start()[LOW]).max())
    assert ends[1] < 0.6 * ends[0]


@BOTH
def test_first_scaffold_round_equals_a_fedavg_round(optimizer: MemoryOptimizer) -> None:
    fedavg = FedProx(Quadratics.some(READERS), start(), optimizer, mu=0.0, steps=5, rate=RATE)
    scaffold = Scaffold(Quadratics.some(READERS), start(), optimizer, everybody=READERS, steps=5, rate=RATE)
    fedavg.run_round(0, cohort(0))
    scaffold.run_round(0, cohort(0))
    agree(fedavg, scaffold)
    fedavg.run_round(1, cohort(0))
    scaffold.run_round(1, cohort(0))
    assert np.abs(fedavg.model.weights[LOW] - scaffold.model.weights[LOW]).max() > 1e-4


def test_global_control_variate_is_the_mean_of_the_readers_control_variates() -> None:
    scaffold = Scaffold(Quadratics.some(READERS), start(), Sgd(RATE), everybody=READERS, steps=3, rate=RATE)
    rounds(scaffold)
    mean = sum(own[LOW] for own in scaffold._controls.values()) / READERS  # zero for who was never taken
    np.testing.assert_allclose(scaffold.control[LOW], mean, atol=EXACT)


def test_control_variate_after_one_local_step_is_the_gradient() -> None:
    quadratics = Quadratics.some(READERS)
    scaffold = Scaffold(quadratics, start(), Sgd(RATE), everybody=READERS, steps=1, rate=RATE)
    scaffold.run_round(0, cohort(0))
    for reader in cohort(0):
        np.testing.assert_allclose(
            scaffold._controls[reader][LOW], quadratics.update(start(), reader, 0).tensors["g." + LOW], atol=EXACT
        )


def test_scaffold_finds_the_common_minimum_where_fedavg_drifts() -> None:
    plain = Quadratics.some(READERS, ripple=0.0)
    quadratics = Quadratics(plain.slopes, plain.centres, np.ones(READERS, np.int64))
    best = np.average(quadratics.centres[:, 0], weights=quadratics.slopes)
    fedavg = FedProx(quadratics, at(0.0), Sgd(RATE), mu=0.0, steps=10, rate=RATE)
    scaffold = Scaffold(quadratics, at(0.0), Sgd(RATE), everybody=READERS, steps=10, rate=RATE)
    for number in range(300):
        fedavg.run_round(number, EVERYBODY)
        scaffold.run_round(number, EVERYBODY)
    assert abs(float(scaffold.model.weights[LOW][0]) - best) < 1e-6
    assert abs(float(fedavg.model.weights[LOW][0]) - best) > 0.01


def test_pfedme_finds_the_model_between_the_readers_and_the_global_one() -> None:
    # On (theta - c)^2 / 2 with w: theta = (c + rho w) / (1 + rho) = (1 + 3 * 5) / 4 = 4.
    me = PFedMe(one_quadratic(), at(5.0), Sgd(0.5), rho=3.0, inner_steps=200, inner_rate=RATE, steps=1, rate=RATE)
    me.run_round(0, [0])
    chosen = me.known(np.array([0]))
    assert float(chosen.models[0][LOW][0]) == pytest.approx(4.0, abs=EXACT)
    # w_u = 5 - .1 * 3 * (5 - 4) = 4.7, and w = (1 - .5) 5 + .5 * 4.7.
    assert float(me.model.weights[LOW][0]) == pytest.approx(4.85, abs=EXACT)


def test_readers_never_selected_by_pfedme_have_the_common_model() -> None:
    me = PFedMe(
        Quadratics.some(READERS), start(), Sgd(1.0), rho=2.0, inner_steps=3, inner_rate=RATE, steps=2, rate=RATE
    )
    me.run_round(0, [4, 5])
    chosen = me.known(np.array([4, 7]))
    assert chosen.models[chosen.which[1]] is me.model.weights
    assert np.abs(chosen.models[chosen.which[0]][LOW] - me.model.weights[LOW]).max() > 1e-3


def printed_scaffold(
    quadratics: Quadratics, start: float, *, steps: int, rate: float, server: float, rounds: int
) -> float:
    """Algorithm 1 of Karimireddy et al., option II, on f_u = a_u (x - c_u)^2 / 2 of one number."""
    x, c, own = start, 0.0, np.zeros(READERS)
    slopes, centres = quadratics.slopes, quadratics.centres[:, 0]
    for number in range(rounds):
        chosen = cohort(number)
        moved, drifted = [], []
        for i in chosen:
            y = x
            for _ in range(steps):
                y -= rate * (slopes[i] * (y - centres[i]) - own[i] + c)
            fresh = own[i] - c + (x - y) / (steps * rate)
            moved.append(y - x)
            drifted.append(fresh - own[i])
            own[i] = fresh
        x += server * sum(moved) / len(chosen)
        c += len(chosen) / READERS * sum(drifted) / len(chosen)
    return x


def printed_pfedme(
    quadratics: Quadratics, start: float, *, rho: float, steps: int, eta: float, b: float, rounds: int
) -> float:
    """Algorithm 1 of Dinh et al. with its inner problem solved: theta = (a c + rho w) / (a + rho)."""
    w = start
    for number in range(rounds):
        ended = []
        for i in cohort(number):
            local, a = w, quadratics.slopes[i]
            for _ in range(steps):
                theta = (a * quadratics.centres[i, 0] + rho * local) / (a + rho)
                local -= eta * rho * (local - theta)
            ended.append(local)
        w = (1 - b) * w + b * sum(ended) / len(ended)
    return w


def test_scaffold_with_equal_readers_matches_the_published_algorithm() -> None:
    quadratics = Quadratics.some(READERS, ripple=0.0)
    assert len(set(quadratics.samples.tolist())) > 1, "weighing by n_u would show"
    ours = Scaffold(quadratics, at(0.7), Sgd(1.5 * RATE), everybody=READERS, steps=4, rate=RATE, alike=True)
    rounds(ours, 25)
    printed = printed_scaffold(quadratics, 0.7, steps=4, rate=RATE, server=1.5, rounds=25)
    assert float(ours.model.weights[LOW][0]) == pytest.approx(printed, abs=EXACT)
    weighed = Scaffold(quadratics, at(0.7), Sgd(1.5 * RATE), everybody=READERS, steps=4, rate=RATE)
    rounds(weighed, 25)
    assert abs(float(weighed.model.weights[LOW][0]) - printed) > 1e-3


def test_pfedme_with_equal_readers_matches_the_published_algorithm() -> None:
    quadratics = Quadratics.some(READERS, ripple=0.0)
    ours = PFedMe(
        quadratics, at(0.7), Sgd(1.2), rho=3.0, inner_steps=90, inner_rate=0.25, steps=3, rate=RATE, alike=True
    )
    rounds(ours, 15)
    printed = printed_pfedme(quadratics, 0.7, rho=3.0, steps=3, eta=RATE, b=1.2, rounds=15)
    assert float(ours.model.weights[LOW][0]) == pytest.approx(printed, abs=EXACT)


@BOTH
def test_fedper_without_personal_layers_equals_vanilla_learning(optimizer: MemoryOptimizer) -> None:
    plain = Vanilla(Quadratics.some(READERS), start(), optimizer)
    per = FedPer(
        Quadratics.some(READERS), start(), optimizer, layers=Layers(("low", "top")), first_own=2, steps=1, rate=RATE
    )
    rounds(plain)
    rounds(per)
    for name in (LOW, TOP):
        np.testing.assert_allclose(per.base.weights[name], plain.model.weights[name], rtol=0, atol=EXACT)


def test_fedper_tops_stay_on_devices_and_a_new_reader_gets_their_mean() -> None:
    per = FedPer(
        Quadratics.some(READERS), start(), Sgd(RATE), layers=Layers(("low", "top")), first_own=1, steps=4, rate=RATE
    )
    rounds(per)
    chosen = per.known(np.arange(READERS))
    assert len({float(model[TOP][0]) for model in chosen.models}) > READERS / 2
    assert len({float(model[LOW][0]) for model in chosen.models}) == 1
    cold = per.cold(lambda weights: np.zeros((3, 1), np.float32))
    assert cold.which.tolist() == [0, 0, 0]
    taken = {reader for number in range(15) for reader in cohort(number)}
    mean = np.mean([float(chosen.models[reader][TOP][0]) for reader in taken])
    assert float(cold.models[0][TOP][0]) == pytest.approx(mean, abs=EXACT)


def two_groups() -> Quadratics:
    """Readers of even number want 3, the others -3."""
    centres = np.where(np.arange(READERS)[:, None] % 2, -3.0, 3.0) + 0.1 * np.random.default_rng(0).normal(
        size=(READERS, 2)
    )
    return Quadratics(np.ones(READERS), centres, np.ones(READERS, np.int64))


def test_cfl_splits_diverging_groups_and_each_reaches_its_minimum() -> None:
    cfl = Cfl(two_groups(), at(0.0), Sgd(RATE), e1=0.5, e2=2.0)
    for number in range(200):
        cfl.run_round(number, cohort(number))
    chosen = cfl.known(np.arange(READERS))
    assert len(chosen.models) == 2
    assert len(set(chosen.which[::2].tolist())) == len(set(chosen.which[1::2].tolist())) == 1
    for reader in range(READERS):
        found = float(chosen.models[chosen.which[reader]][LOW][0])
        assert found == pytest.approx(-3.0 if reader % 2 else 3.0, abs=0.2)


@BOTH
def test_cfl_without_splits_equals_vanilla_learning(optimizer: MemoryOptimizer) -> None:
    cfl = Cfl(Quadratics.some(READERS), start(), optimizer, e1=0.0, e2=1.0)
    plain = Vanilla(Quadratics.some(READERS), start(), optimizer)
    rounds(cfl)
    rounds(plain)
    assert len(cfl.leaves) == 1
    for name in (LOW, TOP):
        np.testing.assert_allclose(
            cfl.known(np.arange(3)).models[0][name], plain.model.weights[name], rtol=0, atol=EXACT
        )


def test_agreeing_readers_are_not_split() -> None:
    near = Quadratics(np.ones(READERS), np.full((READERS, 2), 3.0), np.ones(READERS, np.int64))
    cfl = Cfl(near, at(0.0), Sgd(RATE), e1=0.5, e2=2.0)
    rounds(cfl, 60)
    assert len(cfl.leaves) == 1


def test_bipartition_minimises_the_largest_cosine_between_its_two_sides() -> None:
    rng = np.random.default_rng(4)
    for size in (2, 5, 8):
        rows = rng.normal(size=(size, 3))
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        similarity = rows @ rows.T

        def worst(side: NDArray[np.int64], similarity: NDArray[np.float64] = similarity) -> float:
            return float(similarity[np.ix_(side == 0, side == 1)].max())

        cuts = (np.array(cut) for cut in itertools.product((0, 1), repeat=size) if 0 < sum(cut) < size)
        found = bipartition(similarity)
        assert set(found.tolist()) == {0, 1}
        assert worst(found) == pytest.approx(min(worst(cut) for cut in cuts), abs=1e-12)


def test_invalid_methods_are_refused() -> None:
    quadratics, weights, step = Quadratics.some(2), start(), Sgd(RATE)
    with pytest.raises(ValueError, match="steps: at least 1, got 0"):
        FedProx(quadratics, weights, step, mu=0.0, steps=0, rate=1.0)
    with pytest.raises(ValueError, match="mu: at least 0"):
        FedProx(quadratics, weights, step, mu=-1.0, steps=1, rate=1.0)
    with pytest.raises(ValueError, match="rate: must be above 0"):
        Scaffold(quadratics, weights, step, everybody=2, steps=1, rate=0.0)
    with pytest.raises(ValueError, match="rho: must be above 0"):
        PFedMe(quadratics, weights, step, rho=0.0, inner_steps=1, inner_rate=1.0, steps=1, rate=1.0)
    with pytest.raises(ValueError, match="the mean of zero updates"):
        RunningMean().value()
