"""A device's views in a round. Oracle: the full gradient of one view by hand; FL-MV-DSSM's Algorithm 1 and eq. 7."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from device_app.errors import ProtectionTooWeak
from device_app.privacy.local_aggregate import clip_l2, composed_epsilon, exact_epsilon, mean_of
from device_app.privacy.noise_sources import SeededNoise
from device_app.ranking.views_ranker import user_tower
from device_app.reading.interest_profile import InterestNames
from device_app.reading.searched_interests import SearchedInterests
from device_app.store.preferences import TowerStore
from device_app.store.searches import SearchVector
from device_app.stores import DeviceStores
from device_app.training.gradients import OnnxGradients
from device_app.training.multiview.job import View, ViewFailed, ViewJob, ViewTerms, from_bytes, to_bytes
from device_app.training.multiview.view import SearchedSamples
from device_app.training.samples import StoredSamples
from device_app.training.tasks.full_gradient import FullGradientTask
from tests.doubles.news import NOW, synthetic_pool
from tests.doubles.two_view_device import DIM, ENCODER, MODEL, NoNoise, TwoViewDevice
from tests.doubles.view_graph import view_model
from tests.doubles.views_in_process import ViewsInProcess

NO_CLIP = 1e3


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[TwoViewDevice]:
    made = TwoViewDevice.make(tmp_path)
    yield made
    made.stores.close()


def by_hand(home: TwoViewDevice, seed: int, rng_draws: int = 0) -> Mapping[str, NDArray[np.float32]]:
    """Return FL-DSSM's full gradient on the reading view, with the generator that the task gives that view."""
    reading = StoredSamples(
        home.stores.clicks, home.stores.impressions, home.stores.news, half_life_hours=48.0
    ).samples(ENCODER)
    drawn = np.random.default_rng(seed)
    view_seed = [int(drawn.integers(2**63)) for _ in range(rng_draws + 1)][rng_draws]
    params = {**home.model.shared, **user_tower(home.model.shared, None)}
    update = FullGradientTask(negatives=4, samples_limit=16).run(
        params, reading, OnnxGradients(home.model.graphs["gradient"]), np.random.default_rng(view_seed)
    )
    return update.tensors


def test_round_of_one_view_uses_and_charges_only_that_view(home: TwoViewDevice) -> None:
    """FL-DSSM: two views have data, and the terms name one of them, once or twice."""
    once: tuple[View, ...] = ("reading",)
    for number, views in enumerate((once, once * 2)):
        task = replace(home.task(NoNoise(), ViewTerms(views=views, clip=NO_CLIP)), round_id=f"round-{number}")
        found = task.run(home.model.shared, None, None, np.random.default_rng(7))  # type: ignore[arg-type]
        wanted = by_hand(home, seed=7)
        for name in home.model.shared:
            np.testing.assert_array_equal(found.tensors[f"g.{name}"], wanted[f"g.{name}"])
        assert len(home.stores.view_log.sigmas("reading")) == number + 1
        assert home.stores.view_log.sigmas("searches") == []
        assert TowerStore(home.stores.search_database).get(MODEL) is None
        TowerStore(home.stores.database).keep(MODEL, user_tower(home.model.shared, None))  # started again for the next


@pytest.mark.parametrize("semi", [True, False])
def test_one_view_without_noise_or_clip_equals_fl_dssm_exactly(tmp_path: Path, semi: bool) -> None:
    home = TwoViewDevice.make(tmp_path, searches=False, semi=semi)
    terms = ViewTerms(views=("reading",), clip=NO_CLIP, sigma=1.0)
    found = home.run(NoNoise(), terms)
    wanted = by_hand(home, seed=7)
    assert set(found) == {f"g.{name}" for name in home.model.shared}
    for name, each in found.items():
        np.testing.assert_array_equal(each, wanted[name])
        assert np.abs(each).max() > 0
    home.stores.close()


