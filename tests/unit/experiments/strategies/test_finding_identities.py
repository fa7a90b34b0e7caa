"""FINDING at its limits equals other methods (section 5.3.3). Oracles: those methods, and plain loops, in float64."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from backend.federation.grouping import Clusters, Constant, Layers, Personalisation, TimeAndLayer, cluster
from backend.federation.optimizers import Adam, MemoryOptimizer, Sgd
from experiments.simulation.strategies.fedper import FedPer
from experiments.simulation.strategies.finding import ClusterFunction, Finding
from experiments.simulation.strategies.method import Method, Vanilla
from tests.doubles.personalisation import FromLayer, FromRound
from tests.doubles.quadratics import LOW, TOP, Quadratics, start

READERS, COHORT, ROUNDS = 30, 8, 40
LAYERS = Layers(("low", "top"))
EXACT = 1e-6
EVERYBODY = np.arange(READERS)


def vectors_at(weights: object) -> NDArray[np.float32]:
    """Return readers' vectors that rotate as the model moves, so that clusterings differ."""
    rng = np.random.default_rng(5)
    low = weights[LOW]  # type: ignore[index]
    return (rng.normal(size=(READERS, 3)) + rng.normal(size=(READERS, 2)) @ low[:, None] * [1, -1, 2]).astype(
        np.float32
    )


def each_alone(vectors: NDArray[np.float32]) -> Clusters:
    """Return one cluster per reader: K = #users."""
    return Clusters(np.zeros((len(vectors), 1), np.float32), np.arange(len(vectors)))


def finding(
    protection: Personalisation,
    *,
    groups: int = 3,
    every: int = 7,
    optimizer: MemoryOptimizer | None = None,
    clustering: ClusterFunction | None = None,
    interp_every: int = 1,
) -> Finding:
    return Finding(
        Quadratics.some(READERS),
        start(),
        optimizer or Sgd(0.1),
        groups=groups,
        personalisation=protection,
        layers=LAYERS,
        recluster_every=every,
        vectors_at=vectors_at,
        clustering=clustering or (lambda vectors: cluster(vectors, groups, seed=2)),
        interp_every=interp_every,
    )


def cohort(number: int) -> list[int]:
    return [int(reader) for reader in np.random.default_rng((1, number)).choice(READERS, COHORT, replace=False)]


def rounds(method: Method, count: int = ROUNDS) -> None:
    for number in range(count):
        method.run_round(number, cohort(number))


def same(first: object, second: object) -> None:
    for name in (LOW, TOP):
        np.testing.assert_allclose(first[name], second[name], rtol=0, atol=EXACT, err_msg=name)  # type: ignore[index]


def far(first: object, second: object) -> bool:
    """Return whether the models differ by much more than rounding, so that an identity is no coincidence."""
    return any(np.abs(first[name] - second[name]).max() > 1e3 * EXACT for name in (LOW, TOP))  # type: ignore[index]


@pytest.mark.parametrize("optimizer", [Sgd(0.1), Adam(0.05)])
@pytest.mark.parametrize("groups", [1, 3, 5])
@pytest.mark.parametrize("every", [3, 1000])
def test_finding_without_personalisation_equals_vanilla_learning_for_any_groups(
    optimizer: MemoryOptimizer, groups: int, every: int
) -> None:
    plain = Vanilla(Quadratics.some(READERS), start(), optimizer)
    grouped = finding(Constant(0.0), groups=groups, every=every, optimizer=optimizer)
    for number in range(ROUNDS):
        plain.run_round(number, cohort(number))
        grouped.run_round(number, cohort(number))
        same(grouped.models.shared.weights, plain.model.weights)
        chosen = grouped.known(EVERYBODY)
        for model in chosen.models:
            same(model, plain.model.weights)
    assert far(plain.model.weights, start())


def test_group_model_differs_from_the_shared_model_after_a_step_even_without_personalisation() -> None:
    grouped = finding(Constant(0.0))
    grouped.run_round(0, cohort(0))
    assert any(far(group.weights, grouped.models.shared.weights) for group in grouped.models.groups)


