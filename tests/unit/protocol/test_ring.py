"""Fixed point in a ring. Oracles: an example worked out by hand, Python's fractions, and the error bound."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.ring import DECODED_AT_ONCE, FixedPoint, RingError, as_integers, from_integers, ring_dtype

GOLDEN = FixedPoint(bits=16, fraction_bits=8, bound=1.0, contributors=50)


def test_worked_example_of_the_specification_is_reproduced() -> None:
    codes = GOLDEN.encode(np.array([0.3, -1.25, -0.001]))
    assert codes.tolist() == [77, 65_280, 0], "-1.25 is cut to -X = -1"
    total = codes[:1] + codes[1:2] + codes[2:]
    assert total.tolist() == [65_357]
    assert GOLDEN.decode(total).tolist() == [-0.69921875]


@pytest.mark.parametrize(("bits", "most"), [(32, 18), (64, 50)])
def test_fraction_bits_for_fifty_devices_match_the_specification(bits: int, most: int) -> None:
    FixedPoint(bits, most, 100.0, 50)
    with pytest.raises(RingError) as refused:
        FixedPoint(bits, most + 1, 100.0, 50)
    assert f"50 x 100 x 2^{most + 1}" in str(refused.value)
    assert f"2^{bits - 1}" in str(refused.value)


def test_headroom_for_noise_counts_against_the_overflow() -> None:
    FixedPoint(16, 8, 1.0, 100, headroom=7_167)
    with pytest.raises(RingError, match="headroom"):
        FixedPoint(16, 8, 1.0, 100, headroom=7_168)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"bits": 31}, "bits"),
        ({"fraction_bits": -1}, "fraction_bits"),
        ({"bound": 0.0}, "bound"),
        ({"bound": float("inf")}, "bound"),
        ({"contributors": 0}, "contributors"),
    ],
)
def test_invalid_ring_parameters_are_named_in_the_error(change: dict[str, float], words: str) -> None:
    given_ = {"bits": 32, "fraction_bits": 8, "bound": 1.0, "contributors": 5} | change
    with pytest.raises(RingError, match=words):
        FixedPoint(**given_)  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_non_finite_values_are_refused(bad: float) -> None:
    with pytest.raises(RingError, match="NaN"):
        GOLDEN.encode(np.array([0.0, bad]))


vectors = st.lists(st.lists(st.floats(-2.0, 2.0), min_size=3, max_size=3), min_size=1, max_size=20)


@settings(max_examples=150, deadline=None)
@given(vectors, st.sampled_from([16, 32, 64]), st.integers(0, 9))
def test_decoded_sum_is_exact_within_half_a_step_per_device(
    rows: list[list[float]], bits: int, fraction_bits: int
) -> None:
    fixed = FixedPoint(bits, fraction_bits, 1.5, len(rows))
    total = np.zeros(3, dtype=ring_dtype(bits))
    for row in rows:
        total += fixed.encode(np.array(row))
    decoded = fixed.decode(total)
    for place in range(3):
        exact = sum(Fraction(min(1.5, max(-1.5, row[place]))) for row in rows)
        assert abs(Fraction(decoded[place]) - exact) <= Fraction(len(rows), 2 ** (fraction_bits + 1))


@pytest.mark.parametrize("size", [0, 1, DECODED_AT_ONCE - 1, DECODED_AT_ONCE, 2 * DECODED_AT_ONCE + 3])
def test_decoding_a_sum_in_parts_gives_the_same_result(size: int) -> None:
    fixed = FixedPoint(bits=32, fraction_bits=10, bound=8.0, contributors=4)
    codes = np.random.default_rng(size).integers(0, 2**32, size, dtype=np.uint32)
    assert (fixed.decode(codes) == codes.view(np.int32) / 1024).all()


@settings(max_examples=100, deadline=None)
@given(st.sampled_from([8, 16, 32, 64]), st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=9))
def test_integers_wrap_into_the_ring_and_return_centred(bits: int, values: list[int]) -> None:
    codes = from_integers(np.array(values, dtype=np.int64), bits)
    assert codes.tolist() == [value % 2**bits for value in values]
    half = 2 ** (bits - 1)
    assert as_integers(codes).tolist() == [(value + half) % 2**bits - half for value in values]


@settings(max_examples=100, deadline=None)
@given(st.sampled_from([8, 16, 32, 64]), st.data())
def test_ring_addition_matches_modular_integers(bits: int, data: st.DataObject) -> None:
    element = st.integers(0, 2**bits - 1)
    a, b = data.draw(element), data.draw(element)
    one, two = np.array([a], dtype=ring_dtype(bits)), np.array([b], dtype=ring_dtype(bits))
    assert int((one + two)[0]) == (a + b) % 2**bits
    assert int((one - two)[0]) == (a - b) % 2**bits


def test_share_of_values_rounded_to_zero_ignores_exact_zeros() -> None:
    fixed = FixedPoint(32, 4, 1.0, 10)
    values = np.array([0.0, 0.0, 0.01, -0.02, 0.5, 0.04])
    assert fixed.rounded_to_zero(values, fixed.encode(values)) == 0.5
    assert fixed.rounded_to_zero(np.zeros(3), np.zeros(3, dtype="<u4")) == 0.0