def test_update_contains_shared_towers_and_no_private_ones(tmp_path: Path) -> None:
    semi, shared = view_model(DIM), view_model(DIM, semi=False)
    assert {name.split(".")[0] for name in semi.shared} == {"item_tower"}
    assert {name.split(".")[0] for name in shared.shared} == {"item_tower", "user_tower"}
    assert semi.private == tuple(sorted(name for name in shared.shared if name.startswith("user_tower")))
    home = TwoViewDevice.make(tmp_path)
    found = home.run(SeededNoise(1), ViewTerms())
    assert set(found) == {f"g.{name}" for name in semi.shared}
    assert dict(home.task(SeededNoise(1), ViewTerms()).shapes(semi.shared)) == {
        name: each.shape for name, each in found.items()
    }
    home.stores.close()


def test_update_of_two_views_is_the_mean_of_their_clipped_gradients(home: TwoViewDevice) -> None:
    alone: dict[View, Mapping[str, NDArray[np.float64]]] = {}
    views = home.views(NoNoise())
    inner = views.processes.gradient

    class RecordingViews:
        def why_not(self) -> None: ...

        def gradient(self, job: ViewJob) -> Mapping[str, NDArray[np.float64]] | None:
            found = inner(job)
            assert found is not None
            alone[job.view] = found
            return found

    task = replace(
        home.task(NoNoise(), ViewTerms(clip=0.05, sigma=1.0)), views=replace(views, processes=RecordingViews())
    )
    update = task.run(home.model.shared, None, None, np.random.default_rng(7))  # type: ignore[arg-type]
    assert set(alone) == {"reading", "searches"}
    for each in alone.values():
        norm = np.sqrt(sum(float((value**2).sum()) for value in each.values()))
        assert norm == pytest.approx(0.05, rel=1e-9), "both gradients are longer than the clip"
    unclipped = {
        name: value for name, value in by_hand(home, 7).items() if name.removeprefix("g.") in home.model.shared
    }
    for name, clipped in clip_l2(unclipped, 0.05).tensors.items():
        np.testing.assert_allclose(alone["reading"][name], clipped, rtol=1e-6, atol=1e-12)
    for name, mean in mean_of(list(alone.values())).items():
        np.testing.assert_array_equal(update.tensors[name], mean.astype(np.float32))


def test_mean_of_two_views_has_noise_sigma_c_over_root_two(home: TwoViewDevice) -> None:
    terms = ViewTerms(clip=0.5, sigma=2.0, tower_rate=0.0)
    clear, noise = home.run(NoNoise(), terms), SeededNoise(5)
    drawn = np.concatenate(
        [(each - clear[name]).ravel() for _ in range(12) for name, each in home.run(noise, terms).items()]
    )
    expected = 2.0 * 0.5 / np.sqrt(2)
    error = expected / np.sqrt(2 * len(drawn))
    assert drawn.std() == pytest.approx(expected, abs=5 * error)
    assert abs(drawn.mean()) < 5 * expected / np.sqrt(len(drawn))


def test_each_view_updates_only_its_own_private_tower(home: TwoViewDevice) -> None:
    terms = ViewTerms(clip=NO_CLIP, sigma=1.0, tower_rate=0.5)
    found = home.run(NoNoise(), terms)
    assert not any("user_tower" in name for name in found)
    kept = {
        "reading": TowerStore(home.stores.database).get(MODEL),
        "searches": TowerStore(home.stores.search_database).get(MODEL),
    }
    start, full = user_tower(home.model.shared, None), by_hand(home, 7)
    for name, value in start.items():
        assert kept["reading"] is not None
        assert kept["searches"] is not None
        np.testing.assert_array_equal(kept["reading"][name], value - np.float32(0.5) * full[f"g.{name}"])
        assert np.abs(kept["reading"][name] - kept["searches"][name]).max() > 0
    before = {view: {name: each.copy() for name, each in tower.items()} for view, tower in kept.items() if tower}
    home.run(NoNoise(), terms, seed=8)
    again = TowerStore(home.stores.database).get(MODEL)
    assert again is not None
    assert any(np.abs(again[name] - before["reading"][name]).max() > 0 for name in again)


def test_tower_with_outdated_shapes_is_reinitialised() -> None:
    shared = view_model(DIM).shared
    fresh = user_tower(shared, None)
    assert {name.removeprefix("user_tower."): each.shape for name, each in fresh.items()} == {
        name.removeprefix("item_tower."): each.shape for name, each in shared.items()
    }
    own = {name: each + 1 for name, each in fresh.items()}
    assert user_tower(shared, own) is own
    odd = {name: each[:1] for name, each in own.items()}
    for name, each in user_tower(shared, odd).items():
        np.testing.assert_array_equal(each, fresh[name])


