"""Builds a device from its settings; the device's only module that names concrete classes."""

import random
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import httpx

from device_app.alerts import LoopAlerts
from device_app.copies import Copies, databases_of, remedies
from device_app.device import PRIVACY_CHANGES, Device, Parts
from device_app.errors import BackendUnreachable, DeviceError, SettingsRefused
from device_app.feed.bodies import Bodies
from device_app.feed.broadcast import Broadcast
from device_app.feed.build import FeedContext
from device_app.feed.candidate_search import Recall
from device_app.feed.feature_context import ViewsOfReader
from device_app.feed.lists import DefaultList, Popular
from device_app.feed.model_cache import ModelCache
from device_app.feed.preference_reader import PreferenceReader
from device_app.feed.rare import RareFeeds
from device_app.feed.recall_answers import RecallAnswers
from device_app.feed.recall_step import RecallStep
from device_app.feed.recent_feeds import RecentFeeds
from device_app.feed.serving import Serving
from device_app.feed.stories import Stories, Viewing
from device_app.privacy.accounting.ledger import Ledger
from device_app.privacy.accounting.limits import Limits
from device_app.privacy.accounting.restored_copy import charge_for_restored_copy
from device_app.privacy.noise_sources import NoiseSource, SystemNoise
from device_app.reading.interest_profile import InterestNames
from device_app.reading.searched_interests import SearchedInterests
from device_app.reports.choice import ReportChoice
from device_app.reports.policy import ReportPolicy
from device_app.settings import DeviceSettings
from device_app.store.preferences import TRAINING_PAUSED, PrivateParameters, TowerStore
from device_app.store.profile import ProfileLock, begin, refuse_lost
from device_app.stores import DeviceStores
from device_app.sync.default_list import DefaultListSync, PopularitySync
from device_app.sync.encoder_takeover import EncoderTakeover, VectorSync
from device_app.sync.installed_release import current_release
from device_app.sync.own_feeds import OwnFeedsSync
from device_app.sync.picture_sync import PictureSync
from device_app.sync.pool_codes import PoolSync
from device_app.sync.release_sync import MaterialSync, ReleaseSync
from device_app.syncing import Syncing
from device_app.training.computation import ComputationFactory, Draw, fresh_draw
from device_app.training.due_updates import DueUpdates
from device_app.training.eligibility import ReaderConsent
from device_app.training.multiview.job import ViewProcesses
from device_app.training.multiview.local import LocalViews
from device_app.training.multiview.processes import SpawnedViews
from device_app.training.samples import StoredSamples
from device_app.training.trainer import Trainer
from device_app.uplink.backend_client import Uplink
from device_app.uplink.http import HttpClient
from device_app.uplink.own_server import TIMEOUT_SEC, OwnServer
from device_app.uplink.watch import BackendWatch
from protocol.releases import ReleaseManifest

NOTHING_LEAVES = {"mode": "broadcast", "counting": False, "training": False}
"""The privacy settings of a reader who runs their own feeds."""


