"""Builds the server's parts from its settings; the only module that names concrete classes."""

import secrets
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from sqlalchemy import Engine

from backend.db.advisory_lock import advisory_lock
from backend.db.engine import check_sqlite_file, migrate, open_engine
from backend.embedding.batch_executor import ExecutorSettings, SeparateProcess
from backend.embedding.embedder import check_dimensions
from backend.embedding.weights import check_layers
from backend.errors import BackendSettingsRefused
from backend.federation.errors import RoundImpossible, UnknownSystem
from backend.federation.rounds.coordinator import Coordinator
from backend.federation.rounds.opening import round_request
from backend.federation.rounds.scheduling import Schedule
from backend.federation.rounds.selection import AddressRules, ClientAddresses, load_or_create_address_key
from backend.federation.strategies.release_gate import ReleaseGate
from backend.federation.strategies.strategy import RoundRequest
from backend.federation.systems import COMPOSED, full_name
from backend.federation.systems.efficient_fedrec import with_news_layers
from backend.federation.systems.private_counts import MEMBERS, PRIVATE_COUNTS
from backend.federation.systems.release_gate import RELEASE_GATE
from backend.news.feed_scheduler import FeedScheduler
from backend.news.pictures.shards import PictureShards
from backend.news.pictures.worker import PictureRules, PictureWorker
from backend.news.pool import NewsPool
from backend.news.public_addresses import networks
from backend.news.sections import SectionSorter
from backend.popularity.store import CountRepository
from backend.recall.catalogue import LiveCatalogue, build_catalogue
from backend.recall.catalogue_updater import CatalogueUpdater
from backend.recall.code_lists import CodeListStore
from backend.recall.encoder_takeover import EMBEDDING, TitleEmbedder
from backend.recall.indexes.basis import BasisScanStore
from backend.recall.indexes.selection import IndexRules
from backend.recall.indexes.store import INDEX_FOLDER, IndexStore
from backend.recall.served_releases import ServedReleases
from backend.recall.service import AnswerCache, RecallService, VectorRules
from backend.releases.errors import NothingPublished
from backend.releases.retention import Retention
from backend.releases.store import ReleaseStore
from backend.server.latency import LatencyLog
from backend.server.public_port import TOKEN_CHARS
from backend.server.request_limits import Admission
from backend.server.uploads import Uploads
from backend.settings import BackendSettings
from backend.setup.backfill import Backfill
from backend.setup.first_release import FirstRelease
from backend.storage.durable_files import load_or_create_secret
from backend.storage.object_store import ObjectStore

COUNT_SEC, COUNT_WAITING = 120.0, 10
"""Duration of a private count in seconds, and minimum number of apparently waiting devices to open one
automatically.
"""
TRAINING_SEC = 60.0
"""Duration in seconds of a training round that opens automatically."""
WORKERS_FOR_BODIES, BODIES_WAIT_SEC = 3, 2.0
"""Reading the texts of 1,000 articles occupies a thread for longer than anything else, so it gets a third of the
threads."""
CONNECTIONS_IN_BACKGROUND = 16
"""Database connections besides one for each thread that answers requests: the catalogue and the clock of rounds take
two each (one of them for their lock), the feeds six, and the pictures six."""
ADDRESS_KEY_FILE = "addresses.key"
METRICS_TOKEN_FILE = "metrics.token"
INDEXING = "index"
"""Name of the lock held by the process that builds an index."""
NO_ENCODER = "none"
"""Encoder digest of the empty catalogue that is served until the first release."""


@dataclass
class Services:
    """The parts that the routes use. `close` ends their threads and connections."""

    settings: BackendSettings
    storage: ObjectStore
    engine: Engine
    pool: NewsPool
    releases: ReleaseStore
    served: ServedReleases
    live: LiveCatalogue
    service: RecallService
    updater: CatalogueUpdater
    feeds: FeedScheduler
    pictures: PictureWorker
    coordinator: Coordinator
    counts: CountRepository
    latency: LatencyLog
    recall_threads: ThreadPoolExecutor
    recall_admission: Admission
    bodies_admission: Admission
    uploads: Uploads
    backfill: Backfill
    embedding: SeparateProcess
    first_release: FirstRelease | None
    admin_token: str
    metrics_token: str

    def stop(self) -> None:
        """Stop the background threads."""
        if self.first_release is not None:
            self.first_release.stop()
        self.backfill.stop()
        self.feeds.stop()
        self.pictures.stop()
        self.updater.stop()

    def close(self) -> None:
        """Stop the background work, wait for requests in progress, and close the database."""
        self.stop()
        self.embedding.close()
        self.recall_threads.shutdown()
        self.uploads.close()
        self.engine.dispose()


