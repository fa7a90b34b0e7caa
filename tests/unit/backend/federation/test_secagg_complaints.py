"""Complaints between members of a secure sum. Oracles: the bounds that `judge` states, by search; numpy's sum."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping
from itertools import combinations

import pytest

from backend.federation.errors import SumFailed, SumMessageConflict, SumMessageRefused, SumStageClosed
from backend.federation.secagg.complaints import ComplaintVerdict, judge
from backend.federation.secagg.graph import Sources
from backend.federation.secagg.secure_sum import SecureSumServer
from device_app.errors import SumAborted
from protocol.secagg import Complaints, SharedKeys
from tests.doubles.secure_sums import SumDevice, answer, cohort, deliver, plain_sum, terms


def complaints_of(members: int, **accused: Collection[int]) -> dict[int, tuple[int, ...]]:
    """Return everybody's complaints: by 'of_N', whom N accuses."""
    return {member: tuple(accused.get(f"of_{member}", ())) for member in range(1, members + 1)}


def test_single_complaint_excludes_both_members() -> None:
    assert judge(complaints_of(10, of_3=[7]), 1) == ComplaintVerdict(frozenset({3, 7}))


def test_member_with_many_complaints_is_excluded_as_malicious() -> None:
    assert judge(complaints_of(10, of_3=[7], of_4=[7]), 1) == ComplaintVerdict(frozenset({7}), frozenset({7}))
    assert judge(complaints_of(20, of_3=[7], of_4=[7]), 2) == ComplaintVerdict(frozenset({3, 7})), (
        "two may be malicious together"
    )


def test_member_complaining_too_often_is_excluded_as_malicious() -> None:
    assert judge(complaints_of(10, of_3=[1, 2, 4]), 1) == ComplaintVerdict(frozenset({3}), frozenset({3}))


def test_complaint_about_a_member_that_dropped_out_has_no_effect() -> None:
    said = complaints_of(10, of_3=[7])
    del said[7]
    assert judge(said, 1) == ComplaintVerdict()


def test_too_many_malicious_members_leave_all_unnamed() -> None:
    everybody = range(1, 11)
    verdict = judge(complaints_of(10, of_1=[n for n in everybody if n != 1], of_2=[n for n in everybody if n != 2]), 1)
    assert verdict.malicious == frozenset()


def test_too_many_bad_box_senders_exclude_no_honest_member() -> None:
    said = dict.fromkeys(range(4, 13), (1, 2, 3)) | {1: (), 2: (), 3: ()}
    assert judge(said, 1) == ComplaintVerdict(frozenset({1, 2, 3}))


def test_without_complaints_all_members_stay() -> None:
    assert judge(complaints_of(5), 1) == judge({}, 1) == ComplaintVerdict()


ATTACKS: Mapping[str, Callable[[int, int, set[int]], set[tuple[int, int]]]] = {
    "accuse everybody": lambda attacker, n, gang: {(attacker, other) for other in range(1, n + 1) if other not in gang},
    "accuse the first": lambda attacker, n, gang: {(attacker, max(gang) + 1 + at) for at in range(len(gang))},
    "one victim each": lambda attacker, n, gang: {(attacker, max(gang) + attacker)},
    "spoil everybody's box": lambda attacker, n, gang: {(o, attacker) for o in range(1, n + 1) if o not in gang},
    "spoil a few boxes": lambda attacker, n, gang: {(max(gang) + 1 + at, attacker) for at in range(len(gang))},
    "one spoilt box each": lambda attacker, n, gang: {(max(gang) + attacker, attacker)},
}


def test_complaints_from_three_members_on_one_machine_blame_no_honest_member() -> None:
    """Regression: 3 malicious members are more than k = 2, so each of their two victims was blamed and they stayed."""
    sources = Sources(dict.fromkeys((1, 2, 3), "one address"))
    said = complaints_of(12, of_1=[4, 5], of_2=[4, 5], of_3=[4, 5])
    assert judge(said, 2, sources) == ComplaintVerdict(frozenset({1, 2, 4, 5}))
    assert judge(said, 2).malicious == {4, 5}, (
        "the same where each has an address of its own: more than k malicious members"
    )


