"""The benches' newspaper in a test's own folder, which it may change."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from backend.news.newspaper import GeneratedNewspaper
from backend.server.local_processes import LOOPBACK
from backend.server.progress import TerminalSteps
from backend.settings import BackendSettings, load_settings
from backend.setup.first_start import make_servable
from experiments.bench.newspaper import free_port, prepared_newspaper


def newspaper_in(folder: Path, articles: int, **others: Any) -> BackendSettings:
    """Build it in a folder, with graphs and the news encoder from the benches' cache.

    others: further settings, such as another database.
    """
    cached = prepared_newspaper(articles)
    settings = load_settings(data_dir=folder, host=LOOPBACK, port=free_port(), graphs_dir=cached.graphs_dir, **others)
    shutil.copytree(cached.encoder_dir, settings.encoder_dir)
    steps = TerminalSteps()
    GeneratedNewspaper.of(settings, articles=articles, seed=7).open(steps)
    make_servable(settings, steps, stories=10 * articles)
    return settings
