"""A complete small world: a real backend with a real first release over hand-made articles, and real devices.

Only BERT is replaced, at the Embedder interface: a title's vector is the sum of fixed random vectors of its words, so
that titles with common words lie near each other. The release is exported once per test run and copied for each world.
"""

from __future__ import annotations

import os
import random
import shutil
import socket
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from multiprocessing.process import BaseProcess
from pathlib import Path

import httpx
import numpy as np
import pytest
import uvicorn
from filelock import FileLock
from numpy.typing import NDArray
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backend.app import create_app
from backend.composition import Services, build_services
from backend.db.engine import migrate, open_engine
from backend.embedding.embedder import ProgressCallback
from backend.news.ingest import ingest
from backend.news.item import NewsItem
from backend.news.pool import NewsPool
from backend.news.pool_reading import PoolRow
from backend.releases.publish import publish_first
from backend.releases.store import ReleaseStore
from backend.server.http_server import serve_until_stopped
from backend.settings import BackendSettings, load_settings
from device_app.composition import build_device
from device_app.device import Device
from device_app.fleet.fleet import Member, read, warm_up
from device_app.settings import DeviceSettings, PerformanceSettings, PrivacySettings
from device_app.training.samples import StoredSamples
from tests.doubles.forked import running
from tests.doubles.graphs import shared_graphs

DIMENSIONS = 256
START_WITHIN_SEC = 240.0
"""Limit for a hanging start; a start takes five seconds of a processor that others may use, too."""
WORDS = {
    "sport": {
        "rowing": ["regatta", "oar", "scull", "coxswain", "eights", "lake", "stroke", "bow"],
        "tennis": ["serve", "racket", "rally", "baseline", "umpire", "volley", "tiebreak", "court"],
        "cycling": ["peloton", "sprint", "climb", "derailleur", "breakaway", "stage", "jersey", "saddle"],
    },
    "science": {
        "space": ["orbit", "probe", "telescope", "comet", "launch", "crater", "astronaut", "payload"],
        "oceans": ["reef", "plankton", "trench", "current", "salinity", "whale", "sonar", "kelp"],
        "physics": ["quark", "collider", "neutrino", "lattice", "photon", "magnet", "vacuum", "isotope"],
    },
    "business": {
        "shipping": ["freighter", "container", "tonnage", "harbour", "charter", "pilot", "dock", "manifest"],
        "retail": ["checkout", "shelf", "discount", "footfall", "franchise", "warehouse", "basket", "loyalty"],
        "energy": ["turbine", "grid", "substation", "reactor", "pipeline", "kilowatt", "tariff", "boiler"],
    },
    "culture": {
        "film": ["premiere", "director", "reel", "casting", "matinee", "script", "festival", "usher"],
        "opera": ["aria", "soprano", "overture", "libretto", "conductor", "chorus", "rehearsal", "balcony"],
        "painting": ["canvas", "fresco", "gallery", "pigment", "easel", "portrait", "varnish", "curator"],
    },
    "health": {
        "sleep": ["insomnia", "pillow", "circadian", "melatonin", "dream", "nap", "snore", "dawn"],
        "hearts": ["artery", "pulse", "valve", "stent", "cholesterol", "ventricle", "clinic", "beat"],
        "vaccines": ["dose", "antibody", "booster", "trial", "syringe", "immunity", "outbreak", "ward"],
    },
    "politics": {
        "elections": ["ballot", "turnout", "candidate", "poll", "constituency", "recount", "manifesto", "canvass"],
        "courts": ["verdict", "appeal", "judge", "tribunal", "testimony", "plea", "ruling", "bench"],
        "budget": ["deficit", "levy", "treasury", "surplus", "bond", "spending", "audit", "subsidy"],
    },
}
"""Vocabulary by section and topic."""
ARTICLES_A_TOPIC = 24
PUBLISHERS = ("The Harbour Post", "Evening Ledger", "The Northern Line")


class WordEmbedder:
    """A stand-in for the news encoder: float32 [n, 256] of unit length, deterministic by title."""

    digest = "words-of-titles"
    dimensions = DIMENSIONS

    def encode(self, titles: Sequence[str], *, progress: ProgressCallback | None = None) -> NDArray[np.float32]:
        vectors = np.stack([sum(map(word_vector, title.lower().split()), word_vector("")) for title in titles])
        if progress is not None:
            progress(len(titles), len(titles))
        return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)

    def encode_news(self, news: Sequence[PoolRow]) -> NDArray[np.float32]:
        return self.encode([each.title for each in news])


@lru_cache(maxsize=65_536)
def word_vector(word: str) -> NDArray[np.float64]:
    return np.random.default_rng(zlib.crc32(word.encode())).normal(size=DIMENSIONS)


