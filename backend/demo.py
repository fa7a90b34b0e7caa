"""One command, the whole loop: prepare what a first feed needs, then run backend, the reader's device and a simulated
fleet; the backend prepares the rest meanwhile.

The three run as processes of their own, as they would anywhere; this one starts them in order, watches them and stops
them. Everything lies in one folder, guarded by one lock.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import httpx

from backend.db.engine import open_engine
from backend.first_start_process import FirstStartProcess
from backend.local_processes import LOOPBACK, LocalPlan, LocalProcesses, StartRefused, link_of
from backend.newspaper import GeneratedNewspaper
from backend.operator import Operator, OperatorRefused
from backend.progress import Steps
from backend.releases.between_rounds import is_published
from backend.settings import BackendSettings, load_settings
from device_app.fleet_figures import read_fleet_figures
from models.rankers import choices

LOOK_SEC = 1.0
ENDED = ("published", "failed")


@dataclass(frozen=True)
class DemoPlan(LocalPlan):
    """What to run and where. index and as_printed are of the settings of these names; None for the operator's own."""

    name: ClassVar[str] = "demo"
    devices: int = 60
    articles: int = 6_000
    seed: int = 7
    pace: float = 1.0
    index: str | None = None
    as_printed: str | None = None

    def backend_settings(self) -> BackendSettings:
        """The server's settings for this demo: what is done before its process is there. Raises
        BackendSettingsRefused."""
        chosen = {"index": self.index, "as_printed": self.as_printed}
        named = {name: value for name, value in chosen.items() if value is not None}
        return load_settings(data_dir=self.data_dir / "backend", host=LOOPBACK, port=self.backend_port, **named)

    @property
    def printed(self) -> dict[str, str]:
        """What every process is told of the paper that is run as printed; nothing where none is."""
        sides = ("OWNFEED_BACKEND_AS_PRINTED", "OWNFEED_DEVICE_AS_PRINTED")
        return {} if self.as_printed is None else dict.fromkeys(sides, self.as_printed)

    @property
    def own_device(self) -> str:
        """How the reader's own device is set, for the terminal."""
        if self.as_printed is None:
            return "Your own device has the usual settings: it doesn't train until you switch that on."
        return (
            "Your own device reports as the paper has it: its privacy page says what that costs. It doesn't train\n"
            "until you switch that on."
        )

    @property
    def fleet_figures(self) -> Path:
        """Where the fleet tells the console what only simulated readers can tell."""
        return self.data_dir / "fleet-figures.json"


def folder_name(as_printed: str | None) -> str:
    """Of a demo's own folder: a paper as printed has one, so that nobody's releases change."""
    return "demo" if as_printed is None else f"demo-{as_printed}"


DEMO_DEVICE = {
    # On one machine nobody wants to wait a minute for a release to be noticed. Nothing of privacy stands
    # here: the demo's own reader has the product's defaults.
    "OWNFEED_DEVICE_PERFORMANCE__SYNC_POLL_SEC": "5",
}

DEMO_READERS = {
    **DEMO_DEVICE,
    # The fleet's own pace; a device alone that asked so often would pass for the many that a round waits for.
    "OWNFEED_DEVICE_PERFORMANCE__TRAINING_POLL_SEC": "2",
    # Simulated readers take part in training under the papers' noise, which costs epsilon 4.9 million an upload, and in
    # many noisy sums a day: their ceilings are raised so far that the ledger refuses none of it.
    "OWNFEED_DEVICE_PRIVACY__TRAINING": "true",
    "OWNFEED_DEVICE_PRIVACY__EPSILON_PER_DAY_TRAINING": "1e9",
    "OWNFEED_DEVICE_PRIVACY__EPSILON_PER_DAY_ALONE": "1e9",
    # Sums without noise too, which no epsilon bounds: Efficient-FedRec's rounds are such.
    "OWNFEED_DEVICE_PRIVACY__SECURE_SUM": "exact",
    # Counts come every few minutes here; the budget of a real device pays for one or two a day.
    "OWNFEED_DEVICE_PRIVACY__EPSILON_PER_DAY_COUNTS": "1000",
    # What a reader has to allow first: counts whose shares are thin, since they are made for 500 devices and more.
    "OWNFEED_DEVICE_PRIVACY__EPSILON_PER_SUM": "1000",
    "OWNFEED_DEVICE_PRIVACY__EPSILON_PER_SUM_ALONE": "1000",
    "OWNFEED_DEVICE_PRIVACY__EPSILON_PER_CLICK_ALONE": "1000",
}

