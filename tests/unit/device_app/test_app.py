"""The app: what it imports, its loops, and a page from start to stop."""

from __future__ import annotations

import math
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from device_app.app import create_app
from device_app.background import FIRST_RECALL, SILENT_FOR_SEC, SILENT_SEC, SYNCED_LOOK_SEC, Background
from device_app.composition import build_device
from device_app.device import Device
from device_app.pages.story_links import StoryLinks
from device_app.settings import DeviceSettings, PerformanceSettings
from device_app.training.participant import Outcome
from device_app.uplink.watch import BackendWatch
from tests.doubles.backend import FakeBackend
from tests.doubles.pages_reader import FOLLOWS_A_LINK, enter

HEAVY = ("torch", "transformers", "onnx", "onnxscript", "faiss", "sqlalchemy", "backend", "models", "exporters", "yoyo")


@pytest.fixture
def backend() -> FakeBackend:
    return FakeBackend()


@pytest.fixture
def device(tmp_path: Path, backend: FakeBackend) -> Iterator[Device]:
    performance = PerformanceSettings(sync_poll_sec=0.05, training_poll_sec=0.05)
    made = build_device(DeviceSettings(data_dir=tmp_path, performance=performance), transport=backend.transport())
    yield made
    made.close()


def _until(true: Callable[[], bool], seconds: float = 20.0) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if true():
            return True
        time.sleep(0.01)
    return False


def test_importing_the_app_loads_no_training_or_server_library() -> None:
    program = f"import sys, device_app.app; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_loops_fetch_release_list_and_texts_automatically(device: Device, backend: FakeBackend) -> None:
    background = Background(device)
    background.start()
    try:
        assert background.running() == ("sync", "recall", "training", "texts", "copy")
        default_list = device.parts.stores.default_list
        assert _until(lambda: default_list.current() is not None)
        ids = default_list.current().news_ids  # type: ignore[union-attr]
        assert _until(lambda: not device.parts.stores.news.without_body(ids))
    finally:
        started = time.monotonic()
        background.stop()
    assert time.monotonic() - started < 5
    assert background.running() == ()


def test_error_in_a_background_loop_is_shown_and_does_not_end_it(device: Device, backend: FakeBackend) -> None:
    backend.down = True
    background = Background(device)
    background.start()
    try:
        assert _until(lambda: any(trouble.loop == "sync" for trouble in device.status().alerts))
        backend.down = False
        assert _until(lambda: device.status().alerts == () and device.status().release == "r1")
    finally:
        background.stop()


