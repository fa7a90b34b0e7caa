"""One device's contribution to a count. Properties: its bound, whatever the reader did."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from device_app.privacy.noise_share import clip_and_encode
from device_app.privacy.noise_sources import SeededNoise
from device_app.privacy.private_parameters import shared_part
from device_app.privacy.protections.secure_sum import clip_norm, contribute
from device_app.training.tasks.counting import count_vector, one_click
from protocol.popularity import CLICKED, DISPLAYED, CountList
from protocol.protections import SecureSum
from protocol.ring import as_integers

NEWS = tuple(f"n{row}" for row in range(60))
IDS = st.sets(st.sampled_from([*NEWS, "elsewhere", "n60"]))
LISTS = st.builds(
    CountList,
    news=st.lists(st.sampled_from(NEWS), unique=True, max_size=60).map(tuple),
    displayed_limit=st.integers(1, 40),
    clicked_limit=st.integers(1, 8),
    displayed_unit=st.sampled_from([1.0, 0.5, 3 / 16, 1 / 8]),
    window_hours=st.just(24.0),
)


@settings(max_examples=300, deadline=None)
@given(listed=LISTS, displayed=IDS, clicked=IDS, seed=st.integers(0, 2**32 - 1))
def test_reader_contribution_stays_within_the_bound(
    listed: CountList, displayed: set[str], clicked: set[str], seed: int
) -> None:
    tensors = count_vector(listed, displayed, clicked, np.random.default_rng(seed))
    shown, opened = tensors[DISPLAYED], tensors[CLICKED]
    assert set(np.unique(shown)) <= {0.0, np.float32(listed.displayed_unit)}
    assert set(np.unique(opened)) <= {0.0, 1.0}
    here = set(listed.news)
    assert np.count_nonzero(shown) == min(listed.displayed_limit, len(displayed & here))
    assert np.count_nonzero(opened) == min(listed.clicked_limit, len(clicked & here))
    assert np.sqrt(float(np.square(shown).sum() + np.square(opened).sum())) <= listed.norm * (1 + 1e-7)
    for tensor, reader in ((shown, displayed), (opened, clicked)):
        assert {listed.news[row] for row in np.flatnonzero(tensor)} <= reader


@settings(max_examples=60, deadline=None)
@given(displayed=IDS, clicked=IDS, more=st.integers(1, 200), seed=st.integers(0, 2**32 - 1))
def test_count_vector_stays_within_the_clip_for_any_limits_the_server_lists(
    displayed: set[str], clicked: set[str], more: int, seed: int
) -> None:
    """The list is the server's, the clip is the priced protection's: the device scales down to it."""
    listed = CountList(
        news=NEWS, displayed_limit=more, clicked_limit=min(more, 256), displayed_unit=1.0, window_hours=24
    )
    protection = SecureSum(clip=2.0, fraction_bits=8, nonnegative=True)
    tensors = count_vector(listed, displayed, clicked, np.random.default_rng(seed))
    terms = protection.terms("round-1", cohort=10, cohort_minimum=2, coordinates=2 * len(NEWS))
    clipped = clip_norm(shared_part(tensors, None), protection.clip)
    vector = as_integers(contribute(clipped, 1, protection, terms, SeededNoise(0)).vector)[:-1]
    assert np.linalg.norm(vector) <= protection.clip * 2**8 + np.sqrt(len(vector)) / 2, (
        "half a step of rounding a number"
    )
    assert (vector >= 0).all()


@settings(max_examples=300, deadline=None)
@given(
    others=st.sets(st.sampled_from(NEWS[2:]), max_size=30),
    clicks=st.sets(st.sampled_from(NEWS[2:]), max_size=6),
    clip=st.sampled_from([0.5, 1.5, 2.47, 8.0]),
    left_out=st.booleans(),
)
def test_one_click_changes_the_encoded_vector_within_its_price(
    others: set[str], clicks: set[str], clip: float, left_out: bool
) -> None:
    """Two readers who differ in one click and its display; scaled into the ball and rounded, before the noise."""
    listed = CountList(news=NEWS, displayed_limit=40, clicked_limit=8, displayed_unit=3 / 16, window_hours=24)
    protection = SecureSum(clip=clip, fraction_bits=8, sigma=278, nonnegative=True)
    fixed = protection.terms("round-1", cohort=10, cohort_minimum=2, coordinates=2 * len(NEWS)).fixed_point()

    def code(extra: set[str]) -> NDArray[np.int64]:
        tensors = count_vector(listed, others | clicks | extra, clicks | extra, np.random.default_rng(0))
        clipped = clip_norm(shared_part(tensors, None), clip).update.tensors
        flat = np.concatenate([clipped[name] for name in sorted(clipped)])
        return as_integers(clip_and_encode(flat, clip, fixed).codes)

    moved = float(np.linalg.norm(code({"n0"}) - code(set() if left_out else {"n1"})))
    assert moved <= one_click(listed).steps(fixed.step)


def test_one_more_click_changes_one_entry_of_the_sampled_clicks() -> None:
    """Oracle: all subsets. Of k in k+1 the draw is uniform; each is one swap from a uniform draw of the k others."""
    for limit in (1, 2, 3):
        everything, without = range(4), range(1, 4)
        of_more, of_fewer = list(combinations(everything, limit)), list(combinations(without, limit))
        mass = dict.fromkeys(of_fewer, 0.0)
        for chosen in of_more:
            kept = set(chosen) - {0}
            free = [one for one in without if one not in kept] if 0 in chosen else [None]
            for one in free:
                mass[tuple(sorted(kept | ({one} if one is not None else set())))] += 1 / len(of_more) / len(free)
        assert all(abs(share - 1 / len(of_fewer)) < 1e-12 for share in mass.values())


def test_excess_displays_are_sampled_uniformly_whether_clicked_or_not() -> None:
    listed = CountList(news=NEWS, displayed_limit=15, clicked_limit=2, displayed_unit=1.0, window_hours=24)
    rng = np.random.default_rng(0)
    shown: Counter[int] = Counter()
    opened: Counter[int] = Counter()
    for _ in range(4_000):
        tensors = count_vector(listed, set(NEWS), {"n3", "n7", "n9", "n40"}, rng)
        shown.update(np.flatnonzero(tensors[DISPLAYED]).tolist())
        opened.update(np.flatnonzero(tensors[CLICKED]).tolist())
    # A binomial of 4,000 draws at 1/4 has a standard deviation of 27: one of sixty is beyond five once in 30,000 tests.
    assert all(abs(shown[row] - 1_000) < 140 for row in range(60))
    assert sorted(opened) == [3, 7, 9, 40]
    assert all(abs(count - 2_000) < 160 for count in opened.values())


def test_negative_numbers_are_refused_in_a_nonnegative_sum() -> None:
    protection = SecureSum(clip=2.0, fraction_bits=8, sigma=100, nonnegative=True)
    terms = protection.terms("round-1", cohort=10, cohort_minimum=2, coordinates=2)
    clipped = clip_norm(shared_part({"displayed": np.array([-1, 1], np.float32)}, None), 2.0)
    with pytest.raises(ValueError, match="below 0"):
        contribute(clipped, 1, protection, terms, SeededNoise(0))


def test_price_matches_the_largest_distance_of_two_nonnegative_vectors() -> None:
    """Oracle: all pairs of small vectors, by brute force."""
    protection = SecureSum(clip=2.0, fraction_bits=8, sigma=100, nonnegative=True)
    grid = np.stack(np.meshgrid(*[np.linspace(0, 2, 9)] * 3), axis=-1).reshape(-1, 3)
    inside = grid[np.linalg.norm(grid, axis=1) <= 2.0]
    farthest = np.linalg.norm(inside[:, None] - inside[None], axis=2).max()
    assert farthest * 2**8 == pytest.approx(protection.reach_steps)
    assert protection.model_copy(update={"nonnegative": False}).reach_steps == 4 * 2**8
