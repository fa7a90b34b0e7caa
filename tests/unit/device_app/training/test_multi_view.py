"""A device's views in a round. Oracle: the full gradient of one view by hand; FL-MV-DSSM's Algorithm 1 and eq. 7."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from device_app.errors import NotEligible, ProtectionTooWeak
from device_app.interests.names import InterestNames
from device_app.interests.searched import SearchedInterests
from device_app.privacy.local_aggregate import clip_l2, composed_epsilon, exact_epsilon, mean_of
from device_app.privacy.noise_sources import SeededNoise
from device_app.ranking.views_ranker import ReaderViews, ViewsRanker, of_view, released_name, user_tower
from device_app.store.database import Database
from device_app.store.parameters import TowerStore
from device_app.store.searches import SearchVector
from device_app.stores import DeviceStores
from device_app.training.gradients import Batch, BoundGraph, OnnxGradients, Params
from device_app.training.multiview.job import View, ViewFailed, ViewJob, ViewTerms, from_bytes, to_bytes
from device_app.training.multiview.local import LocalViews
from device_app.training.multiview.searched_samples import SearchedSamples
from device_app.training.samples import Samples
from device_app.training.stored_samples import StoredSamples
from device_app.training.tasks.evaluate import EvaluateTask
from device_app.training.tasks.full_gradient import FullGradientTask, ranker_batch
from device_app.training.tasks.multi_view import MultiViewTask
from tests.doubles.news import NOW, SyntheticPool, synthetic_pool
from tests.doubles.simulated_reader import simulated_reader
from tests.doubles.torch_gradients import ModelLoss
from tests.doubles.view_graph import ViewModel, towers_of_views, view_model
from tests.doubles.views_in_process import ViewsInProcess

DIM = 8
ENCODER, MODEL, ROUND = "enc", "ranker.multi_view", "round-1"
NO_CLIP = 1e3


class NoNoise:
    """Bits of which the Gaussian sampler makes exactly 0: u = 1/2."""

    def uniform_bits(self, n: int) -> bytes:
        return b"\xff" * n


@dataclass
class TwoViewDevice:
    """A reader's device without its network: two views with data."""

    stores: DeviceStores
    pool: SyntheticPool
    model: ViewModel

    @classmethod
    def make(cls, folder: Path, *, searches: bool = True, semi: bool = True) -> TwoViewDevice:
        pool = synthetic_pool(120, dim=DIM)
        home = cls(DeviceStores(folder / "device.sqlite"), pool, view_model(DIM, semi=semi))
        reader = simulated_reader(pool, np.random.default_rng(1))
        home.stores.news.put(list(pool.cards), pool.vectors, ENCODER, NOW)
        for feed in reader.feeds:
            home.stores.impressions.record(feed.feed_id, feed.shown, feed.at)
        for click in reader.clicks:
            home.stores.clicks.add(click.news_id, click.feed_id, click.at)
        if searches:
            kept = home.stores.searches
            kept.save("ships", NOW)
            kept.keep_meaning(SearchVector("search", "ships", ENCODER, pool.vectors[0], NOW))
            for row in (1, 2, 3):
                kept.opened(pool.cards[row].id, NOW + timedelta(minutes=row))
                kept.keep_meaning(SearchVector("news", pool.cards[row].id, ENCODER, pool.vectors[row], NOW))
        return home

    def views(self, source: object, *, weakest: float = 0.001) -> LocalViews:
        database = self.stores.search_database
        return LocalViews(
            stores={
                "reading": lambda: self.stores.database.path,
                "searches": lambda: database.path if database.known() else None,
            },
            items=lambda _: (tuple(card.id for card in self.pool.cards), self.pool.vectors),
            prepare=lambda _: None,
            processes=ViewsInProcess(source, self.store),  # type: ignore[arg-type]
            log=self.stores.view_log,
            weakest_sigma=lambda: weakest,
            clock=lambda: NOW,
        )

    def store(self, path: Path) -> Database:
        if path == self.stores.database.path:
            return self.stores.database
        known = self.stores.search_database.known()
        assert known is not None
        assert known.path == path
        return known

    def task(self, source: object, terms: ViewTerms) -> MultiViewTask:
        return MultiViewTask(
            self.views(source),
            terms,
            ROUND,
            MODEL,
            ENCODER,
            self.model.graphs["gradient"],
            negatives=4,
            samples_limit=16,
        )

    def run(self, source: object, terms: ViewTerms, seed: int = 7) -> Mapping[str, NDArray[np.float32]]:
        update = self.task(source, terms).run(self.model.shared, None, None, np.random.default_rng(seed))  # type: ignore[arg-type]
        assert (update.loss, update.samples) == (0.0, 1)
        return update.tensors


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[TwoViewDevice]:
    made = TwoViewDevice.make(tmp_path)
    yield made
    made.stores.close()


