"""The catalogue's bytes against pydantic's, the service against a slow restatement, and swaps while serving."""

from __future__ import annotations

import json
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from backend.db.engine import open_engine, writing_session
from backend.db.tables import ReleaseRow
from backend.errors import CatalogueBehind, ReleaseNotAnswered, ReleaseRetired
from backend.news.pool import NewsPool
from backend.popularity.estimate import SHARPNESS, log_popularity
from backend.recall.catalogue import Catalogue, LiveCatalogue, build_catalogue
from backend.recall.decode import aggregate
from backend.recall.encoder_takeover import release_for_devices
from backend.recall.indexes.selection import IndexRules
from backend.recall.merge import MERGES, merge
from backend.recall.served_releases import ServedReleases
from backend.recall.service import RecallService, VectorRules
from backend.releases.errors import NothingPublished
from backend.releases.store import ReleaseStore
from backend.settings import BackendSettings
from protocol.ids import short_release
from protocol.news import NewsCard
from protocol.recall import RecallAnswer, RecallRequest
from protocol.releases import ReleaseManifest
from protocol.server_timing import SERVER_STAGES, Stopwatch
from protocol.tensors import TensorSpec, dequantise, pack, quantise, unpack
from tests.doubles.recall_world import (
    DIMENSIONS,
    ENCODER,
    clustered_vectors,
    fill,
    indexes_in,
    items,
    publish,
    report,
    settings_in,
)


@pytest.fixture
def settings(tmp_path: Path) -> BackendSettings:
    return settings_in(tmp_path)


@pytest.fixture
def pool(settings: BackendSettings) -> NewsPool:
    fill(settings, 300)
    return NewsPool(open_engine(settings.database_url))


def build(pool: NewsPool, settings: BackendSettings, previous: Catalogue | None = None, **rules: Any) -> Catalogue:
    return build_catalogue(
        pool,
        ENCODER,
        datetime.now(UTC),
        indexes_in(settings),
        rules=IndexRules(**rules),
        previous=previous,
    )


def recall_service(
    settings: BackendSettings, catalogue: Catalogue, answered_releases: int = 5
) -> tuple[RecallService, ServedReleases]:
    store = ReleaseStore.open(open_engine(settings.database_url), settings)
    served = ServedReleases(store, answered=answered_releases)
    served.refresh()
    return RecallService(served, LiveCatalogue(catalogue)), served


def request(release: str = "r1", limit: int = 100, **kind: object) -> RecallRequest:
    return RecallRequest.model_validate({"release": short_release(release), "limit": limit, "report": kind or report()})


def test_encoded_answer_equals_the_slowly_built_one(pool: NewsPool, settings: BackendSettings) -> None:
    catalogue = build(pool, settings)
    rows = [5, 0, 299, 17]
    live = {row.id: row for row in pool.live(datetime.now(UTC))}
    cards = []
    for row in rows:
        source = live[catalogue.ids[row]]
        fields = {name: getattr(source, name) for name in NewsCard.model_fields}
        cards.append(NewsCard(**fields))
    slow = RecallAnswer(
        release="r1", encoder=ENCODER, candidates=tuple(cards), vectors=pack(quantise(catalogue.vectors[rows]))
    )
    quick = catalogue.encode(rows, "r1")
    assert RecallAnswer.model_validate_json(quick) == slow
    assert quick == slow.model_dump_json().encode()


def test_sent_vectors_are_within_half_a_step_of_the_stored_ones(pool: NewsPool, settings: BackendSettings) -> None:
    catalogue = build(pool, settings)
    answer = RecallAnswer.model_validate_json(catalogue.encode(range(300), "r1"))
    specs = {"codes": TensorSpec("int8", (300, DIMENSIONS)), "scales": TensorSpec("float32", (300,))}
    tensors = unpack(answer.vectors, specs, limit_bytes=10**6)
    sent = dequantise(tensors["codes"], tensors["scales"])
    stored_ids, stored = pool.vectors(ENCODER)
    assert [card.id for card in answer.candidates] == stored_ids
    assert (np.abs(sent - stored) <= tensors["scales"][:, None] / 2 + 1e-7).all()


def test_near_duplicates_and_articles_without_vectors_are_left_out(pool: NewsPool, settings: BackendSettings) -> None:
    original = items(1, first=900)[0]
    twin = original.model_copy(update={"id": "twin"})
    pool.add([original, twin], source="test")
    pool.add(items(1, first=950), source="test")
    pool.store_vectors(ENCODER, [original.id, "twin"], clustered_vectors(2, seed=8))
    catalogue = build(pool, settings)
    assert original.id in catalogue.ids
    assert "twin" not in catalogue.ids
    assert "n950" not in catalogue.ids
    assert (len(catalogue), catalogue.duplicates, catalogue.without_vector) == (301, 1, 1)


