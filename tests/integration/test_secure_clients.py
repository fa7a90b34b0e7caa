"""Large and strict secure rounds over real HTTP: the sparse graph, the active mode, and members that misbehave.

The clients are protocol clients: keys, boxes, masks and shares are real, the rest of the device is left out. Oracle:
the SHA-256 of numpy's float64 sum of the survivors' vectors.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from numpy.typing import NDArray

from backend.app import create_app
from backend.composition import Services
from backend.db.engine import reading_session
from backend.db.tables import RoundRow
from backend.federation.rounds.coordinator import Coordinator
from backend.federation.secagg.exchange import MemberExchange
from backend.settings import BackendSettings
from device_app.errors import SumAborted
from experiments.bench.secagg_clients import WireClient, drive
from experiments.bench.secagg_http import ACTIVE, SUMMING, summing_services, summing_systems
from protocol.ring import ring_dtype
from protocol.rounds import RoundStatus
from protocol.secagg import Agreements, Sharers, Survivors
from tests.doubles.clock import StillClock
from tests.doubles.malicious_members import FalseSignature
from tests.doubles.small_world import serve_app

LENGTH = 65


def numbers(place: int, size: int) -> NDArray[np.float64]:
    """Return whole steps of 2^-8, so that the sum is exact."""
    return np.random.default_rng(place).integers(-256, 257, size) / 256


@dataclass
class WireRounds:
    services: Services
    http: httpx.Client
    clock: StillClock

    def open(self, system: str, cohort: int, minimum: int) -> None:
        self.services.coordinator.open_round(system, cohort=cohort, cohort_minimum=minimum, seconds=600)

    def joined(self, cohort: int) -> list[WireClient]:
        found = []
        for place in range(cohort):
            one = WireClient.joining(self.http, "r1", SUMMING, partial(numbers, place))
            assert one is not None
            found.append(one)
        return found

    def step(self) -> None:
        self.services.coordinator.step()

    def late(self, seconds: float = 200.0) -> None:
        self.clock.go_on(seconds)
        self.step()

    def status(self) -> RoundStatus:
        return RoundStatus.model_validate_json(self.http.get("/v1/rounds/round-1").raise_for_status().content)

    def check_sum(self, places: Collection[int], added: NDArray[np.float64] | float = 0.0) -> None:
        """Check that the opened sum is that of these clients plus a malicious one's addition."""
        with reading_session(self.services.engine) as session:
            facts = session.get_one(RoundRow, 1).facts
        assert facts is not None
        total = np.sum([numbers(place, LENGTH - 1) for place in places], axis=0) + added
        assert facts["sum"] == sha256(total.data).hexdigest()


@pytest.fixture
def rounds(tmp_path: Path) -> Iterator[WireRounds]:
    clock = StillClock()
    services = summing_services(BackendSettings(data_dir=tmp_path), LENGTH)
    services.coordinator = Coordinator(services.engine, services.releases, summing_systems(LENGTH), tmp_path, clock)
    # Nobody ticks: the test says when the server looks at its clock.
    services.settings = services.settings.model_copy(update={"round_tick_sec": 3_600.0})
    app = create_app(services=services)
    with serve_app(app) as url, httpx.Client(base_url=url, timeout=30.0) as http:
        yield WireRounds(services, http, clock)
    services.close()


def go_on(clients: Collection[WireClient]) -> list[bool]:
    return [client.go_on() for client in clients]


def test_sparse_sum_of_120_clients_survives_dropouts_at_every_stage(rounds: WireRounds) -> None:
    rounds.open(SUMMING, 120, 60)
    clients = rounds.joined(120)
    go_on(clients)
    rounds.step()
    assert rounds.status().state == "shares"
    go_on(clients[4:])  # four vanish with their keys only sent
    rounds.late()
    go_on(clients[10:])  # six more after their shares
    rounds.late()
    go_on(clients[10:])
    rounds.late()
    status = rounds.status()
    assert (status.state, status.uploaded) == ("agree", 110)
    go_on(clients[12:])  # two after their masked vectors
    rounds.late()
    assert rounds.status().state == "unmask"
    assert set(go_on(clients[14:])) == {True}  # two after their signatures
    rounds.step()
    status = rounds.status()
    assert (status.state, status.survivors) == ("applied", 110), status.reason
    rounds.check_sum(range(10, 120))
    roster = clients[60].state.roster
    assert roster is not None
    assert len(roster.members) == 53, "52 neighbours and itself"