def test_view_or_device_without_data_contributes_zeros(tmp_path: Path) -> None:
    home = TwoViewDevice.make(tmp_path / "a", searches=False)
    home.stores.searches.save("ships", NOW)  # a store, but nothing was opened from results
    alone, both = home.run(NoNoise(), ViewTerms(clip=NO_CLIP)), by_hand(home, 7)
    for name, each in alone.items():
        np.testing.assert_array_equal(each, both[name] / 2)
    home.stores.close()
    empty = TwoViewDevice(DeviceStores(tmp_path / "b" / "device.sqlite"), synthetic_pool(40, dim=DIM), view_model(DIM))
    assert not any(each.any() for each in empty.run(NoNoise(), ViewTerms()).values())
    for view in ("reading", "searches"):
        assert empty.stores.view_log.sigmas(view) == [1.0], "a view is charged whether it has data or not"
    empty.stores.close()


def test_search_deleted_or_saved_after_the_round_opened_is_not_trained_on(tmp_path: Path) -> None:
    home = TwoViewDevice.make(tmp_path, searches=True)
    both = home.run(NoNoise(), ViewTerms(clip=NO_CLIP, tower_rate=0.0))
    (kept,) = home.stores.searches.saved()
    home.stores.searches.delete(kept.id)
    alone = home.run(NoNoise(), ViewTerms(clip=NO_CLIP, tower_rate=0.0))
    assert any(np.abs(both[name] - alone[name]).max() > 0 for name in both)
    home.stores.searches.save("later", NOW + timedelta(days=1))
    home.stores.searches.keep_meaning(SearchVector("search", "later", ENCODER, home.pool.vectors[9], NOW))
    after = home.run(NoNoise(), ViewTerms(clip=NO_CLIP, tower_rate=0.0))
    for name, each in alone.items():
        np.testing.assert_array_equal(after[name], each)
    home.stores.close()


def test_view_contributions_are_recorded_before_computing(home: TwoViewDevice) -> None:
    for number in range(3):
        task = replace(home.task(SeededNoise(number), ViewTerms(sigma=4.0)), round_id=f"round-{number}")
        task.run(home.model.shared, None, None, np.random.default_rng(number))  # type: ignore[arg-type]
    for view in ("reading", "searches"):
        assert home.stores.view_log.sigmas(view) == [4.0, 4.0, 4.0]
        spent = composed_epsilon(home.stores.view_log.sigmas(view), 1e-3)
        assert spent == pytest.approx(exact_epsilon(4.0, 3, 1e-3), rel=1e-9)
    home.stores.erase()
    assert home.stores.view_log.sigmas("reading") == [4.0, 4.0, 4.0], "erasing buys no new budget"


def test_view_used_several_times_in_a_round_is_charged_at_the_combined_noise(home: TwoViewDevice) -> None:
    log = home.stores.view_log
    for _ in range(4):
        log.record("round-9", ["reading"], clip=0.5, sigma=4.0, at=NOW)
    assert log.sigmas("reading") == [pytest.approx(2.0)]
    assert composed_epsilon([2.0], 1e-3) == pytest.approx(exact_epsilon(4.0, 4, 1e-3), rel=1e-9)


@pytest.mark.parametrize(("sigma", "rounds", "epsilon"), [(4.0, 100, 10.20), (1.0, 100, 80.0), (1.0, 11, 15.0)])
def test_epsilon_of_a_view_matches_the_papers_corrected_figures(sigma: float, rounds: int, epsilon: float) -> None:
    assert composed_epsilon([sigma] * rounds, 1e-3) == pytest.approx(epsilon, abs=0.05)
    assert composed_epsilon([], 1e-3) == 0


def test_noise_below_the_readers_minimum_is_declined_with_both_values(home: TwoViewDevice) -> None:
    views = home.views(NoNoise(), weakest=1.0)
    views.check(ViewTerms(sigma=1.0))
    with pytest.raises(ProtectionTooWeak, match=r"noise of 0\.5 .* the settings require at least 1"):
        views.check(ViewTerms(sigma=0.5))


