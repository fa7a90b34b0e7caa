"""`ownfeed bench feed`: measures what a feed promises its reader (decision 043).

The module also has a reader for other benches: a browser without scripts in its own process, `python -m
experiments.bench.feed LINK FILE`, which clicks and requests a new page. Every line of FILE holds a time (time.time())
and the milliseconds of a new page after a click. It runs until it is killed.
"""

import random
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.bench.feed_laws import Newspaper, measured
from experiments.bench.newspaper import reader_browser
from experiments.bench.newspaper_pages import default_ranker, newspaper_pool
from experiments.records import Table

PAUSE_SEC = 0.4
"""Pause between clicks. A device has about 1,000 stories for its pages, so a reader who opens ten a second would have
opened all of them within two minutes.
"""
STORY = re.compile(r'href="(/story/[^"]+)"')
TOLD_CHARS = 2_000


def read(link: str, path: Path) -> None:
    """Click and request pages until killed.

    A page without stories to open is not timed; the reader then continues under Explore.
    """
    dice = random.Random(7)
    with reader_browser(link) as browser, path.open("w") as file:
        browser.post("/welcome")
        page = browser.get("/").raise_for_status().text
        while True:
            stories = stories_of(page) or stories_of(browser.get("/explore").raise_for_status().text)
            if not stories:
                raise RuntimeError("neither the feed nor Explore shows a story")
            browser.get(dice.choice(stories)).raise_for_status()
            time.sleep(PAUSE_SEC)
            started = time.perf_counter()
            page = browser.post("/feed/refresh").raise_for_status().text
            if stories_of(page):
                file.write(f"{time.time():.3f} {(time.perf_counter() - started) * 1_000:.2f}\n")
                file.flush()


def stories_of(page: str) -> list[str]:
    """Return the addresses of the stories that a page links to, each once."""
    return sorted({address.replace("&amp;", "&") for address in STORY.findall(page)})


class PacedReader:
    """A process that reads a device's pages; `require_alive` detects its death.

    Args:
        link: opens the device's pages.
        path: the file it writes.
        log: the device's log, which explains why a page failed.
    """

    def __init__(self, link: str, path: Path, log: Path) -> None:
        self._log = log
        self._errors = path.with_suffix(".errors")
        with self._errors.open("wb") as errors:
            command = [sys.executable, "-m", "experiments.bench.feed", link, str(path)]
            self._process = subprocess.Popen(command, stderr=errors)

    def require_alive(self) -> None:
        """Raise RuntimeError with the end of the reader's log if it has died."""
        if self._process.poll() is not None:
            said = [path.read_text(errors="replace")[-TOLD_CHARS:] for path in (self._errors, self._log)]
            raise RuntimeError(
                f"the reader ended with {self._process.returncode} while rounds ran: {said[0]}\nits device: {said[1]}"
            )

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()


if __name__ == "__main__":
    read(sys.argv[1], Path(sys.argv[2]))


SECTIONS = ("football", "science", "technology", "business", "world", "markets", "crime")
"""Sections with 300 stories or more in an edition of 6,000."""
SEEDS = (1, 2, 3)


def run(data: Path) -> list[Table]:
    """Return the table. Needs no research data."""
    found = measured(Newspaper(newspaper_pool(), default_ranker()), sections=SECTIONS, seeds=SEEDS)
    return [_table(found)]


def _table(found: dict[str, Any]) -> Table:
    picked, topics, blend = found["learning"], found["topics"], found["blend"]
    least, median, most = np.percentile([share for each in topics for share in each.of_topic], [5, 50, 95])
    steady = float(np.mean([each.is_steady for each in topics]))
    rows = (
        (
            "reasons that name a story: share with a topic or name in common",
            ">= .95",
            _least(found["similarity"], "related"),
        ),
        ("random pairs above the floor", "<= .005", max(each["random_pairs"] for each in found["similarity"])),
        ("five reads of a topic: readers with 30 to 45 % of it on three pages", ">= .95", steady),
        ("... its share of a page: 5th percentile", ">= .30", float(least)),
        ("... its share of a page: median", ".30 to .45", float(median)),
        ("... its share of a page: 95th percentile", "<= .45", float(most)),
        ("... greatest share of a section", "<= .50", max(max(each.greatest) for each in topics)),
        ("... of the personal places", "<= .50", max(max(each.greatest_in_column) for each in topics)),
        ("... its share where sections were picked", ">= .30", min(min(each.of_topic) for each in picked)),
        ("... and that of the sections picked", ">= .25", min(min(each.of_picked) for each in picked)),
        ("sections picked after 19 reads", ">= .25", min(min(each.of_picked) for each in blend)),
        ("sections of a first page", ">= 8", min(each["sections"] for each in found["cold"])),
        ("greatest share of a section not picked", "<= .20", max(each["greatest"] for each in found["cold"])),
        ("cards of 30 that a like moves", "<= 3", max(found["moved"]["liked"])),
        ("cards of 30 that a less moves", "<= 3", max(found["moved"]["less"])),
    )
    notes = (
        f"{found['stories']:,} stories; the worst of all readers and seeds, and for five reads of a topic "
        f"{len(topics)} readers of {len({each.topic for each in topics})} topics, three pages each.",
    )
    return Table("What a feed promises, newsroom", ("promise", "bar", "found"), rows, notes, SEEDS)


def _least(figures: Sequence[dict[str, Any]], name: str) -> float:
    return float(min(each[name] for each in figures))
