"""One reader at a browser, as a process: `python -m experiments.bench.feed_pace URL FILE` clicks and loads the feed.

Every line of FILE is the moment (time.time()) and the milliseconds of one feed page after a click; it ends when killed.
"""

from __future__ import annotations

import random
import re
import sys
import time
from pathlib import Path

import httpx

PAUSE_SEC = 0.1
STORY = re.compile(r'href="(/story/[^"]+)"')


def read(url: str, path: Path) -> None:
    """Read until killed."""
    dice = random.Random(7)
    with httpx.Client(base_url=url, timeout=30.0, follow_redirects=True) as browser, path.open("w") as file:
        browser.post("/welcome", headers={"origin": url})
        page = browser.get("/").raise_for_status().text
        while True:
            stories = sorted(set(STORY.findall(page)))
            browser.get(dice.choice(stories).replace("&amp;", "&")).raise_for_status()
            time.sleep(PAUSE_SEC)
            started = time.perf_counter()
            page = browser.get("/").raise_for_status().text
            file.write(f"{time.time():.3f} {(time.perf_counter() - started) * 1_000:.2f}\n")
            file.flush()


if __name__ == "__main__":
    read(sys.argv[1], Path(sys.argv[2]))
