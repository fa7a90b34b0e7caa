"""Every public call of backend and device has examples that its own schema accepts. Oracle: jsonschema-rs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from starlette.testclient import TestClient

import backend.app
import device_app.app
from backend.settings import BackendSettings
from device_app.settings import DeviceSettings
from tests.doubles.recall_app import running_server

MISSING = object()
UNTYPED = ("/v1/admin/timetable", "/v1/admin/account", "/v1/admin/releases", "/v1/admin/pool")


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    backends = backend.app.create_app(BackendSettings(data_dir=tmp_path_factory.mktemp("backend")))
    devices = device_app.app.create_app(DeviceSettings(data_dir=tmp_path_factory.mktemp("device")))
    devices.state.device.close()
    return {"backend": backends.openapi(), "device": devices.openapi()}


def examples(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any], Any]]:
    """Yield (place, schema, example) of each parameter, body and JSON answer."""
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            where = f"{method.upper()} {path}"
            for parameter in operation.get("parameters", ()):
                yield f"{where} {parameter['name']}", parameter["schema"], parameter.get("example", MISSING)
            done = [each for status, each in operation["responses"].items() if status.startswith("2")]
            for part in (operation.get("requestBody", {}), *done):
                for media_type, content in part.get("content", {}).items():
                    if media_type.endswith(("json", "urlencoded")) and content["schema"]:
                        yield f"{where} {media_type}", content["schema"], content.get("example", MISSING)


@pytest.mark.parametrize("which", ["backend", "device"])
def test_every_call_has_schema_valid_examples(documents: dict[str, dict[str, Any]], which: str) -> None:
    document = documents[which]
    found = list(examples(document))
    assert len(found) > 40
    wrong = []
    for where, schema, example in found:
        if example is MISSING:
            wrong.append(f"{where}: none")
            continue
        validator = jsonschema_rs.validator_for({**schema, "components": document["components"]})
        wrong += [f"{where}: {error.message[:200]}" for error in validator.iter_errors(example)]
    assert wrong == []


def test_examples_of_answers_without_a_type_match_the_server(tmp_path: Path) -> None:
    reported = json.loads((Path(backend.app.__file__).parent / "api/examples.json").read_text(encoding="utf-8"))[
        "answers"
    ]
    with running_server(tmp_path / "server", news=60) as server:
        client: TestClient = server.client
        for path in UNTYPED:
            sent = client.get(path, headers={"authorization": f"Bearer {server.services.admin_token}"}).json()
            example = reported[f"GET {path}"]
            one, other = (sent[0], example[0]) if isinstance(sent, list) else (sent, example)
            assert one.keys() == other.keys(), path
