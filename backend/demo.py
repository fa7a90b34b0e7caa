"""One command, the whole loop: prepare what is missing, then run backend, the reader's device and a simulated fleet.

The three run as processes of their own, as they would anywhere; this one starts them in order, watches them and stops
them. Everything lies in one folder, guarded by one lock.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple

import httpx

from backend.local_processes import LOOPBACK, LocalPlan, LocalProcesses, StartRefused, link_of
from backend.newspaper import GeneratedNewspaper
from backend.prepare_apart import prepare_apart
from backend.progress import Steps
from backend.settings import BackendSettings, load_settings


@dataclass(frozen=True)
class DemoPlan(LocalPlan):
    """What to run and where. index: of the setting of that name; None for the one the operator has chosen."""

    name: ClassVar[str] = "demo"
    devices: int = 60
    articles: int = 6_000
    seed: int = 7
    pace: float = 1.0
    index: str | None = None

    def backend_settings(self) -> BackendSettings:
        """The server's settings for this demo. Raises BackendSettingsRefused."""
        named = {} if self.index is None else {"index": self.index}
        # NRMS is what `ownfeed round --system efficient_fedrec` trains together with the news model.
        return load_settings(
            data_dir=self.data_dir / "backend", host=LOOPBACK, port=self.backend_port, rankers=("nrms",), **named
        )

    @property
    def fleet_figures(self) -> Path:
        """Where the fleet tells the console what only simulated readers can tell."""
        return self.data_dir / "fleet-figures.json"


DEMO_DEVICE = {
    # On one machine nobody wants to wait a minute for a round or a release to be noticed. Nothing of privacy stands
    # here: the demo's own reader has the product's defaults.
    "OWNFEED_DEVICE_PERFORMANCE__TRAINING_POLL_SEC": "2",
    "OWNFEED_DEVICE_PERFORMANCE__SYNC_POLL_SEC": "5",
}

DEMO_READERS = {
    **DEMO_DEVICE,
    # Simulated readers take part in training under the papers' noise, which costs epsilon 4.9 million an upload, and in
    # many noisy sums a day: their ceilings are raised so far that the ledger refuses none of it.
    "OWNFEED_DEVICE_PRIVACY__TRAINING": "true",
    "OWNFEED_DEVICE_PRIVACY__EPSILON_PER_DAY_TRAINING": "1e9",
    "OWNFEED_DEVICE_PRIVACY__EPSILON_PER_DAY_ALONE": "1e9",
    # Sums without noise too, which no epsilon bounds: Efficient-FedRec's rounds are such.
    "OWNFEED_DEVICE_PRIVACY__SECURE_SUM": "exact",
    # Counts come every few minutes here; the budget of a real device pays for one or two a day.
    "OWNFEED_DEVICE_PRIVACY__EPSILON_PER_DAY_COUNTS": "1000",
}

DEMO_COUNTS = {"OWNFEED_BACKEND_COUNTS_EVERY_MINUTES": "5"}

# The fleet's devices all come from this machine; elsewhere one address gets a few places in a round and no more.
DEMO_ADDRESSES = {"OWNFEED_BACKEND_UNBOUNDED_ADDRESSES": '["127.0.0.0/8", "::1/128"]'}


class RunningDemo(NamedTuple):
    """The links that open feed and console, and the newspaper, which goes on while its caller has it publish."""

    feed_url: str
    console_url: str
    newspaper: GeneratedNewspaper


def start_demo(plan: DemoPlan, processes: LocalProcesses, steps: Steps) -> RunningDemo:
    """Prepare and start everything; the caller stops the processes, and has the newspaper go on."""
    settings = plan.backend_settings()
    at = {"OWNFEED_DEVICE_BACKEND_URL": plan.backend_url}
    home = str(plan.data_dir)
    # A device serves what it has without a backend, so it need not wait for one.
    processes.start(
        "device",
        ["device", "--profile", "reader", "--data-dir", home, "--port", str(plan.device_port)],
        at | DEMO_DEVICE,
    )
    try:
        newspaper = GeneratedNewspaper.of(settings, articles=plan.articles, seed=plan.seed, pace=plan.pace)
        newspaper.open(steps)
        prepare_apart(settings, steps)
    except OSError as failed:
        raise StartRefused(
            f"Preparing {plan.data_dir} failed: {failed.strerror}. The next start goes on from here."
        ) from failed
    with steps.step("Starting the backend and your device"):
        backend = {
            "OWNFEED_BACKEND_DATA_DIR": str(settings.data_dir),
            "OWNFEED_BACKEND_FLEET_FIGURES": str(plan.fleet_figures),
            "OWNFEED_BACKEND_INDEX": settings.index,
            **DEMO_COUNTS,
            **DEMO_ADDRESSES,
        }
        processes.start("backend", ["serve", "--host", LOOPBACK, "--port", str(plan.backend_port)], backend)
        processes.wait_until_served("backend", f"{plan.backend_url}/v1/health")
        processes.wait_until_served("device", plan.feed_url, answers=httpx.codes.FORBIDDEN)  # it asks for its key
    if plan.devices:
        fleet = ["fleet", "--devices", str(plan.devices), "--data-dir", home, "--figures", str(plan.fleet_figures)]
        processes.start("fleet", fleet, at | DEMO_READERS)
    token = settings.admin_token_file.read_text(encoding="utf-8").strip()
    console_url = f"{plan.backend_url}/console?token={token}"
    return RunningDemo(link_of(plan.data_dir, plan.feed_url), console_url, newspaper)
