"""From an empty folder to a servable backend: database, news, encoder, vectors, first release. Each step is skipped
where its result is there already, and leaves nothing half done: a killed first run goes on where it was."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import numpy as np

from backend.db.engine import migrate, open_engine
from backend.embedding.embedder import DESCRIPTION_FILE, HEAD_GRADIENT_FILE, Embedder, load_embedder
from backend.errors import OwnfeedError
from backend.news.pool import NewsPool
from backend.progress import Steps
from backend.releases.store import ReleaseStore
from backend.releases.vocabulary import pool_categories, pool_vocabulary
from backend.sections.sorting import SectionSorter
from backend.sections.taxonomy import sentences
from backend.settings import BackendSettings

FEWEST_TITLES = 300
"""A pool of fewer stories is filled up with the taxonomy's sentences, for an encoder and centroids of some width."""
CHUNK_ROWS = 512  # what a killed first run has to embed again at most


class PoolEmpty(OwnfeedError):
    """Nothing to serve yet."""

    code, status, title = "pool-empty", 503, "The news pool is empty"

    def __init__(self) -> None:
        super().__init__("The news pool is empty: run `ownfeed ingest newsroom`, or rss, mind or jsonl, first.")


def prepare(settings: BackendSettings, steps: Steps) -> None:
    """Make everything `create_app` needs. Raises PoolEmpty, WeightsRefused, or an exporter's ParityError."""
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    migrate(settings.database_url)
    engine = open_engine(settings.database_url)
    pool = NewsPool(engine)
    now = datetime.now(UTC)
    if not pool.live(now):
        raise PoolEmpty
    titles = [row.title for row in pool.live(now)]
    typical = sentences() if len(titles) < FEWEST_TITLES else []
    if not (settings.encoder_dir / DESCRIPTION_FILE).is_file():
        from backend.embedding.initial_encoder import prepare_encoder  # brings torch, needed once

        with steps.step("Preparing the news encoder"):
            prepare_encoder(settings, titles + typical)
    prepare_head_gradient(settings, steps)
    releases = ReleaseStore.open(engine, settings)
    published = releases.current_manifest()
    embedder = load_embedder(settings, None if published is None else published.encoder)
    embed_missing(pool, embedder, steps)
    sorter = SectionSorter(engine)
    if sorter.waiting(embedder.digest):
        with steps.step("Sorting stories into sections"):
            sorter.step(embedder)
    from backend.releases.publish import (  # scipy's clusters take a while
        missing_rankers,
        publish_codebooks,
        publish_first,
        publish_rankers,
    )

    if published is None:
        _, vectors = pool.vectors(embedder.digest)
        if typical:
            vectors = np.concatenate([vectors, embedder.encode(typical)])
        with steps.step("Exporting the first release") as advance:
            publish_first(
                releases,
                encoder=embedder.digest,
                vectors=np.asarray(vectors),
                vocabulary=pool_vocabulary(text for row in pool.live(now) for text in (row.title, row.abstract)),
                categories=pool_categories((row.section, row.topic) for row in pool.live(now)),
                rankers=settings.rankers,
                progress=advance,
            )
        return
    if missing_rankers(published, settings.rankers):
        with steps.step("Exporting rankers") as advance:
            publish_rankers(releases, settings.rankers, progress=advance)
    if not published.recall.codebooks:
        publish_codebooks(releases, np.asarray(pool.vectors(embedder.digest)[1]))


def prepare_head_gradient(settings: BackendSettings, steps: Steps) -> None:
    """For folders of versions that had no graph to train the head by: export it once. Raises ParityError."""
    folder = settings.encoder_dir
    if (folder / HEAD_GRADIENT_FILE).is_file():
        return
    from backend.embedding.initial_encoder import write_head_gradient  # brings torch, needed once

    shapes = json.loads((folder / DESCRIPTION_FILE).read_text(encoding="utf-8"))["parameters"]
    dimensions, width = shapes["head.weight"]
    with steps.step("Exporting the gradient of the news encoder's head"):
        write_head_gradient(folder, width, dimensions)


def embed_missing(pool: NewsPool, embedder: Embedder, steps: Steps) -> int:
    """Give a vector to every news that lacks one under this encoder; return how many there were."""
    missing = pool.missing_vectors(embedder.digest)
    if not missing:
        return 0
    with steps.step("Reading the headlines with BERT") as advance:
        for start in range(0, len(missing), CHUNK_ROWS):
            chunk = missing[start : start + CHUNK_ROWS]
            vectors = embedder.encode([title for _, _, title, _ in chunk])
            pool.store_vectors(embedder.digest, [news_id for _, news_id, _, _ in chunk], vectors)
            advance(start + len(chunk), len(missing))
    return len(missing)
