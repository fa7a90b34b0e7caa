"""The only module of the device that names concrete classes: settings in, a running device out."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import httpx

from device_app.copies import Copies, databases_of, remedies
from device_app.device import PRIVACY_CHANGES, TRAINING_PAUSED, Device, Parts
from device_app.feed.bodies import Bodies
from device_app.feed.broadcast import Broadcast
from device_app.feed.build import FeedDesk
from device_app.feed.front import FrontList
from device_app.feed.kept import KeptFeeds
from device_app.feed.models import ModelRack
from device_app.feed.popular import Popular
from device_app.feed.recall import Recall
from device_app.feed.serving import Serving
from device_app.feed.stories import Stories
from device_app.feed.taste_reader import TasteReader
from device_app.feed.views import ViewsOfReader
from device_app.interests.names import InterestNames
from device_app.interests.searched import SearchedInterests
from device_app.privacy.budget import Ledger
from device_app.privacy.limits import Limits
from device_app.privacy.noise import NoiseSource, SystemNoise
from device_app.privacy.restored import make_up_for_copy
from device_app.settings import DeviceSettings, keeps_pool, with_overrides
from device_app.shelves import Shelves
from device_app.store.private_parameters import PrivateParameters
from device_app.store.profile_lock import ProfileLock
from device_app.store.profile_marks import begin, refuse_lost
from device_app.store.towers import Towers
from device_app.sync.front import FrontSync
from device_app.sync.materials import MaterialSync
from device_app.sync.pool_codes import PoolSync
from device_app.sync.popularity import PopularitySync
from device_app.sync.release import current_release
from device_app.sync.releases import ReleaseSync
from device_app.sync.vectors import VectorSync
from device_app.syncing import Syncing
from device_app.training.computation import Draw, fresh_draw
from device_app.training.reading import Reading
from device_app.training.trainer import Trainer
from device_app.training.views.job import ViewProcesses
from device_app.training.views.local import LocalViews
from device_app.training.views.processes import SpawnedViews
from device_app.troubles import Troubles
from device_app.uplink.http import Door
from device_app.uplink.server import Uplink


def utc_now() -> datetime:
    """The device's clock."""
    return datetime.now(UTC)


