"""The pool's codes are downloaded by whole days, depend on settings alone, and are never stored in part."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any

import numpy as np
import pytest

from device_app.errors import AnswerMalformed, BackendRefused, BackendUnreachable, NoRelease, ReleaseRefused
from device_app.reports.policy import ReportPolicy
from device_app.settings import PerformanceSettings, PrivacySettings
from device_app.store.database import Database
from device_app.store.pool_codes import BLOCK, PoolStore
from device_app.store.releases import InstalledReleases
from device_app.sync.pool_codes import PoolSync
from device_app.sync.release_sync import ReleaseSync
from device_app.uplink.http import Answer, HttpClient
from protocol.broadcast import CodeShard, PoolCodes, pack_book, pack_cards, pack_codes, pack_priors
from protocol.ids import Problem
from protocol.news import NewsCard
from protocol.releases import RecallProtocol
from tests.unit.device_app.sync.conftest import FakeReleases

D, M = 8, 4
PROTOCOL = RecallProtocol(
    basis_size=4, channels_limit=5, cluster_distance=1, score_clip=0.2, score_noise=1.2, pool_codes=True
)
LISTING = "/v1/releases/1/codes"


def card(news_id: str, now: datetime) -> NewsCard:
    return NewsCard(
        id=news_id, title=news_id, abstract="", url="", publisher="", section="", topic="", published_at=now, weight=0.0
    )


class PoolOfDays:
    """A pool of days, served by the fake backend."""

    def __init__(self, backend: FakeReleases, now: datetime) -> None:
        self.backend, self.now = backend, now
        self.days: dict[str, list[str]] = {}
        backend.publish("r1", recall=PROTOCOL)

    def serve(self, version: int = 1, **changes: object) -> PoolCodes:
        shards = tuple(
            CodeShard(
                name=name,
                count=len(ids),
                codes=self.backend.blob(pack_codes(np.full((len(ids), M), int(name[8:10]), np.uint8))),
                cards=self.backend.blob(pack_cards(card(one, self.now).model_dump_json().encode() for one in ids)),
            )
            for name, ids in self.days.items()
        )
        count = sum(map(len, self.days.values()))
        values: dict[str, Any] = {
            "release": "r1", "version": version, "encoder": "enc-1", "subspaces": M, "sharpness": 5.0, "shards": shards,
            "book": self.backend.blob(pack_book(np.ones((M, 256, D // M), np.float32))),
            "priors": self.backend.blob(pack_priors(np.full(count, version, dtype=np.float32))),
        }  # fmt: skip
        listing = PoolCodes(**(values | changes))
        self.backend.spoiled[LISTING] = listing.model_dump_json().encode()
        return listing


@pytest.fixture
def pool(backend: FakeReleases, now: datetime, client: HttpClient, database: Database) -> PoolOfDays:
    made = PoolOfDays(backend, now)
    made.days = {"2026-11-19.0": ["A", "B"], "2026-11-20.0": ["C"]}
    ReleaseSync(client, InstalledReleases(database), lambda: now).refresh()
    return made


def sync(
    client: HttpClient, database: Database, now: datetime, wanted: Callable[[int], bool] = lambda _: True
) -> PoolSync:
    return PoolSync(client, PoolStore(database), InstalledReleases(database), lambda: now, wanted)


def of_release(pool: PoolOfDays) -> int:
    """Return the sizes of the release's own blobs: its one graph and its one set of weights."""
    assert pool.backend.signed is not None
    manifest = json.loads(pool.backend.signed.manifest)
    entry = manifest["models"]["recall"]
    return int(entry["graphs"]["context"]["size_bytes"] + entry["weights"]["size_bytes"])


def test_without_a_release_no_pool_is_pulled(client: HttpClient, database: Database, now: datetime) -> None:
    with pytest.raises(NoRelease):
        sync(client, database, now).refresh()


def test_pool_is_pulled_whole_and_later_only_changed_days(
    pool: PoolOfDays, client: HttpClient, database: Database, now: datetime
) -> None:
    pool.serve()
    puller, store = sync(client, database, now), PoolStore(database)
    assert puller.refresh() == 2 + 2 * 2
    kept = store.current()
    assert kept is not None
    assert kept.listing.count == 3
    blobs = {path for path in pool.backend.asked if path.startswith("/v1/blobs/")}
    pulled = sum(len(pool.backend.blobs[path.rsplit("/", 1)[1]]) for path in blobs) - of_release(pool)
    assert kept.pulled_bytes == pulled + len(pool.backend.spoiled[LISTING])
    names = [shard.cards.sha256 for shard in kept.listing.shards]
    assert [one.id for one in store.cards([(names[1], 0), (names[0], 1), (names[0], 0)])] == ["C", "B", "A"]
    pool.days["2026-11-21.0"] = ["D", "E"]
    del pool.days["2026-11-19.0"]
    pool.serve(version=2)
    before = len(pool.backend.asked)
    assert puller.refresh() == 1 + 2, "the priors and the new day; the book and the old day are here"
    asked = pool.backend.asked[before:]
    assert asked[0] == LISTING
    assert all(path.startswith("/v1/blobs/") for path in asked[1:])
    assert store.cards([(names[0], 0)]) == [], "a day that is gone leaves the disk"
    renewed = PoolStore(database).current()
    assert renewed is not None
    assert "D" in {one.id for one in store.cards([(shard.cards.sha256, 0) for shard in renewed.listing.shards])}


