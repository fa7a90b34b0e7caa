"""The first start: from an empty folder to a server that can serve.

Each step is skipped if its result exists already, and leaves nothing half done, so an interrupted start continues where
it was. `make_servable` makes what a first feed needs: database, encoder, the newest articles' vectors, and the first
release with its small rankers. `backend.setup.first_start_process` runs it in a separate process. Older articles'
vectors and everything else a release can contain are filled in while the server serves: `backend.setup.backfill`.
"""

from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime

import numpy as np
from sqlalchemy import Engine

from backend.db.engine import check_sqlite_file, migrate, open_engine
from backend.embedding.embedder import (
    Embedder,
    check_dimensions,
    first_dimensions,
    load_embedder,
)
from backend.embedding.state_store import DESCRIPTION_FILE
from backend.errors import OwnfeedError, require_training
from backend.news.pool import NewsPool
from backend.news.pool_reading import PoolRow
from backend.news.sections import SectionSorter, sentences
from backend.releases.codebooks import pool_categories, pool_vocabulary
from backend.releases.store import ReleaseStore
from backend.server.progress import Steps
from backend.settings import BackendSettings
from protocol.releases import ReleaseManifest

FEWEST_TITLES = 300
"""A smaller pool is supplemented with the taxonomy's sentences, for an encoder and centroids of sufficient variety."""
FIRST_STORIES = 1_024
"""How many of the newest articles get vectors before a first feed, which shows some 50 of them; the others follow."""
CHUNK_ROWS = 512  # maximum that an interrupted run has to embed again


class PoolEmpty(OwnfeedError):
    """There is nothing to serve yet."""

    code, status, title = "pool-empty", 503, "The news pool is empty"

    def __init__(self) -> None:
        super().__init__("The news pool is empty: run `ownfeed ingest newsroom`, or rss, mind or jsonl, first.")


def make_servable(
    settings: BackendSettings,
    steps: Steps,
    news_are_here: Callable[[], None] | None = None,
    stories: int | None = None,
) -> None:
    """Make what a first feed needs; does nothing if a release is published.

    news_are_here: returns when the pool has its articles. What needs none of them is made before it is called, so that
    they can be ingested at the same time. stories: how many of the newest get vectors; FIRST_STORIES by default.

    Raises BackendSettingsRefused, PoolEmpty, the database's errors, or an exporter's ParityError.
    """
    check_dimensions(settings)
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    check_sqlite_file(settings.database_url, used=settings.has_noted_releases)
    engine = open_engine(settings.database_url)
    try:
        migrate(engine)
        _make_servable(engine, settings, steps, news_are_here, stories)
    finally:
        engine.dispose()  # an open connection would keep the server that starts now from checking the file


def _make_servable(
    engine: Engine,
    settings: BackendSettings,
    steps: Steps,
    news_are_here: Callable[[], None] | None,
    stories: int | None,
) -> None:
    releases = ReleaseStore.open(engine, settings)
    releases.encoders.take()
    published = releases.current_manifest()
    if published is not None:
        _remake_recall(releases, NewsPool(engine), published, settings, steps)
        return
    pool = NewsPool(engine)
    if news_are_here is None and not pool.live(datetime.now(UTC)):
        raise PoolEmpty
    from backend.releases.publish import RecallTerms, export_first_graphs, publish_first
    from exporters.graph_cache import GraphCache

    cache = GraphCache(settings.graphs_dir)
    with steps.step("Exporting the first models") as advance:
        export_first_graphs(cache, settings.news_dimensions, progress=advance)
    live: list[PoolRow] = []

    def titles() -> list[str]:
        if news_are_here is not None:
            news_are_here()
        live.extend(pool.live(datetime.now(UTC)))
        if not live:
            raise PoolEmpty
        return [row.title for row in live] + _typical(live)

    if (settings.encoder_dir / DESCRIPTION_FILE).is_file():
        titles()
    else:
        from backend.embedding.initial_encoder import make_initial_encoder

        with steps.step("Preparing the news encoder"):
            make_initial_encoder(settings, titles)
    releases.encoders.give()
    embedder = load_embedder(settings)
    newest = sorted(live, key=lambda row: row.published_at, reverse=True)[
        : FIRST_STORIES if stories is None else stories
    ]
    embed_missing(pool, embedder, steps, only={row.id for row in newest})
    sorter = SectionSorter(engine)
    if sorter.waiting(embedder.digest):
        with steps.step("Sorting stories into sections"):
            sorter.step(embedder)
    _, vectors = pool.vectors(embedder.digest)
    if typical := _typical(live):
        vectors = np.concatenate([vectors, embedder.encode(typical)])
    live = pool.live(datetime.now(UTC))  # with their current sections
    with steps.step("Publishing the first release") as advance:
        publish_first(
            releases,
            encoder=embedder.digest,
            vectors=np.asarray(vectors),
            vocabulary=pool_vocabulary(text for row in live for text in (row.title, row.abstract)),
            categories=pool_categories((row.section, row.topic) for row in live),
            terms=RecallTerms.of(settings),
            cache=cache,
            progress=advance,
        )