DEMO_ROUNDS = {
    "OWNFEED_BACKEND_COUNTS_EVERY_MINUTES": "5",
    # Simulated readers read for some minutes before they can train.
    "OWNFEED_BACKEND_ROUNDS_WAIT_FOR_DEVICES": "true",
    # Each of them asks for a round about once in half a minute, since one process asks for all in turn.
    "OWNFEED_BACKEND_ROUNDS_POLLS_PER_DEVICE": "1",
}

# Every system of the console can be run here, so every ranker is in the releases.
DEMO_RANKERS = {"OWNFEED_BACKEND_RANKERS": json.dumps(choices())}

# The fleet's devices all come from this machine; elsewhere one address gets a few places in a round and no more.
DEMO_ADDRESSES = {"OWNFEED_BACKEND_UNBOUNDED_ADDRESSES": '["127.0.0.0/8", "::1/128"]'}


class RunningDemo(NamedTuple):
    """The links that open feed, browser's device and console, and the newspaper, which goes on while its caller has
    it publish."""

    feed_url: str
    browser_url: str
    console_url: str
    newspaper: GeneratedNewspaper


def tell_progress(plan: DemoPlan, processes: LocalProcesses, say: Callable[[str], object], began: datetime) -> None:
    """Say when the fleet is ready and what the backend has prepared, a line each, until all of it is there.

    began: when this demo did; figures of an earlier fleet tell nothing. Raises StartRefused if a process ends
    meanwhile. What the backend is too busy to tell now it tells later.
    """
    operator = Operator(plan.backend_url, plan.backend_settings().admin_token_file)
    told: set[str] = set()
    waits_for_fleet = plan.devices > 0
    while True:
        processes.check()
        tasks: list[dict[str, Any]] | None = None
        with suppress(OperatorRefused):
            tasks = operator.backfill()
        for task in tasks or ():
            if task["stage"] in ENDED and task["task"] not in told:
                told.add(task["task"])
                why = "." if task["trouble"] is None else f" failed: {task['trouble']}"
                say(f"Prepared in the background, {len(told)} of {len(tasks or ())}: {task['task']}{why}")
        fleet = read_fleet_figures(plan.fleet_figures) if waits_for_fleet else None
        if fleet is not None and fleet.began is not None and fleet.began >= began and fleet.ready >= fleet.readers:
            waits_for_fleet = False
            say(f"The fleet is ready: {fleet.ready} simulated readers take part in rounds.")
        if tasks is not None and len(told) == len(tasks) and not waits_for_fleet:
            return
        time.sleep(LOOK_SEC)


def start_demo(plan: DemoPlan, processes: LocalProcesses, steps: Steps) -> RunningDemo:
    """Prepare and start everything; the caller stops the processes, and has the newspaper go on.

    A folder with a release is served at once: its newspaper catches up while the caller has it go on.
    """
    settings = plan.backend_settings()
    at = {"OWNFEED_DEVICE_BACKEND_URL": plan.backend_url, **plan.printed}
    home = str(plan.data_dir)
    # A device serves what it has without a backend, so it need not wait for one.
    processes.start(
        "device",
        ["device", "--profile", "reader", "--data-dir", home, "--port", str(plan.device_port)],
        at | DEMO_DEVICE,
    )
    try:
        newspaper = GeneratedNewspaper.of(settings, articles=plan.articles, seed=plan.seed, pace=plan.pace)
        if not is_published(open_engine(settings.database_url)):
            with FirstStartProcess(settings, waits=True) as preparing:
                newspaper.open(steps)
                preparing.news_are_here()
                preparing.follow(steps)
    except OSError as failed:
        raise StartRefused(
            f"Preparing {plan.data_dir} failed: {failed.strerror}. The next start goes on from here."
        ) from failed
    with steps.step("Starting the backend and your device"):
        backend = {
            "OWNFEED_BACKEND_DATA_DIR": str(settings.data_dir),
            "OWNFEED_BACKEND_FLEET_FIGURES": str(plan.fleet_figures),
            "OWNFEED_BACKEND_INDEX": settings.index,
            **plan.printed,
            **DEMO_ROUNDS,
            **DEMO_RANKERS,
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
    browser_url = f"{plan.backend_url}/reader/"
    return RunningDemo(link_of(plan.data_dir, plan.feed_url), browser_url, console_url, newspaper)
