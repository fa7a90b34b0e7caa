"""A backend of releases in memory, and a device that syncs from it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import httpx
import numpy as np
import onnx
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from onnx import TensorProto, helper

from device_app.store.byte_log import ByteLog
from device_app.store.database import Database
from device_app.uplink.http import HttpClient
from protocol.chain import ChainedRelease, ReleaseChain, next_head
from protocol.ids import release_number, short_release
from protocol.news import NewsCard
from protocol.recall import DefaultListAnswer
from protocol.releases import (
    BlobRef,
    ModelEntry,
    RecallProtocol,
    ReleaseManifest,
    ShardList,
    ShardRef,
    SignedManifest,
    sign,
)
from protocol.tensors import pack, quantise

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
D = 8


def graph(width: int = 4) -> bytes:
    """Return the graph y = x * p.keys, with one parameter of that width: small, but ONNX Runtime really loads it."""
    wanted = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [width]) for name in ("x", "p.keys", "y")]
    body = helper.make_graph([helper.make_node("Mul", ["x", "p.keys"], ["y"])], "scaled", wanted[:2], wanted[2:])
    model = helper.make_model(body, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())


def card(news_id: str) -> NewsCard:
    return NewsCard(
        id=news_id,
        title=f"Headline {news_id}",
        abstract="",
        url="https://n.example",
        publisher="p",
        section="s",
        topic="t",
        published_at=NOW,
        weight=0.5,
    )


@dataclass
class FakeReleases:
    """Answers like a real backend; `asked` holds every request's path, `spoiled` replaces the body of a path."""

    key: Ed25519PrivateKey = field(default_factory=Ed25519PrivateKey.generate)
    blobs: dict[str, bytes] = field(default_factory=dict)
    signed: SignedManifest | None = None
    default_list_ids: tuple[str, ...] = ("A", "B")
    default_list_etag: str = "pool-1"
    order: tuple[int, ...] | None = None
    list_encoder: str = "enc-1"
    since: list[str | None] = field(default_factory=list)
    shards: dict[str, tuple[ShardRef, bytes, list[str]]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    spoiled: dict[str, bytes] = field(default_factory=dict)
    down: set[str] = field(default_factory=set)
    chain: list[ChainedRelease] = field(default_factory=list)
    head: str | None = None
    shards_encoder: str = "enc-2"

    def blob(self, content: bytes) -> BlobRef:
        ref = BlobRef(sha256=sha256(content).hexdigest(), size_bytes=len(content))
        self.blobs[ref.sha256] = content
        return ref

    def publish(
        self,
        release: str = "r1",
        *,
        scale: float = 1.0,
        encoder: str = "enc-1",
        graph_blob: bytes | None = None,
        weights: bytes | None = None,
        noise: float = 1.2,
        **changes: Any,
    ) -> ReleaseManifest:
        graph_ref = self.blob(graph_blob if graph_blob is not None else graph())
        weights_ref = self.blob(weights if weights is not None else pack({"keys": np.full(4, scale, np.float32)}))
        models = {
            "recall": ModelEntry(
                architecture="basis",
                role="recall",
                graphs={"context": graph_ref, "decompose": graph_ref},
                weights=weights_ref,
            ),
            "ranker.cosine": ModelEntry(
                architecture="cosine", role="ranker", graphs={"score": graph_ref}, weights=weights_ref
            ),
        }
        values: dict[str, Any] = {
            "release": release,
            "previous": None,
            "created_at": NOW,
            "encoder": encoder,
            "dimensions": D,
            "opset": 18,
            "recall": RecallProtocol(
                basis_size=4, channels_limit=5, cluster_distance=1, score_clip=0.2, score_noise=noise
            ),
            "models": models,
            "default_ranker": "ranker.cosine",
        }
        if self.chain and release_number(self.chain[-1].release) >= release_number(release):
            self.chain, self.head = [], None  # the same again: these tests start again
        manifest = ReleaseManifest(**({"chain": self.head} | values | changes))
        self.signed = sign(manifest, self.key)
        hashed = sha256(self.signed.manifest.encode()).hexdigest()
        self.chain.append(ChainedRelease(release=release, manifest_sha256=hashed, published_at=manifest.created_at))
        self.head = next_head(self.head, release, hashed)
        return manifest

    def add_shard(self, name: str, ids: list[str], vectors: np.ndarray) -> None:
        blob = pack(quantise(vectors))
        ref = ShardRef(name=name, blob=BlobRef(sha256=sha256(blob).hexdigest(), size_bytes=len(blob)), count=len(ids))
        self.shards[name] = (ref, blob, ids)

    def default_list(self) -> DefaultListAnswer:
        return DefaultListAnswer(
            release="r1",
            encoder=self.list_encoder,
            order=self.order,
            candidates=tuple(card(one) for one in self.default_list_ids),
            vectors=pack(quantise(np.eye(len(self.default_list_ids), D, dtype=np.float32))),
        )

    def __call__(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path
        self.asked.append(path)
        if path in self.down:
            raise httpx.ConnectError("refused")
        if path in self.spoiled:
            return httpx.Response(200, content=self.spoiled[path])
        etag = request.headers.get("if-none-match")
        if path == "/v1/releases/current":
            assert self.signed is not None
            release = json.loads(self.signed.manifest)["release"]
            if etag == f'"{short_release(release)}"':
                return httpx.Response(304)
            # An ETag of the server's choice must never come back.
            return httpx.Response(200, headers={"etag": '"mark-of-this-device"'}, content=self.signed.model_dump_json())
        if path == "/v1/releases/chain":
            last = self.chain[-int(request.url.params["last"]) :]
            return httpx.Response(200, content=ReleaseChain(releases=tuple(last)).model_dump_json())
        if path.startswith("/v1/blobs/"):
            content = self.blobs.get(path.rsplit("/", 1)[1])
            return httpx.Response(404) if content is None else httpx.Response(200, content=content)
        if path == "/v1/news/front":
            if etag == f'"{self.default_list_etag}"':
                return httpx.Response(304)
            self.since.append(request.url.params.get("since"))
            headers = {"etag": f'"{self.default_list_etag}"'}
            return httpx.Response(200, headers=headers, content=self.default_list().model_dump_json())
        if path.endswith("/vectors"):
            release = f"r{path.split('/')[3]}"
            shards = tuple(one[0] for one in self.shards.values())
            listed = ShardList(release=release, encoder=self.shards_encoder, shards=shards)
            return httpx.Response(200, content=listed.model_dump_json())
        if "/vectors/" in path:
            _, blob, ids = self.shards[path.split("/")[5]]
            return httpx.Response(200, json=ids) if path.endswith("/ids") else httpx.Response(200, content=blob)
        return httpx.Response(404)


@pytest.fixture
def backend() -> FakeReleases:
    return FakeReleases()


@pytest.fixture
def client(database: Database, backend: FakeReleases) -> Iterator[HttpClient]:
    opened = HttpClient("http://backend.example", ByteLog(database), lambda: NOW, httpx.MockTransport(backend))
    yield opened
    opened.close()


@pytest.fixture
def now() -> datetime:
    return NOW
