"""The reader beside a bench of rounds: which stories it opens, and that its end is reported.

Oracle: a port on which nobody listens.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from experiments.bench.feed import PacedReader, stories_of
from experiments.bench.newspaper import free_port

WITHIN_SEC = 60.0


def test_reader_process_that_ended_raises_an_error_with_its_output(tmp_path: Path) -> None:
    log = tmp_path / "device.log"
    log.write_text("what the device said last")
    reader = PacedReader(f"http://127.0.0.1:{free_port()}/enter?key=none", tmp_path / "pages.txt", log)
    try:
        with pytest.raises(RuntimeError, match=r"(?s)reader ended with 1 .*ConnectError.*what the device said last"):
            _wait_for_its_end(reader)
    finally:
        reader.stop()


def _wait_for_its_end(reader: PacedReader) -> None:
    deadline = time.monotonic() + WITHIN_SEC
    while time.monotonic() < deadline:
        reader.require_alive()
        time.sleep(0.05)


def test_each_story_linked_on_a_page_is_found_once() -> None:
    page = '<a href="/story/a?feed=f&amp;x=1">A</a> <a href="/story/a?feed=f&amp;x=1">A</a> <a href="/explore">E</a>'
    assert stories_of(page) == ["/story/a?feed=f&x=1"]
    assert stories_of('<h2>All opened</h2><a href="/explore">E</a>') == []
