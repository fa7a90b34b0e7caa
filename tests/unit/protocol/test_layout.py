"""Updates as ring vectors. Oracles: the pooled mean in exact fractions, the paper's sizes, sets of rows."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.ring import FixedPoint, RingError, UpdateLayout, mark_rows, marked_rows
from tests.doubles.secure_sums import cohort, run_sum, terms

SHAPES = {"user": (2, 3), "beta": (), "news": (4, 2)}


def layout(fraction_bits: int = 10, contributors: int = 20, bits: int = 32, samples_limit: int = 8) -> UpdateLayout:
    return UpdateLayout(SHAPES, FixedPoint(bits, fraction_bits, float(samples_limit), contributors), samples_limit)


def gradients(seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {name: rng.uniform(-1, 1, shape).astype(np.float32) for name, shape in SHAPES.items()}


@pytest.mark.parametrize("fraction_bits", [4, 10, 18])
@pytest.mark.parametrize("bits", [32, 64])
def test_secure_sum_of_weighted_updates_equals_the_pooled_gradient(bits: int, fraction_bits: int) -> None:
    plan = layout(fraction_bits, contributors=5, bits=bits)
    agreed = terms(5, length=plan.length, bits=bits, fraction_bits=fraction_bits, bound=8.0)
    server, devices = cohort(agreed)
    weights = [1, 8, 3, 5, 2]
    for place, device in enumerate(devices):
        device.vector = plan.encode(gradients(place), weights[place])
    found = plan.decode(run_sum(server, devices, {"masked": {1}}).vector)
    survived = [0, 2, 3, 4]
    assert found.samples == sum(weights[place] for place in survived) == 11
    for name, shape in SHAPES.items():
        pooled = sum(weights[place] * gradients(place)[name].astype(np.float64) for place in survived) / 11
        assert found.tensors[name].shape == shape
        # n / (N 2^(f+1)), below 2^-(f+1); float64 adds nothing visible at these sizes.
        assert np.abs(found.tensors[name] - pooled).max() <= 4 / 11 * 2.0 ** -(fraction_bits + 1) + 1e-12


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.floats(-3, 3, width=32), st.integers(1, 8)), min_size=1, max_size=20), st.integers(0, 20))
def test_decoded_mean_is_within_the_stated_error_of_the_exact_one(
    rows: list[tuple[float, int]], fraction_bits: int
) -> None:
    plan = UpdateLayout({"w": (1,)}, FixedPoint(32, fraction_bits, 24.0, 20), 8)
    total = np.zeros(2, dtype="<u4")
    for value, samples in rows:
        total += plan.encode({"w": np.array([value], np.float32)}, samples)
    found = plan.decode(total)
    weight = sum(samples for _, samples in rows)
    exact = sum((Fraction(value) * samples for value, samples in rows), Fraction()) / weight
    assert found.samples == weight
    error = abs(Fraction(float(found.tensors["w"][0])) - exact)
    assert error <= Fraction(len(rows), weight * 2 ** (fraction_bits + 1)) + Fraction(1, 2**40)


def test_layout_has_the_papers_vector_length_and_communication_size() -> None:
    plan = UpdateLayout({"news": (1_320, 400), "user": (561_601,)}, FixedPoint(32, 18, 100.0, 50), 100)
    assert plan.length == 1_089_602
    assert 2 * plan.coordinates == 2_179_202, "2.18 million numbers down and up, as Efficient-FedRec reports"


def test_tensors_are_ordered_by_name_with_samples_last() -> None:
    plan = UpdateLayout({"b": (2,), "a": (1,)}, FixedPoint(16, 0, 100.0, 2), 5)
    assert plan.encode({"b": np.array([3.0, -4.0]), "a": np.array([1.0])}, 5).tolist() == [5, 15, 2**16 - 20, 5]


def test_clipping_applies_to_the_weighted_value() -> None:
    plan = UpdateLayout({"w": (1,)}, FixedPoint(32, 4, 2.0, 2), 5)
    assert plan.decode(plan.encode({"w": np.array([1.0])}, 5)).tensors["w"].tolist() == [2.0 / 5]


def test_sum_without_samples_decodes_to_zeros() -> None:
    plan = layout()
    found = plan.decode(np.zeros(plan.length, dtype="<u4"))
    assert found.samples == 0
    assert not any(value.any() for value in found.tensors.values())


@pytest.mark.parametrize("samples", [-1, 9])
def test_device_with_too_few_or_too_many_samples_is_refused(samples: int) -> None:
    with pytest.raises(ValueError, match=f"samples: 0 to 8, got {samples}"):
        layout().encode(gradients(0), samples)


def test_updates_with_the_wrong_tensors_are_named_in_the_error() -> None:
    plan, good = layout(), gradients(0)
    with pytest.raises(ValueError, match="tensors: expected"):
        plan.encode({name: good[name] for name in ("user", "beta")}, 1)
    with pytest.raises(ValueError, match="tensor user: shape"):
        plan.encode(good | {"user": good["user"].T}, 1)
    with pytest.raises(RingError, match="NaN"):
        plan.encode(good | {"beta": np.array(np.nan)}, 1)


def test_impossible_sums_are_refused() -> None:
    plan = layout()
    with pytest.raises(ValueError, match=f"total: expected {plan.length} elements"):
        plan.decode(np.zeros(3, dtype="<u4"))
    for impossible in (161, 2**32 - 1):
        total = np.zeros(plan.length, dtype="<u4")
        total[-1] = impossible
        with pytest.raises(ValueError, match="samples"):
            plan.decode(total)
    with pytest.raises(RingError, match="overflow: 200 x 200 samples"):
        UpdateLayout({"w": (1,)}, FixedPoint(16, 0, 1.0, 200), 200)


rows = st.sets(st.integers(0, 59))


@settings(max_examples=60, deadline=None)
@given(st.lists(rows, min_size=1, max_size=6), st.sampled_from([32, 64]))
def test_summed_marks_decode_to_the_union_of_the_sets(sets: list[set[int]], bits: int) -> None:
    # A shared row vanishes with probability 2^-32 a row: 60 examples of 60 rows miss once in a million runs.
    total = mark_rows([], 60, bits)
    for one in sets:
        total += mark_rows(one, 60, bits)
    assert marked_rows(total).tolist() == sorted(set().union(*sets))


def test_mark_is_uniform_over_nonzero_values() -> None:
    drawn = iter(range(255))
    assert [int(mark_rows([0], 1, 8, draw=lambda _: next(drawn))[0]) for _ in range(255)] == list(range(1, 256))
    assert int(mark_rows([0], 1, 64, draw=lambda limit: limit - 1)[0]) == 2**64 - 1
    assert len({int(mark_rows([0], 1, 32)[0]) for _ in range(50)}) > 45


def test_sum_of_marks_for_a_row_hides_how_many_devices_marked_it() -> None:
    # In a ring of 2^8 every sum of two marks comes up: 8,000 draws leave a value out with probability 256 e^-31.
    sums = {int((mark_rows([0], 1, 8) + mark_rows([0], 1, 8))[0]) for _ in range(8_000)}
    assert sums == set(range(256)), "zero too: the row is then missing, and devices skip samples that need it"


def test_rows_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match="rows: 0 to 9, got 10"):
        mark_rows([10], 10, 32)