@pytest.mark.parametrize("optimizer", [Sgd(0.1), Adam(0.05)])
@pytest.mark.parametrize("protection", [Constant(0.0), Constant(0.6), Constant(1.0), TimeAndLayer(1.02)])
def test_finding_with_one_group_equals_vanilla_learning_for_any_personalisation(
    optimizer: MemoryOptimizer, protection: Personalisation
) -> None:
    plain = Vanilla(Quadratics.some(READERS), start(), optimizer)
    grouped = finding(protection, groups=1, every=4, optimizer=optimizer)
    rounds(plain)
    rounds(grouped)
    same(grouped.models.shared.weights, plain.model.weights)
    same(grouped.models.groups[0].weights, plain.model.weights)
    same(grouped.known(EVERYBODY).models[0], plain.model.weights)


@pytest.mark.parametrize("optimizer", [Sgd(0.1), Adam(0.05)])
def test_full_personalisation_trains_groups_separately(optimizer: MemoryOptimizer) -> None:
    grouped = finding(Constant(1.0), every=1000, optimizer=optimizer)
    labels = grouped.clusters.labels
    rounds(grouped)
    for group in range(3):
        alone = Vanilla(Quadratics.some(READERS), start(), optimizer)
        for number in range(ROUNDS):
            mine = [reader for reader in cohort(number) if labels[reader] == group]
            if mine:
                alone.run_round(number, mine)
        same(grouped.models.groups[group].weights, alone.model.weights)
    assert far(grouped.models.groups[0].weights, grouped.models.groups[1].weights)


def test_fully_personalised_groups_mix_only_by_formula_8() -> None:
    every, quadratics = 6, Quadratics.some(READERS)
    grouped = finding(Constant(1.0), every=every)
    own = [{name: value.copy() for name, value in start().items()} for _ in range(READERS)]  # each reader's group model
    labels = grouped.clusters.labels
    for number in range(ROUNDS):
        grouped.run_round(number, cohort(number))
        for group in set(labels.tolist()):
            mine = [reader for reader in cohort(number) if labels[reader] == group]
            if mine:
                counts = quadratics.samples[mine]
                for name in (LOW, TOP):
                    found = [quadratics.update(own[reader], reader, number).tensors["g." + name] for reader in mine]
                    step = 0.1 * np.average(found, axis=0, weights=counts)
                    for reader in np.flatnonzero(labels == group).tolist():
                        own[reader][name] = own[reader][name] - step
        if (number + 1) % every == 0:
            labels = grouped.clusters.labels
            before = [dict(one) for one in own]
            for reader in range(READERS):
                fellows = np.flatnonzero(labels == labels[reader])
                own[reader] = {name: np.mean([before[each][name] for each in fellows], axis=0) for name in (LOW, TOP)}
        for reader in range(READERS):
            same(grouped.models.groups[labels[reader]].weights, own[reader])


@pytest.mark.parametrize("first", [0, 1, 2])
def test_global_base_with_one_group_per_reader_is_fedper(first: int) -> None:
    grouped = finding(FromLayer(first), groups=READERS, every=1000, clustering=each_alone)
    # One local step: a top goes by its own gradient, whatever n_u.
    local = FedPer(Quadratics.some(READERS), start(), Sgd(0.1), layers=LAYERS, first_own=first, steps=1, rate=0.1)
    rounds(grouped)
    rounds(local)
    ours, theirs = grouped.known(EVERYBODY), local.known(EVERYBODY)
    for reader in range(READERS):
        same(ours.models[ours.which[reader]], theirs.models[theirs.which[reader]])


