"""Backend and devices of training rounds in one process.

The real routes, coordinator, stores and trainers. The release has hand-made graphs, so that no torch is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace

import httpx
import numpy as np
from fastapi import FastAPI
from sqlalchemy import Engine

from backend.api import admin, releases, rounds
from backend.federation.rounds.coordinator import Coordinator
from backend.federation.systems import COMPOSED
from backend.popularity.store import CountRepository
from backend.releases.blobs import ReleaseDraft
from backend.releases.store import ReleaseStore
from backend.server.problems import install_problems
from backend.server.request_limits import RequestLimits
from backend.server.shared_answers import SharedAnswers
from backend.server.uploads import Uploads
from backend.storage.object_store import LocalFolder
from device_app.composition import utc_now
from device_app.privacy.accounting.ledger import Ledger
from device_app.privacy.accounting.limits import Ceilings
from device_app.privacy.noise_sources import SeededNoise
from device_app.settings import PrivacySettings
from device_app.store.preferences import PrivateParameters
from device_app.stores import DeviceStores
from device_app.sync.installed_release import current_release
from device_app.sync.release_sync import MaterialSync, ReleaseSync
from device_app.training.computation import ComputationFactory
from device_app.training.due_updates import DueUpdates
from device_app.training.eligibility import ReaderConsent
from device_app.training.samples import StoredSamples
from device_app.training.trainer import Trainer
from device_app.uplink.backend_client import Uplink
from device_app.uplink.http import HttpClient
from protocol.releases import ModelEntry, RecallProtocol
from protocol.tensors import pack
from tests.doubles.clock import StillClock
from tests.doubles.gradient_graph import ranker_gradient_graph, recall_gradient_graph
from tests.doubles.graphs import context_graph, cosine_score_graph, decompose_graph, feature_score_graph
from tests.doubles.news import NOW, SyntheticPool
from tests.doubles.simulated_reader import PlantedReader
from tests.doubles.small_release import migrated_engine, small_store

DIM, BASIS = 8, 4
FEATURES = ("topic_affinity", "recency")
TOKEN = "operator-token"
TRAINS = PrivacySettings(training=True, epsilon_per_day_training=1e9)
ENCODER = "test-encoder"


def hand_made_draft(store: ReleaseStore) -> ReleaseDraft:
    """A release with a recall model and a ranker whose gradients are known.

    The recall model pulls its basis values towards what readers click; the ranker pulls its feature weights towards the
    features of what they click.
    """
    rng = np.random.default_rng(0)
    weights = {
        "basis_keys": rng.normal(size=(BASIS, DIM)).astype(np.float32),
        "basis_values": rng.normal(scale=0.1, size=(BASIS, DIM)).astype(np.float32),
    }
    return ReleaseDraft(
        encoder=ENCODER,
        dimensions=DIM,
        opset=18,
        recall=RecallProtocol(
            basis_size=BASIS, channels_limit=5, cluster_distance=1.0, score_clip=0.2, score_noise=1.2
        ),
        models={
            "recall": ModelEntry(
                architecture="basis",
                role="recall",
                graphs={
                    "context": store.add_blob(context_graph(DIM)),
                    "decompose": store.add_blob(decompose_graph(DIM, BASIS)),
                    "gradient": store.add_blob(recall_gradient_graph(DIM, BASIS)),
                },
                weights=store.add_blob(pack(weights)),
            ),
            "ranker.features": ModelEntry(
                architecture="feature_ranker",
                role="ranker",
                graphs={
                    "score": store.add_blob(feature_score_graph(DIM, len(FEATURES))),
                    "gradient": store.add_blob(ranker_gradient_graph(DIM, len(FEATURES))),
                },
                weights=store.add_blob(
                    pack({"beta": np.array(8.0, np.float32), "feature_weights": np.zeros(len(FEATURES), np.float32)})
                ),
                features=FEATURES,
            ),
            "ranker.cosine": ModelEntry(
                architecture="cosine",
                role="ranker",
                graphs={"score": store.add_blob(cosine_score_graph(DIM))},
                weights=store.add_blob(pack({"beta": np.array(8.0, dtype=np.float32)})),
            ),
        },
        default_ranker="ranker.cosine",
    )


@dataclass
class BackendRig:
    """The server's side: services as the routes need them, and the app."""

    folder: Path
    clock: StillClock
    engine: Engine
    releases: ReleaseStore
    coordinator: Coordinator
    app: FastAPI

    @classmethod
    def make(cls, folder: Path, clock: StillClock) -> BackendRig:
        engine = migrated_engine(folder)
        store = small_store(engine, folder, publish=False)
        store.commit(hand_made_draft(store), note="hand-made")
        return cls.over(engine, store, folder, clock)

    @classmethod
    def over(cls, engine: Engine, store: ReleaseStore, folder: Path, clock: StillClock) -> BackendRig:
        """Return a freshly started process on the stored data; call it again for a restart."""
        coordinator = Coordinator(engine, store, COMPOSED, folder, clock)
        services = SimpleNamespace(
            engine=engine,
            releases=store,
            coordinator=coordinator,
            admin_token=TOKEN,
            live=SimpleNamespace(current=SimpleNamespace(encoder=ENCODER)),
            counts=CountRepository(engine, half_life_hours=24.0),
            uploads=Uploads(folder / "uploads", threads=1, limit=64, limit_bytes=2**30),
            storage=LocalFolder(folder),
            pictures=SimpleNamespace(shards=SimpleNamespace(shard=lambda sha256: None)),
        )
        app = FastAPI()
        for each in (releases, rounds, admin):
            app.routes.extend(each.router(services).routes)
        app.add_middleware(SharedAnswers, keep_sec=0, on_request={})
        install_problems(app)
        app.add_middleware(RequestLimits)
        return cls(folder, clock, engine, store, coordinator, app)