def test_answer_merges_the_lists_with_popularity(pool: NewsPool, settings: BackendSettings) -> None:
    publish(settings)
    catalogue = build(pool, settings)
    service, served = recall_service(settings, catalogue)
    asked = request(limit=40)
    watch = Stopwatch()
    answer = RecallAnswer.model_validate_json(service.answer(asked, watch))
    release = served.current
    scores = release.score_readings["basis_laplace"].given(np.array(asked.report.scores))  # type: ignore[union-attr]
    interests = aggregate(scores, release.basis_values)
    popular = log_popularity(catalogue.published_at, catalogue.weights, catalogue.built_at)
    ranked = SHARPNESS * interests @ catalogue.vectors[:].T + popular
    lists = [np.argsort(-scores, kind="stable")[:40].tolist() for scores in ranked]
    expected = merge(lists, asked.report.counts, 40)  # type: ignore[union-attr]
    assert [card.id for card in answer.candidates] == [catalogue.ids[row] for row in expected]
    assert list(watch.stages_ms) == list(SERVER_STAGES[1:])


def test_softmax_decoder_uses_scores_as_sent_without_popularity(pool: NewsPool, settings: BackendSettings) -> None:
    publish(settings)
    catalogue = build(pool, settings)
    served = ServedReleases(
        ReleaseStore.open(open_engine(settings.database_url), settings), answered=1, score_decoder="softmax"
    )
    served.refresh()
    asked = request(limit=40)
    interests = aggregate(np.array(asked.report.scores), served.current.basis_values)  # type: ignore[union-attr]
    lists = [np.argsort(-scores, kind="stable")[:40].tolist() for scores in interests @ catalogue.vectors[:].T]
    answers = []
    for name, merged in MERGES.items():
        rules = VectorRules("inner_product", name)
        service = RecallService(served, LiveCatalogue(catalogue), rules=rules)
        answer = RecallAnswer.model_validate_json(service.answer(asked, Stopwatch()))
        expected = merged(lists, asked.report.counts, 40)  # type: ignore[union-attr]
        assert [card.id for card in answer.candidates] == [catalogue.ids[row] for row in expected]
        answers.append(answer.candidates)
    assert answers[0] != answers[1]


def test_approximate_index_answers_nearly_the_same(pool: NewsPool, settings: BackendSettings) -> None:
    publish(settings)
    exact, _ = recall_service(settings, build(pool, settings))
    approximate, _ = recall_service(settings, build(pool, settings, exact_limit=100))
    ids = [
        {card.id for card in RecallAnswer.model_validate_json(service.answer(request(), Stopwatch())).candidates}
        for service in (exact, approximate)
    ]
    assert len(ids[0] & ids[1]) >= 97


def test_limit_above_the_pool_size_returns_the_whole_pool_once(pool: NewsPool, settings: BackendSettings) -> None:
    publish(settings)
    service, _ = recall_service(settings, build(pool, settings))
    answer = RecallAnswer.model_validate_json(service.answer(request(limit=1_000), Stopwatch()))
    assert len({card.id for card in answer.candidates}) == len(answer.candidates) == 300


def test_missing_report_is_answered_with_the_default_list(pool: NewsPool, settings: BackendSettings) -> None:
    publish(settings)
    service, _ = recall_service(settings, build(pool, settings))
    assert service.answer(request(kind="none", limit=50), Stopwatch()) == service.default_list(50).answer


def test_empty_pool_answers_with_an_empty_list(settings: BackendSettings) -> None:
    publish(settings)
    empty = build_catalogue(
        NewsPool(open_engine(settings.database_url)),
        ENCODER,
        datetime.now(UTC),
        indexes_in(settings),
    )
    service, _ = recall_service(settings, empty)
    for asked in (request(), request(kind="none")):
        assert RecallAnswer.model_validate_json(service.answer(asked, Stopwatch())).candidates == ()


def test_recent_releases_are_answered_and_older_or_unknown_ones_refused(
    pool: NewsPool, settings: BackendSettings
) -> None:
    for seed in range(4):
        publish(settings, seed=seed)
    service, _ = recall_service(settings, build(pool, settings), answered_releases=3)
    answers = {release: service.answer(request(release), Stopwatch()) for release in ("r2", "r3", "r4")}
    assert len(set(answers.values())) == 3
    with pytest.raises(ReleaseRetired, match="current release is r4"):
        service.answer(request("r1"), Stopwatch())
    with pytest.raises(ReleaseNotAnswered, match="current release is r4") as unknown:
        service.answer(request("r77"), Stopwatch())
    assert unknown.value.status == 409
    assert unknown.value.facts == {"current": "r4"}