def test_view_job_survives_serialisation(tmp_path: Path) -> None:
    model = view_model(DIM)
    job = ViewJob(
        "searches", tmp_path / "a b.sqlite", ENCODER, MODEL, model.graphs["gradient"], model.shared,
        (("N1", "N2"), np.ones((2, DIM), np.float32)), ViewTerms(clip=0.25, sigma=3.0), 4, 32, 2**62,
    )  # fmt: skip
    again = from_bytes(to_bytes(job))
    for name in ("view", "store", "encoder", "model", "graph", "terms", "negatives", "samples_limit", "seed"):
        assert getattr(again, name) == getattr(job, name), name
    assert again.items[0] == job.items[0]
    np.testing.assert_array_equal(again.items[1], job.items[1])
    for name, each in job.parameters.items():
        np.testing.assert_array_equal(again.parameters[name], each)


def test_sample_uses_only_data_saved_before_it(home: TwoViewDevice) -> None:
    stores, pool = home.stores, home.pool
    stores.stances.set("topic", "rivers", "follow", NOW + timedelta(minutes=2))
    stores.searches.keep_meaning(SearchVector("topic", "rivers", ENCODER, pool.vectors[20], NOW))
    items = (tuple(card.id for card in pool.cards), pool.vectors)
    samples = SearchedSamples(stores.searches, stores.stances, ENCODER, items)
    assert samples.available == 3
    drawn = samples.draw(negatives=4, limit=3, rng=np.random.default_rng(0))
    for clicks, mask, candidates in zip(drawn.clicks, drawn.click_mask, drawn.candidates, strict=True):
        row = next(row for row in (1, 2, 3) if (candidates[0] == pool.vectors[row]).all())
        known = clicks[mask > 0]
        assert len(known) == (1 if row == 1 else 2)
        np.testing.assert_array_equal(known[0], pool.vectors[0])
        opened = pool.vectors[[1, 2, 3]]
        assert not any((each == opened).all(axis=1).any() for each in candidates[1:]), "no negative was ever opened"


def test_failed_view_contributes_zeros_under_the_same_noise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A release's graph may be made to fail on some clicks alone, which must not be visible."""
    home = TwoViewDevice.make(tmp_path)

    def fails(self: ViewsInProcess, job: ViewJob) -> None:
        raise ViewFailed(f"view {job.view}: its process ended with 1")

    monkeypatch.setattr(ViewsInProcess, "gradient", fails)
    terms = ViewTerms(clip=0.5, sigma=2.0)
    given = home.run(SeededNoise(1), terms)
    assert {name: each.shape for name, each in given.items()} == {
        f"g.{name}": each.shape for name, each in home.model.shared.items()
    }
    every = np.concatenate([each.ravel() for each in given.values()])
    assert 0.5 < every.std() / (0.5 * 2.0 / np.sqrt(2)) < 2.0, "the mean of two views' noise"
    home.stores.close()


def test_search_deleted_during_computation_invalidates_the_update(home: TwoViewDevice) -> None:
    stores = home.stores
    searched = SearchedInterests(stores.searches, stores.stances, stores.search_index, stores.news, lambda: NOW)
    views = replace(home.views(NoNoise()), searched=searched.names)
    task = replace(home.task(NoNoise(), ViewTerms(clip=NO_CLIP)), views=views)
    update = task.run(home.model.shared, None, None, np.random.default_rng(7))  # type: ignore[arg-type]
    assert update.unchanged is not None
    home.stores.searches.save("another, later", NOW)
    assert update.unchanged()
    home.stores.searches.delete(home.stores.searches.saved()[0].id)
    home.stores.searches.delete(home.stores.searches.saved()[0].id)
    assert not update.unchanged()


def test_reading_view_does_not_train_on_a_muted_interest(home: TwoViewDevice) -> None:
    InterestNames(home.stores.preferences).mute(sorted(home.stores.read_marks.ids()), True)
    found = home.run(NoNoise(), ViewTerms(views=("reading",), clip=NO_CLIP))
    assert not any(each.any() for each in found.values())
