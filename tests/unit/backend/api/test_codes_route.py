"""The pool's codes over the real server in process: what a device decodes from them, and what a change costs."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.typing import NDArray

from backend.db.advisory_lock import awaited_lock
from backend.errors import CatalogueBehind
from backend.news.ingest import ingest
from backend.popularity.estimate import log_popularity
from backend.recall import pool_codes
from backend.recall import pool_codes as pool_book
from backend.recall.catalogue import LiveCatalogue
from backend.recall.pool_codes import decode, encode, train_book
from backend.recall.stored_vectors import StoredVectors
from backend.releases.blobs import digest
from backend.storage.object_store import LocalFolder
from protocol.broadcast import PoolCodes, etag_of_codes, unpack_book, unpack_cards, unpack_codes, unpack_priors
from tests.doubles.recall_app import Running, running_server
from tests.doubles.recall_world import ENCODER, clustered_vectors, items, publish, settings_in


@pytest.fixture(autouse=True)
def _a_slow_machine_has_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_codes, "MADE_WITHIN_SEC", 120)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running_server(tmp_path_factory.mktemp("codes"), news=700, pool_poll_sec=3_600) as started:
        yield started


def listing(server: Running) -> PoolCodes:
    answer = server.client.get("/v1/releases/1/codes")
    assert answer.status_code == 200, answer.text
    assert answer.headers["etag"] == f'"{etag_of_codes(answer.content)}"'
    return PoolCodes.model_validate_json(answer.content)


def blob(server: Running, sha256: str) -> bytes:
    answer = server.client.get(f"/v1/blobs/{sha256}")
    assert answer.status_code == 200
    return answer.content


def test_device_decodes_the_pool_with_cards_and_priors(server: Running) -> None:
    found, catalogue = listing(server), server.services.live.current
    assert (found.count, found.encoder, found.version) == (len(catalogue), ENCODER, catalogue.pool_version)
    book = unpack_book(blob(server, found.book.sha256), found.subspaces, catalogue.vectors.shape[1])
    priors = unpack_priors(blob(server, found.priors.sha256), found.count)
    row_of = {news_id: row for row, news_id in enumerate(catalogue.ids)}
    popular = log_popularity(catalogue.published_at, catalogue.weights, catalogue.built_at)
    rows = []
    for shard in found.shards:
        cards = unpack_cards(blob(server, shard.cards.sha256), shard.count)
        codes = unpack_codes(blob(server, shard.codes.sha256), shard.count, found.subspaces)
        mine = [row_of[card.id] for card in cards]
        assert {card.published_at.date().isoformat() for card in cards} == {shard.name.split(".")[0]}
        cosines = (decode(codes, book) * catalogue.vectors[mine]).sum(axis=1)
        assert cosines.mean() > 0.8
        rows += mine
    assert sorted(rows) == list(range(len(catalogue)))
    np.testing.assert_allclose(priors, popular[rows], atol=0.01)  # float16


def test_unchanged_listing_answers_304_without_a_body(server: Running) -> None:
    etag = server.client.get("/v1/releases/1/codes").headers["etag"]
    again = server.client.get("/v1/releases/1/codes", headers={"if-none-match": etag})
    assert (again.status_code, again.content) == (304, b"")


def test_request_for_codes_of_an_unknown_release_is_answered_with_a_problem_naming_the_field(server: Running) -> None:
    answer = server.client.get("/v1/releases/15/codes")
    assert answer.status_code == 404
    assert answer.json()["field"] == "release"


def test_new_story_changes_only_its_own_day(tmp_path: Path) -> None:
    with running_server(tmp_path, news=700, pool_poll_sec=3_600) as server:
        before = listing(server)
        old_blobs = {ref.sha256 for shard in before.shards for ref in (shard.codes, shard.cards)}
        newest = items(1, now=datetime.now(UTC), first=5_000)
        ingest(server.services.pool, newest, source="test")
        server.services.pool.store_vectors(ENCODER, [newest[0].id], clustered_vectors(1, seed=77))
        server.services.updater.step()
        after = listing(server)
        assert after.count == before.count + 1
        assert after.book == before.book
        changed = [shard for shard in after.shards if shard.codes.sha256 not in old_blobs]
        assert [shard.name.split(".")[0] for shard in changed] == [newest[0].published_at.date().isoformat()]
        assert blob(server, before.shards[0].codes.sha256)  # a device that is half through goes on


def test_codebook_survives_a_restart(tmp_path: Path) -> None:
    with running_server(tmp_path, news=700) as server:
        before = listing(server)
    publish(settings_in(tmp_path), seed=9)
    with running_server(tmp_path, news=0, releases=0) as server:
        assert listing(server).book == before.book


def test_codebook_is_kept_after_small_changes_of_the_vectors_but_not_after_a_rotation(tmp_path: Path) -> None:
    with running_server(tmp_path, news=700, pool_poll_sec=3_600) as server:
        before, catalogue = listing(server), server.services.live.current
        rng = np.random.default_rng(4)
        stepped = catalogue.vectors[:] + rng.normal(scale=0.02, size=catalogue.vectors.shape) / 16
        other = catalogue.vectors[:] @ np.linalg.qr(rng.normal(size=(catalogue.vectors.shape[1],) * 2))[0]
        # The oracle of "still fits" is a book trained on these very vectors.
        own = train_book(stepped.astype(np.float32), before.subspaces)
        live = LiveCatalogue(
            replace(catalogue, vectors=StoredVectors.of(stepped.astype(np.float32)), encoder="stepped")
        )
        store = pool_codes.PoolCodeStore(live, server.services.storage.under("index"))
        found = PoolCodes.model_validate_json(store.listing("r2")[0])
        assert (found.book, found.encoder) == (before.book, "stepped")
        # A day of two stories may keep its codes under so small a step; how many the first has hangs on the hour.
        assert [day.codes for day in found.shards] != [day.codes for day in before.shards], "codes are made again"
        assert [day.cards for day in found.shards] == [day.cards for day in before.shards], "and cards are not"
        book = unpack_book(blob(server, found.book.sha256), found.subspaces, catalogue.vectors.shape[1])
        errors = [
            np.square(stepped - decode(encode(stepped.astype(np.float32), one), one)).sum() for one in (book, own)
        ]
        assert errors[0] < 1.1 * errors[1]
        live.swap(replace(catalogue, vectors=other.astype(np.float32), encoder="other"))
        assert PoolCodes.model_validate_json(store.listing("r3")[0]).book != before.book


def test_lock_is_taken_only_while_a_codebook_is_trained(server: Running, tmp_path: Path) -> None:
    turns: list[str] = []

    @contextmanager
    def turn() -> Iterator[None]:
        turns.append("taken")
        yield

    live = LiveCatalogue(server.services.live.current)
    store = pool_codes.PoolCodeStore(live, LocalFolder(tmp_path), turn)
    first = PoolCodes.model_validate_json(store.listing("r1")[0])
    assert turns == ["taken"]
    live.swap(replace(live.current, pool_version=live.current.pool_version + 1))
    second = PoolCodes.model_validate_json(store.listing("r1")[0])
    assert (second.version, second.book) == (live.current.pool_version, first.book)
    assert turns == ["taken"]


def test_codebook_of_a_small_pool_encodes_it_without_loss() -> None:
    vectors = clustered_vectors(200)
    book = train_book(vectors, 32)
    np.testing.assert_array_equal(decode(encode(vectors, book), book), vectors)


def test_codes_name_the_nearest_centroid_of_every_subspace() -> None:
    vectors = clustered_vectors(1_000)
    book = train_book(vectors, 16)
    parts = vectors.reshape(1_000, 16, 16)
    distances = ((parts[:, :, None, :] - book[None]) ** 2).sum(axis=3)  # brute force [n, M, 256]
    chosen = np.take_along_axis(distances, encode(vectors, book)[:, :, None].astype(np.int64), axis=2)[:, :, 0]
    np.testing.assert_allclose(chosen, distances.min(axis=2), atol=1e-6)


def test_indivisible_subspaces_are_refused() -> None:
    with pytest.raises(ValueError, match="7 subspaces do not divide 256"):
        train_book(clustered_vectors(300), 7)


def test_requests_give_up_after_a_short_wait_while_codes_are_made(
    server: Running, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    may_end = threading.Event()
    monkeypatch.setattr(pool_codes, "MADE_WITHIN_SEC", 0.05)
    monkeypatch.setattr(pool_book, "train_book", lambda *about: (may_end.wait(30), train_book(*about))[1])
    live = LiveCatalogue(server.services.live.current)
    store = pool_codes.PoolCodeStore(live, LocalFolder(tmp_path))
    for _ in range(2):
        with pytest.raises(CatalogueBehind, match="r1"):
            store.listing("r1")
    may_end.set()
    monkeypatch.setattr(pool_codes, "MADE_WITHIN_SEC", 30)
    first, _ = store.listing("r1")
    monkeypatch.setattr(pool_codes, "MADE_WITHIN_SEC", 0.05)
    may_go_on = threading.Event()
    monkeypatch.setattr(pool_codes, "encode", lambda *about: (may_go_on.wait(30), encode(*about))[1])
    live.swap(replace(live.current, pool_version=live.current.pool_version + 1))
    assert store.listing("r1")[0] == first, "the listing before serves while the next is made"
    may_go_on.set()
    monkeypatch.setattr(pool_codes, "MADE_WITHIN_SEC", 30)
    assert PoolCodes.model_validate_json(store.listing("r1")[0]).version == live.current.pool_version


def test_only_a_few_requests_wait_for_codes_being_made(
    server: Running, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    may_end, begun = threading.Event(), threading.Semaphore(0)
    monkeypatch.setattr(pool_codes, "MADE_WITHIN_SEC", 3_600)  # whoever waits, waits for the codes
    monkeypatch.setattr(pool_book, "train_book", lambda *about: (may_end.wait(), train_book(*about))[1])

    class WatchedFuture(Future[None]):
        def result(self, timeout: float | None = None) -> None:
            begun.release()
            super().result(timeout)

    monkeypatch.setattr(pool_codes, "Future", WatchedFuture)
    store = pool_codes.PoolCodeStore(LiveCatalogue(server.services.live.current), LocalFolder(tmp_path))
    with ThreadPoolExecutor(pool_codes.WAITING_LIMIT) as threads:
        waiting = [threads.submit(store.listing, "r1") for _ in range(pool_codes.WAITING_LIMIT)]
        for _ in waiting:
            begun.acquire()
        for _ in range(20):
            with pytest.raises(CatalogueBehind, match="r1"):
                store.listing("r1")
        assert not any(each.done() for each in waiting)
        may_end.set()
    assert {each.result() for each in waiting} == {store.listing("r1")}


def test_failed_codes_are_retried(server: Running, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    store = pool_codes.PoolCodeStore(LiveCatalogue(server.services.live.current), LocalFolder(tmp_path))
    monkeypatch.setattr(pool_book, "train_book", lambda *about: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        store.listing("r1")
    monkeypatch.setattr(pool_book, "train_book", train_book)
    assert PoolCodes.model_validate_json(store.listing("r1")[0]).release == "r1"


def test_blobs_listed_by_one_process_are_served_by_another(server: Running, tmp_path: Path) -> None:
    """Regression: priors date from the moment in which a process built its catalogue, so no other process had them."""
    catalogue = server.services.live.current
    one, other = (
        pool_codes.PoolCodeStore(LiveCatalogue(replace(catalogue, log_popularity=priors)), LocalFolder(tmp_path))
        for priors in (catalogue.log_popularity, catalogue.log_popularity + np.float32(1))
    )
    found = PoolCodes.model_validate_json(one.listing("r1")[0])
    assert PoolCodes.model_validate_json(other.listing("r1")[0]).priors != found.priors
    assert other.by_hash(found.priors.sha256) is None
    for ref in (found.book, found.priors, *(each for shard in found.shards for each in (shard.codes, shard.cards))):
        assert other.of_another(ref.sha256) == one.by_hash(ref.sha256)
    assert other.of_another("0" * 64) is None


def test_old_listing_stays_complete_at_a_newly_started_process(
    server: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class ImmediateThread(threading.Thread):
        def start(self) -> None:
            self.run()

    clock = [time.time()]
    monkeypatch.setattr(pool_codes, "time", SimpleNamespace(time=lambda: clock[0], monotonic=lambda: clock[0]))
    monkeypatch.setattr(pool_codes, "Thread", ImmediateThread)
    catalogue = server.services.live.current
    one, other = (
        pool_codes.PoolCodeStore(LiveCatalogue(replace(catalogue, log_popularity=priors)), LocalFolder(tmp_path))
        for priors in (catalogue.log_popularity, catalogue.log_popularity + np.float32(1))
    )
    found = PoolCodes.model_validate_json(one.listing("r1")[0])
    folder, left = tmp_path / pool_codes.SHARED_FOLDER, b"of no listing any more"
    (folder / digest(left)).write_bytes(left)
    for path in folder.iterdir():
        os.utime(path, (clock[0] - 2 * pool_codes.SHARED_SEC,) * 2)  # as if it had been listed long ago
    clock[0] += pool_codes.SHARED_SEC / 2
    one.listing("r1")
    other.listing("r1")
    assert other.of_another(found.priors.sha256) == one.by_hash(found.priors.sha256)
    assert other.of_another(digest(left)) is None


def test_two_starting_processes_train_one_quantizer(
    server: Running, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Regression: each process trained its own quantizer, and a device using both downloaded every part twice."""
    both, trained = threading.Barrier(2), list[int]()

    def train(vectors: NDArray[np.float32], subspaces: int) -> NDArray[np.float32]:
        trained.append(len(vectors))
        with suppress(threading.BrokenBarrierError):
            both.wait(0.5)  # where both train, they do it at the same time
        return train_book(vectors[len(trained) :], subspaces)

    monkeypatch.setattr(pool_book, "train_book", train)
    monkeypatch.setattr(pool_codes, "MADE_WITHIN_SEC", 3_600)
    live, engine = LiveCatalogue(server.services.live.current), server.services.engine
    stores = [
        pool_codes.PoolCodeStore(live, LocalFolder(tmp_path), partial(awaited_lock, engine, pool_codes.TRAINING))
        for _ in range(2)
    ]
    with ThreadPoolExecutor(2) as threads:
        first, second = threads.map(lambda store: store.listing("r1"), stores)
    assert first == second
    assert len(trained) == 1
