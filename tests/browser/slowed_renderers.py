"""A browser on a slower processor: its renderers are stopped for most of the time.

DevTools can slow a page's main thread but not its workers, which do most of the device's work. A stopped process does
nothing at all, workers and compilers included.
"""

from __future__ import annotations

import threading
import time

import psutil

from tests.browser.processor_time import renderers

SLOWED = 4
STOPPED_SEC = 0.006
"""Of each turn; the rest of it, a third of this, they run."""
TURNS = 10
"""After so many a renderer is found that was started meanwhile."""


class SlowedRenderers(threading.Thread):
    """Lets every renderer of a browser of this process run for one part in SLOWED of the time."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._ended = threading.Event()

    def run(self) -> None:
        """Stop and continue the renderers until `end`."""
        while not self._ended.is_set():
            found = renderers()
            for _ in range(TURNS):
                for each in found:
                    _tell(each, "suspend")
                time.sleep(STOPPED_SEC)
                for each in found:
                    _tell(each, "resume")
                time.sleep(STOPPED_SEC / (SLOWED - 1))

    def __enter__(self) -> None:
        self.start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self.join()


def _tell(process: psutil.Process, what: str) -> None:
    try:
        getattr(process, what)()
    except psutil.NoSuchProcess:
        return