def hand_made_news(now: datetime) -> list[NewsItem]:
    """432 articles of 18 topics over the last five days.

    Titles share words of their topic and no two are alike.
    """
    draw = np.random.default_rng(3)
    found = []
    for section, topics in WORDS.items():
        for topic, words in topics.items():
            for number in range(ARTICLES_A_TOPIC):
                chosen = [words[row] for row in draw.choice(len(words), size=5, replace=False)]
                own = "".join(chr(ord("a") + int(letter)) for letter in draw.integers(26, size=7))
                found.append(
                    NewsItem(
                        id=(news_id := f"{topic}-{number:02d}"),
                        title=f"{' '.join(chosen).capitalize()} near {own.capitalize()}",
                        abstract=f"What {own} means for {topic}.",
                        body=f"First paragraph of {news_id}.\n\nSecond paragraph of {news_id}.",
                        publisher=PUBLISHERS[number % len(PUBLISHERS)],
                        section=section,
                        topic=topic,
                        published_at=now - timedelta(minutes=1 + 7_000 * float(draw.random())),
                        weight=0.5,
                    )
                )
    return found


def fill_pool(pool: NewsPool, items: Sequence[NewsItem]) -> None:
    """Ingest items and give them the stand-in encoder's vectors."""
    report = ingest(pool, items, source="hand-made")
    assert report.added == len(items), report
    embed_all(pool)


def embed_all(pool: NewsPool) -> None:
    """Compute vectors for all articles that have none."""
    missing = pool.missing_vectors(WordEmbedder.digest)
    pool.store_vectors(WordEmbedder.digest, [news.id for news in missing], WordEmbedder().encode_news(missing))


def first_folder(cache: Path) -> Path:
    """A backend's data folder with articles, vectors and the exported first release.

    Made once for all workers.
    """
    folder = cache / "small-world"
    with FileLock(cache / "small-world.lock"):
        if not folder.is_dir():
            making = cache / "small-world-making"
            shutil.rmtree(making, ignore_errors=True)
            making.mkdir()
            settings = BackendSettings(data_dir=making)
            migrate(settings.database_url)
            engine = open_engine(settings.database_url)
            pool = NewsPool(engine)
            fill_pool(pool, hand_made_news(datetime.now(UTC)))
            _, vectors = pool.vectors(WordEmbedder.digest)
            store = ReleaseStore.open(engine, settings)
            publish_first(store, encoder=WordEmbedder.digest, vectors=np.asarray(vectors), cache=shared_graphs())
            engine.dispose()
            making.rename(folder)
    return folder


def shared_cache(factory: pytest.TempPathFactory) -> Path:
    """A folder that all workers of this test run share."""
    base = factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@dataclass(frozen=True)
class Received:
    """One request as the server received it, and its answer."""

    method: str
    path: str
    query: str
    headers: bytes
    body: bytes
    status: int
    answer: bytes


class RecordingMiddleware:
    """ASGI middleware around the whole server: records every request byte by byte, and may change an answer's body."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.requests: dict[int, Received] = {}
        self.arrived = 0
        self.tamper: Callable[[str, bytes], bytes] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        body, answer, status = bytearray(), bytearray(), 0
        place, self.arrived = self.arrived, self.arrived + 1

        async def received() -> Message:
            message = await receive()
            body.extend(message.get("body", b""))
            return message

        async def changed(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            answer.extend(message.get("body", b""))
            if self.tamper is not None and message.get("body"):
                message = {**message, "body": self.tamper(scope["path"], message["body"])}
            await send(message)

        try:
            await self.app(scope, received, changed)
        finally:
            self.requests[place] = Received(
                scope["method"],
                scope["path"],
                scope["query_string"].decode(),
                b"\n".join(name + b": " + value for name, value in scope["headers"]),
                bytes(body),
                status,
                bytes(answer),
            )


@contextmanager
def serve_app(app: ASGIApp, port: int = 0) -> Iterator[str]:
    """Serve an app on this machine over real HTTP."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    config = uvicorn.Config(
        app,
        log_level="error",
        access_log=False,
        ws="none",
        proxy_headers=False,
        # As in the product's server: with uvicorn's own 5 s, which devices use too, requests would meet closing
        # connections.
        timeout_keep_alive=BackendSettings.model_fields["idle_sec"].default,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        until = time.monotonic() + START_WITHIN_SEC
        while not server.started:
            assert thread.is_alive(), "the server ended while starting"
            assert time.monotonic() < until, "the server did not start in time"
            time.sleep(0.02)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(START_WITHIN_SEC)
        listener.close()


