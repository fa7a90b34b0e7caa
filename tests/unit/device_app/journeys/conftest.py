"""A device over a backend in memory, on a real database."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from device_app.composition import build_device
from device_app.device import Device
from device_app.privacy.noise_sources import SeededNoise
from device_app.settings import DeviceSettings, PerformanceSettings, PrivacySettings
from tests.doubles.backend import FakeBackend
from tests.doubles.clock import StillClock
from tests.doubles.journey import Make
from tests.doubles.news import NOW


@pytest.fixture
def backend() -> FakeBackend:
    return FakeBackend()


@pytest.fixture
def clock() -> StillClock:
    return StillClock(NOW)


@pytest.fixture
def make(tmp_path: Path, backend: FakeBackend, clock: StillClock) -> Iterator[Make]:
    made: list[Device] = []

    def build(*, default_list_limit: int = 600, own_feeds: bool = False, **privacy: object) -> Device:
        while made:  # a profile is one process's at a time; a killed one has released it
            made.pop().close()
        device = build_device(
            DeviceSettings(
                data_dir=tmp_path,
                own_feeds=own_feeds,
                privacy=PrivacySettings.model_validate(privacy),
                performance=PerformanceSettings(bodies_wait_sec=0.2, default_list_limit=default_list_limit),
            ),
            transport=backend.transport(),
            noise=SeededNoise("journeys"),
            chance=random.Random(5),
            clock=clock,
        )
        made.append(device)
        return device

    yield build
    for device in made:
        device.close()