def signatures_of(answer: httpx.Response) -> Agreements:
    return Agreements.model_validate_json(answer.content)


def test_active_mode_runs_a_consistency_round_and_survives_dropouts(rounds: WireRounds) -> None:
    rounds.open(ACTIVE, 7, 5)
    clients = rounds.joined(7)
    for _ in ("keys", "shares", "complaints"):
        go_on(clients)
        rounds.step()
    go_on(clients[1:])
    rounds.late()
    assert rounds.status().state == "agree"
    assert go_on(clients[1:6]) == [False] * 5, "the seventh dies before it signs"
    assert {client.stage for client in clients[1:6]} == {"agree"}
    rounds.late()
    assert rounds.status().state == "unmask"
    assert [one.member for one in signatures_of(clients[3].ask()).signatures] == [2, 3, 4, 5, 6]
    assert go_on(clients[1:6]) == [True] * 5
    rounds.step()
    status = rounds.status()
    assert (status.state, status.survivors) == ("applied", 6), status.reason
    rounds.check_sum(range(1, 7))


def test_device_given_a_different_survivor_list_is_detected(rounds: WireRounds) -> None:
    rounds.open(ACTIVE, 7, 5)
    clients = rounds.joined(7)
    for _ in ("keys", "shares", "complaints", "masked"):
        go_on(clients)
        rounds.step()
    reported = Survivors.model_validate_json(clients[0].ask().content)
    assert reported.members == (1, 2, 3, 4, 5, 6, 7)
    clients[0].receive(Survivors(members=(1, 2, 3, 4, 5, 6)))
    refused = clients[0].send()
    assert (refused.status_code, refused.json()["type"]) == (422, "urn:ownfeed:problem:sum-message-refused")
    go_on(clients[1:])
    rounds.late()
    misled = [one for one in signatures_of(clients[1].ask()).signatures if one.member != 1]
    with pytest.raises(SumAborted, match="did not sign this list of survivors"):
        clients[0].receive(Agreements(signatures=tuple(misled)))
    assert clients[0].state.revealed is None
    assert set(go_on(clients[1:])) == {True}
    rounds.step()
    assert rounds.status().state == "applied"
    rounds.check_sum(range(7))


def test_false_signature_is_refused_without_affecting_others(rounds: WireRounds) -> None:
    rounds.open(ACTIVE, 7, 5)
    attacker = FalseSignature.joining(rounds.http, "r1", SUMMING, partial(numbers, 0))
    assert attacker is not None
    honest = [WireClient.joining(rounds.http, "r1", SUMMING, partial(numbers, place)) for place in range(1, 7)]
    clients = [attacker, *(one for one in honest if one is not None)]
    for _ in ("keys", "shares", "complaints", "masked"):
        go_on(clients)
        rounds.step()
    attacker.receive(Survivors.model_validate_json(attacker.ask().content))
    refused = attacker.send()
    assert (refused.status_code, refused.json()["type"]) == (422, "urn:ownfeed:problem:sum-message-refused")
    assert refused.json()["field"] == "signature"
    assert refused.json()["detail"].startswith("The signature is not this member's signature of the round")
    go_on(clients[1:])
    rounds.late()
    assert [one.member for one in signatures_of(clients[1].ask()).signatures] == [2, 3, 4, 5, 6, 7]
    assert set(go_on(clients[1:])) == {True}
    rounds.step()
    status = rounds.status()
    assert (status.state, status.survivors) == ("applied", 7), status.reason
    rounds.check_sum(range(7))


def test_too_few_signatures_end_an_active_round_with_a_reason(rounds: WireRounds) -> None:
    rounds.open(ACTIVE, 7, 5)
    clients = rounds.joined(7)
    for _ in ("keys", "shares", "complaints", "masked"):
        go_on(clients)
        rounds.step()
    go_on(clients[:4])
    rounds.late()
    status = rounds.status()
    assert (status.state, status.survivors) == ("failed", None)
    assert status.reason == "4 members agreed on the survivors; 5 are needed."
    answer = clients[0].ask()
    assert (answer.status_code, answer.json()["type"]) == (409, "urn:ownfeed:problem:round-closed")


