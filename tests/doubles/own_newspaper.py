"""The benches' newspaper in a folder of a test's own, which may change it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from backend.first_start import make_servable
from backend.local_processes import LOOPBACK
from backend.newspaper import GeneratedNewspaper
from backend.progress import TerminalSteps
from backend.settings import BackendSettings, load_settings
from experiments.bench.newspaper import free_port, prepared_newspaper


def newspaper_in(folder: Path, articles: int, **others: Any) -> BackendSettings:
    """Graphs and the news encoder come from the benches' cache. others: further settings, such as of another
    database."""
    cached = prepared_newspaper(articles)
    settings = load_settings(data_dir=folder, host=LOOPBACK, port=free_port(), graphs_dir=cached.graphs_dir, **others)
    shutil.copytree(cached.encoder_dir, settings.encoder_dir)
    steps = TerminalSteps()
    GeneratedNewspaper.of(settings, articles=articles, seed=7).open(steps)
    make_servable(settings, steps, stories=10 * articles)
    return settings
