"""One reader at a browser, as a process: `python -m experiments.bench.feed_pace LINK FILE` clicks and asks for a page.

Every line of FILE is the moment (time.time()) and the milliseconds of a new page after a click; it ends when killed.
"""

from __future__ import annotations

import random
import re
import subprocess
import sys
import time
from pathlib import Path

from experiments.bench.newspaper import reader_browser

PAUSE_SEC = 0.4
"""A device gets some 1,000 stories for its pages, so that a reader who opens ten a second has opened all of them within
two minutes."""
STORY = re.compile(r'href="(/story/[^"]+)"')
TOLD_CHARS = 2_000


def read(link: str, path: Path) -> None:
    """Read until killed. A page where nothing is left to open is no page to time: the reader goes on under Explore."""
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
    """The addresses of the stories that a page links, each once."""
    return sorted({address.replace("&amp;", "&") for address in STORY.findall(page)})


class PacedReader:
    """Such a reader as a process of its own, which is heard when it dies.

    Args:
        link: opens the device's pages.
        path: of the file it writes.
        log: what the device says, which tells why a page failed.
    """

    def __init__(self, link: str, path: Path, log: Path) -> None:
        self._log = log
        self._errors = path.with_suffix(".errors")
        with self._errors.open("wb") as errors:
            command = [sys.executable, "-m", "experiments.bench.feed_pace", link, str(path)]
            self._process = subprocess.Popen(command, stderr=errors)

    def require_alive(self) -> None:
        """Raises RuntimeError with the end of what it said, where it reads no more."""
        if self._process.poll() is not None:
            said = [path.read_text(errors="replace")[-TOLD_CHARS:] for path in (self._errors, self._log)]
            raise RuntimeError(
                f"the reader ended with {self._process.returncode} while rounds ran: {said[0]}\nits device: {said[1]}"
            )

    def stop(self) -> None:
        """End it, if it hasn't ended."""
        self._process.kill()
        self._process.wait()


if __name__ == "__main__":
    read(sys.argv[1], Path(sys.argv[2]))