def by_hand(home: TwoViewDevice, seed: int, rng_draws: int = 0) -> Mapping[str, NDArray[np.float32]]:
    """FL-DSSM: the full gradient on the reading view alone, with the generator that the task hands to that view."""
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


def test_a_round_of_one_view_asks_no_other_and_counts_no_other(home: TwoViewDevice) -> None:
    """FL-DSSM: of two views with data, the terms name one, once or twice."""
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
        TowerStore(home.stores.database).keep(MODEL, user_tower(home.model.shared, None))  # begun anew for the next


@pytest.mark.parametrize("semi", [True, False])
def test_one_view_without_noise_or_clip_is_fl_dssm_bit_for_bit(tmp_path: Path, semi: bool) -> None:
    home = TwoViewDevice.make(tmp_path, searches=False, semi=semi)
    terms = ViewTerms(clip=NO_CLIP, sigma=1.0)
    found = home.run(NoNoise(), terms)
    wanted = by_hand(home, seed=7)
    assert set(found) == {f"g.{name}" for name in home.model.shared}
    for name, each in found.items():
        np.testing.assert_array_equal(each, wanted[name])
        assert np.abs(each).max() > 0
    home.stores.close()


def test_shared_towers_are_in_an_update_and_private_ones_are_not(tmp_path: Path) -> None:
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


