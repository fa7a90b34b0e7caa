"""Requests generated from the backend's OpenAPI, valid and broken: no server error, no undocumented answer."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator

import pytest

from backend.console.door import COOKIE, pass_of
from device_app.wire.ids import PROTOCOL_VERSION
from device_app.wire.rounds import CheckIn
from tests.doubles.openapi_fuzz import EXAMPLES_VARIABLE, fuzz
from tests.doubles.recall_app import Running, running
from tests.doubles.recall_world import BASIS_SIZE, report

ROUNDS = ("private_counts_local", "private_counts")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("fuzz"), news=60, releases=2) as started:
        yield started


def bodies() -> dict[str, list[object]]:
    """What a generator would hardly hit: reports that fit the release, and news that there are."""
    reports = [
        report(),
        {"kind": "code", "codebook": 16, "code": 3},
        {"kind": "topics", "codebook": 16, "weights": [0.1] * 16},
        {"kind": "subset", "codebook": 16, "topics": [1, 5]},
        {"kind": "direction", "vector": [0.5, -0.5, 0.5, 0.5, 0.0, 0.0, 0.0, 0.0]},
        {"kind": "basis_l1", "scores": [[0.5] * BASIS_SIZE] * 5, "shares": [0.2] * 5},
        {"kind": "none"},
    ]
    recalls = [{"release": name, "limit": 30, "report": each} for name in (1, 2, 7) for each in reports]
    check_in = {"protocol": PROTOCOL_VERSION, "release": "r2", "tasks": ["count"]}
    rounds = [{"system": name, "cohort": 10, "seconds": 60} for name in ROUNDS]
    return {
        "POST /v1/recall": list(recalls),
        "POST /v1/news/bodies": [{"ids": ["n1", "n2", "gone"]}],
        "POST /v1/rounds/check-in": [check_in],
        "POST /v1/admin/rounds": list(rounds),
        "PUT /v1/admin/timetable/schedule": [each | {"every_minutes": 60} for each in rounds],
    }


def test_every_answer_is_documented_and_none_is_an_error_of_the_server(server: Running) -> None:
    coordinator = server.services.coordinator
    known: list[dict[str, object]] = [{"short": 1}, {"short": 2}]
    for system in ROUNDS:
        coordinator.open_round(system, cohort=10, cohort_minimum=10, seconds=3_600)
        offer = coordinator.check_in(CheckIn(protocol=PROTOCOL_VERSION, release="r2", tasks=("count",)))
        assert offer is not None
        known.append({"round_id": offer.manifest.round, "pseudonym": offer.pseudonym})
        if system != ROUNDS[-1]:
            coordinator.cancel(offer.manifest.round)
    shards = server.client.get("/v1/releases/2/vectors").json()["shards"]
    known += [{"short": 2, "shard": each["name"], "sha256": each["blob"]["sha256"]} for each in shards[:2]]
    answers = fuzz(
        server.app,
        server.app.openapi(),
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
    assert answers["POST /v1/recall 200"] > 5, "valid bodies are among them"
    wanted = int(os.environ.get(EXAMPLES_VARIABLE, "500"))
    print(f"{answers.total():,} requests, {len(served)} operations, {dict(sorted(answers.items()))}")  # noqa: T201
    assert answers.total() >= wanted


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
def test_no_number_in_an_address_is_too_large_to_be_refused(
    server: Running, method: str, path: str, number: str
) -> None:
    headers = {
        "Authorization": f"Bearer {server.services.admin_token}",
        "Content-Type": "application/json",
        "Cookie": f"{COOKIE}={pass_of(server.services.admin_token)}",
    }
    content = b"{}" if method == "PUT" else None
    answer = server.client.request(method, path.format(number), headers=headers, content=content)
    assert answer.status_code < 500, answer.text