def utc_now() -> datetime:
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
    updates: DueUpdates | None = None,
) -> Device:
    """Open a device's store and assemble its parts; sends no request yet.

    A fleet passes one `model_cache` (loaded models) and one `blob_folder` to all its devices, and a `transport` to a
    backend in the same process. `noise`, `chance`, `draw`, `clock`, `processes` and `updates` are replaced only in
    simulations and tests. Raises ProfileInUse, StoreBroken.
    """
    noise = noise or SystemNoise()
    lock = ProfileLock(settings.home)
    try:
        stores, policy, ledger, copies = _opened(settings, blob_folder, clock)
    except BaseException:
        lock.release()
        raise
    performance = settings.performance
    client = HttpClient(settings.backend_url, stores.byte_log, clock, transport, performance.request_timeout_sec)
    uplink = Uplink(client)
    bodies = Bodies(uplink, stores.news, clock)
    names = InterestNames(stores.preferences)
    searched = SearchedInterests(stores.searches, stores.stances, stores.search_index, stores.news, clock)
    reports = ReportChoice(policy, ledger, noise, stores, performance.recall_limit, clock, searched.vector)
    answers = RecallAnswers(stores.preferences, stores.news)
    feed_context = FeedContext(
        user_preferences=PreferenceReader(stores, names),
        impressions=stores.impressions,
        default_list=DefaultList(stores.default_list, stores.news),
        recall=Recall(answers, reports, Broadcast(stores.pool, stores.news)),
        own=PrivateParameters(stores.database),
        views=ViewsOfReader(searched, TowerStore(stores.database), TowerStore(stores.search_database)),
        popular=Popular(stores.popularity),
        rare=RareFeeds(stores.articles, stores.pool, stores.preferences),
        kept=RecentFeeds(stores, clock, settings.own_feeds),
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
    policy.release = lambda: _manifest(serving, stores)
    viewing = Viewing(stores.impressions, serving.page, clock)
    pinned_key = settings.pinned_key
    syncing = Syncing(
        EncoderTakeover(
            ReleaseSync(client, stores.releases, clock, pinned_key),
            VectorSync(
                client,
                stores.news,
                stores.pulled_shards,
                stores.releases,
                clock,
                at_first=settings.own_feeds_token_file is not None,
            ),
            serving.swap,
        ),
        DefaultListSync(
            client,
            stores.default_list,
            stores.news,
            stores.releases,
            clock,
            lambda: policy.list_length(performance),
        ),
        PoolSync(client, stores.pool, stores.releases, clock, lambda news: policy.keeps_pool(performance, news)),
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
        weakest_sigma=lambda: policy.own.weakest_view_sigma,
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
        updates=updates or DueUpdates(clock, performance.training_send_sec),
        stores=stores,
        uplink=uplink,
        consent=ReaderConsent(ledger, lambda: policy.own, paused=lambda: bool(stores.preferences.get(TRAINING_PAUSED))),
        trusted_key=lambda: (trusted := stores.releases.trusted_key(pinned_key)) and trusted.public_key,
        noise=noise,
        clock=clock,
    )
    own_server = _own_server(settings, stores, clock, transport)
    return Device(
        settings,
        Parts(
            stores=stores,
            uplink=uplink,
            ledger=ledger,
            policy=policy,
            serving=serving,
            bodies=bodies,
            syncing=syncing,
            stories=Stories(stores, serving, bodies, searched, viewing, performance.bodies_wait_sec, clock),
            viewing=viewing,
            searched=searched,
            names=names,
            trainer=trainer,
            recall_step=RecallStep(serving, uplink, bodies, reports, answers, stores.timings, clock),
            alerts=LoopAlerts(clock, DeviceError, BackendUnreachable),
            copies=copies,
            lock=lock,
            own_server=own_server,
            # A simulated device talks to no address that could be watched.
            watch=BackendWatch(settings.backend_url, syncing.reached, syncing.unreachable)
            if transport is None and performance.watch_backend
            else None,
            clock=clock,
        ),
    )


def _own_server(
    settings: DeviceSettings, stores: DeviceStores, clock: Callable[[], datetime], transport: httpx.BaseTransport | None
) -> OwnFeedsSync | None:
    """Return what manages the reader's feeds; None unless the server is the reader's own. Raises SettingsRefused."""
    path = settings.own_feeds_token_file
    if not settings.own_feeds or path is None:
        return None
    try:
        token = path.read_text(encoding="utf-8").strip()
        client = HttpClient(settings.backend_url, stores.byte_log, clock, transport, TIMEOUT_SEC, token)
        return OwnFeedsSync(OwnServer(client), stores.news, clock)
    except (OSError, ValueError) as refused:
        raise SettingsRefused(f"Setting own_feeds_token_file: {refused}") from refused


def _manifest(serving: Serving, stores: DeviceStores) -> ReleaseManifest | None:
    """Return the manifest of the release in use; None before the first release."""
    models = serving.loaded()
    return models.manifest if models else next((kept.manifest for kept in stores.releases.history(1)), None)


def _opened(
    settings: DeviceSettings, blob_folder: Path | None, clock: Callable[[], datetime]
) -> tuple[DeviceStores, ReportPolicy, Ledger, Copies]:
    """Return the store, the policy with the reader's settings, the ledger and the copies.

    If the store is itself a restored copy, that is charged first.
    """
    remedy_of = remedies(settings)
    for database in databases_of(settings):
        refuse_lost(database, remedy_of(database))
    stores = DeviceStores(settings.database, blob_folder, remedy_of, settings.performance.page_cache_kib)
    try:
        stores.check_rows()  # before any of it is copied
        begin(settings.database, clock())
        if settings.own_feeds and stores.preferences.get(PRIVACY_CHANGES) is None:
            # Stored as the reader's own choice, so that it still holds if this folder later uses a publisher's server.
            stores.preferences.set(PRIVACY_CHANGES, NOTHING_LEAVES)
        policy = ReportPolicy(settings.privacy.with_overrides(stores.preferences.get(PRIVACY_CHANGES) or {}))
        ledger = Ledger(stores.ledger_entries, policy.ceilings, clock)
        charge_for_restored_copy(stores.database, ledger)
        if not stores.pictures.shown():
            stores.pictures.drop()  # a copy from before pictures were switched off still has them
        copies = Copies(databases_of(settings), lambda: Limits.of(ledger.ceilings), clock)
        copies.forget_drafts()
        copies.allow(Limits.of(ledger.ceilings))
        copies.choose(stores.preferences.rows())
        copies.trust(stores.releases.trust())
    except BaseException:
        stores.close()
        raise
    return stores, policy, ledger, copies