def test_clients_joining_in_parallel_are_each_counted_once(rounds: WireRounds) -> None:
    rounds.open(SUMMING, 16, 9)
    clients = rounds.joined(16)
    failures: list[BaseException] = []

    def live(mine: list[WireClient]) -> None:
        try:
            with httpx.Client(base_url=rounds.http.base_url, timeout=30.0) as http:
                for one in mine:
                    one.http = http
                drive(mine)
        except BaseException as failed:
            failures.append(failed)

    threads = [threading.Thread(target=live, args=(clients[place::4],)) for place in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        rounds.step()
        threads[0].join(0.05)
    for thread in threads:
        thread.join()
    assert failures == []
    rounds.step()
    assert rounds.status().survivors == 16
    rounds.check_sum(range(16))


def test_late_shares_are_answered_with_the_end_of_the_round(
    rounds: WireRounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds.open(SUMMING, 5, 3)
    clients = rounds.joined(5)
    for _ in ("keys", "shares", "complaints", "masked", "agree"):
        go_on(clients)
        rounds.step()
    go_on(clients[:4])
    assert clients[4].ask().is_success
    clients[4].receive(Agreements.model_validate_json(clients[4].ask().content))
    take = MemberExchange.reveal

    def ended_meanwhile(exchange: MemberExchange, *args: Any) -> bool:
        rounds.step()
        return take(exchange, *args)

    monkeypatch.setattr(MemberExchange, "reveal", ended_meanwhile)
    answer = clients[4].send()
    assert (answer.status_code, answer.json()["type"]) == (409, "urn:ownfeed:problem:round-closed")
    assert rounds.status().state == "applied"
    rounds.check_sum(range(5))


def at_once(rounds: WireRounds, path: str, bodies: list[bytes], content_type: str) -> list[int]:
    """Send different messages to one place at the same moment, each on its own connection; return the statuses."""
    ready, found = threading.Barrier(len(bodies)), [0] * len(bodies)

    def send(number: int) -> None:
        with httpx.Client(base_url=rounds.http.base_url, timeout=60.0, verify=False) as http:
            ready.wait()
            answer = http.put(path, content=bodies[number], headers={"content-type": content_type})
            found[number] = answer.status_code

    threads = [threading.Thread(target=send, args=(number,)) for number in range(len(bodies))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def test_one_of_several_simultaneous_messages_of_a_place_is_accepted(rounds: WireRounds) -> None:
    """Otherwise the sum would hold two vectors of one member, or keys for which no other member's box was sealed."""
    rounds.open(ACTIVE, 7, 5)
    clients = rounds.joined(7)
    attacker, path = clients[0], f"/v1/rounds/round-1/{{}}/{clients[0].offer.pseudonym}"
    parts = [WireClient(rounds.http, attacker.offer, partial(numbers, 0)) for _ in range(6)]
    keys = [part._step.sealed.payload for part in parts]
    statuses = at_once(rounds, path.format("keys"), keys, "application/json")
    assert sorted(statuses) == [200, *[409] * 5]
    clients[0] = attacker = parts[statuses.index(200)]
    for _ in ("keys", "shares", "complaints"):
        go_on(clients)
        rounds.step()
    attacker.receive(Sharers.model_validate_json(attacker.ask().content))
    true = np.frombuffer(attacker._step.sealed.payload, dtype=ring_dtype(attacker.terms.bits))
    vectors = [true + (np.arange(len(true)) == 0) * true.dtype.type(more) for more in range(6)]
    statuses = at_once(rounds, path.format("masked"), [each.tobytes() for each in vectors], "application/octet-stream")
    assert sorted(statuses) == [200, *[409] * 5]
    attacker._is_sent = True
    for _ in ("masked", "agree", "unmask"):
        go_on(clients)
        rounds.step()
    status = rounds.status()
    assert (status.state, status.survivors) == ("applied", 7), status.reason
    added = np.zeros(LENGTH - 1)
    added[0] = statuses.index(200) * 2.0**-attacker.terms.fraction_bits
    rounds.check_sum(range(7), added)
