"""An attacker with one machine takes the places of a round, over real HTTP, and lets the round fail.

The clients are protocol clients with real keys; a local proxy's header gives the address of each request.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from sqlalchemy import select

from backend.app import create_app
from backend.composition import Services, build_services
from backend.db.engine import reading_session
from backend.db.tables import ParticipationRow
from backend.federation.rounds.coordinator import Coordinator
from backend.settings import BackendSettings
from experiments.bench.secagg_clients import WireClient
from experiments.bench.secagg_http import SUMMING, publish_nothing_much, summing_systems
from protocol.ids import PROTOCOL_VERSION
from protocol.pairing import sign_keys
from tests.doubles.clock import StillClock
from tests.doubles.small_world import serve_app
from tests.integration.test_secure_clients import numbers

LENGTH, COHORT, MINIMUM = 17, 19, 10
SYBIL = "203.0.113.9"


@dataclass
class ProxiedServer:
    services: Services
    url: str
    http: httpx.Client
    clock: StillClock

    def client(self, place: int, address: str | None = None) -> WireClient | None:
        """Return a device with a place, asked for behind the proxy or straight from this machine; None if refused."""
        headers = {} if address is None else {"X-Forwarded-For": address}
        # no certificates: to read them takes forty times as long as to ask
        with httpx.Client(base_url=self.url, headers=headers, timeout=60.0, verify=False) as http:
            found = WireClient.joining(http, "r1", SUMMING, partial(numbers, place))
        if found is not None:
            found.http = self.http
        return found

    def open(self) -> None:
        self.services.coordinator.open_round(SUMMING, cohort=COHORT, cohort_minimum=MINIMUM, seconds=600)

    def step(self) -> None:
        Coordinator.step(self.services.coordinator)


@pytest.fixture
def server(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[ProxiedServer]:
    """A server with default settings, except for what the test sets."""
    clock = StillClock()
    settings = BackendSettings(data_dir=tmp_path, **getattr(request, "param", {}))
    services = build_services(settings)
    publish_nothing_much(services.releases)
    services.coordinator = coordinator_of(services, clock)
    leave_steps_to_the_test(services.coordinator)
    with serve_app(create_app(services=services)) as url, httpx.Client(base_url=url, timeout=60.0) as http:
        yield ProxiedServer(services, url, http, clock)
    services.close()


def leave_steps_to_the_test(coordinator: Coordinator) -> None:
    """Make the server's own clock do nothing, even at its start: of two steps at once, the second does nothing."""
    vars(coordinator)["step"] = lambda: None


def coordinator_of(services: Services, clock: StillClock) -> Coordinator:
    """Return a process's coordinator with these systems and this clock; call again for a restart."""
    return Coordinator(
        services.engine,
        services.releases,
        summing_systems(LENGTH),
        services.settings.data_dir,
        clock,
        addresses=services.coordinator.addresses,
        retries=services.settings.round_retries,
    )


BEHIND_A_PROXY: dict[str, Any] = {"trusted_proxies": ("127.0.0.0/8",)}


def test_one_address_gets_three_of_nineteen_places_by_default(server: ProxiedServer) -> None:
    server.open()
    mine = [server.client(place) for place in range(40)]
    taken = [one for one in mine if one is not None]
    assert len(taken) == 3
    assert server.services.coordinator.check_ins("round-1").address == 37


@pytest.mark.parametrize("server", [BEHIND_A_PROXY], indirect=True)
def test_round_flooded_by_one_address_is_completed_by_the_others(server: ProxiedServer) -> None:
    server.open()
    sybils = [one for place in range(19) if (one := server.client(place, SYBIL)) is not None]
    honest = [one for at in range(16) if (one := server.client(at, f"198.51.100.{at}")) is not None]
    assert (len(sybils), len(honest)) == (3, 16)
    for one in sybils:
        one.go_on()  # its keys, and nothing more
    for late_sec in (0, 200, 0, 0, 0, 0):  # keys, shares (the sybils are waited for), complaints, masked, agree, unmask
        for one in honest:
            one.go_on()
        server.clock.go_on(late_sec)
        server.step()
    status = server.services.coordinator.history(1)[0]
    assert (status.state, status.survivors) == ("applied", 16), status.reason


