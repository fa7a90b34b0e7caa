"""A server's folder for benches, kept in the user's cache.

It contains encoder, vectors and first release for a set of articles. It is named after its inputs and built once, in
about a minute, so that later benches start at once.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import platformdirs
from numpy.typing import NDArray

from backend.db.engine import migrate, open_engine
from backend.embedding.embedder import load_embedder
from backend.embedding.state_store import DESCRIPTION_FILE
from backend.releases.publish import publish_first
from backend.releases.store import ReleaseStore
from backend.server.progress import TerminalSteps
from backend.settings import BackendSettings, load_settings


@dataclass(frozen=True)
class BenchWorkspace:
    """Settings of a folder with a prepared encoder and a release.

    vectors [n, D] are in the order of the titles.
    """

    settings: BackendSettings
    vectors: NDArray[np.float32]
    releases: ReleaseStore


def open_workspace(name: str, titles: Sequence[str]) -> BenchWorkspace:
    """Return the workspace for these titles, from the cache or newly built."""
    mark = hashlib.sha256("\n".join(titles).encode()).hexdigest()[:12]
    folder = platformdirs.user_cache_path("ownfeed") / "bench" / f"{name}-{mark}"
    folder.mkdir(parents=True, exist_ok=True)
    settings = load_settings(data_dir=folder)
    steps = TerminalSteps()
    if not (settings.encoder_dir / DESCRIPTION_FILE).is_file():
        from backend.embedding.initial_encoder import make_initial_encoder

        with steps.step("Preparing the news encoder"):
            make_initial_encoder(settings, lambda: titles)
    vectors = _vectors(settings, folder, titles, steps)
    migrate(settings.database_url)
    releases = ReleaseStore.open(open_engine(settings.database_url), settings)
    if releases.current() is None:
        with steps.step("Exporting the first release") as advance:
            publish_first(releases, encoder=load_embedder(settings).digest, vectors=vectors, progress=advance)
    return BenchWorkspace(settings, vectors, releases)


def _vectors(
    settings: BackendSettings, folder: Path, titles: Sequence[str], steps: TerminalSteps
) -> NDArray[np.float32]:
    embedder = load_embedder(settings)
    path = folder / f"vectors-{embedder.digest}.npy"
    if path.is_file():
        return np.asarray(np.load(path), dtype=np.float32)
    with steps.step("Reading the headlines with BERT") as advance:
        vectors = embedder.encode(titles, progress=advance)
    np.save(path, vectors)
    return vectors