@dataclass
class SmallWorld:
    """A backend under test, and the folder of its readers' devices."""

    folder: Path
    settings: BackendSettings
    devices: list[Device] = field(default_factory=list)
    url: str = ""
    services: Services | None = None
    ears: RecordingMiddleware | None = None

    @contextmanager
    def backend(self, port: int = 0) -> Iterator[SmallWorld]:
        """Serve the backend while the block runs."""
        self.services = build_services(self.settings)
        self.ears = RecordingMiddleware(create_app(services=self.services))
        try:
            with serve_app(self.ears, port) as self.url:
                yield self
        finally:
            self.services.close()

    def leave_steps_to_the_test(self) -> None:
        """Make the next backend's own clocks stand, so that rounds and catalogue advance only by the test's steps."""
        self.settings = self.settings.model_copy(update={"round_tick_sec": 60.0, "pool_poll_sec": 3_600.0})

    @property
    def token(self) -> str:
        """The operator's token."""
        return self.settings.admin_token_file.read_text(encoding="utf-8").strip()

    def device_settings(self, profile: str = "reader", **changes: object) -> DeviceSettings:
        """Settings of a device that uses this backend and may train."""
        defaults: dict[str, object] = {
            "profile": profile,
            "data_dir": self.folder,
            "backend_url": self.url,
            "privacy": PrivacySettings(training=True, epsilon_per_day_training=1e9),
            "performance": PerformanceSettings(bodies_wait_sec=0.2, training_send_sec=0.0),
        }
        return DeviceSettings(**{**defaults, **changes})  # type: ignore[arg-type]

    def device(self, profile: str = "reader", **changes: object) -> Device:
        """Return a device, closed with the world.

        Call it again for the same profile to restart that device.
        """
        for former in [one for one in self.devices if one.settings.profile == profile]:
            former.close()
            self.devices.remove(former)
        made = build_device(self.device_settings(profile, **changes))
        self.devices.append(made)
        return made

    def requests(self) -> list[Received]:
        """Return the requests received so far, each with its complete answer.

        Other requests may still be under way.
        """
        assert self.ears is not None
        arrived = self.ears.arrived  # a client has its answer before the server is done with it
        until = time.monotonic() + START_WITHIN_SEC
        while any(place not in self.ears.requests for place in range(arrived)):
            assert time.monotonic() < until, "a request was never answered to its end"
            time.sleep(0.005)
        return [self.ears.requests[place] for place in range(arrived)]

    def server_log(self) -> str:
        """The server's own log file."""
        self.requests()  # a request is logged after it is answered
        return (self.settings.data_dir / "server.log").read_text(encoding="utf-8")


def warm_up_to_train(member: Member) -> None:
    """Simulate a reader's first visits, until a sample exists: a click after clicks on an earlier feed."""
    warm_up(member)
    stores, release = member.device.parts.stores, member.device.release()
    assert release is not None
    reading = StoredSamples(stores.clicks, stores.impressions, stores.news, half_life_hours=48.0)
    for _ in range(6):
        if reading.samples(release.manifest.encoder).available:
            return
        read(member)


@contextmanager
def small_world(first: Path, folder: Path) -> Iterator[SmallWorld]:
    """Copy the first folder; serve it with `SmallWorld.backend`."""
    shutil.copytree(first, folder / "backend")
    # Rounds here are ordered one by one; the release gate after them has its own tests.
    settings = BackendSettings(
        data_dir=folder / "backend",
        graphs_dir=shared_graphs().folder,
        round_tick_sec=0.2,
        pool_poll_sec=0.5,
        shared_answers_sec=0,
        gate=False,
        unbounded_addresses=("127.0.0.0/8",),
    )
    world = SmallWorld(folder, settings)
    try:
        yield world
    finally:
        for device in world.devices:
            device.close()


@contextmanager
def backend_process(settings: BackendSettings, port: int, **changes: object) -> Iterator[BaseProcess]:
    """The backend as its own process, which answers when the block begins and is killed at its end."""
    chosen = {"round_tick_sec": 0.05, "gate": False, "unbounded_addresses": ["127.0.0.0/8"], **changes}
    with running(_serve, settings.data_dir, port, chosen) as process:
        await_health(f"http://127.0.0.1:{port}", process)
        yield process


def _serve(folder: Path, port: int, chosen: dict[str, object]) -> None:
    settings = load_settings(data_dir=folder, port=port, **chosen)
    serve_until_stopped(create_app(settings), settings)


def await_health(url: str, process: BaseProcess) -> None:
    """Wait until the server of this process answers. Fails if it ends or takes too long."""
    until = time.monotonic() + START_WITHIN_SEC
    with httpx.Client(timeout=2.0) as client:
        while True:
            assert process.is_alive(), "the server ended while starting"
            assert time.monotonic() < until, "the server did not start in time"
            try:
                client.get(f"{url}/v1/health").raise_for_status()
                return
            except httpx.HTTPError:
                time.sleep(0.02)


def free_port() -> int:
    """Return a port on which nothing listens, of those that no system gives to outgoing connections.

    Another test's connection could otherwise take it before it is used.
    """
    while True:
        port = random.SystemRandom().randrange(20_000, 32_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("", port))
            return port