def test_articles_encoded_again_by_another_encoder_come_without_cards(
    pool: PoolOfDays, client: HttpClient, database: Database, now: datetime
) -> None:
    listed = pool.serve()
    puller, store = sync(client, database, now), PoolStore(database)
    puller.refresh()
    shards = tuple(
        shard.model_copy(update={"codes": pool.backend.blob(pack_codes(np.full((shard.count, M), 77, np.uint8)))})
        for shard in listed.shards
    )
    pool.serve(version=2, shards=shards)
    before = len(pool.backend.asked)
    assert puller.refresh() == 1 + 2, "the priors, and the codes of two days"
    asked = {path.rsplit("/", 1)[1] for path in pool.backend.asked[before:] if path.startswith("/v1/blobs/")}
    assert asked.isdisjoint({shard.cards.sha256 for shard in shards})
    kept = store.current()
    assert kept is not None
    assert all(store.part(shard.codes.sha256) is not None for shard in kept.listing.shards)
    assert [one.id for one in store.cards([(shards[0].cards.sha256, 1)])] == ["B"]


def test_etag_of_a_listing_is_its_hash_and_an_unchanged_one_is_not_downloaded(
    pool: PoolOfDays, client: HttpClient, database: Database, now: datetime
) -> None:
    from hashlib import sha256

    pool.serve()
    puller = sync(client, database, now)
    puller.refresh()
    entry = puller  # the request is looked at in the byte log, to the byte
    assert entry.refresh() == 0
    row = database.row("SELECT head FROM traffic ORDER BY id DESC LIMIT 1")
    assert row is not None
    digest = sha256(pool.backend.spoiled[LISTING]).hexdigest()
    assert f'if-none-match: "{digest}"'.encode() in row[0].lower()


def test_pool_requests_do_not_depend_on_clicks(
    pool: PoolOfDays, client: HttpClient, database: Database, now: datetime
) -> None:
    from device_app.store.clicks import Clicks

    pool.serve()
    Clicks(database).add("C", None, now)
    sync(client, database, now).refresh()
    assert len(pool.backend.asked) == len(set(pool.backend.asked))
    every = {shard.cards.sha256 for shard in PoolStore(database).current().listing.shards}  # type: ignore[union-attr]
    assert {path.rsplit("/", 1)[1] for path in pool.backend.asked} >= every


def test_interrupted_pull_resumes_and_the_old_pool_stays_until_then(
    pool: PoolOfDays, client: HttpClient, database: Database, now: datetime
) -> None:
    pool.serve()
    puller, store = sync(client, database, now), PoolStore(database)
    puller.refresh()
    pool.days["2026-11-21.0"], pool.days["2026-11-22.0"] = ["D"], ["E"]
    listing = pool.serve(version=2)
    pool.backend.down.add(f"/v1/blobs/{listing.shards[-1].cards.sha256}")
    with pytest.raises(BackendUnreachable):
        puller.refresh()
    kept = store.current()
    assert kept is not None
    assert kept.listing.version == 1
    pool.backend.down.clear()
    before = len(pool.backend.asked)
    assert puller.refresh() == 2
    assert len(pool.backend.asked) == before + 1 + 2
    assert PoolStore(database).current().listing.version == 2  # type: ignore[union-attr]


def test_blob_that_does_not_match_its_declaration_is_refused(
    pool: PoolOfDays, client: HttpClient, database: Database, now: datetime
) -> None:
    listing = pool.serve()
    shard = listing.shards[0]
    pool.backend.spoiled[f"/v1/blobs/{shard.codes.sha256}"] = bytes(shard.codes.size_bytes)
    with pytest.raises(ReleaseRefused, match="its hash differs from the declared one"):
        sync(client, database, now).refresh()
    pool.backend.spoiled.pop(f"/v1/blobs/{shard.codes.sha256}")
    pool.serve(shards=(shard.model_copy(update={"count": 1}), *listing.shards[1:]))
    with pytest.raises(AnswerMalformed, match="pool codes"):
        sync(client, database, now).refresh()
    pool.serve(encoder="enc-9")
    with pytest.raises(AnswerMalformed, match="enc-9"):
        sync(client, database, now).refresh()
    assert PoolStore(database).current() is None
    assert database.number("SELECT count(*) FROM pool_card") == 0


