"""A reader in Chromium before a real device and a real backend, with nine other devices for group counts and rounds.

Only BERT is replaced. Nothing runs in the background: a test decides when the device syncs and takes part.
"""

from __future__ import annotations

import random
import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from fastapi import FastAPI
from playwright.sync_api import Browser, Page

from device_app.composition import build_device
from device_app.device import Device
from device_app.pages.local_origin import LocalOriginMiddleware, PageKey
from device_app.pages.routes import router
from device_app.settings import DeviceSettings, PerformanceSettings, PrivacySettings
from protocol.rounds import RoundStatus
from tests.browser.conftest import Serve
from tests.doubles import small_world
from tests.doubles.in_process import InProcess
from tests.doubles.own_account import MEMBERS
from tests.doubles.round_rig import DeviceRig
from tests.doubles.small_world import SmallWorld
from tests.doubles.tapped_connection import TappedConnection, tapped_connection

TRAINS = PrivacySettings(training=True, epsilon_per_day_training=5)
ROUND_SEC = 120.0


class OneDay:
    """The machine's clock until the UTC day in which it was made ends; then it stays at that day's last second."""

    def __init__(self) -> None:
        start = datetime.now(UTC)
        self.last = start.replace(hour=23, minute=59, second=59, microsecond=0)

    def __call__(self) -> datetime:
        return min(datetime.now(UTC), self.last)


@dataclass
class ReadAlong:
    """The world, the reader's device with its pages, and the tapped connection to the backend."""

    world: SmallWorld
    device: Device
    home: str
    page: Page
    line: TappedConnection
    clock: OneDay
    others: list[DeviceRig] = field(default_factory=list)

    def go(self, path: str) -> Page:
        """Open a page of the device."""
        self.page.goto(self.home + path)
        return self.page

    def pick(self, section: str) -> None:
        """Pass the first visit; return on a page of which every text has arrived."""
        self.go("/welcome")
        self.page.get_by_label(section).check()
        self.page.get_by_role("button", name="Show my feed").click()
        self.page.wait_for_url(self.home + "/")
        self.fetch_texts()

    def fetch_texts(self) -> None:
        while self.device.prefetch_step():
            pass

    def read(self, stories: int) -> None:
        """Open the first stories of the page that were not opened yet, and look at the others."""
        self.go("/")
        feed = self.device.reading.feed()
        opened = self.device.library.read_news()
        self.device.reading.view(str(feed.feed_id), [item.card.id for item in feed.items[:8]])
        for item in [one for one in feed.items if one.card.id not in opened][:stories]:
            self.go("/")
            self.page.locator(f"a[href^='/story/{item.card.id}?']").first.click()
            self.page.wait_for_url(f"**/story/{item.card.id}?*")

    def new_page(self) -> None:
        """Let the background ask for candidates, then request another page of the feed with all texts."""
        self.device.recall_step()
        self.go("/")
        before = self.device.reading.feed().feed_id
        self.page.get_by_role("button", name="Refresh").click()
        # What a page says is taken out of its address by its script, sooner or later.
        self.page.get_by_text("Your page is up to date.").wait_for()
        assert self.device.reading.feed().feed_id != before
        self.fetch_texts()

    def erase(self) -> None:
        """Erase by the form on the settings page."""
        self.go("/settings")
        self.page.get_by_label("Type erase to confirm").fill("erase")
        self.page.get_by_role("button", name="Erase").click()
        self.page.wait_for_url(re.compile("/welcome"))

    def join(self, folder: Path, stack: ExitStack) -> None:
        """Add nine readers with the same reading: copies of the file, with their own keys in every round."""
        assert self.world.ears is not None
        network = InProcess(self.world.ears)
        stack.callback(network.close)
        for number in range(MEMBERS - 1):
            path = folder / f"other-{number}" / "device.sqlite"
            path.parent.mkdir()
            with sqlite3.connect(self.device.settings.database) as file:
                file.execute("VACUUM INTO ?", (str(path),))
            with sqlite3.connect(path) as file:
                file.execute("DELETE FROM charge")
            blobs = self.device.settings.database.parent / "blobs"
            other = DeviceRig(path, self.clock, network, TRAINS, number, blob_folder=blobs)
            stack.callback(other.stop)
            self.others.append(other)

    def take_part(self, system: str) -> RoundStatus:
        """Run a round of all ten from opening to end; the reader's device learns how it ended."""
        assert self.world.services is not None
        rounds = self.world.services.coordinator
        opened = rounds.open_round(system, cohort=MEMBERS, cohort_minimum=MEMBERS, seconds=ROUND_SEC)
        until = time.monotonic() + ROUND_SEC
        while (now := rounds.status(opened.round)).state not in ("applied", "failed"):
            assert time.monotonic() < until, f"{system} stays at {now.state}"
            self.device.train_step()
            for other in self.others:
                other.trainer.step()
        assert now.state == "applied", now.reason
        # The device learns of it by its own steps.
        kept = self.device.parts.stores.participations
        while (seen := self.device.training().round) is None or not (
            seen.round == opened.round
            and seen.state == "applied"
            and any(one.round == opened.round and one.state == "applied" for one in kept.list())
        ):
            assert time.monotonic() < until, f"the device has last seen {seen}"
            self.device.train_step()
            time.sleep(0.1)
        return rounds.status(opened.round)  # what came after its end counts among the bytes it received


@contextmanager
def read_along(folder: Path, first: Path, serve: Serve, chromium: Browser) -> Iterator[ReadAlong]:
    """Run the world, the device and its pages while the block runs."""
    with ExitStack() as stack:
        world = stack.enter_context(small_world.small_world(first, folder))
        stack.enter_context(world.backend())
        line = stack.enter_context(tapped_connection(world.url))
        made: list[Device] = []
        clock = OneDay()

        def make(port: int) -> FastAPI:
            performance = PerformanceSettings(training_send_sec=0.0, bodies_wait_sec=0.2)
            settings = DeviceSettings(data_dir=folder, backend_url=line.url, port=port, performance=performance)
            made.append(build_device(settings, chance=random.Random(5), clock=clock))
            app = FastAPI(openapi_url=None)
            app.include_router(router(made[0], PageKey.of_profile(settings.home, port)))
            app.add_middleware(LocalOriginMiddleware, port=port, key=PageKey.of_profile(settings.home, port))
            return app

        home = serve(make)
        device = made[0]
        stack.callback(device.close)
        context = chromium.new_context(viewport={"width": 1440, "height": 900})
        stack.callback(context.close)
        key = PageKey.of_profile(device.settings.home, device.settings.port)
        assert context.request.get(key.link("127.0.0.1")).ok
        device.sync()
        yield ReadAlong(world, device, home, context.new_page(), line, clock)
