"""A backend's data folder with hand-made news and a first release, made by the code of the tree it is run under.

`python child_world.py FOLDER DATABASE_URL CACHE EVERY`: with every so-manieth of the small world's articles.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from backend.db.engine import migrate, open_engine
from backend.news.pool import NewsPool
from backend.releases.publish import publish_first
from backend.releases.store import ReleaseStore
from backend.settings import load_settings
from tests.doubles.graphs import shared_graphs
from tests.doubles.small_world import WordEmbedder, fill_pool, hand_made_news


def main(folder: Path, database: str, cache: Path, every: int) -> None:
    """Make it; graphs come from the cache, or go there."""
    cache.mkdir(parents=True, exist_ok=True)
    folder.mkdir(parents=True, mode=0o700)
    settings = load_settings(data_dir=folder, database_url=database)
    migrate(settings.database_url)
    engine = open_engine(settings.database_url)
    pool = NewsPool(engine)
    fill_pool(pool, hand_made_news(datetime.now(UTC))[::every])
    _, vectors = pool.vectors(WordEmbedder.digest)
    store = ReleaseStore.open(engine, settings)
    publish_first(store, encoder=WordEmbedder.digest, vectors=np.asarray(vectors), cache=shared_graphs(cache))
    engine.dispose()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]))