def test_machine_whose_members_accuse_one_victim_each_is_identified() -> None:
    """Regression: three pairs were excluded, and nobody identified."""
    sources = Sources(dict.fromkeys((1, 2, 3), "one address"))
    verdict = judge(complaints_of(12, of_1=[4], of_2=[5], of_3=[6]), 2, sources)
    assert verdict == ComplaintVerdict(frozenset({1, 2, 3}), frozenset({1, 2, 3}))


def test_honest_members_behind_one_address_count_once_and_stay_unnamed() -> None:
    sources = Sources(dict.fromkeys((4, 5, 6), "one address"))
    said = complaints_of(12, of_4=[1], of_5=[1], of_6=[1])
    assert judge(said, 2, sources) == ComplaintVerdict(frozenset({1, 4}))
    assert judge(complaints_of(12, of_1=[4, 5, 6], of_2=[4, 5, 6]), 2, sources).malicious == frozenset()


def test_false_complaints_from_few_addresses_blame_no_other_address() -> None:
    draw = random.Random(4)
    for _ in range(3_000):
        n, limit = draw.randint(6, 20), draw.randint(1, 3)
        sources = Sources({member: draw.randint(1, 8) for member in range(1, n + 1) if draw.random() < 0.8})
        by_source = sources.by_source(range(1, n + 1))
        blamed = set().union(*draw.sample(by_source, min(limit, len(by_source))))
        gang = {member for member in blamed if draw.random() < 0.8}
        honest = [member for member in range(1, n + 1) if member not in gang]
        pairs = [(attacker, other) for attacker in gang for other in honest] + [
            (o, attacker) for attacker in gang for o in honest
        ]
        complaints_made = set(draw.sample(pairs, draw.randint(0, len(pairs))))
        verdict = judge(complaints_by_member(n, complaints_made), limit, sources)
        assert sources.of(verdict.malicious) <= sources.of(gang), "an address without a malicious member is blamed"
        assert len({one for one in verdict.left_out - gang if one not in blamed}) <= len(gang)
        assert all(one in verdict.left_out or other in verdict.left_out for one, other in complaints_made), (
            "a pair that accused each other remains"
        )


def complaints_by_member(n: int, made: set[tuple[int, int]]) -> dict[int, tuple[int, ...]]:
    return {one: tuple(sorted(other for by, other in made if by == one)) for one in range(1, n + 1)}


def check_bounds(n: int, limit: int, gang: set[int], made: set[tuple[int, int]]) -> None:
    verdict = judge(complaints_by_member(n, made), limit)
    assert verdict.malicious <= gang, "an honest member is blamed"
    assert len(verdict.left_out - gang) <= len(gang), "more honest members are left out than there are malicious ones"
    assert all(one in verdict.left_out or other in verdict.left_out for one, other in made), (
        "a pair that accused each other remains"
    )


@pytest.mark.parametrize("malicious", [1, 2, 3, 5])
@pytest.mark.parametrize("attacks", [pair for size in (1, 2) for pair in combinations(ATTACKS, size)], ids="-".join)
def test_colluding_members_exclude_at_most_one_honest_member_each(malicious: int, attacks: tuple[str, ...]) -> None:
    n, gang = 16, set(range(1, malicious + 1))
    said = {
        pair
        for at, attacker in enumerate(sorted(gang))
        for pair in ATTACKS[attacks[at % len(attacks)]](attacker, n, gang)
    }
    check_bounds(n, 5, gang, said)


