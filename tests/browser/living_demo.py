"""`python -m tests.browser.living_demo --minutes 30`: runs a demo and watches its memory and a reader's open page.

Prints the memory of every process of the demo, and what the open page offers, once a minute. At the end it prints how
many stories arrived, whether the page moved, what a reload shows, and how much each process grew after SETTLED of the
time. `--pace 60` publishes an hour's articles every minute. It waits WARM_UP_SEC before the first figure, while caches
fill. Exits with 1 if no story arrived, the page moved, or a process grew by more than FLAT.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import psutil
from playwright.sync_api import Page, sync_playwright

from tests.browser.conftest import ARGUMENTS, find_chromium
from tests.browser.feed_picture import SIZE, choose
from tests.doubles.small_world import free_port

START_SEC = 600.0
WARM_UP_SEC = 120.0
SETTLED, FLAT = 1 / 3, 0.02
PLACES = """() => [...document.querySelectorAll("main [data-story]")].map((card) => {
  const box = card.getBoundingClientRect();
  return [card.id, box.left, box.top + scrollY, box.width, box.height].join(" ");
})"""


@contextmanager
def running_demo(folder: Path, devices: int, pace: float) -> Iterator[tuple[psutil.Process, str]]:
    """Run `ownfeed demo` in a new folder; yield the link to its feed. Raises RuntimeError if it doesn't start."""
    arguments = ["demo", "--data-dir", str(folder / "demo"), "--devices", str(devices), "--pace", str(pace)]
    arguments += ["--backend-port", str(free_port()), "--device-port", str(free_port())]
    said = folder / "said"
    with said.open("wb") as out:
        process = subprocess.Popen([sys.executable, "-m", "ownfeed", *arguments], stdout=out, stderr=out)
    try:
        deadline = time.monotonic() + START_SEC
        while (found := re.search(r"Your feed\s+(\S+)", said.read_text(encoding="utf-8"))) is None:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(said.read_text(encoding="utf-8"))
            time.sleep(0.5)
        yield psutil.Process(process.pid), found[1]
    finally:
        process.terminate()
        process.wait(60)


def memory_mb(demo: psutil.Process) -> dict[str, int]:
    """Return resident memory by process: the demo itself, which publishes, and the processes it started."""
    found = {"demo": demo.memory_info().rss // 2**20}
    for child in demo.children():
        command = child.cmdline()
        found[command[command.index("ownfeed") + 1]] = child.memory_info().rss // 2**20
    return found


def growth(held: list[dict[str, int]]) -> dict[str, float]:
    """Return by process how much more memory it holds at the end than after SETTLED of the time."""
    settled = held[round(SETTLED * (len(held) - 1))]
    return {name: held[-1][name] / size - 1 for name, size in settled.items() if name in held[-1]}


def layout_hash(page: Page) -> str:
    """Return a hash of the positions of everything on the page."""
    return sha256("\n".join(page.evaluate(PLACES)).encode()).hexdigest()[:16]


def offered(page: Page) -> str:
    """Return what the page offers instead of moving."""
    line = page.locator("[data-offer] .offered")
    return line.inner_text() if line.count() else "nothing"


def watch(minutes: int, devices: int, pace: float, pictures: Path) -> bool:
    """Return whether stories arrived, the page held still and memory stayed flat."""
    with (
        tempfile.TemporaryDirectory() as home,
        running_demo(Path(home), devices, pace) as (demo, link),
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=find_chromium(playwright), args=list(ARGUMENTS))
        page = browser.new_page(viewport=SIZE, color_scheme="light")
        page.goto(link)
        choose(page)
        page.wait_for_timeout(WARM_UP_SEC * 1_000)
        page.screenshot(path=pictures / "before.png")
        before, held = layout_hash(page), []
        for minute in range(minutes + 1):
            held.append(memory_mb(demo))
            sizes = " ".join(f"{name} {size} MB" for name, size in held[-1].items())
            print(f"{minute:3} min: {sizes}; page {layout_hash(page)}, offers {offered(page)}", flush=True)  # noqa: T201
            page.wait_for_timeout(60_000 if minute < minutes else 0)
        after = layout_hash(page)
        page.screenshot(path=pictures / "after.png")
        page.reload()
        reloaded, offer = layout_hash(page), offered(page)
        page.screenshot(path=pictures / "reloaded.png")
        browser.close()
    print(f"page before {before}, after {after}, reloaded {reloaded}; reloaded it offers {offer}")  # noqa: T201
    grew = growth(held)
    reported = ", ".join(f"{name} {share:+.1%}" for name, share in grew.items())
    print(f"memory since minute {round(SETTLED * minutes)}: {reported}; flat is {FLAT:.0%}")  # noqa: T201
    return before == after == reloaded and "new stor" in offer and max(grew.values()) <= FLAT


if __name__ == "__main__":
    wanted = argparse.ArgumentParser(description=__doc__)
    wanted.add_argument("--minutes", type=int, default=30)
    wanted.add_argument("--devices", type=int, default=60)
    wanted.add_argument("--pace", type=float, default=1.0)
    wanted.add_argument("--pictures", type=Path, default=Path(tempfile.gettempdir()))
    chosen = wanted.parse_args()
    sys.exit(0 if watch(chosen.minutes, chosen.devices, chosen.pace, chosen.pictures) else 1)
