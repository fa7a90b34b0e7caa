"""The union of articles by a secure sum. Oracles: sets and counters in Python, the normal distribution's tail."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from pydantic import ValidationError

from device_app.privacy.noise_sources import SeededNoise
from device_app.privacy.protections.union_marks import mark
from protocol.ring import from_integers
from protocol.union import NEWS, UnionMarks, opened_rows
from tests.doubles.secure_sums import cohort, run_sum

HELD = ({1, 2, 3}, {2, 3, 9}, {3, 9}, {5})


def row(held: set[int], length: int = 12) -> np.ndarray:
    return np.isin(np.arange(length), list(held)).astype(np.float32)


def opened_sum(protection: UnionMarks, sets: tuple[set[int], ...], dropped: set[int] | None = None) -> np.ndarray:
    """Return the opened tensor of a real secure sum of these devices."""
    agreed = protection.terms("round-1", cohort=len(sets), cohort_minimum=2, coordinates=12)
    server, devices = cohort(agreed)
    for place, device in enumerate(devices):
        device.vector = mark(row(sets[place]), protection, agreed, SeededNoise(place)).vector
    found = run_sum(server, devices, {"masked": dropped or set()})
    layout = protection.layout({NEWS: (12,)}, agreed)
    return layout.sums(found.vector, len(found.survivors)).tensors[NEWS]


def test_marks_reveal_which_articles_are_held_but_not_by_how_many_devices() -> None:
    # A news of several owners vanishes with probability 2^-32.
    found = opened_sum(UnionMarks(), HELD)
    assert np.flatnonzero(found).tolist() == [1, 2, 3, 5, 9]
    assert set(found.tolist()) == {0.0, 1.0}
    assert np.flatnonzero(opened_sum(UnionMarks(), HELD, {3})).tolist() == [1, 2, 3, 9], (
        "a dropped device holds nothing"
    )


def test_owner_counts_without_noise_are_exact_and_hide_rare_articles() -> None:
    protection = UnionMarks(owners_minimum=2)
    found = opened_sum(protection, HELD)
    assert {place: int(count) for place, count in enumerate(found) if count} == dict(
        Counter(place for held in HELD for place in held)
    )
    assert opened_rows(protection, found, 4).tolist() == [2, 3, 9]
    assert opened_rows(UnionMarks(owners_minimum=3), found, 4).tolist() == [3]
    assert opened_rows(UnionMarks(), opened_sum(UnionMarks(), HELD), 4).tolist() == [1, 2, 3, 5, 9]


def test_noisy_counts_open_rare_articles_at_the_stated_rate() -> None:
    protection, devices, news = UnionMarks(owners_minimum=3, sigma=2), 16, 4_000
    agreed = protection.terms("round-1", cohort=devices, cohort_minimum=2, coordinates=news)
    total = np.zeros(news, dtype="<u4")
    for place in range(devices):
        held = np.zeros(news, dtype=np.float32)
        held[: 500 if place < 2 else 0] = 1.0  # two owners: one too few
        total += mark(held, protection, agreed, SeededNoise(place)).vector
    counts = protection.layout({NEWS: (news,)}, agreed).sums(total, devices).tensors[NEWS]
    noise = counts - np.where(np.arange(news) < 500, 2, 0)
    assert noise.std() == pytest.approx(2 * math.sqrt(devices), rel=0.05)  # 4 standard errors of 4,000 draws
    # One owner short, a noise of three standard deviations and one: at most Q(3) = 0.00135 a news; 10 of 500 is 1e-8.
    assert len(opened_rows(protection, counts[:500], devices)) < 10
    assert len(opened_rows(protection, counts[500:], devices)) < 25


def test_marks_with_noise_are_charged_and_marks_without_noise_are_not() -> None:
    protection = UnionMarks(owners_minimum=3, sigma=60, rows_limit=64)
    agreed = protection.terms("round-1", cohort=60, cohort_minimum=10, coordinates=12)
    paid = mark(row({1}), protection, agreed, SeededNoise(0)).charge
    assert paid.epsilon == protection.epsilon(10, 12)
    assert 0 < protection.epsilon(60, 12) < paid.epsilon < 1
    exact = UnionMarks(owners_minimum=3)
    assert (
        mark(
            row({1}), exact, exact.terms("r", cohort=9, cohort_minimum=2, coordinates=12), SeededNoise(0)
        ).charge.epsilon
        == 0
    )
    with pytest.raises(ValueError, match="without noise"):
        exact.epsilon(10, 12)


def test_marks_beyond_the_limit_or_other_than_zero_and_one_are_refused() -> None:
    protection = UnionMarks(rows_limit=2)
    agreed = protection.terms("round-1", cohort=3, cohort_minimum=2, coordinates=12)
    with pytest.raises(ValueError, match="held: 3 articles, at most 2"):
        mark(row({1, 2, 3}), protection, agreed, SeededNoise(0))
    with pytest.raises(ValueError, match="only 0 and 1"):
        mark(row({1}) * 2, protection, agreed, SeededNoise(0))
    with pytest.raises(ValueError, match="expected \\(12,\\)"):
        mark(row({1}, 11), protection, agreed, SeededNoise(0))


def test_dummies_are_random_articles_the_device_does_not_hold() -> None:
    protection, news, draws = UnionMarks(dummies=6), 30, 400
    agreed = protection.terms("round-1", cohort=3, cohort_minimum=2, coordinates=news)
    held, times = {1, 2, 3}, Counter[int]()
    for _ in range(draws):
        contribution = mark(row(held, news), protection, agreed, SeededNoise(0))
        assert contribution.charge.parameters["dummies"] == 6
        marked = set(np.flatnonzero(contribution.vector).tolist())
        assert held <= marked
        assert len(marked) == len(held) + 6
        times.update(marked - held)
    assert set(times) == set(range(news)) - held
    # A news is drawn 6 of 27 times: chi-square of 27 cells with 26 degrees of freedom, beyond 62 with chance 1e-4.
    wanted = draws * 6 / 27
    assert sum((count - wanted) ** 2 / wanted for count in times.values()) < 62


def test_all_other_articles_are_marked_when_dummies_exceed_them() -> None:
    protection = UnionMarks(dummies=100)
    agreed = protection.terms("round-1", cohort=3, cohort_minimum=2, coordinates=12)
    assert (mark(row({1}), protection, agreed, SeededNoise(0)).vector != 0).all()


def test_articles_nobody_holds_are_opened_at_the_stated_rate() -> None:
    protection, news, devices = UnionMarks(dummies=40), 2_000, 20
    agreed = protection.terms("round-1", cohort=devices, cohort_minimum=2, coordinates=news)
    total = sum(
        (mark(row({1}, news), protection, agreed, SeededNoise(0)).vector for _ in range(devices)),
        np.zeros(news, dtype="<u4"),
    )
    opened_share = float((np.delete(total, 1) != 0).mean())
    # 1 - .98^20 = .332; a share of 2,000 draws has a deviation of .0105.
    assert opened_share == pytest.approx(1 - (1 - protection.dummies / news) ** devices, abs=0.045)


def test_impossible_settings_are_named_in_the_error() -> None:
    with pytest.raises(ValidationError, match="dummies: must be 0 with owner counts"):
        UnionMarks(owners_minimum=3, dummies=1)
    with pytest.raises(ValidationError, match="marks carry no noise"):
        UnionMarks(sigma=3)
    protection = UnionMarks()
    agreed = protection.terms("round-1", cohort=3, cohort_minimum=2, coordinates=12)
    with pytest.raises(ValueError, match="cohort: at most 1000"):
        protection.terms("round-1", cohort=1_001, cohort_minimum=2, coordinates=12)
    with pytest.raises(ValueError, match="shapes"):
        protection.layout({NEWS: (11,)}, agreed)
    with pytest.raises(ValueError, match="total: expected 12 elements"):
        protection.layout({NEWS: (12,)}, agreed).sums(from_integers(np.zeros(3, dtype=np.int64), 32), 3)
