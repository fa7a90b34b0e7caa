"""Runs the whole system with one command: a server, the reader's device and a fleet of simulated readers.

The three run as separate processes, as they would in a deployment. This module prepares what the first feed needs,
starts the processes in order, watches them and stops them; the server prepares the rest in the background. All data are
in one folder, which one lock guards.
"""

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
from backend.errors import training_is_installed
from backend.news.newspaper import GeneratedNewspaper
from backend.operations.admin_client import Operator, OperatorRefused
from backend.releases.between_rounds import is_published
from backend.server.local_processes import LOOPBACK, LocalPlan, LocalProcesses, StartRefused, link_of
from backend.server.progress import Steps
from backend.settings import BackendSettings, load_settings
from backend.setup.first_start_process import FirstStartProcess
from exporters.shipped import is_shipped
from models.rankers import RANKERS, choices, release_name
from protocol.fleet_figures import read_fleet_figures

LOOK_SEC = 1.0
ENDED = ("published", "failed")


@dataclass(frozen=True)
class DemoPlan(LocalPlan):
    """What the demo runs and where.

    `index` and `as_published` set the settings of these names; None keeps the operator's.
    """

    name: ClassVar[str] = "demo"
    devices: int = 60
    articles: int = 6_000
    seed: int = 7
    pace: float = 1.0
    index: str | None = None
    as_published: str | None = None

    def backend_settings(self) -> BackendSettings:
        """The server's settings for this demo, also for the work before its process starts.

        Raises BackendSettingsRefused.
        """
        chosen = {"index": self.index, "as_published": self.as_published}
        named = {name: value for name, value in chosen.items() if value is not None}
        return load_settings(data_dir=self.data_dir / "backend", host=LOOPBACK, port=self.backend_port, **named)

    @property
    def printed(self) -> dict[str, str]:
        """Return environment variables that make every process run a paper's system as published.

        Empty if no paper is named.
        """
        sides = ("OWNFEED_BACKEND_AS_PUBLISHED", "OWNFEED_DEVICE_AS_PUBLISHED")
        return {} if self.as_published is None else dict.fromkeys(sides, self.as_published)

    @property
    def own_device(self) -> str:
        """Return how the reader's own device is configured, as text for the terminal."""
        if self.as_published is None:
            return "Your own device has the usual settings: it doesn't train until you switch that on."
        return (
            "Your own device reports as the paper has it: its privacy page says what that costs. It doesn't train\n"
            "until you switch that on."
        )

    @property
    def left_out(self) -> str:
        """What the demo leaves out, as text for the terminal; empty if nothing."""
        missing = len(choices()) - len(demo_rankers(self.backend_settings()))
        return (
            f"{missing} of the papers' models, and rounds that train the news model, need torch, which is not "
            "installed:\n  pip install 'ownfeed[train]'\n"
            if missing
            else ""
        )

    @property
    def fleet_figures(self) -> Path:
        """Return the file in which the fleet reports to the console the figures that only simulated readers can
        know.
        """
        return self.data_dir / "fleet-figures.json"


def folder_name(as_published: str | None) -> str:
    """Name of the demo's folder.

    A paper as published has its own folder, so that other releases stay unchanged.
    """
    return "demo" if as_published is None else f"demo-{as_published}"


DEMO_DEVICE = {
    # On one machine a release should be noticed in less than a minute. No privacy settings here: the demo's own reader
    # has the product's defaults.
    "OWNFEED_DEVICE_PERFORMANCE__SYNC_POLL_SEC": "5",
    "OWNFEED_DEVICE_PERFORMANCE__RECALL_POLL_SEC": "60",
}

DEMO_READERS = {
    **DEMO_DEVICE,
    # Only for the fleet: a single device that polled so often would look like the many devices that a round waits for.
    "OWNFEED_DEVICE_PERFORMANCE__TRAINING_POLL_SEC": "2",
    # Simulated readers take part in training with the papers' noise, which costs epsilon 4.9 million per upload, and in
    # many noisy sums a day: their limits are so high that the ledger refuses none of it.
    "OWNFEED_DEVICE_PRIVACY__TRAINING": "true",
    "OWNFEED_DEVICE_PRIVACY__EPSILON_PER_DAY_TRAINING": "1e9",
    "OWNFEED_DEVICE_PRIVACY__EPSILON_PER_DAY_ALONE": "1e9",
    # Also sums without noise, which no epsilon bounds, such as Efficient-FedRec's rounds.
    "OWNFEED_DEVICE_PRIVACY__SECURE_SUM": "exact",
    # Counts are made every few minutes here; the budget of a real device pays for one or two a day.
    "OWNFEED_DEVICE_PRIVACY__EPSILON_PER_DAY_COUNTS": "1000",
    # A real reader would have to allow this first: counts with little noise per share, designed for 500 devices or
    # more.
    "OWNFEED_DEVICE_PRIVACY__EPSILON_PER_SUM": "1000",
    "OWNFEED_DEVICE_PRIVACY__EPSILON_PER_SUM_ALONE": "1000",
    "OWNFEED_DEVICE_PRIVACY__EPSILON_PER_CLICK_ALONE": "1000",
}

