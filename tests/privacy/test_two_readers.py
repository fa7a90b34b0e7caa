"""Readers and non-readers make the same requests at the same times, apart from what a report reveals.

A server that records the times of all requests compares a reader who opens thirty stories, searches, likes and presses
"New page" with one who does nothing. Both sessions use the same background random draws, so every request must come at
exactly the same moment. With independent draws, `python -m tests.privacy.two_readers` lets a classifier try on 200
sessions of each kind.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from device_app.device import Device
from tests.doubles.long_form import by_length
from tests.doubles.read_sessions import TROUBLE_KINDS, ReceivedRequest, act_times, session
from tests.privacy.two_readers import BAR, FOLDS, separate

SESSIONS = FOLDS
"""Pairs of sessions: as few as the classifier can hold one out of."""


def pair(
    folder: Path, seed: int, trouble: str, spoil: Callable[[Device], None] = lambda device: None
) -> list[list[ReceivedRequest]]:
    """Return the same session of an idle reader and of one who reads."""
    return [
        session(folder / str(reads), seed, trouble, reads=reads, times=random.Random(f"times {seed}"), spoil=spoil)
        for reads in (False, True)
    ]


@pytest.mark.long_form
@pytest.mark.parametrize("trouble", TROUBLE_KINDS)
@pytest.mark.parametrize("seed", by_length([1], long=[1, 2, 3]))
def test_request_times_are_independent_of_reading(tmp_path: Path, seed: int, trouble: str) -> None:
    idle, reading = pair(tmp_path, seed, trouble)
    assert {"POST /v1/recall", "POST /v1/news/bodies", "GET /v1/news/front"} <= {one.asked for one in idle}
    assert reading == idle


def asks_for_each_page(device: Device) -> None:
    """Make the device behave as it once did: a page requests its own candidates."""
    feed = device.reading.feed

    def asking(*, refresh: bool = False) -> object:
        if refresh:
            device.recall_step()
        return feed(refresh=refresh)

    device.reading.feed = asking  # type: ignore[method-assign, assignment]


def test_comparison_detects_pages_that_send_requests_when_opened(tmp_path: Path) -> None:
    """Equal draws make a difference visible in one pair of sessions. Regression: pages sent requests."""
    idle, reading = pair(tmp_path, 1, "kind", asks_for_each_page)
    assert reading != idle


@pytest.mark.long_form
@pytest.mark.parametrize("sessions", by_length([], long=[SESSIONS]))
def test_classifier_detects_pages_that_send_requests_when_opened(tmp_path: Path, sessions: int) -> None:
    """The classifier can succeed: it recognises pages that send requests, without equal draws."""
    idle, reading = (
        [
            session(tmp_path / f"{seed}-{reads}", seed, "kind", reads=reads, spoil=asks_for_each_page)
            for seed in range(sessions)
        ]
        for reads in (False, True)
    )
    acts = [act_times(seed) for seed in range(sessions)]
    assert separate(idle, reading, acts)[0] > 0.9 > BAR