def test_global_training_then_one_group_per_reader_is_local_fine_tuning() -> None:
    """lambda = 1 from round X on uses the stored w_k.

    Round X - 1 left w_k one own step from w_g, or none for an absent reader; so fine-tuning begins with the step of
    round X - 1, and the server's own step of it is lost.
    """
    turn, quadratics = 25, Quadratics.some(READERS)
    grouped = finding(FromRound(turn), groups=READERS, every=1000, clustering=each_alone)
    plain = Vanilla(quadratics, start(), Sgd(0.1))
    rounds(plain, turn - 2)
    own = [dict(plain.model.weights) for _ in range(READERS)]
    rounds(grouped)
    for number in range(turn - 2, ROUNDS):
        for reader in cohort(number):
            found = quadratics.update(own[reader], reader, number).tensors
            own[reader] = {name: own[reader][name] - 0.1 * found["g." + name] for name in (LOW, TOP)}
    chosen = grouped.known(EVERYBODY)
    for reader in range(READERS):
        same(chosen.models[chosen.which[reader]], own[reader])
    assert sum(far(own[reader], plain.model.weights) for reader in range(READERS)) > READERS / 2


def test_readers_keep_their_groups_if_clustering_never_runs() -> None:
    grouped = finding(Constant(0.5), every=ROUNDS + 1)
    labels, first = grouped.clusters.labels.copy(), grouped.clustered_under
    rounds(grouped)
    np.testing.assert_array_equal(grouped.clusters.labels, labels)
    assert grouped.clustered_under is first
    moved = finding(Constant(0.5), every=ROUNDS)
    rounds(moved)
    assert moved.clustered_under is moved.models.shared.weights


def test_permuting_group_numbers_changes_no_readers_model() -> None:
    def shuffled(order: Sequence[int]) -> ClusterFunction:
        names = np.array(order)

        def clustering(vectors: NDArray[np.float32]) -> Clusters:
            found = cluster(vectors, 3, seed=2)
            return Clusters(found.centroids[np.argsort(names)], names[found.labels])

        return clustering

    runs = [finding(Constant(0.7), clustering=shuffled(order)) for order in ((0, 1, 2), (2, 0, 1))]
    for run in runs:
        rounds(run)
    plain, other = (run.known(EVERYBODY) for run in runs)
    for reader in range(READERS):
        same(plain.models[plain.which[reader]], other.models[other.which[reader]])
    cold = [run.cold(lambda weights: vectors_at(weights)[::-1]) for run in runs]
    for reader in range(READERS):
        same(cold[0].models[cold[0].which[reader]], cold[1].models[cold[1].which[reader]])


def test_less_frequent_interpolation_keeps_groups_further_apart() -> None:
    """The paper's round and its code's: lambda multiplies a deviation each time, .080 or .777 over ten rounds (5.2)."""
    spread = []
    for interp_every in (1, 10):
        run = finding(Constant(0.7768), every=1000, interp_every=interp_every)
        rounds(run, 30)
        models = [np.concatenate([group.weights[LOW], group.weights[TOP]]) for group in run.models.groups]
        spread.append(float(np.std(models, axis=0).sum()))
    assert spread[1] > 1.5 * spread[0]
    assert pytest.approx(0.080, abs=5e-4) == 0.7768**10


def test_new_reader_is_assigned_under_the_clusterings_model() -> None:
    """FINDING, Algorithm 1, evaluation."""
    run = finding(Constant(0.5), every=15)
    rounds(run, 20)
    asked = []

    def watched(weights: object) -> NDArray[np.float32]:
        asked.append(weights)
        return vectors_at(weights)

    chosen = run.cold(watched)
    assert len(asked) == 1
    assert asked[0] is run.clustered_under
    assert far(run.clustered_under, run.models.shared.weights)
    # The same readers as in training, so the same groups as the clustering gave them.
    np.testing.assert_array_equal(chosen.which, run.clusters.labels)


def test_moves_equal_a_direct_count_of_readers_with_another_label() -> None:
    grouped, counted = finding(TimeAndLayer(1.02), every=5), []
    for number in range(ROUNDS):
        before = grouped.clusters.labels.tolist()
        grouped.run_round(number, cohort(number))
        if (number + 1) % 5 == 0:
            counted.append(sum(old != new for old, new in zip(before, grouped.clusters.labels.tolist(), strict=True)))
    assert grouped.moves == tuple(counted)
    assert len(counted) == ROUNDS // 5
    assert any(counted)
