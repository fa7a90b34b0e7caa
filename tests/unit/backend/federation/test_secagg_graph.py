"""The sparse graph. Oracles: exact counts with math.comb, a search of small circles, numpy's sum."""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Mapping
from itertools import combinations

import pytest
from scipy.stats import hypergeom

from backend.federation.secagg.graph import MaskGraph, random_circle
from device_app.wire.neighbourhood import Assumptions, Neighbourhood, choose_neighbourhood
from device_app.wire.secagg import SPARSE_FROM
from tests.doubles.secure_sums import cohort, plain_sum, run_sum, terms


def connected(graph: Mapping[int, tuple[int, ...]], left: Collection[int]) -> bool:
    alive = set(left)
    seen: set[int] = set()
    queue = [min(alive)]
    while queue:
        one = queue.pop()
        if one not in seen:
            seen.add(one)
            queue += [other for other in graph[one] if other in alive]
    return seen == alive


def neighbourhoods(graph: MaskGraph) -> dict[int, tuple[int, ...]]:
    return {member: graph.closed(member) for member in range(1, graph.members + 1)}


@pytest.mark.parametrize(("members", "degree"), [(10, 4), (101, 20), (500, 58)])
def test_everybody_has_k_neighbours_and_neighbours_are_mutual(members: int, degree: int) -> None:
    graph = neighbourhoods(MaskGraph.sparse(random_circle(members), degree))
    assert sorted(graph) == list(range(1, members + 1))
    for member, near in graph.items():
        assert len(near) == len(set(near)) == degree + 1
        assert list(near) == sorted(near)
        assert all(member in graph[other] for other in near)


def test_a_degree_of_everybody_is_the_complete_graph() -> None:
    graph = neighbourhoods(MaskGraph.sparse((3, 1, 2), 2))
    assert graph == {1: (1, 2, 3), 2: (1, 2, 3), 3: (1, 2, 3)}


