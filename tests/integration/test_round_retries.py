"""A round that fails because of a malicious member is opened again, without that member if it is identified.

Real routes, coordinator and database over HTTP; a local proxy's header gives the address of each request. Only the test
makes the coordinator tick.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import httpx
import pytest
from sqlalchemy import select

from backend.app import create_app
from backend.composition import build_services
from backend.db.engine import reading_session
from backend.db.tables import FollowUpRow, ParticipationRow
from backend.operations.admin_client import Operator
from backend.settings import BackendSettings
from device_app.errors import SumAborted
from experiments.bench.secagg_clients import WireClient
from experiments.bench.secagg_http import ACTIVE, SUMMING, publish_nothing_much
from protocol.rounds import RoundStatus
from tests.doubles.clock import StillClock
from tests.doubles.malicious_members import (
    AccusesEverybody,
    AccusesTwo,
    BadBoxes,
    FalseSeed,
    FalseShares,
    FalseSharesOfTwo,
    Garbage,
    OneBadBox,
)
from tests.doubles.small_world import serve_app
from tests.integration.test_secure_clients import numbers
from tests.integration.test_sybils import BEHIND_A_PROXY, ProxiedServer, coordinator_of, leave_steps_to_the_test

COHORT, MINIMUM = 12, 10
ATTACKER = "203.0.113.9"
STAGE_SEC = 300.0
"""More than any stage of these rounds lasts."""


@pytest.fixture
def server(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[ProxiedServer]:
    clock = StillClock()
    services = build_services(BackendSettings(data_dir=tmp_path, **BEHIND_A_PROXY, **getattr(request, "param", {})))
    publish_nothing_much(services.releases)
    services.coordinator = coordinator_of(services, clock)
    leave_steps_to_the_test(services.coordinator)
    with serve_app(create_app(services=services)) as url, httpx.Client(base_url=url, timeout=60.0) as http:
        server = ProxiedServer(services, url, http, clock)
        services.coordinator.open_round(SUMMING, cohort=COHORT, cohort_minimum=MINIMUM, seconds=600)
        yield server
    services.close()


def joining(server: ProxiedServer, kind: type[WireClient], place: int, address: str) -> WireClient | None:
    says = {"X-Forwarded-For": address}
    # no certificates: to read them takes forty times as long as to ask
    with httpx.Client(base_url=server.url, headers=says, timeout=60.0, verify=False) as http:
        found = kind.joining(http, "r1", SUMMING, partial(numbers, place))
    if found is not None:
        found.http = server.http
    return found


def everybody(server: ProxiedServer, attacker: type[WireClient]) -> list[WireClient]:
    """Return the malicious member first, then honest ones, as far as there are places."""
    honest = [joining(server, WireClient, at, f"198.51.100.{at}") for at in range(1, COHORT)]
    return [one for one in (joining(server, attacker, 0, ATTACKER), *honest) if one is not None]


def play(server: ProxiedServer, members: Sequence[WireClient], steps: int = 6) -> RoundStatus:
    """Step every member as far as it can go while the server's time passes; return the round's last status."""
    name = members[0].offer.manifest.round
    for _ in range(steps):
        for one in members:
            with suppress(SumAborted, httpx.HTTPStatusError):
                one.go_on()
        server.clock.go_on(STAGE_SEC)
        server.step()
        status = server.services.coordinator.status(name)
        if status.finished_at is not None:
            break
    return status


def test_member_who_shared_a_false_seed_is_excluded_from_the_retry(server: ProxiedServer) -> None:
    members = everybody(server, FalseSeed)
    failed = play(server, members)
    assert (failed.state, failed.followed_by) == ("failed", "round-2"), failed.reason
    assert failed.summary == (
        "Members known to be malicious: 1. The round is opened again without the 1 address of these members."
    )

    assert joining(server, FalseSeed, 0, ATTACKER) is None
    assert server.services.coordinator.check_ins("round-2").address == 1
    honest = everybody(server, FalseSeed)
    assert len(honest) == COHORT - 1
    applied = play(server, honest)
    assert (applied.state, applied.survivors, applied.follows) == ("applied", COHORT - 1, "round-1"), applied.reason


def test_failed_sum_gives_its_reason_before_the_round_closes(
    server: ProxiedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: `failed` without a reason, while the server closed the round, or if it had been killed."""
    coordinator = server.services.coordinator
    opened = coordinator.status("round-1")
    coordinator.sums._store.stages.fail("round-1", "Two shares are false.", by_members=True)
    first = coordinator.status("round-1")
    assert (first.state, first.reason, first.finished_at) == ("failed", "Two shares are false.", None)
    assert coordinator.current() == first

    def status(_: Operator, round_id: str) -> RoundStatus:
        found = coordinator.status(round_id)
        if found.state == "failed":
            server.step()
        return found

    monkeypatch.setattr(Operator, "status", status)
    reported = list(Operator(server.url, server.services.settings.admin_token_file).follow(opened))
    assert [(one.state, one.reason) for one in reported] == [("open", None), *[("failed", "Two shares are false.")] * 2]
    assert reported[-1].followed_by == "round-2"


