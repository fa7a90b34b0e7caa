"""FL-MV-DSSM with a shared user tower for each view, and how its variants rank and are scored. Oracle: torch."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from device_app.ranking.views_ranker import ReaderViews, ViewsRanker, of_view, released_name, user_tower
from device_app.store.preferences import TowerStore
from device_app.training.gradients import Batch, BoundGraph, Params
from device_app.training.multiview.job import ViewTerms
from device_app.training.multiview.view import SearchedSamples
from device_app.training.samples import Samples, SampleSource, StoredSamples
from device_app.training.tasks.evaluate import EvaluateTask
from device_app.training.tasks.full_gradient import ranker_batch
from tests.doubles.torch_gradients import ModelLoss
from tests.doubles.two_view_device import DIM, ENCODER, MODEL, NoNoise, TwoViewDevice
from tests.doubles.view_graph import towers_of_views, view_model

NO_CLIP = 1e3


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


def test_each_shared_tower_gets_torchs_gradient_from_its_own_view(tmp_path: Path) -> None:
    """FL-MV-DSSM. Oracle: autograd of each view's loss at the item tower and that view's user tower (Algorithm 1)."""
    home, released = TwoViewDevice.make(tmp_path, semi=False), towers_of_views(DIM)
    task = home.task(NoNoise(), ViewTerms(clip=NO_CLIP))
    update = task.run(released, None, None, np.random.default_rng(7))  # type: ignore[arg-type]
    assert {name: each.shape for name, each in update.tensors.items()} == task.shapes(released)
    seeds = np.random.default_rng(7)
    given: dict[str, SampleSource] = {
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


def test_tower_of_a_view_without_data_gets_only_noise(tmp_path: Path) -> None:
    home, released = TwoViewDevice.make(tmp_path, searches=False, semi=False), towers_of_views(DIM)
    task = home.task(NoNoise(), ViewTerms(clip=NO_CLIP))
    tensors = task.run(released, None, None, np.random.default_rng(7)).tensors  # type: ignore[arg-type]
    for name, each in tensors.items():
        assert each.any() != name.startswith("g.user_towers.searches."), name
    home.stores.close()


def test_round_of_one_view_chooses_a_view_at_random_and_records_it(tmp_path: Path) -> None:
    """B_v of the paper's local_secure_aggregate. Oracle: the log of each view's contributions, over 24 rounds."""
    home, released = TwoViewDevice.make(tmp_path, semi=False), towers_of_views(DIM)
    terms = ViewTerms(clip=NO_CLIP, at_once=1)
    drawn: list[str] = []
    for number in range(24):
        task = replace(home.task(NoNoise(), terms), round_id=f"round-{number}")
        tensors = task.run(released, None, None, np.random.default_rng(number)).tensors  # type: ignore[arg-type]
        gave = {name.split(".")[2] for name, each in tensors.items() if "user_towers" in name and each.any()}
        assert len(gave) == 1
        drawn += gave
    for view in ("reading", "searches"):
        assert len(home.stores.view_log.sigmas(view)) == drawn.count(view) > 4
    home.stores.close()


def test_ranker_with_shared_towers_ranks_each_view_by_its_own_tower(tmp_path: Path) -> None:
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


def test_gate_scores_a_ranker_with_private_towers_by_the_initial_tower() -> None:
    """Regression: with a tower of zeros every score was equal, so no decline could ever show."""
    model = view_model(DIM)
    graph = BoundGraph(model.graphs["score"], private=model.private)
    task = EvaluateTask(lambda params, batch: graph(params, **batch)["scores"], model.shared, 4, 16)
    rng, seen = np.random.default_rng(5), []
    rows = rng.normal(size=(9, 5, DIM)).astype(np.float32)

    class DrawnSamples:
        def draw(self, **_: object) -> Samples:
            return Samples(rows[:, :3], np.ones((9, 3), np.float32), rows)

    def recorded(params: Params, batch: Batch) -> NDArray[np.float32]:
        seen.append(graph(params, **batch)["scores"])
        return seen[-1]

    replace(task, score=recorded).run(model.shared, DrawnSamples(), None, rng)  # type: ignore[arg-type]
    assert all(each.std(axis=1).min() > 1e-3 for each in seen)
    weights = {**model.shared, **user_tower(model.shared, None)}
    inputs = (torch.from_numpy(rows[:, :3]), torch.ones(9, 3), torch.from_numpy(rows))
    wanted = torch.func.functional_call(model.model, {n: torch.from_numpy(v) for n, v in weights.items()}, inputs)
    np.testing.assert_allclose(np.concatenate(seen[: len(seen) // 2]), wanted.detach().numpy(), atol=1e-4)
