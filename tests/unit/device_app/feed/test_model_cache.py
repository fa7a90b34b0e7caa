"""Which ranker of a release is loaded."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from device_app.errors import ReleaseRefused
from device_app.feed.model_cache import ModelCache
from device_app.sync.installed_release import Release, current_release
from tests.doubles.clock import StillClock
from tests.doubles.in_process import InProcess
from tests.doubles.news import NOW
from tests.doubles.round_rig import FEATURES, BackendRig, DeviceRig


@pytest.fixture
def release(tmp_path: Path) -> Iterator[Release]:
    (tmp_path / "backend").mkdir()
    backend = BackendRig.make(tmp_path / "backend", StillClock(NOW + timedelta(days=1)))
    network = InProcess(backend.app)
    device = DeviceRig(tmp_path / "device.sqlite", backend.clock, network)
    device.sync()
    yield current_release(device.stores.releases)
    device.stop()
    network.close()


def test_reader_chooses_among_the_rankers_of_the_release(release: Release) -> None:
    assert ModelCache().models(release).ranker.name == "ranker.cosine", "its default"
    chosen = ModelCache(ranker="ranker.features").models(release).ranker
    assert (chosen.name, chosen.features) == ("ranker.features", FEATURES)


@pytest.mark.parametrize("wanted", ["ranker.nrms", "recall"])
def test_ranker_missing_from_the_release_is_refused_with_the_available_ones(release: Release, wanted: str) -> None:
    with pytest.raises(ReleaseRefused, match=f"no ranker '{wanted}'.* ranker.features, ranker.cosine"):
        ModelCache(ranker=wanted).models(release)
