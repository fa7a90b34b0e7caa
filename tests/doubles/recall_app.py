"""The whole server over a small pool in a temporary folder, called in process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from starlette.testclient import TestClient

from backend.app import create_app
from backend.composition import Services, build_services
from tests.doubles.recall_world import fill, publish, settings_in


@dataclass
class Running:
    """A started application: its client, its parts and its folder."""

    app: FastAPI
    client: TestClient
    services: Services
    folder: Path


@contextmanager
def running_server(folder: Path, *, news: int = 300, releases: int = 1, **changes: Any) -> Iterator[Running]:
    """Fill a pool, publish, start, and stop at the end."""
    settings = settings_in(folder, **changes)
    if news:
        fill(settings, news)
    for seed in range(releases):
        publish(settings, seed=seed)
    services = build_services(settings)
    app = create_app(services=services)
    try:
        with TestClient(app) as client:
            yield Running(app, client, services, folder)
    finally:
        services.close()
