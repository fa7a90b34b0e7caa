"""A malicious server gives each device of a secure sum another list of dropouts.

How many vectors can it open? It draws the graph, places its colluding members around its target, knows what every
device accepts, and withholds or forwards each signature as it likes. Before the sparse form had the agreement stage,
with t just above a third of the neighbourhood, `by_halves` opened 150 of 150, 300 of 300 and 1,000 of 1,000 vectors,
and with ten colluding members all 140, 290 and 990 others.
"""

from __future__ import annotations

import random

import pytest

from protocol.secagg import COMPANY, Roster, SecaggError, choose_neighbourhood
from tests.doubles.long_form import by_length
from tests.doubles.split_views import Account, AttackResult, SplitViews

COMPLETE = [(10, 3), (13, 4), (16, 5), (34, 11)]
"""With as many colluding members as there may be: fewer than a third."""
SIZES = [(150, 0), (150, 10)]
SIZES += by_length([], long=[(150, 1), *((members, more) for members in (300, 1_000) for more in (0, 1, 10))])


def opened(server: SplitViews, reported: dict[int, Account]) -> AttackResult:
    """Return what the server opens for devices near the target, on whom alone the attack depends."""
    return server.attack(reported, [one for one in server.near if abs(one - server.target) <= server.degree + 5])


@pytest.mark.long_form
@pytest.mark.parametrize(("members", "colluding"), SIZES)
def test_server_sending_inconsistent_dropout_lists_opens_no_vector(members: int, colluding: int) -> None:
    server = SplitViews(members, colluding)
    server.rules.check(server.entries[server.target].keys, server.roster(server.target))
    for reported in (
        server.by_halves(),
        server.cut_out(1, narrow=False),
        server.cut_out(1),
        server.cut_out(COMPANY),
        server.cut_out(server.threshold - colluding),
    ):
        result = opened(server, reported)
        assert result.vectors == 0
        assert result.smallest == 0 or result.smallest >= COMPANY


@pytest.mark.long_form
@pytest.mark.parametrize(("members", "colluding"), SIZES)
def test_inconsistent_dropout_lists_open_a_vector_without_the_consistency_round(members: int, colluding: int) -> None:
    """The attack works: no device reveals both secrets of a member, and one vector loses all its masks."""
    server = SplitViews(members, colluding, mode="semi_honest")
    assert opened(server, server.by_halves()).vectors == 0
    assert opened(server, server.cut_out(1, narrow=False)).vectors == 1


def test_consistent_dropout_lists_open_only_the_sum_of_all() -> None:
    server = SplitViews(150, 0)
    result = server.attack(server.honest_account())
    assert (result.smallest, result.vectors, result.revealed) == (150, 0, 150)


def test_random_dropout_lists_open_no_sum_of_few_members() -> None:
    server = SplitViews(101, 10)
    rng = random.Random(3)
    for _ in range(6):
        reported = server.honest_account()
        for one, account in reported.items():
            others = sorted(server.near[one] - {one})
            account.dropped = set(rng.sample(others, rng.randint(0, server.spare)))
        result = server.attack(reported)
        assert result.smallest == 0 or result.smallest >= COMPANY


@pytest.mark.parametrize(("members", "colluding"), COMPLETE)
def test_complete_graph_opens_no_sum_of_fewer_members_than_the_honest_part_of_the_threshold(
    members: int, colluding: int
) -> None:
    """Nobody signs who shared its keys (U2), so a server may also name different sharers to each device."""
    server = SplitViews(members, colluding)
    server.rules.check(server.entries[server.target].keys, server.roster(server.target))
    least, rng = server.rules.least(server.roster(server.target)) - colluding, random.Random(5)
    assert least > members / 3
    reported = [server.by_halves(), *(server.cut_out(cluster) for cluster in (1, 2, least - 1))]
    reported += [random_views(server, rng) for _ in range(10)]
    reported += [{one: Account(set(server.near), set(sorted(server.honest)[least:])) for one in server.honest}]
    opened = [result.smallest for result in map(server.attack, (*reported, server.honest_account())) if result.sums]
    assert min(opened) == least
    assert opened[-1] == len(server.honest)


@pytest.mark.parametrize(("members", "colluding"), COMPLETE[2:])
def test_complete_graph_opens_vectors_without_the_consistency_round(members: int, colluding: int) -> None:
    server = SplitViews(members, colluding, mode="semi_honest")
    assert server.attack(server.by_halves()).vectors > 0


def random_views(server: SplitViews, rng: random.Random) -> dict[int, Account]:
    """Claim the same survivors to all but some victims; claim to each other sharers, as few as it accepts."""
    least = server.rules.least_sharers(server.roster(server.target))
    honest = sorted(server.honest)
    victims = set(rng.sample(honest, rng.randint(0, 3)))
    survivors = server.colluding | victims
    rest = [one for one in honest if one not in survivors]
    survivors |= set(rng.sample(rest, min(len(rest), max(0, least + rng.randint(0, 2) - len(survivors)))))
    rest = [one for one in rest if one not in survivors]
    extra = rng.sample(rest, rng.randint(0, len(rest)))
    reported = {}
    for one in honest:
        others = [each for each in server.near if each != one and each not in server.colluding]
        if one in victims:
            sharers = {one, *server.colluding, *rng.sample(others, least - 1 - len(server.colluding))}
        else:
            sharers = {one, *survivors, *extra}
        reported[one] = Account(sharers, sharers - survivors)
    return reported


def test_devices_leave_a_sum_with_too_few_sharers_or_survivors() -> None:
    server = SplitViews(150, 0)
    due = choose_neighbourhood(150)
    assert due is not None
    me = server.target
    others = sorted(server.near[me] - {me})
    reported = server.honest_account()
    reported[me].sharers = {me, *others[: due.sharers - 2]}
    assert me not in {one for sums in opened(server, reported).sums for one in sums}
    reported = server.honest_account()
    reported[me].dropped = set(others[: server.spare + 1])
    assert server.attack(reported).revealed == 149


def test_member_number_beyond_the_cohort_is_refused_before_payment() -> None:
    """The signatures on survivors have no bit for such a member.

    Regression: devices paid first and then failed.
    """
    server = SplitViews(150, 0)
    roster = server.roster(server.target)
    last = roster.members[-1]
    assert last.member != server.target
    named = roster.model_copy(update={"members": (*roster.members[:-1], last.model_copy(update={"member": 10_000}))})
    with pytest.raises(SecaggError, match="member 10000 is beyond a cohort of 150"):
        server.rules.check(server.entries[server.target].keys, named)


def test_roster_larger_than_the_terms_cohort_is_refused() -> None:
    server = SplitViews(150, 0)
    group = server.terms.model_copy(update={"cohort": 100, "cohort_minimum": 10})
    roster = server.roster(server.target)
    rules = type(server.rules)(group, None, 10)
    with pytest.raises(SecaggError, match="150 members, the terms say 10 to 100"):
        rules.check(server.entries[server.target].keys, Roster.model_validate(roster.model_dump()))
