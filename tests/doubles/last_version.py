"""What the last version left: its exchanges, folders and wire (`tests.integration.version_skew.recording`)."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
from base64 import b64decode
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx

from device_app.wire.problem import PROBLEM_MEDIA_TYPE

RECORDED = Path(__file__).parents[1] / "integration" / "data" / "last-version.tar.xz"
MESSAGES: tuple[tuple[str, str, str], ...] = (
    ("GET", r"/v1/releases/current", "SignedManifest"),
    ("GET", r"/v1/releases/chain", "ReleaseChain"),
    ("GET", r"/v1/releases/\d+/vectors", "ShardList"),
    ("GET", r"/v1/releases/\d+/codes", "PoolCodes"),
    ("GET", r"/v1/releases/\d+/popularity", "Popularity"),
    ("GET", r"/v1/keys", "KeyHistory"),
    ("GET", r"/v1/news/front", "RecallAnswer"),
    ("POST", r"/v1/news/bodies", "BodiesAnswer"),
    ("POST", r"/v1/recall", "RecallAnswer"),
    ("POST", r"/v1/rounds/check-in", "SignedOffer"),
    ("GET", r"/v1/rounds/current", "OpenRounds"),
    ("GET", r"/v1/rounds/round-\d+", "RoundStatus"),
    ("GET", r"/v1/rounds/round-\d+/keys/.+", "Roster"),
    ("GET", r"/v1/rounds/round-\d+/shares/.+", "Shares"),
    ("GET", r"/v1/rounds/round-\d+/complaints/.+", "Sharers"),
    ("GET", r"/v1/rounds/round-\d+/masked/.+", "Survivors"),
    ("GET", r"/v1/rounds/round-\d+/agree/.+", "Agreements"),
    ("PUT", r"/v1/rounds/round-\d+/.+", "UploadReceipt"),
)
"""What an answer of 200 to a request is, by its method and path."""
READ_BY_ITS_WIRE = """
import inspect, json, sys
from importlib import import_module
from pkgutil import iter_modules
import device_app.wire
from pydantic import BaseModel, ValidationError
known = {
    name: kind
    for module in iter_modules(device_app.wire.__path__)
    for name, kind in inspect.getmembers(import_module(f"device_app.wire.{module.name}"), inspect.isclass)
    if issubclass(kind, BaseModel)
}
for line in sys.stdin:
    name, text = json.loads(line)
    try:
        told = "unknown" if name not in known else known[name].model_validate_json(text) and None
    except ValidationError as refused:
        told = str(refused)
    print(json.dumps(told))
"""


@dataclass(frozen=True)
class RecordedExchange:
    """A request of the last version's device, and what its backend answered, unpacked."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    status: int
    answer_headers: dict[str, str]
    answer: bytes

    @classmethod
    def of(cls, told: dict[str, Any]) -> RecordedExchange:
        """Of the file."""
        answer = b64decode(told["answer"])
        if told["answer_headers"].get("content-encoding") == "gzip":
            answer = gzip.decompress(answer)
        headers = {name: value for name, value in told["answer_headers"].items() if name in ("etag", "content-type")}
        return cls(
            told["method"], told["target"], told["headers"], b64decode(told["body"]), told["status"], headers, answer
        )

    @property
    def path(self) -> str:
        """Without the query."""
        return self.target.partition("?")[0]

    @property
    def report(self) -> str | None:
        """The mode of a report."""
        return str(json.loads(self.body)["report"]["kind"]) if self.path == "/v1/recall" else None


@dataclass(frozen=True)
class LastVersion:
    """The file, unpacked into a folder."""

    folder: Path
    facts: dict[str, Any]
    exchanges: tuple[RecordedExchange, ...]
    of_the_round: tuple[RecordedExchange, ...]

    @classmethod
    def unpacked(cls, folder: Path) -> LastVersion:
        """Into a folder of a test's own."""
        with tarfile.open(RECORDED) as archive:
            archive.extractall(folder, filter="data")
        told = json.loads((folder / "exchanges.json").read_text(encoding="utf-8"))
        kinds = [tuple(RecordedExchange.of(each) for each in told[name]) for name in ("any time", "round")]
        return cls(folder, json.loads((folder / "facts.json").read_text(encoding="utf-8")), *kinds)

    @property
    def at(self) -> datetime:
        """When the folders were copied."""
        return datetime.fromisoformat(self.facts["at"])

    def golden(self) -> dict[str, Any]:
        """The bytes that its wire had (`tests/contracts/test_wire_golden.py`)."""
        found: dict[str, Any] = json.loads((self.folder / "code" / "wire.json").read_text(encoding="utf-8"))
        return found

    def refused(self, messages: Iterable[tuple[str, str]]) -> dict[str, str]:
        """Of messages, by the name of their class and as JSON, those that its wire doesn't read, and why."""
        texts = list(messages)
        path = [str(self.folder / "code"), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
        done = subprocess.run(
            [sys.executable, "-S", "-P", "-c", READ_BY_ITS_WIRE],
            input="".join(f"{json.dumps(each)}\n" for each in texts),
            env=os.environ | {"PYTHONPATH": os.pathsep.join(path)},
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=True,
        )
        told = [json.loads(line) for line in done.stdout.splitlines()]
        return {f"{name}: {text[:300]}": why for (name, text), why in zip(texts, told, strict=True) if why is not None}


def message_of(method: str, path: str, status: int) -> str | None:
    """The name of what an answer is; None of what is no JSON of ours, or is empty."""
    if status >= 400:
        return "Problem"
    found = [name for of, pattern, name in MESSAGES if of == method and re.fullmatch(pattern, path)]
    return found[0] if found and status == 200 else None


class RecordedBackend(httpx.BaseTransport):
    """Answers a device as the last version's backend did; what it never heard of it refuses as that did."""

    def __init__(self, last: LastVersion) -> None:
        self._last = last
        self.asked: list[str] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """The recorded answer to the same request, or to one of the same kind."""
        method, target, body = request.method, request.url.raw_path.decode(), request.read()
        self.asked.append(f"{method} {target}")
        path = target.partition("?")[0]
        if path.startswith("/v1/blobs/"):
            blob = self._last.folder / "backend" / "blobs" / path.rpartition("/")[2]
            if blob.is_file():
                return httpx.Response(200, content=blob.read_bytes())
        report = json.loads(body)["report"]["kind"] if path == "/v1/recall" else None
        known = [
            each
            for each in self._last.exchanges
            if (each.method, each.path, each.report) == (method, path, report) and each.status != 304
        ]
        if not known:
            known = [each for each in self._last.exchanges if each.status == 404]
            assert known[0].answer_headers["content-type"] == PROBLEM_MEDIA_TYPE
        best = next((each for each in known if each.target == target), known[0])
        return httpx.Response(best.status, headers=best.answer_headers, content=best.answer)