def build_device(
    settings: DeviceSettings,
    *,
    transport: httpx.BaseTransport | None = None,
    rack: ModelRack | None = None,
    blob_folder: Path | None = None,
    noise: NoiseSource | None = None,
    chance: random.Random | None = None,
    draw: Draw = fresh_draw,
    clock: Callable[[], datetime] = utc_now,
    processes: ViewProcesses | None = None,
) -> Device:
    """Open a device's store and put its parts together; no request is made yet. Raises ProfileInUse, StoreBroken.

    A fleet passes one `rack` (loaded models) and one `blob_folder` to all its devices, and a `transport` to a backend
    in the same process. `noise`, `chance`, `draw`, `clock` and `processes` are replaced in simulation and tests only.
    """
    noise = noise or SystemNoise()
    lock = ProfileLock(settings.home)
    try:
        shelves, ledger, copies = _opened(settings, blob_folder, clock)
    except BaseException:
        lock.release()
        raise
    performance = settings.performance
    door = Door(settings.backend_url, shelves.byte_log, clock, transport, performance.request_timeout_sec)
    uplink = Uplink(door)
    bodies = Bodies(uplink, shelves.news, clock)
    names = InterestNames(shelves.preferences)
    searched = SearchedInterests(shelves.searches, shelves.stances, shelves.search_index, shelves.news, clock)
    recall = Recall(
        uplink,
        bodies,
        ledger,
        noise,
        shelves.report_memo,
        shelves.clicks,
        shelves.releases,
        performance,
        clock,
        shelves.drawn_reports,
        Broadcast(shelves.pool, shelves.news),
        shelves.pulled_shards.generation,
        searched.vector,
    )
    desk = FeedDesk(
        tastes=TasteReader(shelves.clicks, shelves.news, shelves.feedback, shelves.stances, names, shelves.preferences),
        impressions=shelves.impressions,
        front=FrontList(shelves.front_page, shelves.news),
        recall=recall,
        own=PrivateParameters(shelves.database),
        views=ViewsOfReader(searched, Towers(shelves.database), Towers(shelves.search_database)),
        popular=Popular(shelves.popularity),
        kept=KeptFeeds(shelves.database, shelves.feeds, shelves.impressions, shelves.news, shelves.timings, clock),
        performance=performance,
        weights=settings.feed,
        chance=chance or random.SystemRandom(),
        clock=clock,
    )
    serving = Serving(
        desk, shelves.releases, rack or ModelRack(ranker=settings.feed.ranker, threads=performance.threads)
    )
    pinned_key = settings.pinned_key
    syncing = Syncing(
        ReleaseSync(door, shelves.releases, clock, pinned_key),
        VectorSync(door, shelves.news, shelves.pulled_shards, shelves.releases, clock),
        FrontSync(door, shelves.front_page, shelves.news, shelves.releases, clock, performance.front_limit),
        PoolSync(
            door, shelves.pool, shelves.releases, clock, lambda news: keeps_pool(ledger.settings, performance, news)
        ),
        PopularitySync(door, shelves.popularity, shelves.releases, clock),
        shelves,
        bodies,
        serving,
        performance,
        clock,
    )
    views = LocalViews(
        stores={
            "reading": lambda: shelves.database.path,
            "searches": lambda: shelves.search_database.path if shelves.search_database.known() else None,
        },
        items=lambda encoder: desk.front.items(encoder),
        prepare=searched.refresh,
        processes=processes or SpawnedViews(),
        log=shelves.view_log,
        weakest_sigma=lambda: ledger.settings.weakest_view_sigma,
        clock=clock,
    )
    trainer = Trainer(
        release=lambda: current_release(shelves.releases),
        reading=Reading(
            shelves.clicks,
            shelves.impressions,
            shelves.news,
            half_life_hours=settings.feed.half_life_hours,
            counted=shelves.counted,
            muted=names.muted,
        ),
        database=shelves.database,
        outbox=shelves.outbox,
        participations=shelves.participations,
        ledger=ledger,
        uplink=uplink,
        trusted_key=lambda: (trusted := shelves.releases.trusted_key(pinned_key)) and trusted.public_key,
        materials=MaterialSync(door, shelves.releases.blobs).fetch,
        noise=noise,
        clock=clock,
        draw=draw,
        paused=lambda: bool(shelves.preferences.get(TRAINING_PAUSED)),
        idle_sec=performance.training_idle_sec,
        threads=performance.threads,
        views=views,
    )
    return Device(
        settings,
        Parts(
            shelves=shelves,
            uplink=uplink,
            ledger=ledger,
            serving=serving,
            bodies=bodies,
            syncing=syncing,
            stories=Stories(shelves, serving, bodies, searched, performance.bodies_wait_sec, clock),
            searched=searched,
            names=names,
            trainer=trainer,
            troubles=Troubles(clock),
            copies=copies,
            lock=lock,
            clock=clock,
        ),
    )


def _opened(
    settings: DeviceSettings, blob_folder: Path | None, clock: Callable[[], datetime]
) -> tuple[Shelves, Ledger, Copies]:
    """The store, the ledger, and the copies of the store; charged first if the store is a copy itself."""
    remedy_of = remedies(settings)
    for database in databases_of(settings):
        refuse_lost(database, remedy_of(database))
    shelves = Shelves(settings.database, blob_folder, remedy_of)
    try:
        begin(settings.database, clock())
        privacy = with_overrides(settings.privacy, shelves.preferences.get(PRIVACY_CHANGES) or {})
        ledger = Ledger(shelves.ledger_book, privacy, clock)
        make_up_for_copy(shelves.database, ledger)
        copies = Copies(databases_of(settings), lambda: Limits.of(ledger.settings), clock)
        copies.forget_drafts()
        copies.allow(Limits.of(privacy))
        copies.choose(shelves.preferences.rows())
    except BaseException:
        shelves.close()
        raise
    return shelves, ledger, copies
