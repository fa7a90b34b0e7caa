"""Runs a whole Ownfeed for benches: the generated newspaper, prepared once, then server and device as real
processes.
"""

import socket
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from urllib.parse import urlsplit

import httpx
import platformdirs

from backend.db.engine import migrate, open_engine
from backend.demo import DEMO_ADDRESSES, DEMO_READERS
from backend.news.newspaper import GeneratedNewspaper
from backend.news.pool import NewsPool
from backend.server.local_processes import LOOPBACK, LocalProcesses, link_of
from backend.server.progress import TerminalSteps
from backend.settings import BackendSettings, load_settings
from backend.setup.first_start import make_servable

ARTICLES = 6_000
START_WITHIN_SEC = 240.0
"""Limit for a hanging start; a start takes seconds, but the machine may be busy."""


@dataclass(frozen=True)
class RunningBackend:
    """A backend process that answers at `url`."""

    url: str
    settings: BackendSettings
    processes: LocalProcesses


def prepared_newspaper(articles: int = ARTICLES) -> BackendSettings:
    """Return a data folder with the newspaper, from the user's cache; the first call builds it.

    No file in it stays open, so that it may be copied: closing a file would release all of this process's locks on it.
    """
    folder = platformdirs.user_cache_path("ownfeed") / "bench" / f"newsroom-{articles}"
    settings = load_settings(data_dir=folder, host=LOOPBACK, port=free_port())
    steps = TerminalSteps()
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    engine = open_engine(settings.database_url)
    try:
        migrate(engine)
        GeneratedNewspaper(NewsPool(engine), settings.data_dir, articles=articles, seed=7).open(steps)
    finally:
        engine.dispose()
    # Embed all of them, so that nothing is filled in while a bench measures.
    make_servable(settings, steps, stories=10 * articles)
    return settings


@contextmanager
def running_backend(
    settings: BackendSettings | None = None, workers: int = 1, environment: Mapping[str, str] = MappingProxyType({})
) -> Iterator[RunningBackend]:
    """Serve the newspaper, or another prepared folder, on a free port until the block ends.

    environment: additional variables of the server.
    """
    settings = settings or prepared_newspaper()
    with tempfile.TemporaryDirectory() as logs:
        processes = LocalProcesses(Path(logs))
        try:
            url = f"http://{LOOPBACK}:{settings.port}"
            variables = {
                "OWNFEED_BACKEND_DATA_DIR": str(settings.data_dir),
                # A bench measures the rounds that it opens, without the gate's rounds after them.
                "OWNFEED_BACKEND_GATE": "false",
                **DEMO_ADDRESSES,
                **environment,
            }
            # without the option one process serves, and none supervises it
            supervised = ["--workers", str(workers)] if workers > 1 else []
            processes.start("backend", ["serve", "--port", str(settings.port), *supervised], variables)
            processes.wait_until_served("backend", f"{url}/v1/health", within_sec=START_WITHIN_SEC)
            yield RunningBackend(url, settings, processes)
        finally:
            processes.stop()


def start_device(backend: RunningBackend, home: Path, environment: dict[str, str]) -> str:
    """Start `ownfeed device` with this backend, and return the link that opens its pages."""
    port = free_port()
    known = {"OWNFEED_DEVICE_BACKEND_URL": backend.url, **DEMO_READERS, **environment}
    backend.processes.start("device", ["device", "--data-dir", str(home), "--port", str(port)], known)
    pages = f"http://{LOOPBACK}:{port}/"
    backend.processes.wait_until_served("device", pages, answers=httpx.codes.FORBIDDEN)  # it asks for its key
    return link_of(home, pages)


def free_port() -> int:
    """Return a free port."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def reader_browser(link: str) -> Iterator[httpx.Client]:
    """Return a client that has opened a device's link and requests pages like a browser following links."""
    parts = urlsplit(link)
    home = f"{parts.scheme}://{parts.netloc}"
    says = {"origin": home, "sec-fetch-site": "same-origin", "sec-fetch-mode": "navigate"}
    with httpx.Client(base_url=home, timeout=30.0, follow_redirects=True, headers=says) as browser:
        browser.get(link).raise_for_status()
        yield browser
