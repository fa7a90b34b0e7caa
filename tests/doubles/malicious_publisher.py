"""A malicious server that publishes codebooks, encoders and vectors of its choice, to see which numbers come back."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import httpx
import numpy as np
from numpy.typing import NDArray

from device_app.composition import build_device
from device_app.device import Device
from device_app.privacy.noise_sources import NoiseSource, SeededNoise
from device_app.settings import DeviceSettings, PerformanceSettings, PrivacySettings
from protocol.ids import short_release
from protocol.recall import CodeReport, RecallAnswer, RecallRequest
from protocol.releases import BlobRef, ShardList, ShardRef
from protocol.tensors import pack, quantise
from tests.doubles.backend import FakeBackend
from tests.doubles.clock import StillClock
from tests.doubles.news import SyntheticPool, synthetic_pool

DIM = 16
SHARD = "2026-11-20.0"


def small_pool() -> SyntheticPool:
    """120 articles in 16 dimensions: the attack is the same, and 400 releases take seconds."""
    return synthetic_pool(120, sections=4, topics_per_section=3, dim=DIM)


@dataclass
class MaliciousPublisher(FakeBackend):
    """Keeps one lineage throughout. `vectors`: those it now claims its encoder makes of the pool's articles.

    refuse_old: refuse a report under a release older than its newest, so that a new one is drawn.
    """

    pool: SyntheticPool = field(default_factory=small_pool)
    refuse_old: bool = True
    sizes: int = 2

    def __post_init__(self) -> None:
        self.vectors = self.pool.vectors
        super().__post_init__()
        self.prototypes = unit(np.random.default_rng(3).normal(size=(self.sizes, DIM)))
        self.lineage: str | None = None

    def forged(self, prototypes: NDArray[np.floating], *, encoder: str | None = None) -> str:
        """Publish these prototypes as a later version of the first ones."""
        self.encoder = encoder or self.encoder
        self.prototypes = np.ascontiguousarray(prototypes, dtype=np.float32)
        book = self.codebook(self.prototypes, lineage=self.lineage)
        self.lineage = self.lineage or book.origin
        return self.publish(codebooks=(book,))

    def answer(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path
        if path.endswith("/vectors") or "/vectors/" in path:
            self.requests.append((request.method, path, request.content))
            blob = pack(quantise(self.vectors))
            if path.endswith("/ids"):
                return httpx.Response(200, content=json.dumps([card.id for card in self.pool.cards]))
            if path.endswith("/vectors"):
                ref = BlobRef(sha256=sha256(blob).hexdigest(), size_bytes=len(blob))
                shard = ShardRef(name=SHARD, blob=ref, count=len(self.pool.cards))
                listed = ShardList(release=self.releases[-1], encoder=self.encoder, shards=(shard,))
                return httpx.Response(200, content=listed.model_dump_json())
            return httpx.Response(200, content=blob)
        if path == "/v1/recall" and self.refuse_old and not self._of_newest(request.content):
            self.requests.append((request.method, path, request.content))
            return httpx.Response(410, content=b"{}")
        return super().answer(request)

    def codes(self) -> list[int]:
        """Every reported number, in order."""
        found = []
        for _, path, body in self.requests:
            if path == "/v1/recall":
                report = RecallRequest.model_validate_json(body).report
                assert isinstance(report, CodeReport)
                found.append(report.code)
        return found

    def asked(self) -> list[bytes]:
        """Every recall request, byte by byte."""
        return [body for _, path, body in self.requests if path == "/v1/recall"]

    def _of_newest(self, body: bytes) -> bool:
        return bool(json.loads(body)["release"] == short_release(self.releases[-1]))

    def _answer(self, release: str, rows: np.ndarray) -> RecallAnswer:
        honest = super()._answer(release, rows)
        return honest.model_copy(update={"vectors": pack(quantise(self.vectors[rows]))})


def default_device(
    server: MaliciousPublisher,
    folder: Path,
    clock: Callable[[], object],
    noise: NoiseSource | None = None,
    **privacy: object,
) -> Device:
    """A device with default privacy settings, on a server of ours."""
    return build_device(
        DeviceSettings(
            data_dir=folder,
            privacy=PrivacySettings.model_validate(privacy),
            performance=PerformanceSettings(bodies_wait_sec=0.0, pool_limit=0, feed_size=6),
        ),
        transport=server.transport(),
        noise=noise or SeededNoise("lying codebooks"),
        clock=clock,  # type: ignore[arg-type]
    )


def read_articles(device: Device, server: MaliciousPublisher, rows: range, clock: StillClock) -> None:
    """Open articles of the pool, one every half minute."""
    device.sync()
    for row in rows:
        clock.go_on(30)
        device.reading.open(server.pool.cards[row].id)


def ask_twice(device: Device, server: MaliciousPublisher) -> None:
    """Sync and ask for candidates, twice because the server may have refused the first report."""
    device.sync()
    for _ in range(2):
        device.recall_step()


def unit(rows: NDArray[np.floating]) -> NDArray[np.float32]:
    """Scale rows to length 1."""
    return np.asarray(rows / np.linalg.norm(rows, axis=-1, keepdims=True), dtype=np.float32)


def some_alignment(seed: int, *, reflect: bool = False) -> NDArray[np.float64]:
    """Return a random orthogonal matrix [D, D]; determinant -1 if it reflects."""
    matrix, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(DIM, DIM)))
    if (np.linalg.det(matrix) < 0) != reflect:
        matrix[:, 0] *= -1
    return matrix
