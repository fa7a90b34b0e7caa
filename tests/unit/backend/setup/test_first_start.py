"""From an empty folder to a servable backend: a step is skipped if its result exists, and none is lost.

BERT and the exporters are replaced by stand-ins; the steps themselves, the pool and the store are real.
"""

from __future__ import annotations

import gc
import io
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import select

import backend.embedding.initial_encoder
import backend.releases.publish
import backend.setup.backfill
import backend.setup.first_start
from backend.db.engine import DatabaseDamaged, is_open_here, open_engine
from backend.db.tables import NewsRow
from backend.embedding.embedder import ProgressCallback
from backend.embedding.pooled_states import PooledStates
from backend.embedding.word_model import WordModel
from backend.news.ingest import ingest
from backend.news.newspaper import GeneratedNewspaper
from backend.news.pool import NewsPool
from backend.releases.blobs import ReleaseDraft
from backend.releases.publish import RecallTerms
from backend.releases.store import ReleaseStore
from backend.server.progress import Advance, SilentSteps
from backend.settings import BackendSettings
from backend.setup.backfill import CODEBOOKS, VECTORS, WORD_MODEL, BackfillWorker, missing_parts
from backend.setup.first_start import CHUNK_ROWS, PoolEmpty, make_servable
from backend.setup.first_start_process import StepWriter
from exporters.graph_cache import GraphCache
from protocol.releases import CategoryVocabulary
from protocol.vocabulary import WordVocabulary
from tests.doubles.migrated import migrated
from tests.doubles.recall_world import recall_draft
from tests.doubles.small_world import WordEmbedder, hand_made_news
from tests.doubles.words_encoder import keep_words_encoder

ROOT = Path(__file__).parents[4]
NOW = datetime.now(UTC)


class StepTitles(SilentSteps):
    """Records the titles of the steps that ran."""

    def __init__(self) -> None:
        self.titles: list[str] = []

    @contextmanager
    def step(self, title: str) -> Iterator[Advance]:
        self.titles.append(title)
        with super().step(title) as advance:
            yield advance


COMMON_WORDS = 50
DESCRIBED = '{"digest": "made", "dimensions": 256, "parameters": {}, "sha256": {}}'
"""A news encoder, in its file."""


@pytest.fixture
def settings(tmp_path: Path) -> BackendSettings:
    return BackendSettings(data_dir=tmp_path / "backend")


