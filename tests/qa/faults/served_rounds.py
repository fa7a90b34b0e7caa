"""Rounds over HTTP while servers, database or storage fail, and what must hold afterwards.

A plain round steps a tiny model by the mean of its updates; a secure one keeps the hash of its sum. Oracles: the mean
and the sum of what the clients sent, by numpy, and the receipts that they were given.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from functools import partial
from hashlib import sha256
from unittest.mock import patch

import httpx
import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select

from backend.db.engine import open_engine, reading_session
from backend.db.tables import ParticipationRow, RoundRow
from backend.operations.admin_client import Operator
from backend.releases.blobs import blob_refs
from backend.releases.store import ReleaseStore
from backend.storage.durable_files import files_below
from experiments.bench.secagg_clients import WireClient
from experiments.bench.secagg_http import SUMMING
from protocol.ids import PROTOCOL_VERSION, release_number, short_release
from protocol.rounds import RoundStatus, SignedOffer, verify_offer
from protocol.tensors import pack
from tests.doubles.small_world import START_WITHIN_SEC
from tests.qa.faults.servers import ASK_AGAIN_SEC, LENGTH, PLAIN, WEIGHTS, FailingServers, settings_of

CLIENTS, RATE = 3, 0.05
ROUND_SEC = 3_000
REPEATED = "which the database doesn't know"
UPDATE_TYPE = "application/vnd.safetensors"


def opened(servers: FailingServers, system: str, seconds: float = ROUND_SEC) -> RoundStatus:
    """Open a round of the system once, however often it is requested."""

    def once(operator: Operator) -> RoundStatus:
        under_way = [each for each in operator.rounds() if each.system == system and each.state not in ENDED]
        if under_way:
            return under_way[0]
        return operator.open_round(system, cohort=CLIENTS, cohort_minimum=2, seconds=seconds)

    return servers.operator(once)


ENDED = ("applied", "failed")


def ended(servers: FailingServers, status: RoundStatus) -> RoundStatus:
    """Return the round once it has ended. Raises AssertionError if it doesn't."""
    until = time.monotonic() + START_WITHIN_SEC
    while status.state not in ENDED:
        assert time.monotonic() < until, f"{status.round} stays at {status.state}"
        time.sleep(ASK_AGAIN_SEC)
        status = servers.operator(lambda operator, name=status.round: operator.status(name))  # type: ignore[misc]
    return status


def numbers(place: int, size: int) -> NDArray[np.float64]:
    """Return what a client of a secure round contributes."""
    return np.random.default_rng(place).integers(-256, 257, size) / 256


def secure_round(servers: FailingServers) -> RoundStatus:
    """Run all clients to the end of a secure round."""
    status = opened(servers, SUMMING)
    release = servers.operator(lambda operator: operator.status(status.round)).release
    clients = []
    for place in range(CLIENTS):
        joined = servers.ask(lambda http, place=place: WireClient.joining(  # type: ignore[misc]
            http, release, SUMMING, partial(numbers, place)
        ))  # fmt: skip
        assert joined is not None, "no place is left"
        clients.append(joined)
    left = list(clients)
    until = time.monotonic() + START_WITHIN_SEC
    while left:
        assert time.monotonic() < until, [one.stage for one in left]
        left = [one for one in left if not servers.ask(partial(_gone_on, one))]
        time.sleep(ASK_AGAIN_SEC)
    return ended(servers, status)


def _gone_on(client: WireClient, http: httpx.Client) -> bool:
    client.http = http
    return client.go_on()


def plain_round(servers: FailingServers, receipts: dict[str, str]) -> RoundStatus:
    """Run all clients to the end of a plain round; receipts: gets the hash of each acknowledged update."""
    status = opened(servers, PLAIN)
    release = status.release
    check_in = {"protocol": PROTOCOL_VERSION, "release": short_release(release), "tasks": ["recall"]}
    for place in range(CLIENTS):
        offer = servers.ask(lambda http: _checked_in(http, check_in))
        content = pack(
            {f"g.{name}": np.full_like(value, 0.01 * (place + 1), dtype=np.float32) for name, value in WEIGHTS.items()}
        )
        path = f"/v1/rounds/{status.round}/updates/{offer}"
        for again in (False, True):
            answer = servers.ask(partial(_sent, path=path, content=content))
            assert answer["sha256"] == sha256(content).hexdigest()
            assert answer["duplicate"] or not again, "an update that was acknowledged is taken for a new one"
            receipts[offer] = answer["sha256"]
    return ended(servers, status)