def _remake_recall(
    releases: ReleaseStore, pool: NewsPool, published: ReleaseManifest, settings: BackendSettings, steps: Steps
) -> None:
    """Publish a release with another recall model if the settings ask for one that differs from the release's."""
    from backend.releases.publish import RecallTerms, publish_recall

    terms = RecallTerms.of(settings)
    if terms.wanting(published.recall):
        with steps.step("Making the recall model that the settings ask for"):
            _, vectors = pool.vectors(published.encoder)
            publish_recall(releases, np.asarray(vectors), terms)


def _typical(live: Sequence[PoolRow]) -> list[str]:
    return sentences() if len(live) < FEWEST_TITLES else []


def prepare_word_model(settings: BackendSettings, steps: Steps, architecture: str, categories: bytes = b"") -> None:
    """Make what trains and serves a word-based news model, unless it exists for the settings' word vectors.

    categories: the release's packed categories, for an architecture that reads their ids. Raises
    TrainingNotInstalled, WordVectorsRefused, WeightsRefused, or an exporter's ParityError.
    """
    from backend.embedding.word_model import keep_word_model, word_source

    if word_source(settings.encoder_dir, architecture) == named_words(settings):
        return
    require_training("A news model over words")
    from backend.embedding.word_model import word_vectors  # reads BERT, needed once
    from exporters.graph_cache import GraphCache
    from exporters.news_encoder import with_table
    from exporters.package import export_word_model

    with steps.step("Exporting a news model over words"):
        words = word_vectors(settings)
        cache, dimensions = GraphCache(settings.graphs_dir), first_dimensions(settings.encoder_dir)
        model = export_word_model(words.table.shape[1], dimensions, cache, architecture=architecture)
        keep_word_model(
            settings.encoder_dir,
            named_words(settings),
            words,
            {name: each.shape for name, each in model.weights.items()},
            gradient=model.graphs["gradient"],
            encoder=with_table(model.graphs["news"], words.table),
            architecture=architecture,
            categories=categories,
        )


def named_words(settings: BackendSettings) -> str:
    """The settings' name of the words of such a model."""
    return settings.bert if settings.word_vectors is None else str(settings.word_vectors)


def embed_missing(pool: NewsPool, embedder: Embedder, steps: Steps, only: Collection[str] | None = None) -> int:
    """Embed every article without a vector by this encoder, newest arrivals first.

    Return how many there were.

    only: restricts this to these ids.
    """
    missing = [news for news in reversed(pool.missing_vectors(embedder.digest)) if only is None or news.id in only]
    if not missing:
        return 0
    with steps.step("Reading the headlines with BERT") as advance:
        advance(0, len(missing))
        for start in range(0, len(missing), CHUNK_ROWS):
            chunk = missing[start : start + CHUNK_ROWS]
            ids, titles = [news.id for news in chunk], [news.title for news in chunk]
            pool.store_vectors(embedder.digest, ids, embedder.encode_news(chunk), titles=titles)
            advance(start + len(ids), len(missing))
    return len(missing)