def test_random_false_complaints_exclude_no_more_members_than_the_bound() -> None:
    draw = random.Random(3)
    for _ in range(3_000):
        n = draw.randint(4, 20)
        limit = draw.randint(1, max(1, n // 5))
        gang = set(draw.sample(range(1, n + 1), draw.randint(0, limit)))
        honest = [member for member in range(1, n + 1) if member not in gang]
        pairs = [(attacker, other) for attacker in gang for other in honest] + [
            (o, attacker) for attacker in gang for o in honest
        ]
        check_bounds(n, limit, gang, set(draw.sample(pairs, draw.randint(0, len(pairs)))))


def test_limit_of_zero_malicious_members_is_refused() -> None:
    with pytest.raises(ValueError, match="limit: at least 1, got 0"):
        judge({}, 0)


def brought_to_complaints(
    size: int = 10, spoilt: Mapping[int, Collection[int]] | None = None, mode: str = "active"
) -> tuple[SecureSumServer, list[SumDevice]]:
    """Return devices with complaints not yet delivered. spoilt: by sender, whose boxes it fills with zeros."""
    server, devices = cohort(terms(size, mode=mode))
    for device in devices:
        device.start()
        deliver(server, device)
    server.close()
    for number, device in enumerate(devices, 1):
        device.receive(answer(server, device))
        if receivers := (spoilt or {}).get(number):
            server.share(device.pseudonym, with_bad_boxes(device, receivers))
        else:
            deliver(server, device)
    server.close()
    for device in devices:
        device.receive(answer(server, device))
    return server, devices


def with_bad_boxes(device: SumDevice, receivers: Collection[int]) -> SharedKeys:
    assert device.state.shared is not None
    boxes = tuple(
        one.model_copy(update={"box": bytes(len(one.box))}) if one.member in receivers else one
        for one in device.state.shared.boxes
    )
    shared: SharedKeys = device.state.shared.model_copy(update={"boxes": boxes})
    return shared


def goes_on(server: SecureSumServer, devices: list[SumDevice]) -> list[int]:
    """Run on to the opened sum; return the members who left over complaints."""
    for device in devices:
        deliver(server, device)
    server.close()
    left = []
    for number, device in enumerate(devices, 1):
        if number not in server.record.dropped:
            device.receive(answer(server, device))
            continue
        with pytest.raises(SumAborted, match="left this device out"):
            device.receive(answer(server, device))
        assert device.ledger.charges == [], "it has paid nothing"
        left.append(number)
    remaining = [device for number, device in enumerate(devices, 1) if number not in left]
    for stage in ("masked", "agree", "unmask"):
        for device in remaining:
            assert device.state.stage == stage
            deliver(server, device)
        if stage != "unmask":
            server.close()
            for device in remaining:
                device.receive(answer(server, device))
    opened = server.open()
    assert (opened.vector == plain_sum(remaining, range(len(remaining)))).all()
    return left


def test_sender_of_unreadable_boxes_is_excluded_alone() -> None:
    server, devices = brought_to_complaints(spoilt={4: range(1, 11)})
    assert goes_on(server, devices) == [4]
    assert server.record.malicious == (devices[3].pseudonym,)


def test_one_unreadable_box_excludes_two_members_unnamed() -> None:
    server, devices = brought_to_complaints(spoilt={4: [9]})
    assert goes_on(server, devices) == [4, 9]
    assert server.record.malicious == ()


def test_false_complaint_about_everybody_excludes_its_sender() -> None:
    server, devices = brought_to_complaints()
    server.complain(devices[0].pseudonym, Complaints(members=tuple(range(2, 11))))
    devices[0].step = None
    for device in devices[1:]:
        deliver(server, device)
    server.close()
    assert (server.record.dropped, server.record.malicious) == ((1,), (devices[0].pseudonym,))


def test_silent_member_is_excluded_before_masking() -> None:
    server, devices = brought_to_complaints()
    for device in devices[:-1]:
        deliver(server, device)
    assert not server.complete
    server.close()
    assert server.record.dropped == (10,)
    with pytest.raises(SumMessageRefused, match="left out of the sum in the complaints stage"):
        server.add_masked(devices[-1].pseudonym, [b""])
    with pytest.raises(SumStageClosed):
        deliver(server, devices[-1])


def test_too_few_after_complaints_fail_before_payment() -> None:
    server, devices = brought_to_complaints(size=8, spoilt={1: range(1, 9)})
    server.record.terms = server.record.terms.model_copy(update={"cohort_minimum": 8})
    for device in devices:
        deliver(server, device)
    with pytest.raises(SumFailed, match="7 members are left after the complaints; 8 are needed"):
        server.close()
    assert server.record.by_members
    assert server.record.malicious == (devices[0].pseudonym,)
    assert [device.ledger.charges for device in devices] == [[]] * 8


def test_invalid_or_second_complaint_is_refused() -> None:
    server, devices = brought_to_complaints(size=4)
    for members in ((1,), (2, 5), (5,)):
        with pytest.raises(SumMessageRefused, match="members who sent boxes"):
            server.complain(devices[0].pseudonym, Complaints(members=members))
    deliver(server, devices[0])
    assert deliver(server, devices[0]) is True
    with pytest.raises(SumMessageConflict, match="stage complaints"):
        server.complain(devices[0].pseudonym, Complaints(members=(2,)))