def test_pool_copy_is_deleted_when_it_is_no_longer_wanted(
    pool: PoolOfDays, client: HttpClient, database: Database, now: datetime
) -> None:
    pool.serve()
    sync(client, database, now).refresh()
    pool.serve(version=2)
    sync(client, database, now, lambda news: news <= 2).refresh()
    assert PoolStore(database).current() is None
    sync(client, database, now).refresh()
    assert PoolStore(database).current() is not None
    sync(client, database, now, lambda _: False).refresh()
    assert PoolStore(database).current() is None
    assert database.number("SELECT count(*) FROM pool_part") + database.number("SELECT count(*) FROM pool_card") == 0
    before = len(pool.backend.asked)
    sync(client, database, now, lambda _: False).refresh()
    assert len(pool.backend.asked) == before


def test_keeping_a_pool_copy_depends_only_on_settings() -> None:
    def keeps(mode: str, news: int, limit: int = 50_000) -> bool:
        return ReportPolicy(PrivacySettings(mode=mode)).keeps_pool(PerformanceSettings(pool_limit=limit), news)

    assert [keeps("code", 50_000), keeps("code", 50_001), keeps("code", 0, limit=0)] == [True, False, False]
    assert keeps("broadcast", 10**6, limit=0)
    assert not keeps("none", 1)


def test_text_blocks_have_the_same_boundaries_on_every_device(
    pool: PoolOfDays, client: HttpClient, database: Database, now: datetime
) -> None:
    ids = [f"N{at:03d}" for at in range(250)]
    pool.days = {"2026-11-20.0": ids[::2], "2026-11-21.0": ids[1:200:2], "2026-11-22.0": [*ids[201::2], *ids[:100:5]]}
    pool.serve()
    sync(client, database, now).refresh()
    store = PoolStore(database)
    assert BLOCK == 100
    first, second, last = store.block("N007"), store.block("N100"), store.block("N249")
    assert first is not None
    assert second is not None
    assert last is not None
    assert first.ids == tuple(ids[:100]), "whichever day they are of, and each once"
    assert second.ids == last.ids == tuple(ids[100:]), "what is left at the end belongs to the last whole one"


def test_pool_smaller_than_a_text_block_has_no_blocks(
    pool: PoolOfDays, client: HttpClient, database: Database, now: datetime
) -> None:
    pool.days = {"2026-11-20.0": [f"N{at:03d}" for at in range(99)], "2026-11-21.0": ["N000", "N001"]}
    pool.serve()
    sync(client, database, now).refresh()
    assert PoolStore(database).block("N007") is None


def test_codes_that_the_server_still_prepares_are_not_an_error(
    pool: PoolOfDays, client: HttpClient, database: Database, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool.serve()
    puller, answered, status = sync(client, database, now), client.get, 503

    def refusing(path: str, **about: object) -> Answer:
        if path == LISTING:
            raise BackendRefused(Problem(type="about:blank", title="Not now", status=status, detail="being made"))
        return answered(path, **about)  # type: ignore[arg-type]

    monkeypatch.setattr(client, "get", refusing)
    assert puller.refresh() == 0
    status = 410
    with pytest.raises(BackendRefused):
        puller.refresh()
    monkeypatch.setattr(client, "get", answered)
    assert puller.refresh() == 6


@pytest.mark.parametrize("part", ["cards", "codes", "priors", "book"])
def test_later_listing_that_contradicts_stored_blobs_is_refused(
    pool: PoolOfDays, client: HttpClient, database: Database, now: datetime, part: str
) -> None:
    """The attack: a later listing names the same blobs and more articles in them.

    A device that searched near the rows that aren't there found the pool damaged and downloaded it again, which
    revealed to the server where that reader's vector is.
    """
    first = pool.serve()
    puller, store = sync(client, database, now), PoolStore(database)
    puller.refresh()
    ids = ["A", "B", "X"]
    pool.days["2026-11-19.0"] = ids
    honest = pool.serve(version=2)
    if part in ("book", "priors"):
        again = {"subspaces": 2 * M} if part == "book" else {"priors": first.priors}
        pool.serve(version=2, **again)
    else:
        old, new = first.shards[0], honest.shards[0]
        shard = new.model_copy(update={part: getattr(old, part)})
        pool.serve(version=2, shards=(shard, *honest.shards[1:]))
    with pytest.raises(AnswerMalformed):
        puller.refresh()
    kept = store.current()
    assert kept is not None
    assert kept.listing == first