def test_the_mean_of_two_clipped_views_is_what_leaves_the_mixing(home: TwoViewDevice) -> None:
    alone: dict[View, Mapping[str, NDArray[np.float64]]] = {}
    views = home.views(NoNoise())
    inner = views.processes.gradient

    class OverheardViews:
        def why_not(self) -> None: ...

        def gradient(self, job: ViewJob) -> Mapping[str, NDArray[np.float64]] | None:
            found = inner(job)
            assert found is not None
            alone[job.view] = found
            return found

    task = replace(
        home.task(NoNoise(), ViewTerms(clip=0.05, sigma=1.0)), views=replace(views, processes=OverheardViews())
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


def test_every_view_adds_noise_of_its_own_so_the_mean_has_sigma_c_over_root_two(home: TwoViewDevice) -> None:
    terms = ViewTerms(clip=0.5, sigma=2.0, tower_rate=0.0)
    clear, noise = home.run(NoNoise(), terms), SeededNoise(5)
    drawn = np.concatenate(
        [(each - clear[name]).ravel() for _ in range(12) for name, each in home.run(noise, terms).items()]
    )
    expected = 2.0 * 0.5 / np.sqrt(2)
    error = expected / np.sqrt(2 * len(drawn))
    assert drawn.std() == pytest.approx(expected, abs=5 * error)
    assert abs(drawn.mean()) < 5 * expected / np.sqrt(len(drawn))


def test_each_view_steps_its_own_tower_and_neither_leaves(home: TwoViewDevice) -> None:
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


def test_a_tower_of_other_shapes_than_the_releases_begins_anew() -> None:
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


def test_a_view_without_anything_to_learn_from_is_left_out_and_a_device_without_any_declines(tmp_path: Path) -> None:
    home = TwoViewDevice.make(tmp_path / "a", searches=False)
    home.stores.searches.save("ships", NOW)  # a store, but nothing was opened from results
    alone, both = home.run(NoNoise(), ViewTerms(clip=NO_CLIP)), by_hand(home, 7)
    for name, each in alone.items():
        np.testing.assert_array_equal(each, both[name])
    home.stores.close()
    empty = TwoViewDevice(DeviceStores(tmp_path / "b" / "device.sqlite"), synthetic_pool(40, dim=DIM), view_model(DIM))
    with pytest.raises(NotEligible, match="none of its views"):
        empty.run(NoNoise(), ViewTerms())
    empty.stores.close()


def test_a_search_deleted_or_saved_later_teaches_nothing(tmp_path: Path) -> None:
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


def test_what_each_view_handed_over_is_counted_before_it_computes(home: TwoViewDevice) -> None:
    for number in range(3):
        task = replace(home.task(SeededNoise(number), ViewTerms(sigma=4.0)), round_id=f"round-{number}")
        task.run(home.model.shared, None, None, np.random.default_rng(number))  # type: ignore[arg-type]
    for view in ("reading", "searches"):
        assert home.stores.view_log.sigmas(view) == [4.0, 4.0, 4.0]
        spent = composed_epsilon(home.stores.view_log.sigmas(view), 1e-3)
        assert spent == pytest.approx(exact_epsilon(4.0, 3, 1e-3), rel=1e-9)
    home.stores.erase()
    assert home.stores.view_log.sigmas("reading") == [4.0, 4.0, 4.0], "erasing buys no new budget"


def test_a_round_counted_twice_has_the_noise_that_both_leave(home: TwoViewDevice) -> None:
    log = home.stores.view_log
    for _ in range(4):
        log.record("round-9", ["reading"], clip=0.5, sigma=4.0, at=NOW)
    assert log.sigmas("reading") == [pytest.approx(2.0)]
    assert composed_epsilon([2.0], 1e-3) == pytest.approx(exact_epsilon(4.0, 4, 1e-3), rel=1e-9)


@pytest.mark.parametrize(("sigma", "rounds", "epsilon"), [(4.0, 100, 10.20), (1.0, 100, 80.0), (1.0, 11, 15.0)])
def test_the_account_of_a_view_has_the_corrected_figures_of_the_paper(
    sigma: float, rounds: int, epsilon: float
) -> None:
    assert composed_epsilon([sigma] * rounds, 1e-3) == pytest.approx(epsilon, abs=0.05)
    assert composed_epsilon([], 1e-3) == 0


def test_less_noise_than_the_reader_allows_is_declined_with_both_figures(home: TwoViewDevice) -> None:
    views = home.views(NoNoise(), weakest=1.0)
    views.check(ViewTerms(sigma=1.0))
    with pytest.raises(ProtectionTooWeak, match=r"noise of 0\.5 .* at least 1 is asked for"):
        views.check(ViewTerms(sigma=0.5))


def test_a_job_reads_back_as_it_was_written(tmp_path: Path) -> None:
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


def test_the_time_of_saving_decides_what_a_sample_may_know(home: TwoViewDevice) -> None:
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


def test_a_view_that_fails_gives_zeros_under_the_same_noise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A release's graph may be made to fail on some clicks alone, which may not show."""
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


def test_a_search_deleted_while_the_views_compute_keeps_the_round_from_being_paid(home: TwoViewDevice) -> None:
    stores = home.stores
    searched = SearchedInterests(stores.searches, stores.stances, stores.search_index, stores.news, lambda: NOW)
    views = replace(home.views(NoNoise()), searched=searched.names)
    task = replace(home.task(NoNoise(), ViewTerms(clip=NO_CLIP)), views=views)
    update = task.run(home.model.shared, None, None, np.random.default_rng(7))  # type: ignore[arg-type]
    assert update.paid is not None
    home.stores.searches.save("another, later", NOW)
    update.paid()
    home.stores.searches.delete(home.stores.searches.saved()[0].id)
    home.stores.searches.delete(home.stores.searches.saved()[0].id)
    with pytest.raises(NotEligible, match="deleted searches"):
        update.paid()


def test_nothing_of_a_muted_interest_is_learnt_from_by_the_reading_view(home: TwoViewDevice) -> None:
    InterestNames(home.stores.preferences).mute(sorted(home.stores.clicks.clicked()), True)
    with pytest.raises(NotEligible, match="none of its views"):
        home.run(NoNoise(), ViewTerms(views=("reading",), clip=NO_CLIP))


def test_shared_towers_of_several_views_get_torchs_gradient_and_each_that_of_its_own_view(tmp_path: Path) -> None:
    """FL-MV-DSSM. Oracle: autograd of each view's loss at the item tower and that view's user tower (Algorithm 1)."""
    home, released = TwoViewDevice.make(tmp_path, semi=False), towers_of_views(DIM)
    task = home.task(NoNoise(), ViewTerms(clip=NO_CLIP))
    update = task.run(released, None, None, np.random.default_rng(7))  # type: ignore[arg-type]
    assert {name: each.shape for name, each in update.tensors.items()} == task.shapes(released)
    seeds = np.random.default_rng(7)
    given = {
        "reading": StoredSamples(
            home.stores.clicks, home.stores.impressions, home.stores.news, half_life_hours=48.0
        ).samples(ENCODER),
        "searches": SearchedSamples(
            home.stores.searches,
            home.stores.stances,
            ENCODER,
            (tuple(card.id for card in home.pool.cards), home.pool.vectors),
        ),
    }
    items = []
    for view, samples in given.items():
        drawn = samples.draw(negatives=4, limit=16, rng=np.random.default_rng(int(seeds.integers(2**63))))
        batch = ranker_batch(drawn, slice(None))
        leaves = {
            name: torch.from_numpy(value).double().requires_grad_(True)
            for name, value in of_view(released, view).items()
        }
        inputs = tuple(torch.from_numpy(value).double() for value in batch.values())
        loss = torch.func.functional_call(
            ModelLoss(home.model.model), {f"model.{n}": v for n, v in leaves.items()}, inputs
        )
        found = dict(zip(leaves, torch.autograd.grad(loss, list(leaves.values())), strict=True))
        items.append({name: each for name, each in found.items() if name.startswith("item_tower.")})
        for name in (name for name in found if name.startswith("user_tower.")):
            ours = update.tensors["g." + released_name(released, view, name)]
            np.testing.assert_allclose(ours, found[name].numpy(), rtol=0, atol=1e-5, err_msg=f"{view} {name}")
            assert np.abs(ours).max() > 1e-4
    for name in items[0]:
        mean = (items[0][name] + items[1][name]) / 2
        np.testing.assert_allclose(update.tensors[f"g.{name}"], mean.numpy(), rtol=0, atol=1e-5, err_msg=name)
    assert TowerStore(home.stores.database).get(MODEL) is None, "no tower is kept back"
    home.stores.close()


def test_a_view_that_a_device_has_not_leaves_its_tower_at_zero_and_the_items_to_the_others(tmp_path: Path) -> None:
    home, released = TwoViewDevice.make(tmp_path, searches=False, semi=False), towers_of_views(DIM)
    task = home.task(NoNoise(), ViewTerms(clip=NO_CLIP))
    tensors = task.run(released, None, None, np.random.default_rng(7)).tensors  # type: ignore[arg-type]
    for name, each in tensors.items():
        assert each.any() != name.startswith("g.user_towers.searches."), name
    home.stores.close()


def test_a_round_of_one_view_at_once_draws_either_and_counts_what_it_drew(tmp_path: Path) -> None:
    """B_v of the paper's local_secure_aggregate. Oracle: the log of what each view gave, over 24 rounds."""
    home, released = TwoViewDevice.make(tmp_path, semi=False), towers_of_views(DIM)
    terms = ViewTerms(clip=NO_CLIP, at_once=1)
    drawn = []
    for number in range(24):
        task = replace(home.task(NoNoise(), terms), round_id=f"round-{number}")
        tensors = task.run(released, None, None, np.random.default_rng(number)).tensors  # type: ignore[arg-type]
        gave = {name.split(".")[2] for name, each in tensors.items() if "user_towers" in name and each.any()}
        assert len(gave) == 1
        drawn += gave
    for view in ("reading", "searches"):
        assert len(home.stores.view_log.sigmas(view)) == drawn.count(view) > 4
    home.stores.close()


def test_a_ranker_of_shared_towers_ranks_each_view_by_its_own(tmp_path: Path) -> None:
    """Oracle: torch's probabilities of each view by its tower, and their mean."""
    model, released = view_model(DIM, semi=False), towers_of_views(DIM)
    rng = np.random.default_rng(2)
    clicks, candidates, searched = (rng.normal(size=(rows, DIM)).astype(np.float32) for rows in (5, 7, 1))
    ranker = ViewsRanker(model.graphs["score"], released, name=MODEL).with_views(lambda _: ReaderViews(searched))
    each = []
    for view, rows in (("reading", clicks), ("searches", searched)):
        weights = {name: torch.from_numpy(value) for name, value in of_view(released, view).items()}
        inputs = (torch.from_numpy(rows)[None], torch.ones(1, len(rows)), torch.from_numpy(candidates)[None])
        each.append(torch.func.functional_call(model.model, weights, inputs)[0].softmax(-1).detach().numpy())
    np.testing.assert_allclose(ranker.score(clicks, candidates), np.log(np.mean(each, axis=0)), atol=1e-5)


def test_the_gate_scores_a_ranker_whose_towers_stay_at_home_by_the_tower_that_a_view_begins_with() -> None:
    """Red before: with a tower of zeros every score was equal, so that no fall could ever show."""
    model = view_model(DIM)
    graph = BoundGraph(model.graphs["score"], private=model.private)
    task = EvaluateTask(lambda params, batch: graph(params, **batch)["scores"], model.shared, 4, 16)
    rng, seen = np.random.default_rng(5), []
    rows = rng.normal(size=(9, 5, DIM)).astype(np.float32)

    class DrawnSamples:
        def draw(self, **_: object) -> Samples:
            return Samples(rows[:, :3], np.ones((9, 3), np.float32), rows)

    def overheard(params: Params, batch: Batch) -> NDArray[np.float32]:
        seen.append(graph(params, **batch)["scores"])
        return seen[-1]

    replace(task, score=overheard).run(model.shared, DrawnSamples(), None, rng)  # type: ignore[arg-type]
    assert all(each.std(axis=1).min() > 1e-3 for each in seen)
    weights = {**model.shared, **user_tower(model.shared, None)}
    inputs = (torch.from_numpy(rows[:, :3]), torch.ones(9, 3), torch.from_numpy(rows))
    wanted = torch.func.functional_call(model.model, {n: torch.from_numpy(v) for n, v in weights.items()}, inputs)
    np.testing.assert_allclose(np.concatenate(seen[: len(seen) // 2]), wanted.detach().numpy(), atol=1e-4)