def _checked_in(http: httpx.Client, check_in: Mapping[str, object]) -> str:
    answer = http.post("/v1/rounds/check-in", json=check_in).raise_for_status()
    assert answer.status_code == 200, "no place is left"
    signed = SignedOffer.model_validate_json(answer.content)
    return verify_offer(signed, signed.public_key).pseudonym


def _sent(http: httpx.Client, *, path: str, content: bytes) -> dict[str, str]:
    answer = http.put(path, content=content, headers={"Content-Type": UPDATE_TYPE})
    if answer.status_code == 409 and answer.json()["type"].endswith("round-closed"):
        raise AssertionError(f"an update came too late: {answer.text}")
    found: dict[str, str] = answer.raise_for_status().json()
    return found


def played(servers: FailingServers) -> dict[str, str]:
    """Run two plain rounds and a secure one until applied; return the plain receipts. Raises AssertionError."""
    receipts: dict[str, str] = {}
    statuses = [plain_round(servers, receipts), secure_round(servers), plain_round(servers, receipts)]
    for status in statuses:
        assert status.state == "applied", f"{status.round}: {status.reason}"
    return receipts


def check(servers: FailingServers, receipts: Mapping[str, str]) -> None:
    """Check database and files against what the clients sent and were told. Raises AssertionError."""
    with patch.dict(os.environ, servers.extra):  # a storage's library reads its keys there
        _check(servers, receipts)


def _check(servers: FailingServers, receipts: Mapping[str, str]) -> None:
    settings = settings_of(servers.folders[0], servers.extra)
    engine = open_engine(settings.database_url)
    try:
        with reading_session(engine) as session:
            rows = {row.number: row for row in session.scalars(select(RoundRow))}
            kept = {one.pseudonym: one.sha256 for one in session.scalars(select(ParticipationRow)) if one.sha256}
        store = ReleaseStore.open(engine, settings)
        history = store.history()
        releases = [one.release for one in history]
        # A server that dies between the chain's file and the commit has told of a release that nobody has seen: the one
        # before comes once more, after it.
        again = [release_number(one.release) for one in history if REPEATED in one.note]
        published = [row.published for row in rows.values() if row.published is not None]
        expected = sorted([1, *again, *published], reverse=True)
        assert [release_number(one) for one in releases] == expected, "a round was applied twice, or not at all"
        assert {name: kept.get(name) for name in receipts} == receipts, "an update that was acknowledged is lost"
        for release in releases:
            for ref in blob_refs(store.manifest(release)):
                content = store.blob_path(ref.sha256).read_bytes()
                assert sha256(content).hexdigest() == ref.sha256, f"a part of {release} is damaged"
        mean = 0.01 * np.mean(np.arange(1, CLIENTS + 1))
        steps = len(published)
        for name, value in store.weights(store.manifest(releases[0]), "recall").items():
            np.testing.assert_allclose(
                value, WEIGHTS[name] - RATE * mean * steps, atol=1e-6 + 1e-7 * steps, err_msg=f"after {steps} rounds"
            )
        total = np.sum([numbers(place, LENGTH - 1) for place in range(CLIENTS)], axis=0)
        sums = [(row.facts or {})["sum"] for row in rows.values() if row.system != PLAIN and row.state == "applied"]
        assert sums == [sha256(total.data).hexdigest()] * len(sums)
    finally:
        engine.dispose()
    if settings.storage is None:
        # A round is told to have ended a moment before what it has left goes; of a running sum that a killed server has
        # stored and not named nobody knows that it isn't another server's, so it stays for an hour.
        folders = ("rounds",) if servers.deaths else ("rounds", "sums")
        until = time.monotonic() + START_WITHIN_SEC
        while left := [each for name in folders for each in files_below(settings.data_dir / name)]:
            assert time.monotonic() < until, f"an update outlives its round: {left}"
            time.sleep(ASK_AGAIN_SEC)