def test_excluded_source_is_erased_after_the_retry(server: ProxiedServer) -> None:
    play(server, everybody(server, FalseSeed))
    with reading_session(server.services.engine) as session:
        refused = session.get_one(FollowUpRow, 1).refused_sources
        kept = list(session.scalars(select(ParticipationRow.source).where(ParticipationRow.source.is_not(None))))
    assert refused is not None
    assert (len(refused), kept) == (1, [])
    play(server, everybody(server, FalseSeed))
    with reading_session(server.services.engine) as session:
        assert session.get_one(FollowUpRow, 1).refused_sources is None


def test_server_killed_after_a_failure_opens_one_retry_and_keeps_the_exclusion(
    server: ProxiedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    members = everybody(server, FalseSeed)
    with monkeypatch.context() as patch:
        # Killed between the transaction that ends the round and the one that opens the next.
        patch.setattr(server.services.coordinator._opener, "open_waiting", lambda: None)
        failed = play(server, members)
    assert (failed.state, failed.followed_by) == ("failed", None)
    assert failed.orders == SUMMING
    server.services.coordinator = coordinator_of(server.services, server.clock)
    for _ in range(3):
        server.step()
    assert [one.round for one in server.services.coordinator.history()] == ["round-2", "round-1"]
    assert joining(server, FalseSeed, 0, ATTACKER) is None


def test_one_answer_of_false_shares_does_not_end_the_round(server: ProxiedServer) -> None:
    """Regression: the sum was opened with the first answers, a false one among them, and failed."""
    members = everybody(server, FalseShares)
    for _ in ("keys", "shares", "complaints", "masked", "agree"):
        for one in members:
            one.go_on()
        server.step()
    for one in members[:9]:  # the threshold
        one.go_on()
    server.step()
    assert server.services.coordinator.status("round-1").state == "unmask", "it waits for those who are still to answer"
    for one in members[9:]:
        one.go_on()
    server.step()
    status = server.services.coordinator.status("round-1")
    assert (status.state, status.survivors) == ("applied", COHORT), status.reason


@pytest.mark.parametrize(("attacker", "survivors"), [(BadBoxes, 11), (AccusesEverybody, 11), (OneBadBox, 10)])
def test_members_in_a_box_dispute_are_left_out_and_the_round_continues(
    server: ProxiedServer, attacker: type[WireClient], survivors: int
) -> None:
    """Regression: receivers of unreadable boxes left, and the round failed without naming anybody."""
    status = play(server, everybody(server, attacker))
    assert (status.state, status.survivors, status.followed_by) == ("applied", survivors, None), status.reason


@pytest.mark.parametrize("attacker", [BadBoxes, AccusesEverybody])
def test_round_too_small_after_complaints_fails_before_payment(
    server: ProxiedServer, attacker: type[WireClient]
) -> None:
    server.services.coordinator.cancel("round-1")
    server.services.coordinator.open_round(SUMMING, cohort=COHORT, cohort_minimum=COHORT, seconds=600)
    members = everybody(server, attacker)
    failed = play(server, members)
    assert (failed.state, failed.followed_by) == ("failed", "round-3"), failed.reason
    assert failed.reason == "11 members are left after the complaints; 12 are needed."
    assert failed.summary == (
        "Members known to be malicious: 1. The round is opened again without the 1 address of these members."
    )
    assert failed.uploaded == 0
    assert {one.stage for one in members} == {"complaints"}, "nobody has made a masked vector"
    assert joining(server, attacker, 0, ATTACKER) is None


def test_too_many_senders_of_unreadable_boxes_fail_the_round_unnamed(server: ProxiedServer) -> None:
    malicious = [joining(server, BadBoxes, at, f"203.0.113.{at}") for at in range(3)]
    honest = [joining(server, WireClient, at, f"198.51.100.{at}") for at in range(3, COHORT)]
    members = [one for one in (*malicious, *honest) if one is not None]
    assert len(members) == COHORT
    failed = play(server, members)
    assert failed.reason == "9 members are left after the complaints; 10 are needed."
    assert failed.summary == (
        "It is unknown which members were malicious or dropped out. "
        "The round is opened again once, and the same members may take part."
    )
    assert failed.uploaded == 0


def one_machine(server: ProxiedServer, kind: type[WireClient], cohort: int) -> list[WireClient]:
    """Return three malicious devices from one address, as far as it gets places; then honest members."""
    malicious = [joining(server, kind, at, ATTACKER) for at in range(4)]
    assert malicious[-1] is None, "places_per_address"
    honest = [joining(server, WireClient, at, f"198.51.100.{at}") for at in range(3, cohort)]
    return [one for one in (*malicious, *honest) if one is not None]


@pytest.mark.parametrize(("kind", "survivors"), [(FalseSharesOfTwo, 15), (AccusesTwo, 11)])
def test_three_malicious_members_on_one_machine_get_no_honest_member_excluded(
    server: ProxiedServer, kind: type[WireClient], survivors: int
) -> None:
    """Regression: three malicious members of fifteen are more than k, so the two honest members they accused were
    named, excluded, or kept from the next round, and the malicious ones stayed."""
    server.services.coordinator.cancel("round-1")
    server.services.coordinator.open_round(ACTIVE, cohort=15, cohort_minimum=MINIMUM, seconds=600)
    status = play(server, one_machine(server, kind, 15), steps=8)
    assert (status.state, status.survivors, status.followed_by) == ("applied", survivors, None), status.reason


def test_three_false_accusers_on_one_machine_are_excluded_by_address(server: ProxiedServer) -> None:
    server.services.coordinator.cancel("round-1")
    server.services.coordinator.open_round(SUMMING, cohort=COHORT, cohort_minimum=MINIMUM, seconds=600)
    failed = play(server, one_machine(server, AccusesEverybody, COHORT))
    assert failed.reason == "9 members are left after the complaints; 10 are needed."
    assert failed.summary == (
        "Members known to be malicious: 3. The round is opened again without the 1 address of these members."
    )
    assert joining(server, AccusesEverybody, 0, ATTACKER) is None


def test_round_with_an_unidentified_malicious_member_is_retried_once(server: ProxiedServer) -> None:
    attacker = Garbage
    first = play(server, everybody(server, attacker))
    assert (first.state, first.followed_by) == ("failed", "round-2"), first.reason
    assert first.summary == (
        "It is unknown which members were malicious or dropped out. "
        "The round is opened again once, and the same members may take part."
    )
    second = play(server, everybody(server, attacker))
    assert (second.state, second.orders) == ("failed", None), second.reason
    assert second.summary == (
        "It is unknown which members were malicious or dropped out. "
        "The round is not opened again, since the same members could take part."
    )
    assert server.services.coordinator.current() is None


def test_new_malicious_members_are_excluded_until_retries_run_out(server: ProxiedServer) -> None:
    for number in (1, 2, 3):
        members = [joining(server, FalseSeed, 0, f"203.0.113.{number}"), *everybody(server, WireClient)[1:]]
        status = play(server, [one for one in members if one is not None])
        assert status.round == f"round-{number}"
        assert status.state == "failed"
    assert status.orders is None
    assert "as often as the setting round_retries allows (2)" in (status.summary or "")


@pytest.mark.parametrize("server", [{"round_retries": 10}], indirect=True)
def test_at_most_a_third_of_a_cohort_is_excluded(server: ProxiedServer) -> None:
    """Regression: every retry refused more sources, so malicious members with many addresses could in the end have all
    other readers refused."""
    for number in range(1, 7):
        attacker = joining(server, FalseSeed, 0, f"203.0.113.{number}")
        assert attacker is not None
        assert play(server, [attacker, *everybody(server, WireClient)[1:]]).state == "failed"
    with reading_session(server.services.engine) as session:
        assert len(session.get_one(FollowUpRow, 6).refused_sources or ()) == COHORT // 3
    places = {number: joining(server, WireClient, 0, f"203.0.113.{number}") is not None for number in range(1, 7)}
    assert places == {1: True, 2: True, 3: False, 4: False, 5: False, 6: False}


def test_empty_or_cancelled_rounds_are_not_retried(server: ProxiedServer) -> None:
    server.clock.go_on(STAGE_SEC)
    server.step()
    nobody = server.services.coordinator.status("round-1")
    assert (nobody.state, nobody.orders, nobody.summary) == ("failed", None, None)
    server.open()
    members = everybody(server, FalseSeed)
    assert members
    server.services.coordinator.cancel("round-2")
    assert server.services.coordinator.current() is None
    server.step()
    assert server.services.coordinator.current() is None


@pytest.mark.parametrize("server", [{"round_retries": 0}], indirect=True)
def test_zero_retries_setting_disables_retries(server: ProxiedServer) -> None:
    failed = play(server, everybody(server, FalseSeed))
    assert (failed.state, failed.orders, failed.summary) == ("failed", None, None)