@pytest.mark.parametrize("server", [BEHIND_A_PROXY], indirect=True)
@pytest.mark.parametrize("bad", ["encryption_key", "mask_key"])
def test_low_order_key_is_refused_at_once(server: ProxiedServer, bad: str) -> None:
    server.open()
    clients = [one for at in range(11) if (one := server.client(at, f"198.51.100.{at}")) is not None]
    attacker, honest = clients[0], clients[1:]
    keys = {
        name: X25519PrivateKey.generate().public_key().public_bytes_raw() for name in ("encryption_key", "mask_key")
    }
    keys[bad] = bytes(32)
    forged = sign_keys(attacker.terms.digest(), Ed25519PrivateKey.generate(), **keys)
    path = f"/v1/rounds/round-1/keys/{attacker.offer.pseudonym}"
    refused = server.http.put(path, content=forged.model_dump_json(), headers={"Content-Type": "application/json"})
    assert (refused.status_code, refused.json()["detail"]) == (422, "A public key is of low order.")
    for late_sec in (300, 0, 0, 0, 0, 0):
        for one in honest:
            one.go_on()
        server.clock.go_on(late_sec)
        server.step()
    status = server.services.coordinator.history(1)[0]
    assert (status.state, status.survivors) == ("applied", 10), status.reason


@pytest.mark.parametrize("server", [BEHIND_A_PROXY], indirect=True)
def test_ipv6_subscriber_network_counts_as_one_address(server: ProxiedServer) -> None:
    server.open()
    mine = [server.client(at, f"2001:db8:1:2::{at:x}") for at in range(1, 12)]
    assert sum(one is not None for one in mine) == 3
    assert server.client(1, "2001:db8:1:3::1") is not None


def test_forwarded_address_from_an_untrusted_proxy_is_ignored(server: ProxiedServer) -> None:
    server.open()
    mine = [server.client(at, f"198.51.100.{at}") for at in range(12)]
    assert sum(one is not None for one in mine) == 3


@pytest.mark.parametrize("server", [{"unbounded_addresses": ("127.0.0.0/8",)}], indirect=True)
def test_fleet_on_one_machine_must_be_allowed_explicitly(server: ProxiedServer) -> None:
    server.open()
    assert all(server.client(place) is not None for place in range(19))


@pytest.mark.parametrize("server", [{"check_ins_per_minute": 5}], indirect=True)
def test_too_frequent_check_ins_are_answered_with_a_delay(server: ProxiedServer) -> None:
    server.open()
    asked = {"protocol": PROTOCOL_VERSION, "release": 1, "tasks": [SUMMING]}
    with httpx.Client(base_url=server.url) as http:
        answers = [http.post("/v1/rounds/check-in", json=asked) for _ in range(6)]
    assert [one.status_code for one in answers] == [200, 200, 200, 204, 204, 429]
    assert 1 <= int(answers[-1].headers["retry-after"]) <= 12
    assert answers[-1].json()["limit"] == "5 check-ins a minute"


def test_addresses_are_stored_hashed_and_deleted_with_the_round(server: ProxiedServer, tmp_path: Path) -> None:
    server.open()
    assert server.client(0) is not None
    with reading_session(server.services.engine) as session:
        (source,) = session.scalars(select(ParticipationRow.source))
    assert source is not None
    assert "127.0.0.1" not in source
    server.services.coordinator.cancel("round-1")
    with reading_session(server.services.engine) as session:
        assert list(session.scalars(select(ParticipationRow.source))) == [None]
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or b"127.0.0.1" not in path.read_bytes(), path
