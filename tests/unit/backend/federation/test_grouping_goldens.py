"""Golden values of FINDING. Oracle: the paper's eqs. 4 to 8, worked out by hand and by other code."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from backend.federation.grouping import (
    Constant,
    Layers,
    Model,
    Models,
    TimeAndLayer,
    cluster,
    interpolated,
    kept_names,
    lloyd_step,
    nearest,
    renamed,
    transitions,
    unit,
)
from backend.federation.optimizers import Adam, Memory, Sgd
from tests.doubles.personalisation import FromLayer, FromRound

ONE = Layers(("w",))
OLD = np.array([0, 0, 0, 1, 1, 2, 2, 2, 2, 0])
NEW = np.array([1, 1, 1, 0, 0, 2, 2, 2, 1, 2])


def scalars(*values: float) -> tuple[Model, ...]:
    return tuple(Model({"w": np.array(float(value))}) for value in values)


def of(models: Models) -> list[float]:
    return [float(group.weights["w"]) for group in models.groups]


@pytest.mark.parametrize(
    ("round_number", "expected"),
    [(1, 0.00029991), (500, 0.139273), (1000, 0.259148), (5000, 0.776820), (12000, 0.972662)],
)
def test_time_weight_matches_the_paper(round_number: int, expected: float) -> None:
    """FINDING, eq. 4: g(t)."""
    assert TimeAndLayer().of_time(round_number) == pytest.approx(expected, abs=5e-7)


def test_time_weight_at_round_2310_is_one_half() -> None:
    half = np.log(2) / np.log(1.0003)
    assert half == pytest.approx(2310.8, abs=0.05)
    assert TimeAndLayer().of_time(half) == pytest.approx(0.5, abs=1e-12)


def test_interpolation_weights_of_five_layers_grow_toward_the_top_as_published() -> None:
    """FINDING, eqs. 6 and 7: h(i) and lambda(t, i)."""
    five = Layers(("a", "b", "c", "d", "e"))
    protection = TimeAndLayer()
    np.testing.assert_allclose(protection.of_layers(five), [0.447214, 0.632456, 0.774597, 0.894427, 1], atol=5e-7)
    expected = [0.115895, 0.163900, 0.200736, 0.231789, 0.259148]
    np.testing.assert_allclose(protection.coefficients(1000, five), expected, atol=5e-7)


def test_interpolation_weights_count_frozen_layers_below() -> None:
    whole, upper = Layers(("a", "b", "c", "d", "e")), Layers(("d", "e"), frozen_below=3)
    np.testing.assert_array_equal(TimeAndLayer().of_layers(upper), TimeAndLayer().of_layers(whole)[3:])


def test_parameter_belongs_to_the_layer_its_name_begins_with() -> None:
    names = ("pooling.hidden.weight", "pooling.hidden.bias", "attention.query.weight", "beta")
    layers = Layers(("pooling", "attention", "beta"))
    assert [layers.place(name) for name in names] == [0, 0, 1, 2]
    with pytest.raises(ValueError, match="parameter betas: must be in one layer, is in 0 of"):
        layers.place("betas")
    with pytest.raises(ValueError, match=r"parameter a\.b\.c: must be in one layer, is in 2 of"):
        Layers(("a", "a.b")).place("a.b.c")


def test_round_on_the_scalar_model_matches_the_paper() -> None:
    """FINDING, Algorithm 1, by hand for a scalar model."""
    start = Models(Model({"w": np.array(2.0)}), scalars(1.0, 4.0))
    ready = interpolated(start, ONE, Constant(0.25).coefficients(1, ONE))
    assert of(ready) == [1.75, 2.5]
    users = [(0, 1, 0.0), (0, 3, 2.0), (1, 4, 5.0)]  # group, n, c
    gradients = [of(ready)[group] - centre for group, _, centre in users]
    assert gradients == [1.75, -0.25, -2.5]
    counts = np.array([count for _, count, _ in users])
    total = {"w": np.array(np.average(gradients, weights=counts))}
    by_group = {
        group: {"w": np.array(np.average([gradients[row] for row in rows], weights=counts[rows]))}
        for group, rows in ((0, [0, 1]), (1, [2]))
    }
    after = ready.stepped(Sgd(0.1), total, by_group)
    assert float(after.shared.weights["w"]) == pytest.approx(2.1125, abs=1e-12)
    np.testing.assert_allclose(of(after), [1.725, 2.75], atol=1e-12)


def test_readers_changing_groups_carry_their_models_with_them() -> None:
    """FINDING, eq. 8, by hand."""
    moves = transitions(OLD, NEW, 3, 3)
    np.testing.assert_array_equal(moves, [[0, 3, 1], [2, 0, 0], [0, 1, 3]])
    names = kept_names(moves)
    np.testing.assert_array_equal(names, [1, 0, 2])
    relabelled = transitions(OLD, names[NEW], 3, 3)
    np.testing.assert_array_equal(relabelled, [[3, 0, 1], [0, 2, 0], [1, 0, 3]])
    after = Models(Model({"w": np.array(0.0)}), scalars(10, 20, 30)).reinitialised(relabelled)
    np.testing.assert_allclose(of(after), [15, 20, 25], atol=1e-12)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_permuting_group_numbers_changes_no_readers_model(order: tuple[int, ...]) -> None:
    """The assignment by the Hungarian method changes labels only."""
    models = Models(Model({"w": np.array(0.0)}), scalars(10, 20, 30))
    plain = of(models.reinitialised(transitions(OLD, NEW, 3, 3)))
    names = np.array(order)
    permuted = of(models.reinitialised(transitions(OLD, names[NEW], 3, 3)))
    assert sorted(permuted) == sorted(plain)
    np.testing.assert_array_equal(np.array(permuted)[names[NEW]], np.array(plain)[NEW])


def test_formula_8_gives_a_group_the_mean_of_its_readers_previous_models() -> None:
    rng = np.random.default_rng(0)
    old, new = rng.integers(0, 5, 60), rng.integers(0, 5, 60)
    values = rng.normal(size=5)
    after = of(Models(Model({"w": np.array(0.0)}), scalars(*values)).reinitialised(transitions(old, new, 5, 5)))
    np.testing.assert_allclose(after, [values[old[new == group]].mean() for group in range(5)], atol=1e-12)


def test_unchanged_groups_keep_their_models_and_equal_models_stay_equal() -> None:
    models = Models(Model({"w": np.array(7.0)}), scalars(10, 20, 30))
    assert of(models.reinitialised(transitions(OLD, OLD, 3, 3))) == [10, 20, 30]
    alike = Models(Model({"w": np.array(7.0)}), scalars(5, 5, 5))
    np.testing.assert_allclose(of(alike.reinitialised(transitions(OLD, NEW, 3, 3))), 5, atol=1e-12)


def test_empty_group_gets_the_global_model_and_its_moments() -> None:
    """FINDING, eq. 8, in the case 0/0."""
    shared = Model({"w": np.array(7.0)}, Memory(4, {"m.w": np.array(0.5), "v.w": np.array(0.25)}))
    after = Models(shared, scalars(10, 20, 30)).reinitialised(np.array([[3, 0, 0], [0, 2, 0], [0, 4, 0]]))
    assert of(after)[:2] == [10, pytest.approx(80 / 3)]
    assert after.groups[2] is shared


def test_moments_are_averaged_like_the_weights() -> None:
    groups = tuple(
        Model({"w": np.array(value)}, Memory(steps, {"m.w": np.array(value / 10)}))
        for value, steps in ((10.0, 2), (20.0, 4))
    )
    after = Models(Model({"w": np.array(0.0)}), groups).reinitialised(np.array([[1, 0], [1, 3]]))
    assert of(after) == [15, 20]
    assert [float(group.memory.tensors["m.w"]) for group in after.groups] == [1.5, 2.0]
    assert [group.memory.steps for group in after.groups] == [3, 4]


@pytest.mark.parametrize("moves", [np.zeros((2, 3)), np.array([[1, -1, 0]] * 3), np.zeros(3)])
def test_impossible_counts_are_refused(moves: np.ndarray) -> None:
    with pytest.raises(ValueError, match="moves: expected counts >= 0 of 3 old groups"):
        Models(Model({"w": np.array(0.0)}), scalars(1, 2, 3)).reinitialised(moves)


def test_interpolation_uses_each_layers_share_of_weights_and_moments() -> None:
    layers = Layers(("low", "top"))
    shared = Model({"low.w": np.array(0.0), "top.w": np.array(0.0)}, Memory(8, {"m.low.w": np.array(1.0)}))
    own = Model({"low.w": np.array(1.0), "top.w": np.array(1.0)}, Memory(4, {"m.top.w": np.array(1.0)}))
    mixed = interpolated(Models(shared, (own,)), layers, np.array([0.25, 0.75])).groups[0]
    assert {name: float(value) for name, value in mixed.weights.items()} == {"low.w": 0.25, "top.w": 0.75}
    assert {name: float(value) for name, value in mixed.memory.tensors.items()} == {"m.low.w": 0.75, "m.top.w": 0.75}
    assert mixed.memory.steps == 6
    with pytest.raises(ValueError, match="coefficients: 2 numbers from 0 to 1"):
        interpolated(Models(shared, (own,)), layers, np.array([0.5, 1.5]))


def test_group_without_a_client_keeps_its_interpolated_model_and_memory() -> None:
    models = Models.alike({"w": np.array(1.0)}, 2)
    after = models.stepped(Adam(0.1), {"w": np.array(1.0)}, {0: {"w": np.array(1.0)}})
    assert after.groups[1] is models.groups[1]
    assert after.groups[0].memory.steps == 1
    with pytest.raises(ValueError, match="group: 0 to 1, got 2"):
        models.stepped(Adam(0.1), {"w": np.array(1.0)}, {2: {"w": np.array(1.0)}})


def test_personalisation_from_a_layer_or_round_is_all_or_nothing() -> None:
    layers = Layers(("a", "b", "c"))
    np.testing.assert_array_equal(FromLayer(1).coefficients(9, layers), [0, 1, 1])
    np.testing.assert_array_equal(FromRound(5).coefficients(4, layers), [0, 0, 0])
    np.testing.assert_array_equal(FromRound(5).coefficients(5, layers), [1, 1, 1])


def test_clustering_finds_separate_groups_and_assigns_new_readers() -> None:
    rng = np.random.default_rng(3)
    centres = np.eye(4, 12)
    truth = rng.integers(0, 4, 200)
    vectors = centres[truth] * rng.uniform(1, 9, (200, 1)) + 0.05 * rng.normal(size=(200, 12))
    found = cluster(vectors, 4, seed=1)
    moves = transitions(truth, found.labels, 4, 4)
    assert (np.sort(moves, axis=0)[-1] == moves.sum(axis=0)).all()  # each found group is one true group
    np.testing.assert_array_equal(nearest(found.centroids, vectors), found.labels)
    np.testing.assert_array_equal(cluster(vectors, 4, seed=1).labels, found.labels)
    same = renamed(found, kept_names(moves))
    np.testing.assert_array_equal(same.labels, truth)
    np.testing.assert_array_equal(nearest(same.centroids, vectors), truth)
    with pytest.raises(ValueError, match="groups: from 1 to the 200 readers, got 201"):
        cluster(vectors, 201, seed=1)


def test_reader_without_clicks_goes_to_the_first_group() -> None:
    """FINDING, Algorithm 1, evaluation."""
    assert nearest(np.eye(3), np.zeros((1, 3))).tolist() == [0]
    assert not unit(np.zeros((1, 3))).any()


def test_lloyd_steps_on_sums_converge_like_k_means() -> None:
    rng = np.random.default_rng(5)
    vectors = unit(rng.normal(size=(120, 6)) + 2 * np.eye(3, 6)[rng.integers(0, 3, 120)])
    centroids = vectors[:3]
    for _ in range(60):
        sums = np.stack([vectors[nearest(centroids, vectors) == group].sum(axis=0) for group in range(3)])
        centroids = lloyd_step(sums, centroids)
    labels = nearest(centroids, vectors)
    np.testing.assert_array_equal(nearest(lloyd_step(sums, centroids), vectors), labels)  # a fixed point
    gain = sum(float(vectors[labels == group].sum(axis=0) @ centroids[group]) for group in range(3))
    library = cluster(vectors, 3, seed=0)
    assert gain >= 0.98 * float((vectors * library.centroids[library.labels]).sum())


def test_empty_group_keeps_its_centroid() -> None:
    before = np.eye(2, 3, dtype=np.float32)
    after = lloyd_step(np.array([[0.0, 0, 4], [0, 0, 0]]), before)
    np.testing.assert_array_equal(after, [[0, 0, 1], [0, 1, 0]])
