"""`python -m tests.browser.own_feeds_figures`: measures how soon `ownfeed read` shows a ranked page of own feeds.

Serves feeds of real headlines on loopback, one of which is unreachable, and runs `ownfeed read` in a new folder.
`--ownfeed` names the command to run, so that an installed wheel can be measured. Prints the seconds until the page
shows stories, the message about the unreachable feed, and how long after a publisher's new item the page offers it;
then, while all feeds are refreshed, how long pages take and how much memory both processes hold. Headlines come from
headlines.tsv in the folder that `--data` or OWNFEED_DATA names; they are reused under other names if there are too few.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import cycle, islice
from pathlib import Path
from threading import Thread
from typing import TypeVar
from xml.sax.saxutils import escape

import httpx
import psutil

from experiments.bench.headlines import Headline, headlines
from tests.doubles.small_world import free_port

START_SEC, OFFER_SEC, ALL_SEC, LOOK_SEC = 300.0, 600.0, 1800.0, 0.25
DEAD = "/feed/dead.xml"
HEADLINES = 60_000
CARD, UNRANKED = " data-story", " data-prepared="
Found = TypeVar("Found")
NEW_TITLE = "Harbour bridge reopens to cyclists after a winter of repairs"


class Publishers:
    """RSS 2.0 feeds by number; a new item goes to the front of one of them."""

    def __init__(self, stories: list[Headline], feeds: int, items: int) -> None:
        began = datetime.now(UTC) - timedelta(minutes=30)
        self.items = [
            [
                self.item(story.title, story.abstract, f"{feed}-{place}", began - timedelta(minutes=20 * place))
                for place, story in enumerate(stories[feed * items : (feed + 1) * items])
            ]
            for feed in range(feeds)
        ]

    @staticmethod
    def item(title: str, abstract: str, name: str, at: datetime) -> str:
        return (
            f"<item><title>{escape(title)}</title><description>{escape(abstract)}</description>"
            f"<link>https://news.example/{name}</link><guid>{name}</guid><pubDate>{format_datetime(at)}</pubDate></item>"
        )

    def publish(self) -> None:
        self.items[0].insert(0, self.item(NEW_TITLE, "Crews finished early.", "new", datetime.now(UTC)))

    def feed(self, number: int) -> bytes:
        inside = "".join(self.items[number])
        return f'<rss version="2.0"><channel><title>Publisher {number}</title>{inside}</channel></rss>'.encode()


@contextmanager
def serve_feeds(publishers: Publishers) -> Iterator[str]:
    """Serve the feeds on loopback; yield them and their base address. The unreachable one answers 404."""

    class HeadlineHandler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = re.fullmatch(r"/feed/(\d+)\.xml", self.path)
            body = publishers.feed(int(found[1])) if found else b"gone"
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", "application/rss+xml")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *values: object) -> None:
            pass

    server = ThreadingHTTPServer(("0.0.0.0", 0), HeadlineHandler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()


@contextmanager
def reading(ownfeed: list[str], addresses: list[str], every: float, folder: Path) -> Iterator[Callable[[], str]]:
    """Run `ownfeed read` on these feeds; yield what it has printed so far."""
    ports = ["--backend-port", str(free_port()), "--device-port", str(free_port())]
    options = ["--data-dir", str(folder / "read"), "--every", str(every), "--allow-network", "127.0.0.0/8"]
    said = folder / "said"
    with said.open("wb") as out:
        process = subprocess.Popen(
            [*ownfeed, "read", *addresses, *options, *ports],
            stdout=out,
            stderr=out,
            stdin=subprocess.DEVNULL,
            cwd=folder,
        )

    def printed() -> str:
        text = said.read_text(encoding="utf-8")
        if process.poll() is not None:
            raise RuntimeError(text)
        return text

    try:
        yield printed
    finally:
        process.terminate()
        process.wait(60)


def wait_for(look: Callable[[], Found | None], limit_sec: float) -> Found:
    """Call `look` until it returns something, and return that. Raises TimeoutError."""
    end = time.monotonic() + limit_sec
    while (found := look()) is None:
        if time.monotonic() > end:
            raise TimeoutError(f"not within {limit_sec:g} s")
        time.sleep(LOOK_SEC)
    return found


def measure(ownfeed: list[str], data: Path, feeds: int, items: int, every: float, watch_sec: float) -> None:
    """Start once and print the figures."""
    stories = list(islice(cycle(headlines(data, min(feeds * items, HEADLINES))), feeds * items))
    publishers = Publishers(stories, feeds, items)
    with serve_feeds(publishers) as home, tempfile.TemporaryDirectory() as folder:
        # Each feed on a host of its own, as in life: a host is asked for one feed a second.
        port = home.rpartition(":")[2]
        addresses = [f"http://127.0.0.{number % 250 + 2}:{port}/feed/{number}.xml" for number in range(feeds)]
        addresses.append(home + DEAD)
        began = time.monotonic()
        with reading(ownfeed, addresses, every, Path(folder)) as printed, httpx.Client(follow_redirects=True) as reader:
            link = wait_for(lambda: re.search(r"Your feed\s+(\S+)", printed()), START_SEC)[1]
            page = wait_for(lambda: page_with_stories(reader, link), START_SEC)
            print(f"the newest {page.count(CARD)} stories after {time.monotonic() - began:.1f} s")  # noqa: T201
            page = wait_for(lambda: ranked_page(reader, link), START_SEC)
            took = time.monotonic() - began
            cards = page.count(CARD)
            print(f"{feeds} feeds of {items} items: a ranked page of {cards} cards after {took:.1f} s")  # noqa: T201
            home_page = link.split("?")[0]
            said = wait_for(lambda: dead_feed(reader, home_page), START_SEC)
            print(f"of the dead feed the page says: {said}")  # noqa: T201
            publishers.publish()
            published = time.monotonic()
            wait_for(lambda: re.search(r'class="offered">[^<]*new stor', reader.get(home_page).text), OFFER_SEC)
            print(  # noqa: T201
                f"a new item is on offer {(time.monotonic() - published) / 60:.2f} minutes after its publisher has it, "
                f"with --every {every:g}"
            )
            watch_refresh(reader, home_page.removesuffix("/enter"), feeds * items, watch_sec)


def watch_refresh(reader: httpx.Client, home: str, stories: int, watch_sec: float) -> None:
    """Refresh all feeds once every story has arrived; print page times meanwhile, and each process's memory."""
    listed = re.compile(r"unread of ([\d,]+) stories")

    def all_here() -> bool | None:
        found = listed.search(reader.get(home + "/feeds").text)
        return True if found and int(found[1].replace(",", "")) >= stories else None

    began = time.monotonic()
    wait_for(all_here, ALL_SEC)
    print(f"all {stories} stories are listed {time.monotonic() - began:.0f} s later")  # noqa: T201
    feed = re.search(r'href="(/feeds/stories\?feed=Publisher[^"]+)"', reader.get(home + "/feeds").text)
    assert feed is not None
    reader.post(
        home + "/feeds/manage/refresh", headers={"Origin": home, "Sec-Fetch-Site": "same-origin"}
    ).raise_for_status()
    took: dict[str, list[float]] = {"/": [], "/feeds": [], feed[1]: []}
    end = time.monotonic() + watch_sec
    while time.monotonic() < end:
        for path, times in took.items():
            asked = time.perf_counter()
            reader.get(home + path).raise_for_status()
            times.append((time.perf_counter() - asked) * 1000)
        time.sleep(0.05)
    for path, times in took.items():
        worst = sorted(times)
        print(  # noqa: T201
            f"{path} during a refresh: p50 {statistics.median(times):.0f} ms, "
            f"p95 {worst[int(len(worst) * 0.95)]:.0f} ms, at most {worst[-1]:.0f} ms ({len(times)} requests)"
        )
    for process in psutil.Process().children(recursive=True):
        command = " ".join(process.cmdline()[:6])[-60:]
        print(f"{process.memory_info().rss / 2**20:.0f} MiB: {command}")  # noqa: T201


