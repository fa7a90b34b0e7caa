"""A page in use sends the same requests as an idle one: the short form of `tests.browser.two_readers`."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from backend.settings import BackendSettings
from tests.browser.two_readers import hurried_script, pairs, per_reader_front
from tests.doubles.read_sessions import ReceivedRequest
from tests.doubles.small_world import SmallWorld, first_folder, shared_cache

pytestmark = [pytest.mark.browser, pytest.mark.node]
KIND = 0
"""The seed of a server without troubles."""
SECONDS, ACT_SEC = 20.0, 2.0
LOOPS = {"POST /v1/recall", "POST /v1/news/bodies", "GET /v1/releases/current", "GET /v1/news/front"}
SPREAD = 3.0
"""The longest pause of a loop is so many times the shortest."""


@pytest.fixture(scope="module")
def world(reader_build: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallWorld]:
    folder = tmp_path_factory.mktemp("two-readers")
    shutil.copytree(first_folder(shared_cache(tmp_path_factory)), folder / "backend")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("backend.app.built_folder", lambda: reader_build)
        with SmallWorld(folder, BackendSettings(data_dir=folder / "backend")).backend() as served:
            yield served


def counted(received: list[ReceivedRequest]) -> Counter[str]:
    return Counter(one.asked for one in received if one.asked in LOOPS)


def test_active_page_sends_the_same_requests_as_an_idle_one(
    world: SmallWorld, chromium: Browser, tmp_path: Path
) -> None:
    """Stories are opened and liked, and "New page" is pressed; how often each page sends a request is random alone."""
    with ExitStack() as stack:
        front, port = per_reader_front(stack, world, hurried_script(tmp_path))
        (found,) = pairs(chromium, front, port, [KIND], SECONDS, ACT_SEC)
    assert len(found.acts) >= 5
    idle, reading = found.received
    still, read = counted(idle), counted(reading)
    assert still.keys() == read.keys() == LOOPS
    other = [one.asked for one in reading if one.asked not in LOOPS and "/v1/rounds/" not in one.asked]
    assert all(asked.startswith("GET /v1/") for asked in other), "not even a file of the page's code"
    for asked in still:
        assert read[asked] <= SPREAD * still[asked] + 1
        assert still[asked] <= SPREAD * read[asked] + 1
