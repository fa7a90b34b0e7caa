"""A member lies, and its round fails: the round is opened again, without the liar where it is known.

Real routes, coordinator and database over HTTP; where a request comes from is what a proxy on this machine says. Nobody
ticks but the test.
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
from backend.db.tables_federation import FollowUpRow, ParticipationRow
from backend.operator import Operator
from backend.settings import BackendSettings
from device_app.errors import SumAborted
from device_app.wire.rounds import RoundStatus
from experiments.bench.secagg_clients import WireClient
from experiments.bench.secagg_server import ACTIVE, SUMMING, publish_nothing_much
from tests.doubles.clock import StillClock
from tests.doubles.lying_members import (
    AccusesEverybody,
    AccusesTwo,
    BadBoxes,
    FalseSeed,
    FalseShares,
    FalseSharesOfTwo,
    Garbage,
    OneBadBox,
)
from tests.doubles.small_world import serving
from tests.integration.test_secure_clients import numbers
from tests.integration.test_sybils import BEHIND_A_PROXY, ProxiedServer, coordinator_of

COHORT, MINIMUM = 12, 10
LIAR = "203.0.113.9"
STAGE_SEC = 300.0
"""More than any stage of these rounds lasts."""


@pytest.fixture
def server(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[ProxiedServer]:
    clock = StillClock()
    services = build_services(BackendSettings(data_dir=tmp_path, **BEHIND_A_PROXY, **getattr(request, "param", {})))
    publish_nothing_much(services.releases)
    services.coordinator = coordinator_of(services, clock)
    services.settings = services.settings.model_copy(update={"round_tick_sec": 3_600.0})
    with serving(create_app(services=services)) as url, httpx.Client(base_url=url, timeout=60.0) as http:
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


def everybody(server: ProxiedServer, liar: type[WireClient]) -> list[WireClient]:
    """The liar first, then honest members, as far as there are places."""
    honest = [joining(server, WireClient, at, f"198.51.100.{at}") for at in range(1, COHORT)]
    return [one for one in (joining(server, liar, 0, LIAR), *honest) if one is not None]


def play(server: ProxiedServer, members: Sequence[WireClient], steps: int = 6) -> RoundStatus:
    """Everybody goes as far as it can, and the server's time goes on; how the members' round ends."""
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


def test_who_shared_a_false_seed_is_kept_from_the_round_that_is_opened_in_its_place(server: ProxiedServer) -> None:
    members = everybody(server, FalseSeed)
    failed = play(server, members)
    assert (failed.state, failed.followed_by) == ("failed", "round-2"), failed.reason
    assert failed.summary == (
        "Members known to have lied: 1. It is opened again without the addresses they came from: 1."
    )

    assert joining(server, FalseSeed, 0, LIAR) is None
    assert server.services.coordinator.check_ins("round-2").address == 1
    honest = everybody(server, FalseSeed)
    assert len(honest) == COHORT - 1
    applied = play(server, honest)
    assert (applied.state, applied.survivors, applied.follows) == ("applied", COHORT - 1, "round-1"), applied.reason


def test_a_sum_that_has_failed_says_why_before_its_round_is_closed_and_who_follows_it_waits_for_what_comes(
    server: ProxiedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Red before: `failed` without a reason, for as long as the server took to close the round, or had been killed."""
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
    told = list(Operator(server.url, server.services.settings.admin_token_file).follow(opened))
    assert [(one.state, one.reason) for one in told] == [("open", None), *[("failed", "Two shares are false.")] * 2]
    assert told[-1].followed_by == "round-2"


def test_the_liars_source_is_erased_when_the_retry_has_ended(server: ProxiedServer) -> None:
    play(server, everybody(server, FalseSeed))
    with reading_session(server.services.engine) as session:
        refused = session.get_one(FollowUpRow, 1).refused_sources
        kept = list(session.scalars(select(ParticipationRow.source).where(ParticipationRow.source.is_not(None))))
    assert refused is not None
    assert (len(refused), kept) == (1, [])
    play(server, everybody(server, FalseSeed))
    with reading_session(server.services.engine) as session:
        assert session.get_one(FollowUpRow, 1).refused_sources is None


