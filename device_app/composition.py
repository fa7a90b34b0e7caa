"""The only module of the device that names concrete classes: settings in, a running device out."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import httpx

from device_app.alerts import LoopAlerts
from device_app.copies import Copies, databases_of, remedies
from device_app.device import PRIVACY_CHANGES, Device, Parts
from device_app.errors import BackendUnreachable, DeviceError
from device_app.feed.bodies import Bodies
from device_app.feed.broadcast import Broadcast
from device_app.feed.build import FeedContext
from device_app.feed.default_list import DefaultList
from device_app.feed.feature_context import ViewsOfReader
from device_app.feed.kept import KeptFeeds
from device_app.feed.model_cache import ModelCache
from device_app.feed.popular import Popular
from device_app.feed.preference_reader import PreferenceReader
from device_app.feed.recall import Recall
from device_app.feed.report_choice import ReportChoice
from device_app.feed.serving import Serving
from device_app.feed.stories import Stories
from device_app.feed.viewing import Viewing
from device_app.interests.names import InterestNames
from device_app.interests.searched import SearchedInterests
from device_app.privacy.ledger import Ledger
from device_app.privacy.limits import Limits
from device_app.privacy.noise_sources import NoiseSource, SystemNoise
from device_app.privacy.restored_copy import make_up_for_copy
from device_app.recall_frontier import ListChoice
from device_app.settings import DeviceSettings, PrivacySettings, keeps_pool, list_length
from device_app.store.parameters import PrivateParameters, TowerStore
from device_app.store.preferences import TRAINING_PAUSED
from device_app.store.profile import ProfileLock, begin, refuse_lost
from device_app.stores import DeviceStores
from device_app.sync.default_list import DefaultListSync
from device_app.sync.encoder_takeover import EncoderTakeover, VectorSync
from device_app.sync.installed_release import current_release
from device_app.sync.pictures import PictureSync
from device_app.sync.pool_codes import PoolSync
from device_app.sync.popularity import PopularitySync
from device_app.sync.release_sync import MaterialSync, ReleaseSync
from device_app.syncing import Syncing
from device_app.training.computation import ComputationFactory, Draw, fresh_draw
from device_app.training.consent import ReaderConsent
from device_app.training.delivery import UploadChannel
from device_app.training.multiview.job import ViewProcesses
from device_app.training.multiview.local import LocalViews
from device_app.training.multiview.processes import SpawnedViews
from device_app.training.stored_samples import StoredSamples
from device_app.training.trainer import Trainer
from device_app.uplink.backend_client import Uplink
from device_app.uplink.http import HttpClient
from device_app.uplink.watch import BackendWatch

NOTHING_LEAVES = {"mode": "broadcast", "counting": False, "training": False}
"""The switches of a reader of their own feeds."""


def utc_now() -> datetime:
    """The device's clock."""
    return datetime.now(UTC)


