"""One reader at a browser, as a process: `python -m experiments.bench.feed_pace LINK FILE` clicks and asks for a page.

Every line of FILE is the moment (time.time()) and the milliseconds of a new page after a click; it ends when killed.
"""

from __future__ import annotations

import random
import re
import sys
import time
from pathlib import Path

from experiments.bench.newspaper import reader_browser

PAUSE_SEC = 0.1
STORY = re.compile(r'href="(/story/[^"]+)"')


def read(link: str, path: Path) -> None:
    """Read until killed."""
    dice = random.Random(7)
    with reader_browser(link) as browser, path.open("w") as file:
        browser.post("/welcome")
        page = browser.get("/").raise_for_status().text
        while True:
            stories = sorted(set(STORY.findall(page)))
            browser.get(dice.choice(stories).replace("&amp;", "&")).raise_for_status()
            time.sleep(PAUSE_SEC)
            started = time.perf_counter()
            page = browser.post("/feed/refresh").raise_for_status().text
            file.write(f"{time.time():.3f} {(time.perf_counter() - started) * 1_000:.2f}\n")
            file.flush()


if __name__ == "__main__":
    read(sys.argv[1], Path(sys.argv[2]))
