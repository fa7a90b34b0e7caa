"""Runs live rounds of FedNewsRec with its news model, with local noise and in exact sums, while a reader reads."""

import shutil
from pathlib import Path

from backend.db.engine import open_engine
from backend.embedding.word_model import FEDNEWSREC
from backend.releases.publish import publish_rankers
from backend.releases.store import ReleaseStore
from backend.server.progress import SilentSteps
from backend.settings import BackendSettings, load_settings
from backend.setup.first_start import prepare_word_model
from experiments.bench.efficient import measured
from experiments.bench.newspaper import free_port, prepared_newspaper
from experiments.records import Table
from exporters.graph_cache import GraphCache

FORMS = {"local noise": "fednewsrec_whole/local/mean", "exact sum": "fednewsrec_whole/exact/mean"}


def run(data: Path) -> list[Table]:
    """Return two tables: the rounds, and a reader's page times while they ran."""
    return measured(_folder, FORMS, "FedNewsRec's user model and news model, 6,000 titles")


def _folder(folder: Path) -> BackendSettings:
    """Copy the newspaper's folder, with FedNewsRec in its release and its news model prepared."""
    kept = prepared_newspaper()
    shutil.copytree(kept.data_dir, folder)
    settings = load_settings(data_dir=folder, host=kept.host, port=free_port(), rankers=("fednewsrec",))
    store = ReleaseStore.open(open_engine(settings.database_url), settings)
    publish_rankers(store, settings.rankers, cache=GraphCache(kept.graphs_dir))
    prepare_word_model(settings, SilentSteps(), FEDNEWSREC)
    return settings
