"""FedNewsRec whole, live, under local noise and by exact sums: 60 devices over HTTP, 6,000 titles, a reader too."""

from __future__ import annotations

import shutil
from pathlib import Path

from backend.db.engine import open_engine
from backend.embedding.word_model import FEDNEWSREC
from backend.first_start import prepare_word_model
from backend.progress import SilentSteps
from backend.releases.publish import publish_rankers
from backend.releases.store import ReleaseStore
from backend.settings import BackendSettings, load_settings
from experiments.bench.efficient import measured
from experiments.bench.newspaper import free_port, prepared_newspaper
from experiments.table import Table
from exporters.graph_cache import GraphCache

FORMS = {"local noise": "fednewsrec_whole", "exact sum": "fednewsrec_whole_exact"}


def run(data: Path) -> list[Table]:
    """Two tables: the rounds, and what a reader saw while they ran."""
    return measured(_folder, FORMS, "FedNewsRec's user model and news model, 6,000 titles")


def _folder(folder: Path) -> BackendSettings:
    """A copy of the newspaper's folder, with FedNewsRec in its release and its news model prepared."""
    kept = prepared_newspaper()
    shutil.copytree(kept.data_dir, folder)
    settings = load_settings(data_dir=folder, host=kept.host, port=free_port(), rankers=("fednewsrec",))
    store = ReleaseStore.open(open_engine(settings.database_url), settings)
    publish_rankers(store, settings.rankers, cache=GraphCache(kept.graphs_dir))
    prepare_word_model(settings, SilentSteps(), FEDNEWSREC)
    return settings