def test_programming_error_in_a_background_loop_is_shown(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> bool:
        raise RuntimeError("a bug")

    monkeypatch.setattr(device.parts.syncing, "step", broken)
    background = Background(device)
    background.start()
    try:
        assert _until(lambda: [trouble.words for trouble in device.status().alerts] == ["a bug"])
        assert "sync" in background.running()
    finally:
        background.stop()


class _Pauses(threading.Event):
    """Returns at once, records the length of each pause, and ends the loop after the fortieth."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        self.seconds.append(timeout)
        if len(self.seconds) == 40:
            self.set()
        return self.is_set()


def test_poll_intervals_vary_around_the_configured_mean(device: Device) -> None:
    background = Background(device)
    assert isinstance(background._chance, random.SystemRandom)
    background._stop = pauses = _Pauses()
    background._every("training", lambda: None, lambda: 10.0)
    assert all(5.0 <= seconds <= 15.0 for seconds in pauses.seconds)
    assert len(set(pauses.seconds)) == 40
    # The mean of forty uniform numbers is off by five standard deviations once in a million runs.
    assert abs(sum(pauses.seconds) / 40 - 10.0) < 5 * 10.0 / math.sqrt(12 * 40)


@pytest.mark.parametrize("reads", [False, True])
def test_silent_backend_is_polled_within_seconds_whether_or_not_anyone_reads(
    tmp_path: Path, backend: FakeBackend, monkeypatch: pytest.MonkeyPatch, *, reads: bool
) -> None:
    """A backend that answers again is noticed within seconds. Only the results of earlier polls set the pace."""
    made = build_device(DeviceSettings(data_dir=tmp_path), transport=backend.transport())
    made.interests.choose_sections(())
    made.reading.feed()
    watch = BackendWatch("http://127.0.0.1:9", lambda: None)
    device = Device(made.settings, replace(made.parts, watch=watch))
    now = [50.0]
    monkeypatch.setattr("device_app.background.time.monotonic", lambda: now[0])
    monkeypatch.setattr("device_app.syncing.time.monotonic", lambda: now[0])
    background, usual = Background(device), device.settings.performance.sync_poll_sec

    def pace() -> float:
        if reads:
            feed = device.reading.feed(refresh=True)
            device.reading.open(feed.items[0].card.id)
        return background._until_next_sync()

    assert pace() == usual
    backend.down = True
    assert pace() == usual, "no look has failed yet, whatever a reader has met"
    assert background._guarded("sync", device.sync)
    assert pace() == SILENT_SEC
    now[0] += SILENT_FOR_SEC + 1
    assert background._guarded("sync", device.sync)
    assert pace() == usual, "it has been silent for long"
    watch.lost = True
    now[0] -= SILENT_FOR_SEC
    assert pace() == usual, "the watch tells when it is back"
    watch.lost, backend.down = False, False
    assert pace() == SILENT_SEC
    assert not background._guarded("sync", device.sync)
    assert (pace(), device.status().online) == (usual, True)
    made.close()


def test_recall_requests_begin_after_the_first_sync_at_the_usual_pace(
    device: Device, backend: FakeBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    background = Background(device, random.Random(5))
    mean_sec = device.settings.performance.recall_poll_sec
    recalls = background.recalls()
    assert [next(recalls), next(recalls)] == [SYNCED_LOOK_SEC] * 2, "nothing was synced yet"
    device.sync()
    assert FIRST_RECALL[0] * mean_sec <= next(recalls) <= FIRST_RECALL[1] * mean_sec
    monkeypatch.setattr(device, "recall_step", lambda: 10_000.0)
    for _ in range(20):
        assert 10_000.0 <= next(recalls) <= 20_000.0, "asked to be left alone, and drawn"
    for asked_sec in (1.0, None):
        monkeypatch.setattr(device, "recall_step", lambda asked_sec=asked_sec: asked_sec)
        pauses = [next(recalls) for _ in range(20)]
        assert all(0.5 * mean_sec <= seconds <= 1.5 * mean_sec for seconds in pauses)
        assert len(set(pauses)) == 20


def test_device_without_a_list_retries_within_seconds_at_first(
    device: Device, backend: FakeBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reader sees no page yet, and reloading the page sends no request."""
    now = [50.0]
    monkeypatch.setattr("device_app.background.time.monotonic", lambda: now[0])
    monkeypatch.setattr("device_app.syncing.time.monotonic", lambda: now[0])
    patient = Device(device.settings.model_copy(update={"performance": PerformanceSettings()}), device.parts)
    background = Background(patient)
    backend.down = True
    assert background._guarded("sync", device.first_sync)
    assert background._until_next_sync() == SILENT_SEC
    asked = len(backend.requests)
    assert device.reading.feed().mode == "offline"
    assert len(backend.requests) == asked
    now[0] += SILENT_FOR_SEC + 1
    assert background._until_next_sync() == patient.settings.performance.sync_poll_sec


@pytest.mark.parametrize(
    ("outcome", "least", "most"),
    [
        (None, 5.0, 15.0),
        (Outcome("idle"), 5.0, 15.0),
        (Outcome("idle", not_before_sec=1.0), 5.0, 15.0),
        (Outcome("idle", not_before_sec=100.0), 100.0, 200.0),
        (Outcome("waiting", again_sec=1.0), 0.5, 1.5),
    ],
    ids=["a fault", "nothing", "sooner", "later", "a stage"],
)
def test_random_pause_can_only_be_lengthened_by_the_backend(
    device: Device, monkeypatch: pytest.MonkeyPatch, outcome: Outcome | None, least: float, most: float
) -> None:
    """With a Retry-After of its own, each device could be recognised by the time of its return."""

    def step() -> Outcome:
        if outcome is None:
            raise ZeroDivisionError
        return outcome

    monkeypatch.setattr(device, "train_step", step)
    performance = PerformanceSettings(training_poll_sec=10.0)
    monkeypatch.setattr(device, "settings", device.settings.model_copy(update={"performance": performance}))
    first, *rest = islice(Background(device).trainings(), 40)
    assert 0.0 <= first < 10.0, "the first step comes a random time after the first sync"
    assert len(rest) > 30
    assert all(least <= seconds <= most for seconds in rest)
    assert len(set(rest)) == len(rest)


def test_pages_are_served_between_start_and_stop(device: Device, backend: FakeBackend) -> None:
    device.interests.choose_sections(())
    port = device.settings.port
    app = create_app(device=device)
    with TestClient(app, base_url=f"http://127.0.0.1:{port}", headers=FOLLOWS_A_LINK) as browser:
        assert browser.get("/").status_code == 403, "without the key"
        enter(browser, app.state.page_key)
        page = browser.get("/")
        assert page.status_code == 200
        assert "Headline n" in page.text
        story = device.reading.feed().items[0].card
        assert browser.get(StoryLinks(app.state.page_key).link(story.id)).status_code == 200
        for path in ("/explore", "/following", "/interests", "/interests/history", "/privacy", "/training", "/latency"):
            assert browser.get(path).status_code == 200, path
    assert device.status().clicks == 1