@pytest.mark.parametrize(("members", "degree"), [(7, 6), (12, 4), (101, 20), (30, 28)])
def test_the_fewest_holders_of_any_neighbourhood_are_counted(members: int, degree: int) -> None:
    rng = random.Random(members)
    graph = MaskGraph.sparse(random_circle(members, rng.randrange), degree)
    for size in (0, 1, members // 2, members - 1, members):
        chosen = rng.sample(range(1, members + 1), size)
        counted = min(len(set(near) & set(chosen)) for near in neighbourhoods(graph).values())
        assert graph.fewest(chosen) == counted


def test_the_circle_is_a_permutation_that_every_order_is_equally_likely_for() -> None:
    # 6,000 draws of 6 orders: chi-square with 5 degrees of freedom passes 30.9 once in 10^5 seeds; the seed is fixed.
    rng = random.Random(5)
    counts: dict[tuple[int, ...], int] = {}
    for _ in range(6_000):
        order = random_circle(3, rng.randrange)
        counts[order] = counts.get(order, 0) + 1
    assert len(counts) == 6
    assert sum((count - 1_000) ** 2 / 1_000 for count in counts.values()) < 30.9
    assert random_circle(50) != random_circle(50)


def tail(members: int, marked: int, drawn: int, at_least: int) -> float:
    """P(at least so many marked ones among `drawn` of `members`), by counting."""
    ways = sum(
        math.comb(marked, hits) * math.comb(members - marked, drawn - hits)
        for hits in range(at_least, min(marked, drawn) + 1)
    )
    return ways / math.comb(members, drawn)


@pytest.mark.parametrize("members", [SPARSE_FROM, 200, 500, 2_000])
@pytest.mark.parametrize("assumed", [Assumptions(), Assumptions(colluding=0.05, dropping=0.3)])
def test_the_chosen_k_and_t_keep_the_papers_bounds_and_a_smaller_k_does_not(members: int, assumed: Assumptions) -> None:
    chosen = choose_neighbourhood(members, assumed)
    assert chosen is not None

    def fits(degree: int, threshold: int) -> bool:
        colluding, dropped = math.ceil(assumed.colluding * members), math.ceil(assumed.dropping * members)
        opened = members * tail(members - 1, colluding, degree, threshold)
        # Fewer than t survivors are more than k - t dropped.
        stuck = members * tail(members - 1, dropped, degree, degree - threshold + 1)
        removed = colluding + dropped
        cut = members**2 / 2 * math.comb(removed, degree) / math.comb(members, degree)
        return (
            opened <= 2.0**-assumed.privacy_bits
            and stuck <= 2.0**-assumed.success_bits
            and cut <= 2.0**-assumed.privacy_bits
        )

    assert fits(chosen.degree, chosen.threshold)
    least = (chosen.degree - 1) // 3 + 1
    assert not any(fits(chosen.degree - 2, threshold) for threshold in range(max(2, least), chosen.degree - 1))


@pytest.mark.parametrize("members", [SPARSE_FROM, 1_000, 10_000])
def test_the_bounds_in_whole_numbers_are_scipys_hypergeometric_tails(members: int) -> None:
    chosen, assumed = choose(members), Assumptions()
    colluding, dropped = math.ceil(assumed.colluding * members), math.ceil(assumed.dropping * members)
    others, degree, threshold = members - 1, chosen.degree, chosen.threshold
    assert members * hypergeom.sf(threshold - 1, others, colluding, degree) <= 2.0**-40
    assert (
        members * hypergeom.sf(threshold - 2, others, colluding, degree) > 2.0**-40
        or threshold - 1 <= (degree + 1) // 3
    )
    assert members * hypergeom.cdf(threshold - 1, others, others - dropped, degree) <= 2.0**-20


def test_neighbours_grow_like_the_logarithm_of_the_cohort() -> None:
    degrees = {members: choose(members).degree for members in (SPARSE_FROM, 1_000, 10_000)}
    assert degrees[10_000] < 2 * degrees[1_000] < 200
    assert degrees[10_000] - degrees[1_000] < degrees[1_000] - degrees[SPARSE_FROM] + 5


def choose(members: int) -> Neighbourhood:
    chosen = choose_neighbourhood(members)
    assert chosen is not None
    return chosen


def test_to_cut_a_circle_takes_two_gaps_so_the_bound_on_pairs_of_gaps_holds() -> None:
    # All ways to remove 6 of 12 from a circle of degree 4: those that cut it are at most n^2/2 times one pair's share.
    members, degree, removed = 12, 4, 6
    graph = neighbourhoods(MaskGraph.sparse(range(1, members + 1), degree))
    ways = list(combinations(range(1, members + 1), removed))
    cut = sum(not connected(graph, set(range(1, members + 1)) - set(way)) for way in ways)
    assert 0 < cut / len(ways) <= members**2 / 2 * math.comb(removed, degree) / math.comb(members, degree)


def test_a_small_or_distrustful_cohort_gets_no_sparse_graph() -> None:
    assert choose_neighbourhood(SPARSE_FROM - 1) is None
    assert choose_neighbourhood(SPARSE_FROM, Assumptions(colluding=0.5, dropping=0.49)) is None


@pytest.mark.parametrize("shares", [(0.5, 0.5), (-0.1, 0.2), (0.2, -0.1)])
def test_shares_that_leave_nobody_are_refused(shares: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="colluding"):
        Assumptions(*shares)


def test_a_hundred_in_the_sparse_form_sum_exactly_though_a_fifth_vanishes() -> None:
    server, devices = cohort(terms(SPARSE_FROM, length=20, graph="sparse"))
    rng = random.Random(11)
    away = rng.sample(range(SPARSE_FROM), 18)
    opened = run_sum(server, devices, {"shares": away[:6], "masked": away[6:12], "unmask": away[12:]})
    assert server.record.degree < 40 < len(opened.survivors)
    assert len(devices[50].state.held) <= server.record.degree + 1
    assert (opened.vector == plain_sum(devices, sorted(set(range(SPARSE_FROM)) - set(away[:12])))).all()


def test_too_few_for_a_sparse_graph_use_the_complete_one() -> None:
    server, devices = cohort(terms(6, graph="sparse"))
    opened = run_sum(server, devices, {"masked": {0}})
    assert server.record.degree == 5
    assert (opened.vector == plain_sum(devices, range(1, 6))).all()
