"""`python -m tests.browser.mixed_round`: runs a secure count of 12 Python devices and 12 in Chromium over a real
backend.

Each Chromium device has a context of its own. Prints whether the sum was opened and how far it is from the oracle;
exits with 1 if it was not. Oracle: numpy's sum of the 24 vectors with their noise, recorded before masking.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from playwright.sync_api import BrowserContext, Page, Route, expect, sync_playwright

from backend.federation.strategies.counting import Counting
from backend.federation.systems import COMPOSED
from device_app.fleet.fleet import Fleet, warm_up
from device_app.privacy.protections.registry import SecureSumProtection
from device_app.privacy.secagg.messages import Contribution
from device_app.settings import DeviceSettings, PrivacySettings
from protocol.popularity import CLICKED, DISPLAYED
from protocol.protections import SecureSum
from tests.browser.conftest import ARGUMENTS, begin_first_visit, find_chromium
from tests.conformance.node_end import WEB
from tests.doubles.small_world import SmallWorld, first_folder, small_world

SYSTEM = "private_counts/secure/huber"
MINIMUM = 18
STORIES = 2
WITHIN_SEC = 600.0
ENDED = ("applied", "failed")


@dataclass
class RecordedSum:
    """What Python's devices contributed, and what the server opened: ring elements and the decoded sums"""

    given: list[NDArray[Any]] = field(default_factory=list)
    opened: NDArray[np.float64] | None = None

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Record what the devices and the server of this process compute."""
        give, conclude = SecureSumProtection.contribute, Counting.conclude

        def contribute(*args: Any, **kwargs: Any) -> Contribution:
            made = give(*args, **kwargs)
            self.given.append(made.vector)
            return made

        def concluded(strategy: Any, system: Any, total: Any, *args: Any) -> Any:
            sums = total.sums()
            self.opened = np.concatenate([sums[CLICKED], sums[DISPLAYED]])
            return conclude(strategy, system, total, *args)

        with (
            patch.object(SecureSumProtection, "contribute", contribute),
            patch.object(Counting, "conclude", concluded),
        ):
            yield


def worker_script(folder: Path) -> bytes:
    """Return the worker of the browser's device, changed to keep its vector where a debugger can read it."""
    node = shutil.which("node")
    if node is None:
        raise RuntimeError("node is missing: install Node.js 20 or newer")
    entry, made = Path(__file__).with_name("overheard_worker.ts"), folder / "worker.js"
    environment = os.environ | {"PYTHON": sys.executable}
    subprocess.run([node, str(WEB / "bundling.mjs"), str(entry), str(made)], env=environment, check=True)
    return made.read_bytes()


def reading_page(context: BrowserContext, url: str, script: bytes) -> Page:
    """Return a page whose reader has passed the first visit and opened some stories."""

    def answer(route: Route) -> None:
        route.fulfill(response=route.fetch(), body=script)

    context.set_default_timeout(WITHIN_SEC * 1_000)
    context.route("**/reader/files/worker.*.js", answer)
    page = context.new_page()
    page.goto(f"{url}/reader/")
    begin_first_visit(page)
    for number in range(STORIES):
        page.locator("article.card[id] .headline a").nth(number).click()
        expect(page.locator(".story .prose p").first).to_be_visible(timeout=WITHIN_SEC * 1_000)
        page.get_by_role("link", name="Back to the feed").click()
    page.wait_for_selector("article.card.read")
    return page


def count_together(world: SmallWorld, fleet: Fleet, pages: list[Page]) -> tuple[str, int]:
    """Run one round of all devices; return how it ended and how many took part."""
    assert world.services is not None
    coordinator = world.services.coordinator
    devices = len(fleet.members) + len(pages)
    opened = coordinator.open_round(SYSTEM, cohort=devices, cohort_minimum=MINIMUM, seconds=WITHIN_SEC)
    stopped = threading.Event()

    def work() -> None:
        while not stopped.wait(0.2):
            for member in fleet.members:
                member.device.train_step()

    thread = threading.Thread(target=work)
    thread.start()
    until = time.monotonic() + WITHIN_SEC
    try:
        while (status := coordinator.status(opened.round)).state not in ENDED and time.monotonic() < until:
            pages[0].wait_for_timeout(500)
    finally:
        stopped.set()
        thread.join()
    print(f"{status.round}: {status.state}, {status.survivors} survivors of {devices}; {status.reason or 'no fault'}")  # noqa: T201
    return status.state, status.survivors or 0


def compare(recorded: RecordedSum, pages: list[Page]) -> bool:
    """Return whether the server opened the sum of the contributions, to the fixed point's precision."""
    reported = [worker.evaluate("given") for page in pages for worker in page.workers]
    theirs = [np.frombuffer(bytes.fromhex(vector), dtype="<u4") for vectors in reported for vector in vectors]
    protection = COMPOSED[SYSTEM].protection
    assert isinstance(protection, SecureSum)
    vectors = np.array([*recorded.given, *theirs]).astype(np.uint32)
    total = (vectors.astype(np.int64).sum(axis=0) & 0xFFFFFFFF).astype(np.uint32).view(np.int32)
    step = 2.0**-protection.fraction_bits
    oracle = total[:-1].astype(np.float64) * step  # the last number is how many gave
    if recorded.opened is None:
        return False
    off = float(np.abs(recorded.opened - oracle).max())
    noisy = min((int(np.count_nonzero(each)) for each in theirs), default=0)
    print(f"{len(recorded.given)} vectors of Python and {len(theirs)} of Chromium, {len(oracle)} numbers each")  # noqa: T201
    print(f"largest difference from numpy's sum {off:g} (a step of the fixed point is {step:g}); gave: {total[-1]}")  # noqa: T201
    print(f"each vector of Chromium has at least {noisy} numbers other than zero")  # noqa: T201
    return off == 0 and int(total[-1]) == len(vectors) and noisy > len(oracle) // 2


def measure(python: int, browsers: int) -> bool:
    """Run a world, its devices and their round; return whether all took part and the sum matches the oracle."""
    recorded = RecordedSum()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        script = worker_script(folder)
        world = stack.enter_context(small_world(first_folder(folder), folder / "world"))
        stack.enter_context(world.backend())
        settings = DeviceSettings(
            data_dir=folder / "fleet", backend_url=world.url, privacy=PrivacySettings(training=False)
        )
        fleet = Fleet(settings, python, seed=7)
        stack.callback(fleet.close)
        fleet.run(warm_up)
        playwright = stack.enter_context(sync_playwright())
        chromium = playwright.chromium.launch(executable_path=find_chromium(playwright), args=list(ARGUMENTS))
        stack.callback(chromium.close)
        stack.enter_context(recorded.listening())
        contexts = [chromium.new_context(service_workers="block") for _ in range(browsers)]
        pages = [reading_page(context, world.url, script) for context in contexts]
        state, survivors = count_together(world, fleet, pages)
        return state == "applied" and survivors == python + browsers and compare(recorded, pages)


if __name__ == "__main__":
    wanted = argparse.ArgumentParser(description=__doc__)
    wanted.add_argument("--python", type=int, default=12)
    wanted.add_argument("--browsers", type=int, default=12)
    chosen = wanted.parse_args()
    sys.exit(0 if measure(chosen.python, chosen.browsers) else 1)
