"""Requests generated from the backend's OpenAPI, valid and broken.

No server error, no undocumented answer.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, cast

import httpx
import numpy as np
import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from backend.app import create_app
from backend.console.controller import COOKIE, pass_of
from backend.federation.rounds.coordinator import Coordinator
from backend.federation.strategies.strategy import RoundRequest
from backend.settings import BackendSettings
from experiments.bench.secagg_clients import ANSWERS, WireClient
from experiments.bench.secagg_http import ACTIVE, SUMMING, summing_services, summing_systems
from protocol.ids import PROTOCOL_VERSION
from protocol.rounds import CheckIn, QueuedRound, SumStage
from protocol.tensors import pack
from tests.doubles.clock import StillClock
from tests.doubles.openapi_fuzz import A_FEW, EXAMPLES_VARIABLE, fuzz, shares
from tests.doubles.recall_app import Running, running_server
from tests.doubles.recall_world import BASIS_SIZE, report

ROUNDS = ("private_counts/local/mean", "private_counts/secure/huber")
LENGTH, MEMBERS = 65, 5
STAGES: tuple[SumStage, ...] = ("keys", "shares", "complaints", "masked", "agree", "unmask")
ROUND_OPENED = "/v1/admin/rounds"
PUT_UPDATE = "PUT /v1/rounds/{round_id}/updates/{pseudonym}"
METRICS = "GET /metrics"
"""Read with a token of its own, which the operator's isn't."""
OF_A_ROUND_UNDER_WAY = {
    PUT_UPDATE,
    *(f"PUT /v1/rounds/{{round_id}}/{stage}/{{pseudonym}}" for stage in STAGES),
    *(f"GET /v1/rounds/{{round_id}}/{stage}/{{pseudonym}}" for stage in STAGES[:-1]),
}
"""What means something only to a member at its stage: see the tests of rounds."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running_server(tmp_path_factory.mktemp("fuzz"), news=60, releases=2) as started:
        yield started


def bodies() -> dict[str, list[object]]:
    """Return bodies that a generator would hardly find: reports that fit the release, and existing articles."""
    reports = [
        report(),
        {"kind": "code", "codebook": 16, "code": 3},
        {"kind": "topics", "codebook": 16, "weights": [0.1] * 16},
        {"kind": "subset", "codebook": 16, "topics": [1, 5]},
        {"kind": "basis_l1", "scores": [[0.5] * BASIS_SIZE] * 5, "shares": [0.2] * 5},
        {"kind": "none"},
    ]
    recalls = [{"release": name, "limit": 30, "report": each} for name in (1, 2, 7) for each in reports]
    check_in = {"protocol": PROTOCOL_VERSION, "release": 2, "tasks": ["count"]}
    rounds = [{"system": name, "cohort": 10, "seconds": 60} for name in ROUNDS]
    return {
        "POST /v1/recall": list(recalls),
        "POST /v1/news/bodies": [{"ids": ["n1", "n2", "gone"]}],
        "POST /v1/rounds/check-in": [check_in],
        "POST /v1/admin/rounds": list(rounds),
        "PUT /v1/admin/timetable/schedule": [each | {"every_minutes": 60} for each in rounds],
    }


def test_every_backend_answer_is_documented_and_none_is_a_server_error(server: Running) -> None:
    coordinator = server.services.coordinator
    known: list[dict[str, object]] = [{"short": 1}, {"short": 2}]
    for system in ROUNDS:
        coordinator.open_round(system, cohort=10, cohort_minimum=10, seconds=3_600)
        offer = coordinator.check_in(CheckIn(protocol=PROTOCOL_VERSION, release=2, tasks=("count",)))
        assert offer is not None
        known.append({"round_id": offer.manifest.round, "pseudonym": offer.pseudonym})
        if system != ROUNDS[-1]:
            coordinator.cancel(offer.manifest.round)
    queued = coordinator.open_or_queue(RoundRequest(ROUNDS[-1], 10, 10, 3_600))
    assert isinstance(queued, QueuedRound)
    known.append({"number": queued.number})
    shards = server.client.get("/v1/releases/2/vectors").json()["shards"]
    known += [{"short": 2, "shard": each["name"], "sha256": each["blob"]["sha256"]} for each in shards[:2]]
    document = server.app.openapi()
    paths = document["paths"]
    paths[ROUND_OPENED] = paths.pop(ROUND_OPENED)  # last, when the round under way has been cancelled
    answers = fuzz(
        server.app,
        document,
        headers={"Authorization": f"Bearer {server.services.admin_token}"},
        known=known,
        bodies=bodies(),
    )
    served = Counter[str]()
    for answer, times in answers.items():
        operation, status = answer.rsplit(" ", 1)
        served[operation] += times
        assert not status.startswith("5"), answer
    assert set(served) == {
        f"{method.upper()} {path}" for path, each in server.app.openapi()["paths"].items() for method in each
    }
    print(shares(answers))  # noqa: T201
    assert answers["POST /v1/recall 200"] > 5, "valid bodies are among them"
    done = {answer.rsplit(" ", 1)[0] for answer in answers if answer.rsplit(" ", 1)[1][0] == "2"}
    assert set(served) - done == OF_A_ROUND_UNDER_WAY | {METRICS}, "valid requests of all others are among them"
    assert answers.total() >= int(os.environ.get(EXAMPLES_VARIABLE, "500"))


