"""Can a server tell which views of a reader have data, from a device's vectors in rounds of views?

The attacker is the server of an exact sum whose other members are all its own: it has the vector of one device, and
compares variances and distributions. The regression: a view without data was left out of the mean, so that the noise of
a reader without searches had twice the variance (F = 2.0), and a user tower without data was exactly zero.

Each comparison uses 40 rounds a device, and wrongly distinguishes two equal devices once in a million times (ALPHA).
The power against twice the variance is above 0.999999 for each of the towers.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import f, ks_2samp

from device_app.privacy.noise_sources import SeededNoise
from device_app.stores import DeviceStores
from device_app.training.multiview.job import VIEWS, ViewFailed, ViewJob, ViewTerms
from tests.doubles.news import NOW, synthetic_pool
from tests.doubles.two_view_device import DIM, TwoViewDevice
from tests.doubles.view_graph import towers_of_views, view_model
from tests.doubles.views_in_process import ViewsInProcess

ALPHA = 1e-6
ROUNDS = 40
TERMS = {
    "multi_view": ViewTerms(clip=0.5, sigma=4.0),
    "fl_mv_dssm": ViewTerms(clip=0.5, sigma=4.0),
    "fl_mv_dssm_subset": ViewTerms(clip=0.5, sigma=4.0, at_once=1),
}
Vectors = dict[str, NDArray[np.float64]]
SeenByServer = tuple[Vectors, list[frozenset[str]], list[list[float]]]
READERS = ("reads, never searched", "searched, opened nothing", "neither reads nor searches", "views that fail", "late")


def device(folder: Path, reader: str, *, semi: bool) -> TwoViewDevice:
    if reader == "neither reads nor searches":
        return TwoViewDevice(
            DeviceStores(folder / "device.sqlite"), synthetic_pool(40, dim=DIM), view_model(DIM, semi=semi)
        )
    made = TwoViewDevice.make(folder, searches=reader not in READERS[:2], semi=semi)
    if reader == "searched, opened nothing":
        made.stores.searches.save("ships", NOW)
    return made


def seen(folder: Path, reader: str, system: str, seed: int) -> SeenByServer:
    """Return the server's view of a device after ROUNDS.

    The nonzero coordinates by tower, the towers that were all zeros in each round, and what the device charged its
    views.
    """
    semi = system == "multi_view"
    home, noise = device(folder, reader, semi=semi), SeededNoise(seed)
    released = home.model.shared if semi else towers_of_views(DIM)
    given: dict[str, list[NDArray[np.float32]]] = {}
    silent = []
    for number in range(ROUNDS):
        task = replace(home.task(noise, TERMS[system]), round_id=f"round-{number}")
        rng = np.random.default_rng(number)
        late = reader == "late"
        tensors = task.noise(released, rng) if late else task.run(released, None, None, rng).tensors  # type: ignore[arg-type]
        zero = set()
        for name, each in tensors.items():
            tower = ".".join(name.split(".")[1:3]) if "user_towers" in name else "item_tower"
            if each.any():
                given.setdefault(tower, []).append(each.ravel())
            else:
                zero.add(tower)
        silent.append(frozenset(zero))
    charged = [home.stores.view_log.sigmas(view) for view in VIEWS]
    home.stores.close()
    return {tower: np.concatenate(each).astype(np.float64) for tower, each in given.items()}, silent, charged


def variances_differ(one: NDArray[np.float64], other: NDArray[np.float64]) -> bool:
    """Return the result of a two-sided F test of the variances around zero.

    The gradients, which are below the noise, hardly change it.
    """
    ratio = float(np.mean(one**2) / np.mean(other**2))
    lower = float(f.cdf(ratio, len(one), len(other)))
    return 2 * min(lower, 1 - lower) < ALPHA


def distributions_differ(one: NDArray[np.float64], other: NDArray[np.float64]) -> bool:
    return bool(ks_2samp(one, other).pvalue < ALPHA)


@pytest.fixture(scope="module", params=TERMS)
def compared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, SeenByServer]:
    """A system, and the server's view of a device whose reader reads and searches."""
    return request.param, seen(tmp_path_factory.mktemp("both"), "both", request.param, seed=1)


@pytest.mark.parametrize("reader", READERS)
def test_update_hides_which_views_have_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compared: tuple[str, SeenByServer], reader: str
) -> None:
    system, (both, drawn, charged) = compared
    if reader == "views that fail":

        def fails(self: ViewsInProcess, job: ViewJob) -> None:
            raise ViewFailed(f"view {job.view}: its process ended with 1")

        monkeypatch.setattr(ViewsInProcess, "gradient", fails)
    other, other_drawn, other_charged = seen(tmp_path / "other", reader, system, seed=2)
    assert both.keys() == other.keys()
    assert drawn == other_drawn, "which towers are zero follows from the draw of views alone"
    for tower, vectors in both.items():
        assert not variances_differ(vectors, other[tower]), tower
        assert not distributions_differ(vectors, other[tower]), tower
    assert other_charged == ([[], []] if reader == "late" else charged)


def test_variance_test_detects_a_view_missing_from_the_mean() -> None:
    """The power of the tests above against the earlier noise of one view."""
    rng, size = np.random.default_rng(3), ROUNDS * sum(each.size for each in view_model(DIM).shared.values())
    one, two = rng.normal(0, 2.0, size), rng.normal(0, 2.0, (2, size)).mean(axis=0)
    assert variances_differ(one, two)
    assert distributions_differ(one, two)
    assert not variances_differ(one, rng.normal(0, 2.0, size))
    assert not distributions_differ(one, rng.normal(0, 2.0, size))
