"""Secret sharing. Oracles: an example worked out by hand, exhaustive search over a small field."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.shamir import (
    PRIME,
    SHARE_BYTES,
    LagrangeBasis,
    SharingError,
    join,
    join_bytes,
    split,
    split_bytes,
)

GOLDEN = {1: 54, 2: 76, 3: 11, 4: 53, 5: 8}
"""f(x) = 42 + 7x + 5x^2 mod 97."""


def test_worked_example_of_the_specification_is_reproduced() -> None:
    coefficients = iter([5, 7])
    assert split(42, 3, [1, 2, 3, 4, 5], prime=97, draw=lambda _: next(coefficients)) == GOLDEN
    for points in ((1, 3, 5), (2, 3, 4)):
        assert join({point: GOLDEN[point] for point in points}, prime=97) == 42


def test_any_three_shares_of_the_example_give_the_secret() -> None:
    for points in combinations(GOLDEN, 3):
        assert join({point: GOLDEN[point] for point in points}, prime=97) == 42


@pytest.mark.parametrize("points", list(combinations(GOLDEN, 2)))
def test_any_two_shares_of_the_example_leave_every_secret_equally_possible(points: tuple[int, int]) -> None:
    x, y = points
    possible = Counter[int]()
    for secret in range(97):
        for square in range(97):
            slope = (GOLDEN[x] - secret - square * x * x) * pow(x, -1, 97) % 97
            possible[secret] += (secret + slope * y + square * y * y) % 97 == GOLDEN[y]
    assert possible == dict.fromkeys(range(97), 1)


def test_modulus_is_a_prime_above_every_32_byte_secret() -> None:
    # Miller and Rabin with 40 bases: a composite passes with probability below 4^-40.
    odd, twos = PRIME - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for base in range(2, 42):
        power = pow(base, odd, PRIME)
        if power in (1, PRIME - 1):
            continue
        for _ in range(twos - 1):
            power = power * power % PRIME
            if power == PRIME - 1:
                break
        else:
            pytest.fail(f"{base} shows that the modulus is composite")
    assert 2**256 < PRIME < 2 ** (8 * SHARE_BYTES)


@settings(max_examples=60, deadline=None)
@given(st.binary(min_size=32, max_size=32), st.integers(1, 12), st.data())
def test_any_threshold_of_shares_reconstructs_the_secret(secret: bytes, threshold: int, data: st.DataObject) -> None:
    points = data.draw(st.lists(st.integers(1, 10_000), min_size=threshold, max_size=20, unique=True))
    shares = split_bytes(secret, threshold, points)
    chosen = data.draw(st.permutations(points))[:threshold]
    basis = LagrangeBasis.at(chosen)
    assert join_bytes(basis, shares) == secret
    assert all(len(share) == SHARE_BYTES for share in shares.values())


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, PRIME - 1), min_size=1, max_size=5), st.integers(2, 9))
def test_one_lagrange_basis_reconstructs_all_secrets_shared_at_the_same_points(
    secrets: list[int], threshold: int
) -> None:
    points = list(range(1, threshold + 3))
    basis = LagrangeBasis.at(points[-threshold:])
    for secret in secrets:
        assert basis.join(split(secret, threshold, points)) == secret


@settings(max_examples=30, deadline=None)
@given(st.integers(0, PRIME - 1), st.integers(0, PRIME - 1))
def test_sharing_is_linear(one: int, two: int) -> None:
    shares = zip(split(one, 3, [1, 2, 3]).items(), split(two, 3, [1, 2, 3]).values(), strict=True)
    assert join({point: (a + b) % PRIME for (point, a), b in shares}) == (one + two) % PRIME


def test_two_sharings_of_one_secret_share_no_value() -> None:
    assert not set(split(42, 3, range(1, 50)).values()) & set(split(42, 3, range(1, 50)).values())


def test_too_few_shares_give_another_secret() -> None:
    shares = split(42, 3, [1, 2, 3, 4])
    assert join({1: shares[1], 2: shares[2]}) != 42


def test_wrong_share_does_not_give_the_secret() -> None:
    secret = bytes(32)
    shares = split_bytes(secret, 2, [1, 2])
    shares[1] = ((int.from_bytes(shares[1], "big") + 1) % PRIME).to_bytes(SHARE_BYTES, "big")
    assert join_bytes(LagrangeBasis.at([1, 2]), shares) != secret


def test_value_beyond_32_bytes_is_not_a_secret() -> None:
    basis = LagrangeBasis.at([1])
    assert join_bytes(basis, {1: (2**256).to_bytes(SHARE_BYTES, "big")}) is None
    assert join_bytes(basis, {1: (2**256 - 1).to_bytes(SHARE_BYTES, "big")}) == b"\xff" * 32


@pytest.mark.parametrize(
    ("threshold", "points", "words"),
    [
        (0, [1, 2], "threshold: 1 to the 2 holders, got 0"),
        (3, [1, 2], "threshold: 1 to the 2 holders, got 3"),
        (2, [1, 1], "distinct"),
        (2, [0, 1], "got 0"),
        (2, [1, PRIME], "the prime"),
    ],
)
def test_sharings_with_an_impossible_threshold_or_points_are_refused(
    threshold: int, points: list[int], words: str
) -> None:
    with pytest.raises(SharingError, match=words):
        split(1, threshold, points)


def test_secret_outside_the_field_and_a_missing_share_are_refused() -> None:
    with pytest.raises(SharingError, match="field element"):
        split(PRIME, 2, [1, 2])
    with pytest.raises(SharingError, match="32 bytes, got 31"):
        split_bytes(bytes(31), 2, [1, 2])
    with pytest.raises(SharingError, match="share 2: missing"):
        LagrangeBasis.at([1, 2]).join({1: 5})
