"""The real server on a real port, over a small pool, and its readers' requests."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from backend.app import create_app
from backend.composition import Services, build_services
from backend.federation.systems import COMPOSED
from backend.server.http_server import http_server
from protocol.ids import PROTOCOL_VERSION
from protocol.rounds import CheckIn, RoundOffer
from tests.doubles.recall_world import fill, publish, report, settings_in
from tests.doubles.slow_clients import PATIENCE_SEC


class Served:
    """A running backend."""

    def __init__(self, url: str, services: Services) -> None:
        self.url, self.services = url, services
        self.client = httpx.Client(base_url=url, timeout=PATIENCE_SEC)

    def offers(self, system: str, wanted: int) -> list[RoundOffer]:
        """Open a round of this size and return all its places."""
        coordinator = self.services.coordinator
        coordinator.open_round(system, cohort=wanted, cohort_minimum=wanted, seconds=3_600)
        message = CheckIn(protocol=PROTOCOL_VERSION, release=1, tasks=(COMPOSED[system].task,))
        found = [coordinator.check_in(message) for _ in range(wanted)]
        return [offer for offer in found if offer is not None]

    def everybody_else(self) -> None:
        """Send ordinary readers' requests; each must be answered."""
        code = {"kind": "code", "codebook": 16, "code": 3}
        for _ in range(2):
            for path in ("/v1/releases/current", "/v1/news/front", "/v1/rounds/current", "/v1/releases/1/vectors"):
                answer = self.client.get(path)
                assert answer.status_code in (200, 204), f"{path}: {answer.text}"
            for asked in (report(), code):
                answer = self.client.post("/v1/recall", json={"release": 1, "limit": 40, "report": asked})
                assert answer.status_code == 200, answer.text


@contextmanager
def serve_backend(folder: Path, **changes: Any) -> Iterator[Served]:
    settings = settings_in(folder, host="127.0.0.1", port=0, **changes)
    fill(settings, 60)
    publish(settings)
    services = build_services(settings)
    server = http_server(create_app(services=services), settings)
    listener = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    served = Served(f"http://127.0.0.1:{listener.getsockname()[1]}", services)
    try:
        served.everybody_else()  # its connections queue until it listens
        yield served
    finally:
        served.client.close()
        server.should_exit = True
        thread.join(PATIENCE_SEC)
        services.close()
        listener.close()


def wait_until(true: Callable[[], bool]) -> None:
    """Wait until the condition holds, far longer than a slow machine needs."""
    end = time.monotonic() + PATIENCE_SEC
    while not true():
        assert time.monotonic() < end, "it never became so"
        time.sleep(0.02)