@pytest.fixture
def stand_ins(settings: BackendSettings, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Replace BERT and exporting by stand-ins that record what was made."""
    made: list[str] = []

    def encoder(settings: BackendSettings, titles: Callable[[], Sequence[str]]) -> None:
        made.append("what needs no titles")
        made.append(f"encoder of {len(titles())} titles")
        settings.encoder_dir.mkdir()
        (settings.encoder_dir / "encoder.json").write_text(DESCRIBED, encoding="utf-8")

    def publish(
        store: ReleaseStore,
        *,
        encoder: str,
        vectors: np.ndarray,
        vocabulary: WordVocabulary,
        categories: CategoryVocabulary,
        cache: GraphCache,
        terms: RecallTerms,
        progress: object,
    ) -> None:
        assert (cache.folder.name, terms) == ("graphs", RecallTerms())
        engine = open_engine(settings.database_url)
        with engine.connect() as connection:
            titles = connection.execute(select(NewsRow.title)).scalars().all()
        engine.dispose()
        spoken = {word for title in titles for word in title.casefold().split() if word.isalpha()}
        assert len(spoken & set(vocabulary.words)) > COMMON_WORDS, "words of the pool's titles"
        assert categories.topics, "sections and topics of the pool"
        made.append(f"release over {vectors.shape}")
        store.commit(recall_draft(store, encoder=encoder), note="stand-in")

    monkeypatch.setattr(backend.embedding.initial_encoder, "make_initial_encoder", encoder)
    monkeypatch.setattr(backend.setup.first_start, "load_embedder", lambda *_: WordEmbedder())
    monkeypatch.setattr(backend.releases.publish, "publish_first", publish)
    monkeypatch.setattr(backend.releases.publish, "export_first_graphs", lambda cache, dimensions, *, progress: None)
    return made


def pool_of(settings: BackendSettings) -> NewsPool:
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    return NewsPool(migrated(settings.database_url))


def test_empty_pool_is_reported_in_one_line_with_the_command_to_run(
    settings: BackendSettings, stand_ins: list[str]
) -> None:
    with pytest.raises(PoolEmpty, match="run `ownfeed ingest newsroom`") as refused:
        make_servable(settings, SilentSteps())
    assert "\n" not in refused.value.detail
    assert stand_ins == []


def test_first_start_prepares_everything_and_a_second_nothing(settings: BackendSettings, stand_ins: list[str]) -> None:
    pool = pool_of(settings)
    items = hand_made_news(NOW)
    ingest(pool, items, source="test")
    steps = StepTitles()
    make_servable(settings, steps)
    assert steps.titles == [
        "Exporting the first models",
        "Preparing the news encoder",
        "Reading the headlines with BERT",
        "Publishing the first release",
    ]
    assert stand_ins == [
        "what needs no titles",
        f"encoder of {len(items)} titles",
        f"release over ({len(items)}, 256)",
    ]
    assert pool.missing_vectors(WordEmbedder.digest) == []

    again = StepTitles()
    make_servable(settings, again)
    assert again.titles == []
    assert len(stand_ins) == 3


def test_start_checks_the_database_first_and_leaves_it_closed(settings: BackendSettings, stand_ins: list[str]) -> None:
    """Regression: connections left open lost their locks when the server checked the file in turn."""
    database = settings.data_dir / "ownfeed.sqlite"
    ingest(pool_of(settings), hand_made_news(NOW), source="test")
    gc.collect()
    for _ in range(2):
        make_servable(settings, SilentSteps())
        assert not is_open_here(database)
    database.write_bytes(database.read_bytes()[:4_096])
    with pytest.raises(DatabaseDamaged, match="it is cut off"):
        make_servable(settings, SilentSteps())


def test_preparation_that_needs_no_articles_overlaps_with_ingest(
    settings: BackendSettings, stand_ins: list[str]
) -> None:
    pool = pool_of(settings)

    def news() -> None:
        stand_ins.append("news")
        ingest(pool, hand_made_news(NOW), source="test")

    make_servable(settings, SilentSteps(), news)
    assert stand_ins[:3] == ["what needs no titles", "news", f"encoder of {len(hand_made_news(NOW))} titles"]
    with pytest.raises(PoolEmpty):
        make_servable(BackendSettings(data_dir=settings.data_dir / "none"), SilentSteps(), lambda: None)


def test_newest_stories_suffice_for_a_first_release_and_the_rest_follows(
    settings: BackendSettings, stand_ins: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backend.setup.first_start, "FIRST_STORIES", 100)
    pool = pool_of(settings)
    items = hand_made_news(NOW)
    ingest(pool, items, source="test")
    make_servable(settings, SilentSteps())
    assert stand_ins[-1] == "release over (100, 256)"
    with_vector, _ = pool.vectors(WordEmbedder.digest)
    newest = sorted((row.published_at for row in pool.live(NOW)), reverse=True)[:100]
    live = {row.id: row.published_at for row in pool.live(NOW)}
    assert sorted((live[news_id] for news_id in with_vector), reverse=True) == newest
    store = ReleaseStore.open(open_engine(settings.database_url), settings)
    monkeypatch.setattr(backend.setup.backfill, "TITLES_AT_ONCE", len(items) - 100)
    assert missing_parts(settings, store, pool) == [], "the server gives a handful their vectors by itself"
    monkeypatch.setattr(backend.setup.backfill, "TITLES_AT_ONCE", len(items) - 101)
    chosen = settings.model_copy(update={"rankers": ("naml", "lstur")})
    assert missing_parts(chosen, store, pool) == [VECTORS, "ranker.naml", "ranker.lstur"]

    lines = io.StringIO()
    monkeypatch.setattr(backend.setup.backfill, "load_embedder", lambda *_: WordEmbedder())
    process = BackfillWorker(settings, store._engine, store, StepWriter(lines))
    process.run(VECTORS)
    assert missing_parts(settings, store, pool) == []
    reported = [json.loads(line) for line in lines.getvalue().splitlines()]
    assert reported[0] == ["task", VECTORS]
    assert reported[-2:] == [["done", len(items) - 100, len(items) - 100], ["finished"]]
    assert (len(store.history()), pool.missing_vectors(WordEmbedder.digest)) == (1, [])


def test_start_interrupted_while_embedding_resumes(
    settings: BackendSettings, stand_ins: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = pool_of(settings)
    ingest(pool, hand_made_news(NOW), source="test")
    monkeypatch.setattr(backend.setup.first_start, "CHUNK_ROWS", 100)
    encoded: list[int] = []

    class FullDiskEmbedder(WordEmbedder):
        def encode(self, titles: Sequence[str], *, progress: ProgressCallback | None = None) -> np.ndarray:
            if len(encoded) == 2:
                raise OSError(28, "No space left on device")
            encoded.append(len(titles))
            return super().encode(titles, progress=progress)

    monkeypatch.setattr(backend.setup.first_start, "load_embedder", lambda *_: FullDiskEmbedder())
    with pytest.raises(OSError, match="No space"):
        make_servable(settings, SilentSteps())
    assert encoded == [100, 100]
    assert len(pool.missing_vectors(WordEmbedder.digest)) == 232, "whole chunks stay"

    monkeypatch.setattr(backend.setup.first_start, "load_embedder", lambda *_: WordEmbedder())
    steps = StepTitles()
    make_servable(settings, steps)
    assert steps.titles == [
        "Exporting the first models",
        "Reading the headlines with BERT",
        "Publishing the first release",
    ]
    assert CHUNK_ROWS <= 1_000


KILLED_WHILE_EMBEDDING = """
import os, signal, sys
import backend.setup.first_start as p
import backend.releases.publish
from backend.news.newspaper import GeneratedNewspaper
from backend.server.progress import Advance, SilentSteps
from backend.settings import BackendSettings
settings = BackendSettings(data_dir=sys.argv[1])
GeneratedNewspaper.of(settings, articles=720, seed=7).open(SilentSteps())
print("ingested", flush=True)
p.embed_missing = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
settings.encoder_dir.mkdir()
about = '{"digest": "made", "dimensions": 256, "parameters": {}, "sha256": {}}'
(settings.encoder_dir / "encoder.json").write_text(about)
p.load_embedder = lambda *_: None
backend.releases.publish.export_first_graphs = lambda cache, dimensions, *, progress: None
p.make_servable(settings, SilentSteps())
"""


def test_first_run_killed_after_ingest_completes_the_next_time(settings: BackendSettings, stand_ins: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLED_WHILE_EMBEDDING, str(settings.data_dir)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, "ingested\n"), done.stderr
    pool = pool_of(settings)
    before = {row.id for row in pool.live(NOW + timedelta(minutes=5))}
    assert 550 <= len(before) <= 874, "what is to come of 874 articles is not published"

    steps = StepTitles()
    GeneratedNewspaper.of(settings, articles=720, seed=7).open(steps)
    make_servable(settings, steps)
    assert steps.titles == [
        "Exporting the first models",
        "Reading the headlines with BERT",
        "Publishing the first release",
    ]
    assert {row.id for row in pool.live(NOW + timedelta(minutes=5))} == before, "nothing is written twice"
    assert stand_ins == [f"release over ({len(before)}, 256)"]


def test_release_with_other_terms_is_replaced_once_by_the_settings(
    settings: BackendSettings, stand_ins: list[str]
) -> None:
    ingest(pool_of(settings), hand_made_news(NOW), source="test")
    make_servable(settings, SilentSteps())
    store = ReleaseStore.open(open_engine(settings.database_url), settings)
    first = store.require_current()
    asked = settings.model_copy(update={"cluster_distance": 0.75})
    for _ in range(2):
        make_servable(asked, SilentSteps())
        assert store.require_current().release == "r2"
    assert store.require_current().recall == first.recall.model_copy(update={"cluster_distance": 0.75})


def test_release_without_codebooks_gets_them_once_at_the_next_start(
    settings: BackendSettings, stand_ins: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = pool_of(settings)
    ingest(pool, hand_made_news(NOW), source="test")
    make_servable(settings, SilentSteps())
    store = ReleaseStore.open(open_engine(settings.database_url), settings)
    old = ReleaseDraft.like(store.require_current())
    recall = old.recall.model_copy(update={"codebooks": ()})
    store.commit(replace(old, recall=recall), note="as of a pool too small for any")
    assert missing_parts(settings, store, pool) == [CODEBOOKS]
    rows = np.random.default_rng(0).normal(size=(40, 256)).astype(np.float32)
    monkeypatch.setattr(NewsPool, "vectors", lambda *_: ([], rows))
    process = BackfillWorker(settings, store._engine, store, StepWriter(io.StringIO()))
    process.run(CODEBOOKS)
    changed = store.require_current()

    assert [(book.size, book.epsilon) for book in changed.recall.codebooks] == [(16, 4.0)]
    assert missing_parts(settings, store, pool) == []
    process.run(CODEBOOKS)
    assert store.require_current() == changed


def test_pooled_states_are_prepared_with_the_ranker_that_needs_them(
    settings: BackendSettings, stand_ins: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: the first start of such a round answered only after two minutes, in which they were made."""
    pool = pool_of(settings)
    ingest(pool, hand_made_news(NOW), source="test")
    make_servable(settings, SilentSteps())
    store = ReleaseStore.open(open_engine(settings.database_url), settings)
    titles = [row.title for row in pool.live(NOW)]
    shutil.rmtree(settings.encoder_dir)  # of the stand-in
    keep_words_encoder(settings, titles)
    monkeypatch.setattr(backend.releases.publish, "publish_rankers", lambda *_, **__: None)
    for ranker, there in (("ranker.naml", False), ("ranker.nrms", True)):
        lines = io.StringIO()
        BackfillWorker(settings, store._engine, store, StepWriter(lines)).run(ranker)
        assert json.loads(lines.getvalue().splitlines()[-1]) == ["finished"]
        monkeypatch.setattr(PooledStates, "_pooled", None)
        states = PooledStates(settings.encoder_dir, WordEmbedder.digest)
        if there:
            assert len(states.of(titles)) == len(titles)
        else:
            with pytest.raises(TypeError):
                states.of(titles)
        monkeypatch.undo()
        monkeypatch.setattr(backend.releases.publish, "publish_rankers", lambda *_, **__: None)


def test_word_rankers_news_model_is_prepared_once_for_the_configured_words(
    settings: BackendSettings, stand_ins: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pool = pool_of(settings)
    ingest(pool, hand_made_news(NOW), source="test")
    make_servable(settings, SilentSteps())
    store = ReleaseStore.open(open_engine(settings.database_url), settings)
    architecture = dict.fromkeys(store.require_current().models, "fednewsrec_words").get
    monkeypatch.setattr(backend.setup.backfill, "trains_over_words", architecture)
    glove = tmp_path / "glove.txt"
    glove.write_text("the 1 0 0\nturbine 0 1 0\n", encoding="utf-8")
    chosen = settings.model_copy(update={"word_vectors": glove})
    assert missing_parts(chosen, store, pool) == [WORD_MODEL]
    BackfillWorker(chosen, store._engine, store, StepWriter(io.StringIO())).run(WORD_MODEL)
    assert missing_parts(chosen, store, pool) == []
    assert WordModel(chosen.encoder_dir).table.shape == (4, 3)
    other = chosen.model_copy(update={"word_vectors": tmp_path / "other.txt"})
    assert missing_parts(other, store, pool) == [WORD_MODEL]
    lines = io.StringIO()
    BackfillWorker(other, store._engine, store, StepWriter(lines)).run(WORD_MODEL)
    assert "can't be read" in lines.getvalue().splitlines()[-1], "told, and what was there stays"
    assert missing_parts(chosen, store, pool) == []