DEMO_ROUNDS = {
    "OWNFEED_BACKEND_COUNTS_EVERY_MINUTES": "5",
    # Simulated readers read for some minutes before they can train.
    "OWNFEED_BACKEND_ROUNDS_WAIT_FOR_DEVICES": "true",
    # Each polls for a round about once in half a minute, since one process polls for all of them in turn.
    "OWNFEED_BACKEND_ROUNDS_POLLS_PER_DEVICE": "1",
}


def demo_rankers(settings: BackendSettings) -> tuple[str, ...]:
    """Rankers of the demo's releases: all, so that the console can start every system.

    Without torch, and without a command that installs it, only those whose graphs travel with Ownfeed.
    """
    if training_is_installed() or settings.install_training is not None:
        return choices()
    return tuple(name for name in choices() if is_shipped(RANKERS[release_name(name)].architecture))


# The fleet's devices all connect from this machine; elsewhere one address gets only a few places in a round.
DEMO_ADDRESSES = {"OWNFEED_BACKEND_UNBOUNDED_ADDRESSES": '["127.0.0.0/8", "::1/128"]'}


class RunningDemo(NamedTuple):
    """The demo's three links, and its newspaper, which the caller must keep publishing."""

    feed_url: str
    browser_url: str
    console_url: str
    newspaper: GeneratedNewspaper


def print_progress(plan: DemoPlan, processes: LocalProcesses, say: Callable[[str], object], began: datetime) -> None:
    """Report, a line each, when the fleet is ready and what the server has prepared, until all of it is done.

    began: when this demo started; older figures of an earlier fleet are ignored. If the server is too busy to answer,
    it is polled again later. Raises StartRefused if a process ends meanwhile.
    """
    operator = Operator(plan.backend_url, plan.backend_settings().admin_token_file)
    announced: set[str] = set()
    waits_for_fleet = plan.devices > 0
    while True:
        processes.check()
        tasks: list[dict[str, Any]] | None = None
        with suppress(OperatorRefused):
            tasks = operator.backfill()
        for task in tasks or ():
            if task["stage"] in ENDED and task["task"] not in announced:
                announced.add(task["task"])
                why = "." if task["trouble"] is None else f" failed: {task['trouble']}"
                say(f"Prepared in the background, {len(announced)} of {len(tasks or ())}: {task['task']}{why}")
        fleet = read_fleet_figures(plan.fleet_figures) if waits_for_fleet else None
        if fleet is not None and fleet.began is not None and fleet.began >= began and fleet.ready >= fleet.readers:
            waits_for_fleet = False
            say(f"The fleet is ready: {fleet.ready} simulated readers take part in rounds.")
        if tasks is not None and len(announced) == len(tasks) and not waits_for_fleet:
            return
        time.sleep(LOOK_SEC)


def start_demo(plan: DemoPlan, processes: LocalProcesses, steps: Steps) -> RunningDemo:
    """Prepare and start everything.

    The caller stops the processes and keeps the newspaper publishing.

    A folder that already has a release is served at once; its newspaper catches up while the caller lets it publish.
    """
    settings = plan.backend_settings()
    at = {"OWNFEED_DEVICE_BACKEND_URL": plan.backend_url, **plan.printed}
    home = str(plan.data_dir)
    # A device serves what it has without a server, so it need not wait for one.
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
            f"Preparing {plan.data_dir} failed: {failed.strerror}. The next start continues from here."
        ) from failed
    with steps.step("Starting the backend and your device"):
        backend = {
            "OWNFEED_BACKEND_DATA_DIR": str(settings.data_dir),
            "OWNFEED_BACKEND_FLEET_FIGURES": str(plan.fleet_figures),
            "OWNFEED_BACKEND_INDEX": settings.index,
            **plan.printed,
            **DEMO_ROUNDS,
            "OWNFEED_BACKEND_RANKERS": json.dumps(demo_rankers(settings)),
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
