"""The default list and the vector shards are requested alike by every reader's device."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import httpx
import numpy as np
import pytest

from device_app.errors import AnswerMalformed, BackendUnreachable, NoRelease, ReleaseRefused
from device_app.store.byte_log import ByteLog
from device_app.store.clicks import Clicks
from device_app.store.database import Database
from device_app.store.default_list import DefaultListStore, PulledShards
from device_app.store.news import NewsStore
from device_app.store.releases import InstalledReleases
from device_app.sync.default_list import DefaultListSync
from device_app.sync.encoder_takeover import EncoderTakeover, VectorSync
from device_app.sync.release_sync import ReleaseSync
from device_app.uplink.http import HttpClient
from protocol.news import NewsCard
from tests.unit.device_app.sync.conftest import FakeReleases

D = 8


@pytest.fixture
def default_list_sync(client: HttpClient, database: Database, now: datetime) -> DefaultListSync:
    return DefaultListSync(
        client, DefaultListStore(database), NewsStore(database), InstalledReleases(database), lambda: now
    )


def vector_sync(client: HttpClient, database: Database, now: datetime) -> VectorSync:
    return VectorSync(client, NewsStore(database), PulledShards(database), InstalledReleases(database), lambda: now)


def install(client: HttpClient, database: Database, now: datetime) -> None:
    ReleaseSync(client, InstalledReleases(database), lambda: now).refresh()


def test_list_is_stored_with_cards_and_vectors_and_requested_by_etag(
    default_list_sync: DefaultListSync,
    client: HttpClient,
    database: Database,
    backend: FakeReleases,
    now: datetime,
) -> None:
    with pytest.raises(NoRelease):
        default_list_sync.refresh()
    backend.publish("r1")
    install(client, database, now)
    answer = default_list_sync.refresh()
    assert answer is not None
    assert [card.id for card in answer.candidates] == ["A", "B"]
    mask, vectors = NewsStore(database).vectors(["B"], "enc-1")
    assert mask.all()
    np.testing.assert_allclose(vectors, np.eye(2, D)[1:], atol=1e-6)
    assert default_list_sync.refresh() is None
    backend.default_list_ids, backend.default_list_etag = ("B", "C"), "pool-2"
    assert default_list_sync.refresh() is not None
    kept = DefaultListStore(database).current()
    assert kept is not None
    assert (kept.news_ids, kept.etag) == (("B", "C"), "pool-2")
    urls = {row.url for row in ByteLog(database).entries().rows if "front" in row.url}
    whole = "http://backend.example/v1/news/front?limit=600"
    assert urls == {whole, f"{whole}&since=pool-1"}


def test_new_list_is_built_from_its_changes_and_stored_articles(
    default_list_sync: DefaultListSync, client: HttpClient, database: Database, backend: FakeReleases, now: datetime
) -> None:
    backend.publish("r1")
    install(client, database, now)
    default_list_sync.refresh()  # A, B
    backend.default_list_ids, backend.default_list_etag, backend.order = ("C",), "pool-2", (2, 1)
    changes = default_list_sync.refresh()
    assert changes is not None
    assert [card.id for card in changes.candidates] == ["C"]
    kept = DefaultListStore(database).current()
    assert kept is not None
    assert (kept.news_ids, kept.etag) == (("C", "B"), "pool-2")
    assert NewsStore(database).missing(["A", "B", "C"]) == []
    assert default_list_sync.refresh() is None
    assert backend.since == [None, "pool-1"]


@pytest.mark.parametrize(
    ("order", "encoder", "error"),
    [
        ((3, 0), "enc-1", "places 0 to 2, got 3"),
        ((0, 0), "enc-1", "lists an article twice"),
        ((0, 1), "enc-2", "changes of a list that this device doesn't have"),
    ],
)
def test_changes_that_do_not_match_the_stored_list_are_refused(
    default_list_sync: DefaultListSync,
    client: HttpClient,
    database: Database,
    backend: FakeReleases,
    now: datetime,
    order: tuple[int, ...],
    encoder: str,
    error: str,
) -> None:
    backend.publish("r1")
    install(client, database, now)
    default_list_sync.refresh()
    backend.default_list_ids, backend.default_list_etag = ("C",), "pool-2"
    backend.order, backend.list_encoder = order, encoder
    with pytest.raises(AnswerMalformed, match=error):
        default_list_sync.refresh()
    kept = DefaultListStore(database).current()
    assert kept is not None
    assert (kept.news_ids, kept.etag) == (("A", "B"), "pool-1")


def test_changes_before_any_list_are_refused(
    default_list_sync: DefaultListSync, client: HttpClient, database: Database, backend: FakeReleases, now: datetime
) -> None:
    backend.publish("r1")
    install(client, database, now)
    backend.order = (0, 1)
    with pytest.raises(AnswerMalformed, match="changes of a list that this device doesn't have"):
        default_list_sync.refresh()
    assert DefaultListStore(database).current() is None


def test_default_list_with_missing_cards_is_downloaded_again_in_full(
    default_list_sync: DefaultListSync,
    client: HttpClient,
    database: Database,
    backend: FakeReleases,
    now: datetime,
) -> None:
    backend.publish("r1")
    install(client, database, now)
    default_list_sync.refresh()
    with database.transaction():
        database.write("DELETE FROM news WHERE id = 'A'")
    assert default_list_sync.refresh() is not None
    assert NewsStore(database).missing(["A", "B"]) == []


def test_malformed_list_leaves_the_old_one(
    default_list_sync: DefaultListSync,
    client: HttpClient,
    database: Database,
    backend: FakeReleases,
    now: datetime,
) -> None:
    backend.publish("r1")
    install(client, database, now)
    default_list_sync.refresh()
    whole = backend.default_list()
    for spoiled in (whole.model_copy(update={"candidates": whole.candidates[:1]}), None):
        body = b"[]" if spoiled is None else spoiled.model_dump_json().encode()
        backend.spoiled = {"/v1/news/front": body}
        with pytest.raises(AnswerMalformed):
            default_list_sync.refresh()
    kept = DefaultListStore(database).current()
    assert kept is not None
    assert kept.news_ids == ("A", "B")


def to_new_encoder(client: HttpClient, database: Database, backend: FakeReleases, now: datetime) -> np.ndarray:
    """Sync a release with enc-1, then one with enc-2 and two shards of four articles."""
    backend.publish("r1")
    install(client, database, now)
    assert vector_sync(client, database, now).refresh() == 0
    vectors = np.random.default_rng(1).standard_normal((4, D)).astype(np.float32)
    backend.add_shard("2026-11-19.0", ["A", "B"], vectors[:2])
    backend.add_shard("2026-11-20.0", ["C", "D"], vectors[2:])
    backend.publish("r2", encoder="enc-2")
    install(client, database, now)
    backend.asked.clear()
    return vectors


def store_articles(database: Database, ids: list[str], now: datetime) -> None:
    cards = [
        NewsCard.model_validate(
            {
                "id": one,
                "title": one,
                "abstract": "",
                "url": "u",
                "publisher": "p",
                "section": "s",
                "topic": "t",
                "published_at": now,
                "weight": 0.1,
            }
        )
        for one in ids
    ]
    NewsStore(database).put(cards, np.ones((len(ids), D), np.float32), "enc-1", now)


def test_new_encoder_pulls_every_shard_once_for_stored_articles(
    client: HttpClient,
    database: Database,
    backend: FakeReleases,
    now: datetime,
) -> None:
    store_articles(database, ["A", "C"], now)
    vectors = to_new_encoder(client, database, backend, now)
    assert vector_sync(client, database, now).refresh() == 2
    mask, found = NewsStore(database).vectors(["A", "B", "C"], "enc-2")
    assert mask.tolist() == [True, False, True]
    np.testing.assert_allclose(found[[0, 2]], vectors[[0, 2]], atol=np.abs(vectors).max() / 127)
    assert not NewsStore(database).vectors(["A"], "enc-1")[0].any()
    backend.asked.clear()
    assert vector_sync(client, database, now).refresh() == 0
    assert backend.asked == []


def test_vector_requests_do_not_depend_on_clicks(
    tmp_path: Path,
    migrated: Path,
    backend: FakeReleases,
    now: datetime,
) -> None:
    import shutil

    seen: list[list[tuple[bytes, bytes]]] = []
    for reader, clicked in enumerate(([], ["A"], ["C", "D"])):
        home = tmp_path / str(reader)
        home.mkdir()
        database = Database(Path(shutil.copy(migrated, home / "device.sqlite")))
        client = HttpClient("http://backend.example", ByteLog(database), lambda: now, httpx.MockTransport(backend))
        store_articles(database, clicked, now)
        for news_id in clicked:
            Clicks(database).add(news_id, "f", now)
        to_new_encoder(client, database, backend, now)
        vector_sync(client, database, now).refresh()
        seen.append([(row.head, row.body) for row in ByteLog(database).entries().rows])
        client.close()
        database.close()
    assert seen[0] == seen[1] == seen[2]
    assert len(seen[0]) > 5


def test_interrupted_pull_resumes(
    client: HttpClient,
    database: Database,
    backend: FakeReleases,
    now: datetime,
) -> None:
    store_articles(database, ["A", "C"], now)
    to_new_encoder(client, database, backend, now)
    backend.down = {"/v1/releases/2/vectors/2026-11-20.0"}
    with pytest.raises(BackendUnreachable):
        vector_sync(client, database, now).refresh()
    backend.down = set()
    assert vector_sync(client, database, now).refresh() == 1
    assert NewsStore(database).vectors(["A", "C"], "enc-2")[0].all()


def test_new_encoder_is_used_once_its_vectors_arrived_or_the_download_failed(
    client: HttpClient,
    database: Database,
    backend: FakeReleases,
    now: datetime,
) -> None:
    store_articles(database, ["A", "C"], now)
    to_new_encoder(client, database, backend, now)
    in_use: list[list[bool]] = []

    def swap() -> None:
        release = InstalledReleases(database).current()
        assert release is not None
        in_use.append(NewsStore(database).vectors(["A", "C"], release.manifest.encoder)[0].tolist())

    def takeover() -> EncoderTakeover:
        releases = ReleaseSync(client, InstalledReleases(database), lambda: now)
        return EncoderTakeover(releases, vector_sync(client, database, now), swap)

    backend.publish("r3", encoder="enc-2")
    backend.down = {"/v1/releases/3/vectors/2026-11-20.0"}
    with pytest.raises(BackendUnreachable):
        takeover().step()
    assert in_use == [[True, False]], "the release is used, with the vectors that came"
    backend.down = set()
    assert not takeover().step()
    assert NewsStore(database).vectors(["A", "C"], "enc-2")[0].all(), "and the rest follows"
    backend.publish("r4", encoder="enc-3")
    backend.shards_encoder = "enc-3"
    assert takeover().step()
    assert in_use[1:] == [[True, True]]


def test_shard_that_does_not_match_its_declaration_is_refused(
    client: HttpClient,
    database: Database,
    backend: FakeReleases,
    now: datetime,
) -> None:
    store_articles(database, ["A", "C"], now)
    to_new_encoder(client, database, backend, now)
    path = "/v1/releases/2/vectors/2026-11-19.0"
    whole = backend.shards["2026-11-19.0"][1]
    backend.spoiled = {path: whole[:-1] + bytes([whole[-1] ^ 1])}
    with pytest.raises(ReleaseRefused, match="its hash differs from the declared one"):
        vector_sync(client, database, now).refresh()
    backend.spoiled = {f"{path}/ids": b'["A"]'}
    with pytest.raises(AnswerMalformed, match="1 ids for 2 vectors"):
        vector_sync(client, database, now).refresh()
    backend.spoiled = {f"{path}/ids": b'{"A": 1}'}
    with pytest.raises(AnswerMalformed, match="not a list of news ids"):
        vector_sync(client, database, now).refresh()
    assert not NewsStore(database).vectors(["A"], "enc-2")[0].any()
    assert NewsStore(database).vectors(["A"], "enc-1")[0].all()