def test_a_server_killed_after_the_failure_opens_the_retry_once_and_still_refuses_the_liar(
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
    assert joining(server, FalseSeed, 0, LIAR) is None


def test_one_answer_of_false_shares_does_not_end_the_round(server: ProxiedServer) -> None:
    """Red before: the sum was opened with the first seven answers, the false one among them, and failed."""
    members = everybody(server, FalseShares)
    for _ in ("keys", "shares", "complaints", "masked"):
        for one in members:
            one.go_on()
        server.step()
    for one in members[:7]:
        one.go_on()
    server.step()
    assert server.services.coordinator.status("round-1").state == "unmask", "it waits for those who are still to answer"
    for one in members[7:]:
        one.go_on()
    server.step()
    status = server.services.coordinator.status("round-1")
    assert (status.state, status.survivors) == ("applied", COHORT), status.reason


@pytest.mark.parametrize(("liar", "survivors"), [(BadBoxes, 11), (AccusesEverybody, 11), (OneBadBox, 10)])
def test_who_is_at_odds_over_boxes_is_left_out_and_the_round_goes_on(
    server: ProxiedServer, liar: type[WireClient], survivors: int
) -> None:
    """Red before: receivers of bad boxes left, and the round failed with nobody named."""
    status = play(server, everybody(server, liar))
    assert (status.state, status.survivors, status.followed_by) == ("applied", survivors, None), status.reason


@pytest.mark.parametrize("liar", [BadBoxes, AccusesEverybody])
def test_a_round_that_has_too_few_members_after_complaints_fails_before_anybody_pays(
    server: ProxiedServer, liar: type[WireClient]
) -> None:
    server.services.coordinator.cancel("round-1")
    server.services.coordinator.open_round(SUMMING, cohort=COHORT, cohort_minimum=COHORT, seconds=600)
    members = everybody(server, liar)
    failed = play(server, members)
    assert (failed.state, failed.followed_by) == ("failed", "round-3"), failed.reason
    assert failed.reason == "11 members are left after the complaints; 12 are needed."
    assert failed.summary == (
        "Members known to have lied: 1. It is opened again without the addresses they came from: 1."
    )
    assert failed.uploaded == 0
    assert {one.stage for one in members} == {"complaints"}, "nobody has made a masked vector"
    assert joining(server, liar, 0, LIAR) is None


def test_more_senders_of_bad_boxes_than_can_be_told_apart_are_left_out_and_not_named(server: ProxiedServer) -> None:
    liars = [joining(server, BadBoxes, at, f"203.0.113.{at}") for at in range(3)]
    honest = [joining(server, WireClient, at, f"198.51.100.{at}") for at in range(3, COHORT)]
    members = [one for one in (*liars, *honest) if one is not None]
    assert len(members) == COHORT
    failed = play(server, members)
    assert failed.reason == "9 members are left after the complaints; 10 are needed."
    assert failed.summary == (
        "Nobody can tell which member lied or left. It is opened again once, and the same members may take part."
    )
    assert failed.uploaded == 0


def one_machine(server: ProxiedServer, kind: type[WireClient], cohort: int) -> list[WireClient]:
    """Three liars from one address, as many as it gets places; then honest members."""
    liars = [joining(server, kind, at, LIAR) for at in range(4)]
    assert liars[-1] is None, "places_per_address"
    honest = [joining(server, WireClient, at, f"198.51.100.{at}") for at in range(3, cohort)]
    return [one for one in (*liars, *honest) if one is not None]


@pytest.mark.parametrize(("kind", "survivors"), [(FalseSharesOfTwo, 15), (AccusesTwo, 11)])
def test_three_places_of_one_machine_have_no_honest_member_named(
    server: ProxiedServer, kind: type[WireClient], survivors: int
) -> None:
    """Red before: three liars of fifteen are more than k, so the two honest members that they lied about were named,
    left out, or kept from the next round, and the liars stayed."""
    server.services.coordinator.cancel("round-1")
    server.services.coordinator.open_round(ACTIVE, cohort=15, cohort_minimum=MINIMUM, seconds=600)
    status = play(server, one_machine(server, kind, 15), steps=8)
    assert (status.state, status.survivors, status.followed_by) == ("applied", survivors, None), status.reason


def test_three_places_of_one_machine_that_accuse_everybody_are_known_by_their_address(server: ProxiedServer) -> None:
    server.services.coordinator.cancel("round-1")
    server.services.coordinator.open_round(SUMMING, cohort=COHORT, cohort_minimum=MINIMUM, seconds=600)
    failed = play(server, one_machine(server, AccusesEverybody, COHORT))
    assert failed.reason == "9 members are left after the complaints; 10 are needed."
    assert failed.summary == (
        "Members known to have lied: 3. It is opened again without the addresses they came from: 1."
    )
    assert joining(server, AccusesEverybody, 0, LIAR) is None


def test_a_round_whose_liar_nobody_knows_is_opened_again_once(server: ProxiedServer) -> None:
    liar = Garbage
    first = play(server, everybody(server, liar))
    assert (first.state, first.followed_by) == ("failed", "round-2"), first.reason
    assert first.summary == (
        "Nobody can tell which member lied or left. It is opened again once, and the same members may take part."
    )
    second = play(server, everybody(server, liar))
    assert (second.state, second.orders) == ("failed", None), second.reason
    assert second.summary == (
        "Nobody can tell which member lied or left. It is not opened again, since the same members could take part."
    )
    assert server.services.coordinator.current() is None


def test_new_liars_are_kept_out_until_the_retries_are_used_up(server: ProxiedServer) -> None:
    for number in (1, 2, 3):
        members = [joining(server, FalseSeed, 0, f"203.0.113.{number}"), *everybody(server, WireClient)[1:]]
        status = play(server, [one for one in members if one is not None])
        assert status.round == f"round-{number}"
        assert status.state == "failed"
    assert status.orders is None
    assert "as often as the setting round_retries allows (2)" in (status.summary or "")


@pytest.mark.parametrize("server", [{"round_retries": 10}], indirect=True)
def test_no_more_than_a_third_of_a_cohort_is_ever_refused_and_the_last_named_are(server: ProxiedServer) -> None:
    """Red before: every retry added to those refused, so that liars with many addresses, or whom they had named, could
    be all of the readers there are."""
    for number in range(1, 7):
        liar = joining(server, FalseSeed, 0, f"203.0.113.{number}")
        assert liar is not None
        assert play(server, [liar, *everybody(server, WireClient)[1:]]).state == "failed"
    with reading_session(server.services.engine) as session:
        assert len(session.get_one(FollowUpRow, 6).refused_sources or ()) == COHORT // 3
    places = {number: joining(server, WireClient, 0, f"203.0.113.{number}") is not None for number in range(1, 7)}
    assert places == {1: True, 2: True, 3: False, 4: False, 5: False, 6: False}


def test_nobody_coming_and_the_operators_hand_are_no_reasons_to_open_again(server: ProxiedServer) -> None:
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
def test_an_operator_who_wants_no_retries_gets_none(server: ProxiedServer) -> None:
    failed = play(server, everybody(server, FalseSeed))
    assert (failed.state, failed.orders, failed.summary) == ("failed", None, None)