def build_services(settings: BackendSettings) -> Services:
    """Open everything in `settings.data_dir` and build the first catalogue from the article pool.

    Raises BackendSettingsRefused or the database's errors; each message is one plain line.
    """
    if settings.news_layers:
        check_layers(settings.news_layers, settings.bert)
    check_dimensions(settings)
    executor = ExecutorSettings.of(settings)
    executor.check()
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    check_sqlite_file(settings.database_url, used=settings.has_noted_releases)
    engine = open_engine(
        settings.database_url, settings.worker_threads + settings.round_threads + CONNECTIONS_IN_BACKGROUND
    )
    migrate(engine)
    storage = settings.open_storage()
    lifetime = timedelta(days=settings.news_lifetime_days)
    pool = NewsPool(engine, lifetime=lifetime, keep_newest=settings.feed_keep_newest)
    releases = ReleaseStore.open(engine, settings)
    releases.encoders.take()
    retention = Retention(engine, releases, pool, settings, lambda: datetime.now(UTC))
    releases.tidy = retention.apply
    retention.apply()
    served = ServedReleases(releases, answered=settings.releases_answered, score_decoder=settings.score_decoder)
    served.refresh()
    rules = at_start = IndexRules(settings.exact_index_limit, settings.search_threads, settings.index)
    try:
        encoder = served.current.encoder
        at_start = rules.under(*served.current.basis_values.shape)
    except NothingPublished:
        encoder = NO_ENCODER
    counts = CountRepository(engine, half_life_hours=settings.popularity_half_life_hours)
    kept = IndexStore(storage.under(INDEX_FOLDER), settings.index_dir)
    indexing = partial(advisory_lock, engine, INDEXING)
    live = LiveCatalogue(
        build_catalogue(pool, encoder, datetime.now(UTC), kept, rules=at_start, counts=counts, turn=indexing)
    )

    service = RecallService(
        served,
        live,
        CodeListStore(threads=settings.search_threads),
        AnswerCache(settings.answers_kept_bytes),
        VectorRules(settings.recall_ranking, settings.recall_merge),
        BasisScanStore(settings.search_threads),
    )
    service.prepare(live.current)

    gate = ReleaseGate(tolerance=settings.gate_tolerance, confidence=settings.gate_confidence)

    embedding = SeparateProcess(settings.embed_threads)

    def open_encoder() -> TitleEmbedder:
        # imports tokenizers, so only when titles wait
        from backend.embedding.embedder import load_embedder

        releases.encoders.take()
        apart = embedding if executor.cluster is None else None
        return load_embedder(settings, served.current.encoder, executor=apart)

    coordinator = Coordinator(
        engine,
        releases,
        COMPOSED
        | {RELEASE_GATE.name: replace(RELEASE_GATE, strategy=gate)}
        | (with_news_layers(COMPOSED, settings.news_layers) if settings.news_layers else {}),
        settings.data_dir,
        held_out=settings.gate_held_out if settings.gate else 0.0,
        polls_per_device=settings.rounds_polls_per_device,
        addresses=ClientAddresses(
            AddressRules(
                settings.places_per_address,
                settings.check_ins_per_minute,
                settings.trusted_proxies,
                settings.unbounded_addresses,
            ),
            load_or_create_address_key(settings.data_dir / ADDRESS_KEY_FILE),
        ),
        retries=settings.round_retries,
        waits_for_devices=settings.rounds_wait_for_devices,
        counts_half_life_hours=settings.popularity_half_life_hours,
        storage=storage,
        executor=executor,
    )
    schedule_first(coordinator, settings)
    return Services(
        settings=settings,
        storage=storage,
        engine=engine,
        pool=pool,
        releases=releases,
        served=served,
        live=live,
        service=service,
        updater=CatalogueUpdater(
            pool,
            served,
            live,
            open_encoder,
            kept,
            rules,
            poll_sec=settings.pool_poll_sec,
            expire_every_sec=settings.expire_every_sec,
            prepare=service.prepare,
            counts=counts,
            sort=SectionSorter(engine).sort_waiting,
            turn=partial(advisory_lock, engine, EMBEDDING),
            indexing=indexing,
        ),
        feeds=FeedScheduler(
            engine,
            pool,
            every=timedelta(minutes=settings.feed_refresh_minutes),
            seldom=timedelta(minutes=settings.feed_refresh_longest_minutes),
            pause_sec=settings.feed_host_pause_sec,
            allowed=networks(settings.feed_networks),
        ),
        pictures=PictureWorker(
            engine,
            PictureShards(engine, storage, lambda: datetime.now(UTC)),
            PictureRules(
                settings.pictures_served_bytes,
                timedelta(minutes=settings.pictures_every_minutes),
                pool.lifetime,
                networks(settings.feed_networks),
            ),
            lambda: [live.current.ids[row] for row in live.current.default_list],
        ),
        coordinator=coordinator,
        counts=counts,
        latency=LatencyLog(settings.latency_window),
        recall_threads=ThreadPoolExecutor(settings.recall_workers, thread_name_prefix="recall"),
        recall_admission=Admission(
            running=settings.recall_workers,
            waiting=settings.recall_waiting,
            wait_sec=settings.recall_wait_ms / 1_000,
        ),
        bodies_admission=Admission(
            running=max(1, settings.worker_threads // WORKERS_FOR_BODIES),
            waiting=settings.requests_waiting,
            wait_sec=BODIES_WAIT_SEC,
        ),
        uploads=Uploads(
            settings.data_dir / "uploads",
            threads=settings.round_threads,
            limit=settings.uploads_limit,
            limit_bytes=settings.uploads_limit_bytes,
        ),
        backfill=Backfill(settings),
        embedding=embedding,
        first_release=None if settings.own_feeds_token_file is None else FirstRelease(settings, engine),
        admin_token=load_or_create_token(settings.admin_token_file),
        metrics_token=load_or_create_token(settings.data_dir / METRICS_TOKEN_FILE),
    )


def schedule_first(coordinator: Coordinator, settings: BackendSettings) -> None:
    """Schedule private counts, or the rounds that the settings name, until the operator sets another schedule.

    Raises BackendSettingsRefused for an unknown system.
    """
    if settings.rounds_system is not None:
        try:
            system = full_name(settings.rounds_system)
        except (UnknownSystem, RoundImpossible) as refused:
            raise BackendSettingsRefused(
                f"Setting rounds_system: {settings.rounds_system!r}: {refused} Allowed: {refused.limit}.",
                field="rounds_system",
                limit=refused.limit,
            ) from refused
        request = round_request(COMPOSED, system, seconds=TRAINING_SEC)
        coordinator.scheduler.begin(Schedule(request, settings.rounds_every_minutes, waiting=1))
    elif settings.counts_every_minutes:
        cohort = settings.counts_cohort
        # A larger cohort is split into groups, and no group needs more members than the standard group size.
        minimum = min(max(10, cohort // 3), MEMBERS)
        request = RoundRequest(PRIVATE_COUNTS.compose().name, cohort, minimum, seconds=COUNT_SEC)
        coordinator.scheduler.begin(Schedule(request, settings.counts_every_minutes, waiting=COUNT_WAITING))


def load_or_create_token(path: Path) -> str:
    """Return the token in the file; the first start creates it, readable by its owner only.

    Raises BackendSettingsRefused if the token is damaged or shorter than TOKEN_CHARS characters.
    """
    kept = load_or_create_secret(path, lambda: f"{secrets.token_urlsafe(32)}\n".encode()).strip()
    if len(kept) >= TOKEN_CHARS and kept.isascii() and b" " not in kept and kept.decode().isprintable():
        return kept.decode()
    raise BackendSettingsRefused(
        f"The token in {path} is damaged, or is too short: {len(kept)} characters, at least {TOKEN_CHARS} are needed. "
        "Remove the file: the next start creates a new one.",
        field=path.name,
        limit=f"{TOKEN_CHARS} characters",
    )
