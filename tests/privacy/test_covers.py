"""A malicious server lets a day's codebooks or budget run out, to see from the next day's reports who reads little.

When a device may draw no report, it sends a cover, which does not depend on its reader. The regression: when drawing
became possible again, a device whose reader had opened fewer than three stories kept its cover for another day, while
every other device replaced it with the next request.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from device_app.composition import build_device
from device_app.device import Device
from device_app.privacy.noise_sources import SeededNoise
from device_app.settings import DeviceSettings, PrivacySettings
from tests.doubles.backend import FakeBackend
from tests.doubles.clock import StillClock
from tests.doubles.journey import TOPIC, click_on
from tests.doubles.news import NOW

DAY_SEC = 24 * 3_600


@pytest.fixture
def backend() -> FakeBackend:
    return FakeBackend()


@pytest.fixture
def clock() -> StillClock:
    return StillClock(NOW)


@pytest.fixture
def device(tmp_path: Path, backend: FakeBackend, clock: StillClock) -> Iterator[Device]:
    made = build_device(
        DeviceSettings(data_dir=tmp_path, own_feeds=False, privacy=PrivacySettings(codebooks_per_day=1)),
        transport=backend.transport(),
        noise=SeededNoise("covers"),
        chance=random.Random(5),
        clock=clock,
    )
    made.sync()
    yield made
    made.close()


def other_codebook(backend: FakeBackend, seed: int) -> None:
    drawn = np.random.default_rng(seed).normal(size=backend.prototypes.shape).astype(np.float32)
    backend.prototypes = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    backend.publish()


@pytest.mark.parametrize("reads", [0, 2, 3, 20])
def test_report_due_at_the_same_time_as_a_cover_report_replaces_it(
    device: Device, backend: FakeBackend, clock: StillClock, reads: int
) -> None:
    if reads:
        click_on(device, backend, TOPIC, reads, clock)
    device.recall_step()
    assert device.privacy.overview().budgets[0].lifetime == 4
    for seed in range(1, 8):  # until neither the release nor the codebook of that report is answered any more
        other_codebook(backend, seed)
        device.sync()
    device.recall_step()
    assert device.privacy.overview().budgets[0].lifetime == 4, "one codebook a day: this is a cover"
    midnight = clock.now.replace(hour=0, minute=0, second=0, microsecond=0)
    clock.go_on(DAY_SEC - (clock.now - midnight).total_seconds() + 60)
    device.recall_step()
    assert device.privacy.overview().budgets[0].lifetime == 8