def build_device(
    settings: DeviceSettings,
    *,
    transport: httpx.BaseTransport | None = None,
    model_cache: ModelCache | None = None,
    blob_folder: Path | None = None,
    noise: NoiseSource | None = None,
    chance: random.Random | None = None,
    draw: Draw = fresh_draw,
    clock: Callable[[], datetime] = utc_now,
    processes: ViewProcesses | None = None,
) -> Device:
    """Open a device's store and put its parts together; no request is made yet. Raises ProfileInUse, StoreBroken.

    A fleet passes one `model_cache` (loaded models) and one `blob_folder` to all its devices, and a `transport` to a
    backend in the same process. `noise`, `chance`, `draw`, `clock` and `processes` are replaced in simulation and
    tests only.
    """
    noise = noise or SystemNoise()
    lock = ProfileLock(settings.home)
    try:
        stores, ledger, copies = _opened(settings, blob_folder, clock)
    except BaseException:
        lock.release()
        raise
    performance = settings.performance
    client = HttpClient(settings.backend_url, stores.byte_log, clock, transport, performance.request_timeout_sec)
    uplink = Uplink(client)
    bodies = Bodies(uplink, stores.news, clock)
    names = InterestNames(stores.preferences)
    searched = SearchedInterests(stores.searches, stores.stances, stores.search_index, stores.news, clock)
    recall = Recall(
        uplink,
        bodies,
        ReportChoice(
            ledger,
            noise,
            stores.report_memo,
            stores.drawn_reports,
            stores.clicks,
            stores.releases,
            performance.recall_limit,
            clock,
            stores.pulled_shards.generation,
            searched.vector,
        ),
        Broadcast(stores.pool, stores.news),
        performance,
    )
    feed_context = FeedContext(
        user_preferences=PreferenceReader(
            stores.clicks, stores.news, stores.feedback, stores.stances, names, stores.preferences
        ),
        impressions=stores.impressions,
        default_list=DefaultList(stores.default_list, stores.news),
        recall=recall,
        own=PrivateParameters(stores.database),
        views=ViewsOfReader(searched, TowerStore(stores.database), TowerStore(stores.search_database)),
        popular=Popular(stores.popularity),
        kept=KeptFeeds(
            stores.database, stores.feeds, stores.impressions, stores.news, stores.timings, clock, settings.own_feeds
        ),
        performance=performance,
        weights=settings.feed,
        chance=chance or random.SystemRandom(),
        clock=clock,
    )
    serving = Serving(
        feed_context,
        stores.releases,
        model_cache or ModelCache(ranker=settings.feed.ranker, threads=performance.threads),
    )
    ledger.choose_by(lambda own: _choice(own, serving, stores))
    viewing = Viewing(stores.impressions, serving.page, clock)
    pinned_key = settings.pinned_key
    syncing = Syncing(
        EncoderTakeover(
            ReleaseSync(client, stores.releases, clock, pinned_key),
            VectorSync(client, stores.news, stores.pulled_shards, stores.releases, clock),
            serving.swap,
        ),
        DefaultListSync(
            client,
            stores.default_list,
            stores.news,
            stores.releases,
            clock,
            lambda: list_length(ledger.choice(), performance),
        ),
        PoolSync(
            client, stores.pool, stores.releases, clock, lambda news: keeps_pool(ledger.settings, performance, news)
        ),
        PopularitySync(client, stores.popularity, stores.releases, clock),
        PictureSync(client, stores.pictures, clock),
        stores,
        bodies,
        serving,
        performance,
        clock,
    )
    views = LocalViews(
        stores={
            "reading": lambda: stores.database.path,
            "searches": lambda: stores.search_database.path if stores.search_database.known() else None,
        },
        items=lambda encoder: feed_context.default_list.items(encoder),
        prepare=searched.refresh,
        processes=processes or SpawnedViews(),
        log=stores.view_log,
        weakest_sigma=lambda: ledger.settings.weakest_view_sigma,
        clock=clock,
        searched=searched.names,
    )
    reading = StoredSamples(
        stores.clicks,
        stores.impressions,
        stores.news,
        half_life_hours=settings.feed.half_life_hours,
        counted=stores.counted,
        muted=names.muted,
    )
    trainer = Trainer(
        release=lambda: current_release(stores.releases),
        computations=ComputationFactory(
            reading,
            PrivateParameters(stores.database),
            MaterialSync(client, stores.releases.blobs).fetch,
            clock,
            draw=draw,
            threads=performance.threads,
            views=views,
        ),
        channel=UploadChannel(stores.database, stores.outbox, stores.participations, uplink),
        consent=ReaderConsent(
            ledger,
            reading,
            clock,
            paused=lambda: bool(stores.preferences.get(TRAINING_PAUSED)),
            idle_sec=performance.training_idle_sec,
        ),
        trusted_key=lambda: (trusted := stores.releases.trusted_key(pinned_key)) and trusted.public_key,
        noise=noise,
        clock=clock,
    )
    return Device(
        settings,
        Parts(
            stores=stores,
            uplink=uplink,
            ledger=ledger,
            serving=serving,
            bodies=bodies,
            syncing=syncing,
            stories=Stories(stores, serving, bodies, searched, viewing, performance.bodies_wait_sec, clock),
            viewing=viewing,
            searched=searched,
            names=names,
            trainer=trainer,
            alerts=LoopAlerts(clock, DeviceError, BackendUnreachable),
            copies=copies,
            lock=lock,
            # What a device in a simulation talks to is no address that could be watched.
            watch=BackendWatch(settings.backend_url, syncing.reached)
            if transport is None and performance.watch_backend
            else None,
            clock=clock,
        ),
    )


def _choice(own: PrivacySettings, serving: Serving, stores: DeviceStores) -> ListChoice | None:
    """What the reader's mode stands for under the release in use; None before the first."""
    models = serving.loaded()
    manifest = models.manifest if models else next((kept.manifest for kept in stores.releases.history(1)), None)
    return None if manifest is None else own.choice(manifest.news, manifest.recall)


def _opened(
    settings: DeviceSettings, blob_folder: Path | None, clock: Callable[[], datetime]
) -> tuple[DeviceStores, Ledger, Copies]:
    """The store, the ledger, and the copies of the store; charged first if the store is a copy itself."""
    remedy_of = remedies(settings)
    for database in databases_of(settings):
        refuse_lost(database, remedy_of(database))
    stores = DeviceStores(settings.database, blob_folder, remedy_of, settings.performance.page_cache_kib)
    try:
        stores.check_rows()  # before any of it gets into the copies
        begin(settings.database, clock())
        if settings.own_feeds and stores.preferences.get(PRIVACY_CHANGES) is None:
            # As the reader's own choice, so that it stands when the same folder is pointed at a publisher's backend.
            stores.preferences.set(PRIVACY_CHANGES, NOTHING_LEAVES)
        privacy = settings.privacy.with_overrides(stores.preferences.get(PRIVACY_CHANGES) or {})
        ledger = Ledger(stores.ledger_entries, privacy, clock)
        make_up_for_copy(stores.database, ledger)
        if not stores.pictures.shown():
            stores.pictures.drop()  # a copy of before the reader wanted none has them still
        copies = Copies(databases_of(settings), lambda: Limits.of(ledger.own), clock)
        copies.forget_drafts()
        copies.allow(Limits.of(privacy))
        copies.choose(stores.preferences.rows())
        copies.trust(stores.releases.trust())
    except BaseException:
        stores.close()
        raise
    return stores, ledger, copies