@dataclass
class DeviceRig:
    """One device: real store, ledger, HTTP client and trainer."""

    path: Path
    clock: Callable[[], datetime]
    transport: httpx.BaseTransport
    privacy: PrivacySettings = TRAINS
    seed: int = 0
    paused: bool = False
    blob_folder: Path | None = None
    trusted_key: bytes | None = None
    updates: DueUpdates | None = None
    stores: DeviceStores = field(init=False)
    trainer: Trainer = field(init=False)

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        """Start a process on the stored data; call it again for a restart."""
        self.stores = DeviceStores(self.path, self.blob_folder)
        self.client = HttpClient("http://backend", self.stores.byte_log, self.clock, self.transport)
        self.ledger = Ledger(self.stores.ledger_entries, lambda: Ceilings.of(self.privacy), self.clock)
        reading = StoredSamples(
            self.stores.clicks,
            self.stores.impressions,
            self.stores.news,
            half_life_hours=48.0,
            counted=self.stores.counted,
        )
        self.trainer = Trainer(
            release=lambda: current_release(self.stores.releases),
            computations=ComputationFactory(
                reading,
                PrivateParameters(self.stores.database),
                MaterialSync(self.client, self.stores.releases.blobs).fetch,
                self.clock,
                draw=lambda _: np.random.default_rng(self.seed),
            ),
            updates=self.updates or DueUpdates(self.clock),
            stores=self.stores,
            uplink=Uplink(self.client),
            consent=ReaderConsent(self.ledger, lambda: self.privacy, paused=lambda: self.paused),
            trusted_key=lambda: self.trusted_key or self.stores.releases.pinned_key(),
            noise=SeededNoise(self.seed),
            clock=self.clock,
        )

    def stop(self) -> None:
        """End the process. The transport does not belong to the device and stays open."""
        self.stores.database.close()

    def sync(self) -> bool:
        return ReleaseSync(self.client, self.stores.releases, utc_now).refresh()

    def release(self) -> str:
        return current_release(self.stores.releases).id

    def read(self, reader: PlantedReader, pool: SyntheticPool) -> None:
        """Create the reader's past: feeds shown, articles clicked."""
        named = {news_id for feed in reader.feeds for news_id in feed.shown}
        rows = [row for row, card in enumerate(pool.cards) if card.id in named]
        self.stores.news.put([pool.cards[row] for row in rows], pool.vectors[rows], ENCODER, NOW)
        with self.stores.database.transaction():
            for feed in reader.feeds:
                self.stores.impressions.record(feed.feed_id, feed.shown, feed.at)
            for click in reader.clicks:
                self.stores.clicks.add(click.news_id, click.feed_id, click.at)
