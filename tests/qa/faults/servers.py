"""Servers of one backend that are killed at their points, and clients that retry as a device does.

Their release has a tiny model that one plain round steps, and whose secure rounds keep the hash of their sum.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar
from unittest.mock import patch

import httpx
import numpy as np
from numpy.typing import NDArray

from backend.operations.admin_client import Operator, OperatorRefused
from backend.server.log import LOG_FILE
from backend.settings import BackendSettings, load_settings
from experiments.bench.secagg_http import SUMMING, summing_systems
from protocol.tensors import pack
from tests.doubles.small_release import small_draft
from tests.doubles.small_world import START_WITHIN_SEC, free_port
from tests.qa.faults.points import KINDS, DeadlyPoint, FullFor, PointKind
from tests.qa.faults.processes import WatchedProcess, started

T = TypeVar("T")
LENGTH = 33
PLAIN = "uni_fedrec"
SPARE = 8.0
"""Offers for each client: one whose answer was lost with its server is a place that nobody takes."""
ASK_AGAIN_SEC = 0.05
FAULT = " unexpected "
"""In a line that a server logs of an error that nobody foresaw."""
WEIGHTS: Mapping[str, NDArray[np.float64]] = {"basis_keys": np.eye(2, 3), "basis_values": np.eye(2, 3)}
"""Of the first release."""


def settings_of(folder: Path, extra: Mapping[str, str]) -> BackendSettings:
    """Return settings of a server over this folder; extra: its own variables (`OWNFEED_BACKEND_...`)."""
    with patch.dict(os.environ, extra):
        return load_settings(
            data_dir=folder,
            requests_per_minute=0,
            requests_per_minute_in_all=0,
            round_tick_sec=0.05,
            gate=False,
            counts_every_minutes=0,
        )


def prepare(folder: Path, extra: Mapping[str, str]) -> None:
    """Make the first release, and the secrets."""
    from backend.composition import build_services

    os.environ.update(extra)  # this process is the server's own
    services = build_services(settings_of(folder, extra))
    store = services.releases
    draft, weights = small_draft(store), {name: value.astype(np.float32) for name, value in WEIGHTS.items()}
    recall = draft.models["recall"].model_copy(update={"weights": store.add_blob(pack(weights))})
    store.commit(replace(draft, models={**draft.models, "recall": recall}), note="for kills")
    services.close()


def serve(folder: Path, port: int, extra: Mapping[str, str]) -> None:
    """Serve until killed, on asyncio's own event loop, whose steps are points."""
    import uvicorn

    from backend.app import create_app
    from backend.composition import build_services
    from backend.federation.rounds.coordinator import Coordinator
    from backend.federation.systems import COMPOSED

    os.environ.update(extra)  # this process is the server's own
    settings = settings_of(folder, extra)
    services = build_services(settings)
    systems = {PLAIN: COMPOSED[PLAIN], SUMMING: summing_systems(LENGTH)[SUMMING]}
    services.coordinator = Coordinator(
        services.engine,
        services.releases,
        {name: replace(spec, over_selection=SPARE) for name, spec in systems.items()},
        settings.data_dir,
        storage=services.storage,
    )
    uvicorn.run(
        create_app(services=services), host="127.0.0.1", port=port, access_log=False, log_level="error", loop="asyncio"
    )


