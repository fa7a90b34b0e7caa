"""The rankers' task. Oracle: torch's gradient of the mean of the readers' losses, every reader's samples at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn

from backend.federation.bounded_mean import Aggregate, gradient_shapes
from device_app.feed.candidates import Candidates
from device_app.feed.feature_context import feature_context_at
from device_app.privacy.private_parameters import shared_part
from device_app.ranking.groups import GroupModels
from device_app.ranking.ranker import FeatureContext
from device_app.training.gradients import OnnxGradients
from device_app.training.samples import ReaderSamples
from device_app.training.tasks.full_gradient import FullGradientTask, ranker_batch
from device_app.training.tasks.group_gradient import GroupGradientTask
from device_app.training.tasks.task import BATCH
from experiments.simulation.clients import ranker_inputs
from models.builders.rankers import candidate_attention, feature_ranker, nrms
from models.builders.user import fednewsrec, lstur, naml
from models.shapes import private_names
from protocol.releases import ModelEntry
from tests.doubles.engines import TorchEngine, onnx_engine
from tests.doubles.news import SyntheticPool, synthetic_pool
from tests.doubles.simulated_reader import simulated_reader
from tests.doubles.torch_gradients import ModelLoss

DIM, READERS, LIMIT = 16, 5, 2 * BATCH + 3
FEATURES = ("section_affinity", "topic_affinity", "popularity", "recency")
Weights = dict[str, NDArray[np.float32]]


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@dataclass(frozen=True)
class RankerCase:
    """A ranker with its weights and the task that trains it."""

    model: nn.Module
    task: FullGradientTask

    @property
    def weights(self) -> Weights:
        """Return weights a little away from the start, where much of a gradient is zero."""
        rng = np.random.default_rng(5)
        return {
            name: np.asarray(value.detach().numpy() + rng.normal(0, 0.1, value.shape), dtype=np.float32)
            for name, value in self.model.named_parameters()
        }

    @property
    def torch(self) -> TorchEngine:
        return TorchEngine(self.model, ranker_inputs(DIM, len(self.task.features)))

    @property
    def onnx(self) -> OnnxGradients:
        return onnx_engine(self.model, ranker_inputs(DIM, len(self.task.features)))


BUILDERS: dict[str, Callable[[], nn.Module]] = {
    "feature_ranker": lambda: feature_ranker(DIM),
    "candidate_attention": lambda: candidate_attention(DIM),
    "nrms": lambda: nrms(heads=2, head_dim=8, attention_dim=6),
    "naml": lambda: naml(dim=DIM, attention_dim=6),
    "lstur": lambda: lstur("ini", dim=DIM),
    "fednewsrec": lambda: fednewsrec(heads=2, head_dim=8, attention_dim=6),
}


@lru_cache
def case(name: str) -> RankerCase:
    torch.manual_seed(0)
    features = FEATURES if name == "feature_ranker" else ()
    return RankerCase(BUILDERS[name](), FullGradientTask(negatives=4, samples_limit=LIMIT, features=features))


@lru_cache
def pool() -> SyntheticPool:
    return synthetic_pool(480, dim=DIM)


def past_context(candidates: Sequence[str], clicks: Sequence[str], at: datetime) -> FeatureContext:
    cards = {card.id: card for card in pool().cards}
    asked = tuple(cards[news_id] for news_id in candidates)
    no_vectors = np.zeros((len(asked), 0), np.float32)
    return feature_context_at(Candidates(asked, no_vectors, ""), [cards[one] for one in clicks], at, 48.0)


@lru_cache
def readers() -> list[ReaderSamples]:
    rng = np.random.default_rng(11)
    return [replace(simulated_reader(pool(), rng).samples(pool()), contexts=past_context) for _ in range(READERS)]


@pytest.mark.parametrize("name", BUILDERS)
def test_mean_of_updates_equals_torchs_gradient_of_the_mean_loss(name: str) -> None:
    ranker = case(name)
    weights, task = ranker.weights, ranker.task
    assert {len(reader.draw(negatives=4, limit=LIMIT, rng=np.random.default_rng(0))) for reader in readers()} != {LIMIT}
    total = Aggregate(gradient_shapes(weights))
    for number, reader in enumerate(readers()):
        total.add(task.run(weights, reader, ranker.torch, np.random.default_rng(number)).tensors)

    leaves = {each: torch.from_numpy(value).double().requires_grad_(True) for each, value in weights.items()}
    losses = []
    for number, reader in enumerate(readers()):
        rng = np.random.default_rng(number)
        drawn = reader.draw(negatives=4, limit=LIMIT, rng=rng, features=task.features)
        batch = ranker_batch(drawn, slice(None))
        inputs = tuple(torch.from_numpy(value).double() for value in batch.values())
        losses.append(torch.func.functional_call(ModelLoss(ranker.model), _prefixed(leaves), inputs))
    pooled = torch.autograd.grad(torch.stack(losses).mean(), list(leaves.values()))

    largest = max(float(each.abs().max()) for each in pooled)
    assert largest > 1e-3, "a gradient of zeros would agree with anything"
    for (each, mean), expected in zip(total.mean().items(), pooled, strict=True):
        np.testing.assert_allclose(mean, expected.numpy(), rtol=0, atol=1e-6 * max(1.0, largest), err_msg=each)


def _prefixed(leaves: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {f"model.{name}": value for name, value in leaves.items()}


@pytest.mark.parametrize("name", ["feature_ranker", "naml"])
def test_onnx_runtime_update_matches_torch(name: str) -> None:
    ranker = case(name)
    ours, theirs = (
        ranker.task.run(ranker.weights, readers()[0], engine, np.random.default_rng(3))
        for engine in (ranker.onnx, ranker.torch)
    )

    assert ours.samples == theirs.samples > BATCH, "more than one batch"
    assert ours.loss == pytest.approx(theirs.loss, abs=1e-5)
    assert ours.tensors.keys() == theirs.tensors.keys() == {f"g.{each}" for each in ranker.weights}
    for each in theirs.tensors:
        np.testing.assert_allclose(ours.tensors[each], theirs.tensors[each], rtol=0, atol=5e-6, err_msg=each)


@pytest.mark.parametrize("name", ["nrms", "naml"])
def test_chosen_finding_group_gets_torchs_gradient_and_other_groups_zeros(name: str) -> None:
    ranker, clip, group = case(name), 50.0, 2
    rng = np.random.default_rng(8)
    blocks = {
        each: np.asarray(value + rng.normal(0, 0.1, (3, *value.shape)), dtype=np.float32)
        for each, value in ranker.weights.items()
    }
    nowhere = np.zeros((3, DIM), np.float32)
    groups = GroupModels(blocks, nowhere, ranker.weights, nowhere, ranker.weights)
    task = GroupGradientTask(ranker.task, groups, group, clip)
    ours = task.run(ranker.weights, readers()[0], ranker.onnx, np.random.default_rng(3))

    own = {each: block[group] for each, block in blocks.items()}
    theirs = ranker.task.run(own, readers()[0], ranker.torch, np.random.default_rng(3))
    length = np.sqrt(sum(float(np.square(each).sum()) for each in theirs.tensors.values()))
    assert 1e-3 < length < np.sqrt(0.75) * clip, "nothing is scaled, and there is something to compare"
    assert task.shapes(ranker.weights) == {each: value.shape for each, value in ours.tensors.items()}
    for each, expected in theirs.tensors.items():
        np.testing.assert_allclose(ours.tensors[each][group], expected, rtol=0, atol=1e-5, err_msg=each)
        assert not np.delete(ours.tensors[each], group, axis=0).any()
    np.testing.assert_array_equal(ours.tensors["members"], [0, 0, clip / 2])


def test_batch_size_does_not_change_the_update(monkeypatch: pytest.MonkeyPatch) -> None:
    ranker = case("feature_ranker")

    def update(batch: int) -> Weights:
        monkeypatch.setattr("device_app.training.tasks.task.BATCH", batch)
        found = ranker.task.run(ranker.weights, readers()[1], ranker.torch, np.random.default_rng(3))
        return dict(found.tensors)

    whole = update(1_000)
    for batch in (1, 3, BATCH):
        for name, value in update(batch).items():
            np.testing.assert_allclose(value, whole[name], rtol=0, atol=2e-6, err_msg=f"{name}, batches of {batch}")


def test_same_random_stream_gives_the_same_update() -> None:
    ranker = case("feature_ranker")
    first, second, other = (
        ranker.task.run(ranker.weights, readers()[2], ranker.torch, np.random.default_rng(seed)) for seed in (5, 5, 6)
    )

    for name in first.tensors:
        np.testing.assert_array_equal(first.tensors[name], second.tensors[name])
    assert any((first.tensors[name] != other.tensors[name]).any() for name in first.tensors)


def test_lsturs_reader_vector_gradient_never_leaves() -> None:
    ranker = case("lstur")
    private = private_names(ranker.model)
    update = ranker.task.run(ranker.weights, readers()[0], ranker.torch, np.random.default_rng(0))

    assert private == ("user_embedding",)
    assert np.abs(update.tensors["g.user_embedding"]).max() > 0
    for declared in (private, ()):  # even if a release forgets to say so
        entry = ModelEntry(architecture="lstur_ini", role="ranker", graphs={}, private=declared)
        shared = shared_part(update.tensors, entry).tensors
        assert shared.keys() == update.tensors.keys() - {"g.user_embedding"}


def test_ranker_with_features_needs_samples_with_contexts() -> None:
    ranker = case("feature_ranker")
    blind = replace(readers()[0], contexts=None)

    with pytest.raises(ValueError, match="contexts: needed for the features section_affinity"):
        ranker.task.run(ranker.weights, blind, ranker.torch, np.random.default_rng(0))