def test_just_published_release_is_answered_at_once(pool: NewsPool, settings: BackendSettings) -> None:
    publish(settings)
    service, served = recall_service(settings, build(pool, settings))
    publish(settings, seed=6)
    assert served.current.release == "r1"
    assert service.answer(request("r2"), Stopwatch())
    assert served.current.release == "r2"


def test_new_encoders_release_waits_for_its_vectors_and_retires_old_ones(
    pool: NewsPool, settings: BackendSettings
) -> None:
    publish(settings)
    publish(settings, encoder="next-encoder")
    service, _ = recall_service(settings, build(pool, settings))
    with pytest.raises(CatalogueBehind):
        service.answer(request("r2"), Stopwatch())
    assert service.answer(request("r1"), Stopwatch()), "until then the old one serves"
    assert RecallAnswer.model_validate_json(service.default_list(50).answer).release == "r1"

    ids, vectors = pool.vectors(ENCODER)
    pool.store_vectors("next-encoder", ids, vectors)
    swapped = build_catalogue(pool, "next-encoder", datetime.now(UTC), indexes_in(settings))
    service, _ = recall_service(settings, swapped)
    assert service.answer(request("r2"), Stopwatch())
    assert RecallAnswer.model_validate_json(service.default_list(50).answer).release == "r2"
    with pytest.raises(ReleaseRetired):
        service.answer(request("r1"), Stopwatch())


def test_new_encoder_is_announced_once_its_vectors_exist(pool: NewsPool, settings: BackendSettings) -> None:
    publish(settings)
    publish(settings, encoder="next-encoder")
    store = ReleaseStore.open(open_engine(settings.database_url), settings)
    for encoder, release in ((ENCODER, "r1"), ("next-encoder", "r2"), ("no release's", "r2")):
        live = build_catalogue(pool, encoder, datetime.now(UTC), indexes_in(settings))
        found = release_for_devices(store, live)
        assert found is not None
        assert ReleaseManifest.model_validate_json(found.manifest).release == release
    assert store.newest_with("next") is None


def test_newest_release_of_an_encoder_is_found_in_any_json_formatting(settings: BackendSettings) -> None:
    publish(settings)
    key = ReleaseStore.open(open_engine(settings.database_url), settings).signing_key()
    with writing_session(open_engine(settings.database_url)) as session:
        row = session.get_one(ReleaseRow, 1)
        row.manifest = json.dumps(json.loads(row.manifest), indent=1)
        row.signature = key.sign(row.manifest.encode())
    settings.chain_file.unlink()  # it knows the release by its manifest's bytes
    found = ReleaseStore.open(open_engine(settings.database_url), settings).newest_with(ENCODER)
    assert found is not None
    assert json.loads(found.manifest)["release"] == "r1"


def test_recall_without_a_release_is_refused(pool: NewsPool, settings: BackendSettings) -> None:
    service, _ = recall_service(settings, build(pool, settings))
    with pytest.raises(NothingPublished):
        service.answer(request(), Stopwatch())


def test_each_answer_during_a_swap_comes_from_one_snapshot(pool: NewsPool, settings: BackendSettings) -> None:
    publish(settings)
    first = build(pool, settings)
    pool.expire(datetime.now(UTC))
    pool.take_down("n0")
    pool.add(items(20, first=500), source="test")
    pool.store_vectors(ENCODER, [f"n{n}" for n in range(500, 520)], clustered_vectors(20, seed=4))
    second = build(pool, settings, previous=first)
    store = ReleaseStore.open(open_engine(settings.database_url), settings)
    served = ServedReleases(store, answered=5)
    served.refresh()
    live = LiveCatalogue(first)
    service = RecallService(served, live)
    expected = {
        RecallService(served, LiveCatalogue(each)).answer(request(limit=400), Stopwatch()) for each in (first, second)
    }
    assert len(expected) == 2
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            live.swap(second)
            live.swap(first)

    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        for _ in range(100):
            assert service.answer(request(limit=400), Stopwatch()) in expected
    finally:
        stop.set()
        swapper.join()


def test_old_snapshot_answers_the_same_after_its_successor_was_built(pool: NewsPool, settings: BackendSettings) -> None:
    first = build(pool, settings)
    before = first.search(clustered_vectors(3, seed=12), 100)
    pool.take_down(first.ids[before[0][0]])
    second = build(pool, settings, previous=first)
    assert first.search(clustered_vectors(3, seed=12), 100) == before
    assert first.ids[before[0][0]] not in second.ids
    assert second.pool_version > first.pool_version