def page_with_stories(reader: httpx.Client, link: str) -> str | None:
    """Return the reader's page once it shows stories, ranked or not."""
    answer = reader.get(link)
    return answer.text if answer.is_success and CARD in answer.text else None


def ranked_page(reader: httpx.Client, link: str) -> str | None:
    """Return the reader's page once its stories are in the reader's own order."""
    page = page_with_stories(reader, link)
    return page if page is not None and UNRANKED not in page else None


def dead_feed(reader: httpx.Client, home_page: str) -> str | None:
    """Return the message about the unreachable feed on the page that manages feeds."""
    page = reader.get(home_page.replace("/enter", "/feeds/manage")).text
    found = re.search(rf"{re.escape(DEAD)} can(?:'|&#39;)t be read[^<]*", page)
    return found[0] if found else None


if __name__ == "__main__":
    wanted = argparse.ArgumentParser(description=__doc__)
    wanted.add_argument("--ownfeed", help="the installed command; this checkout's by default")
    wanted.add_argument("--data", type=Path, default=Path(os.environ.get("OWNFEED_DATA", "../shared/data")))
    wanted.add_argument("--feeds", type=int, default=20)
    wanted.add_argument("--items", type=int, default=50)
    wanted.add_argument("--every", type=float, default=2.0)
    wanted.add_argument("--watch", type=float, default=30.0, help="seconds in which pages are timed during a refresh")
    chosen = wanted.parse_args()
    command = [chosen.ownfeed] if chosen.ownfeed else [sys.executable, "-m", "ownfeed"]
    measure(command, chosen.data.absolute(), chosen.feeds, chosen.items, chosen.every, chosen.watch)