def test_every_answer_to_an_update_is_documented_and_valid_ones_are_accepted(server: Running) -> None:
    coordinator = server.services.coordinator
    for waiting in coordinator.queue.waiting():  # before the rounds: one that is cancelled makes room for the next
        coordinator.queue.give_up(waiting.number, "cancelled")
    for one in coordinator.history():
        if one.state not in ("applied", "failed"):
            coordinator.cancel(one.round)
    coordinator.open_round(ROUNDS[0], cohort=10, cohort_minimum=2, seconds=3_600)
    offer = coordinator.check_in(CheckIn(protocol=PROTOCOL_VERSION, release=2, tasks=("count",)))
    assert offer is not None
    update = pack({name: np.zeros(shape, dtype=np.float32) for name, shape in offer.manifest.shapes.items()})
    document = document_of(server.app, "/v1/rounds/{round_id}/updates/{pseudonym}")
    known = [{"round_id": offer.manifest.round, "pseudonym": offer.pseudonym}]
    answers = fuzz(server.app, document, known=known, bodies={PUT_UPDATE: [update]}, examples=examples())
    print(shares(answers))  # noqa: T201
    assert answers[f"{PUT_UPDATE} 200"] >= 1
    assert coordinator.status(offer.manifest.round).uploaded == 1


def test_every_answer_during_a_secure_sum_is_documented(tmp_path: Path) -> None:
    """Requests are sent at each stage after one member's valid message, and again with earlier stages' answers."""
    services = summing_services(BackendSettings(data_dir=tmp_path, round_tick_sec=60.0), LENGTH)
    clock = StillClock()
    services.coordinator = Coordinator(services.engine, services.releases, summing_systems(LENGTH), tmp_path, clock)
    app = create_app(services=services)
    taken, total = set[str](), Counter[str]()
    with TestClient(app) as http:
        services.coordinator.open_round(ACTIVE, cohort=MEMBERS, cohort_minimum=3, seconds=600)
        wire = cast(httpx.Client, http)  # the test client of Starlette has the same calls
        clients = [
            joined
            for place in range(MEMBERS)
            if (joined := WireClient.joining(wire, "r1", SUMMING, partial(np.full, fill_value=float(place))))
        ]
        assert len(clients) == MEMBERS
        known = [{"round_id": "round-1", "pseudonym": clients[0].offer.pseudonym}]
        for stage in STAGES:
            assert [client.stage for client in clients] == [stage] * MEMBERS
            path = f"/v1/rounds/{{round_id}}/{stage}/{{pseudonym}}"
            sealed = clients[0]._step.sealed
            true = sealed.payload if stage == "masked" else json.loads(sealed.payload)
            for client in clients:
                client.send().raise_for_status()
            answers = fuzz(
                app, document_of(app, path), known=known, bodies={f"PUT {path}": [true]}, examples=examples()
            )
            services.coordinator.step()
            if stage != "unmask":
                for client in clients:
                    client.receive(ANSWERS[stage].model_validate_json(client.ask().raise_for_status().content))
                reported = document_of(app, path)
                del reported["paths"][path]["put"]
                answers += fuzz(app, reported, known=known, examples=examples())
                assert answers[f"GET {path} 204"] >= 1
                assert answers[f"GET {path} 200"] >= 1
            assert answers[f"PUT {path} 200"] >= 1, "the same message once more"
            taken |= {f"PUT {path}"} | ({f"GET {path}"} if stage != "unmask" else set())
            total += answers
        print(shares(total))  # noqa: T201
        status = services.coordinator.status("round-1")
        assert (status.state, status.survivors) == ("applied", MEMBERS), status.reason
    services.close()
    assert taken | {PUT_UPDATE} == OF_A_ROUND_UNDER_WAY | {PUT_UPDATE}


def document_of(app: FastAPI, path: str) -> dict[str, Any]:
    """Return the document with one path."""
    document: dict[str, Any] = app.openapi()
    return document | {"paths": {path: document["paths"][path]}}


def examples() -> int:
    """Return the number of requests of each kind to an operation of a running round."""
    return A_FEW // 2 if EXAMPLES_VARIABLE not in os.environ else 100


@pytest.mark.parametrize("number", ["9" * 18, "9" * 19, "9" * 20, "9" * 400, "-1", str(2**63), str(2**64), "1e400"])
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/news/front?limit={}"),
        ("GET", "/v1/rounds/round-{}"),
        ("GET", "/v1/releases/{}/vectors"),
        ("GET", "/v1/releases/{}/codes"),
        ("GET", "/v1/releases/{}/popularity"),
        ("GET", "/v1/releases/1/vectors/2026-11-20.{}"),
        ("PUT", "/v1/rounds/round-{}/keys/aaaaaaaaaaaaaaaaaaaaaa"),
        ("POST", "/v1/admin/rounds/round-{}/cancel"),
        ("GET", "/console/rounds/round-{}"),
        ("GET", "/console/recall?limit={}"),
        ("GET", "/console/counts?round={}"),
        ("GET", "/console/pool?page={}"),
    ],
)
def test_large_numbers_in_addresses_cause_no_server_error(server: Running, method: str, path: str, number: str) -> None:
    headers = {
        "Authorization": f"Bearer {server.services.admin_token}",
        "Content-Type": "application/json",
        "Cookie": f"{COOKIE}={pass_of(server.services.admin_token)}",
    }
    content = b"{}" if method == "PUT" else None
    answer = server.client.request(method, path.format(number), headers=headers, content=content)
    assert answer.status_code < 500, answer.text