@dataclass
class FailingServers:
    """Servers over one folder (or a folder each, with copied secrets), each restarted where it was killed.

    is_scarce: they aren't killed, and `refuse` refuses them space.
    """

    folders: list[Path]
    notes: Path
    extra: Mapping[str, str] = field(default_factory=dict)
    restarts: bool = True
    is_scarce: bool = False
    deaths: list[str] = field(default_factory=list)
    troubles: Counter[str] = field(default_factory=Counter)
    _under_way: list[tuple[WatchedProcess, int]] = field(default_factory=list)
    _starts: int = 0
    _asked: int = 0

    def start(self, deadly: DeadlyPoint | None = None) -> None:
        """Start all; the first dies at its deadly point, maybe before it answers."""
        for place, _ in enumerate(self.folders):
            self._under_way.append(self._started(place, deadly if place == 0 else None))
        for place, _ in enumerate(self.folders):
            self._answering(place)

    def stop(self) -> None:
        """Kill the running ones."""
        for watched, _ in self._under_way:
            watched.kill()
        self._under_way.clear()

    def passed(self) -> dict[PointKind, int]:
        """Return the passed points of the first server."""
        return {kind: self._under_way[0][0].counts.passed(kind) for kind in KINDS}

    def asked(self) -> list[str]:
        """Return the first server's requests for space so far."""
        return self._under_way[0][0].counts.asked()

    def refuse(self, full: FullFor) -> None:
        """Make the first server be refused space, counted from now on."""
        self._under_way[0][0].counts.refuse(full)

    def refused(self) -> str:
        """Return what in the first server was refused space first."""
        return self._under_way[0][0].counts.what()

    def logged(self) -> str:
        """Return warnings and worse of all servers. Raises AssertionError for an unexpected error."""
        logs = [folder / LOG_FILE for folder in {*self.folders}]
        text = "".join(each.read_text(encoding="utf-8", errors="replace") for each in logs if each.exists())
        found = "\n".join(line for line in text.splitlines() if " WARNING " in line or " ERROR " in line)
        assert FAULT not in found, text[text.index(FAULT) - 200 :][:4_000]
        return found

    def ask(self, act: Callable[[httpx.Client], T]) -> T:
        """Return the result of `act` from one of the servers in turn; retry without an answer or when told to wait."""
        until = time.monotonic() + START_WITHIN_SEC
        while True:
            self._revive()
            alive = [port for watched, port in self._under_way if watched.process.is_alive()]
            self._asked += 1
            port = alive[self._asked % len(alive)] if alive else 1
            try:
                # A connection each: one to a server that was killed has nothing to say of the next.
                with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60.0) as http:
                    return act(http)
            except httpx.HTTPStatusError as reported:
                status, body = reported.response.status_code, reported.response.text
                self.troubles[f"{status} {reported.response.json().get('type', '')}"] += 1
                if status != 503 or "retry-after" not in reported.response.headers:
                    raise AssertionError(
                        f"{reported.request.method} {reported.request.url.path}: {status} {body}"
                    ) from reported
            except httpx.TransportError as gone:
                self.troubles[type(gone).__name__] += 1
            except OperatorRefused as refused:
                self.troubles["OperatorRefused"] += 1
                if not isinstance(refused.__cause__, httpx.TransportError) and "at the moment" not in str(refused):
                    raise AssertionError(str(refused)) from refused
            assert time.monotonic() < until, f"nobody answers: {dict(self.troubles)}"
            time.sleep(ASK_AGAIN_SEC)

    def operator(self, act: Callable[[Operator], T]) -> T:
        """Do the same for the operator."""
        token = self.folders[0] / "admin.token"
        return self.ask(lambda http: act(Operator(str(http.base_url), token)))

    def _revive(self) -> None:
        for place, (watched, _) in enumerate(self._under_way):
            if watched.process.is_alive():
                continue
            watched.process.join()
            if watched.counts.what() not in self.deaths:
                assert watched.killed, watched.output.read_text(errors="replace")[-4_000:]
                self.deaths.append(watched.counts.what())
            if self.restarts or len(self._under_way) == 1:
                self._under_way[place] = self._started(place, None)
                self._answering(place)

    def _started(self, place: int, deadly: DeadlyPoint | None) -> tuple[WatchedProcess, int]:
        self._starts += 1
        port, folder = free_port(), self.folders[place]
        notes = self.notes / str(self._starts)
        full = FullFor(0, 0) if self.is_scarce else None
        return started(serve, folder, port, self.extra, watched=folder, notes=notes, deadly=deadly, full=full), port

    def _answering(self, place: int) -> None:
        watched, port = self._under_way[place]
        until = time.monotonic() + START_WITHIN_SEC
        while watched.process.is_alive():
            try:
                if httpx.get(f"http://127.0.0.1:{port}/v1/health", timeout=5.0).is_success:
                    return
            except httpx.TransportError:
                time.sleep(ASK_AGAIN_SEC)
            assert time.monotonic() < until, "the server did not start in time"
