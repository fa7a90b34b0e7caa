"""The recall task compared with torch: the sum of what devices compute is the gradient of the pooled loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from backend.federation.bounded_mean import Aggregate, gradient_shapes
from backend.federation.optimizers import Sgd
from backend.federation.strategies.fedavg import FedAvg
from backend.releases.codebooks import calibrate, topic_centroids
from device_app.privacy.clipping import clip_elementwise
from device_app.privacy.noise_sources import SeededNoise, laplace
from device_app.reading.click_clusters import average_linkage
from device_app.training.gradients import Batch, BoundGraph, GradientFn, Gradients, OnnxGradients, Params
from device_app.training.samples import ReaderSamples
from device_app.training.tasks.recall_gradient import RecallTask, dropped
from device_app.training.tasks.task import BATCH
from exporters.graphs import recall_graphs
from models.builders.recall import basis_recall
from models.recall.basis import BasisRecall
from protocol.protections import LocalLaplace
from protocol.releases import RecallProtocol
from tests.doubles.graphs import kept_graph
from tests.doubles.news import SyntheticPool, synthetic_pool
from tests.doubles.sharing import shared
from tests.doubles.simulated_reader import simulated_reader
from tests.doubles.torch_gradients import TorchGradients

DIM = 32
Weights = dict[str, NDArray[np.float32]]


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def pool() -> SyntheticPool:
    return synthetic_pool(480, dim=DIM)


@pytest.fixture(scope="module")
def model(pool: SyntheticPool) -> BasisRecall:
    torch.manual_seed(0)
    model = basis_recall(heads=4, head_dim=8, attention_dim=16, basis_size=12, score_clip=0.2)
    centroids, _ = topic_centroids(pool.vectors, basis_size=12, seed=7)
    model.cosine_start(torch.from_numpy(centroids))
    return model


@pytest.fixture(scope="module")
def weights(model: BasisRecall) -> Weights:
    return {name: value.detach().numpy().copy() for name, value in model.named_parameters()}


@pytest.fixture(scope="module")
def oracle(model: BasisRecall) -> TorchGradients:
    return TorchGradients(model)


@pytest.fixture(scope="module")
def readers(pool: SyntheticPool) -> list[ReaderSamples]:
    rng = np.random.default_rng(11)
    return [simulated_reader(pool, rng).samples(pool) for _ in range(10)]


@pytest.fixture(scope="module")
def protocol(model: BasisRecall, pool: SyntheticPool) -> RecallProtocol:
    clicks = [pool.vectors[np.random.default_rng(seed).choice(480, size=20)] for seed in range(20)]

    def contexts(rows: NDArray[np.float32]) -> NDArray[np.float32]:
        with torch.no_grad():
            return model.contexts(torch.from_numpy(rows)[None], torch.ones(1, len(rows)))[0].numpy()

    distance = calibrate(clicks, contexts, channels_limit=5, seed=0).cluster_distance
    return RecallProtocol(basis_size=12, channels_limit=5, cluster_distance=distance, score_clip=0.2, score_noise=1.2)


@pytest.fixture(scope="module")
def task(oracle: TorchGradients, protocol: RecallProtocol) -> RecallTask:
    return RecallTask(contexts=oracle.contexts, protocol=protocol, negatives=4, samples_limit=2 * BATCH + 3)


def test_federated_mean_equals_torchs_gradient_of_the_mean_loss(
    task: RecallTask, oracle: TorchGradients, weights: Weights, readers: list[ReaderSamples]
) -> None:
    total = Aggregate(gradient_shapes(weights))
    for number, reader in enumerate(readers):
        total.add(task.run(weights, reader, oracle, np.random.default_rng(number)).tensors)

    leaves = {name: torch.from_numpy(value).requires_grad_(True) for name, value in weights.items()}
    losses = []
    for number, reader in enumerate(readers):
        drawn = reader.draw(negatives=4, limit=task.samples_limit, rng=np.random.default_rng(number))
        batch = task._batch(weights, drawn, slice(None))  # all of a reader's samples at once, without batches of 8
        losses.append(oracle.loss(leaves, batch))
    pooled = torch.autograd.grad(torch.stack(losses).mean(), list(leaves.values()))

    largest = max(float(each.abs().max()) for each in pooled)
    assert largest > 1e-3, "a gradient of zeros would agree with anything"
    for (name, mean), expected in zip(total.mean().items(), pooled, strict=True):
        np.testing.assert_allclose(mean, expected.numpy(), rtol=0, atol=1e-5 * largest, err_msg=name)


def test_loss_equals_torchs_mean_over_the_samples(
    task: RecallTask, oracle: TorchGradients, weights: Weights, readers: list[ReaderSamples]
) -> None:
    update = task.run(weights, readers[0], oracle, np.random.default_rng(4))
    drawn = readers[0].draw(negatives=4, limit=task.samples_limit, rng=np.random.default_rng(4))
    with torch.no_grad():
        expected = oracle.loss(
            {name: torch.from_numpy(value) for name, value in weights.items()},
            task._batch(weights, drawn, slice(None)),
        )

    assert update.samples == len(drawn) > BATCH, "more than one batch"
    assert update.loss == pytest.approx(float(expected), abs=1e-6)


def test_channels_match_average_linkage_and_quotas_are_their_shares(
    task: RecallTask, oracle: TorchGradients, weights: Weights, readers: list[ReaderSamples]
) -> None:
    drawn = readers[1].draw(negatives=4, limit=6, rng=np.random.default_rng(0))
    batch = task._batch(weights, drawn, slice(None))
    contexts = oracle.contexts(weights, drawn.clicks, drawn.click_mask)

    assert batch["membership"].shape == (len(drawn), 5, 50)
    for row in range(len(drawn)):
        real = drawn.click_mask[row] > 0
        labels = average_linkage(contexts[row][real], task.protocol.cluster_distance, 5)
        members = batch["membership"][row]
        assert members[:, real].argmax(axis=0).tolist() == labels.tolist()
        assert members.sum(axis=0).tolist() == drawn.click_mask[row].tolist(), "each real click once, padding never"
        np.testing.assert_allclose(batch["quotas"][row], members.sum(axis=1) / real.sum(), atol=1e-6)


def test_same_arguments_and_random_stream_give_the_same_update(
    task: RecallTask, oracle: TorchGradients, weights: Weights, readers: list[ReaderSamples]
) -> None:
    first, second, other = (task.run(weights, readers[2], oracle, np.random.default_rng(seed)) for seed in (5, 5, 6))

    for name in first.tensors:
        np.testing.assert_array_equal(first.tensors[name], second.tensors[name])
    assert any((first.tensors[name] != other.tensors[name]).any() for name in first.tensors)


def test_onnx_runtime_update_matches_torch(
    model: BasisRecall,
    task: RecallTask,
    protocol: RecallProtocol,
    oracle: TorchGradients,
    weights: Weights,
    readers: list[ReaderSamples],
) -> None:
    graphs = {s.purpose: kept_graph(model, s) for s in recall_graphs(DIM) if s.purpose in ("context", "gradient")}
    context = BoundGraph(graphs["context"])
    onnx_task = RecallTask(
        contexts=lambda params, clicks, mask: context(params, clicks=clicks, click_mask=mask)["contexts"],
        protocol=protocol,
        negatives=4,
        samples_limit=task.samples_limit,
    )
    rng = np.random.default_rng(1)
    moved = {name: value + rng.normal(0, 0.01, value.shape).astype(np.float32) for name, value in weights.items()}
    for params in (weights, moved):
        ours = onnx_task.run(params, readers[3], OnnxGradients(graphs["gradient"]), np.random.default_rng(9))
        theirs = task.run(params, readers[3], oracle, np.random.default_rng(9))
        assert ours.loss == pytest.approx(theirs.loss, abs=1e-5)
        assert ours.tensors.keys() == theirs.tensors.keys() == {f"g.{name}" for name in weights}
        for name in theirs.tensors:
            np.testing.assert_allclose(ours.tensors[name], theirs.tensors[name], rtol=0, atol=5e-6, err_msg=name)


def federated(
    task: RecallTask,
    grad: GradientFn,
    readers: list[ReaderSamples],
    weights: Weights,
    *,
    rounds: int,
    learning_rate: float,
    protect: Callable[[Weights], Weights],
) -> tuple[float, float]:
    """Return the mean loss before and after, on samples that no round has drawn."""

    def mean_loss(params: Weights) -> float:
        losses = [task.run(params, each, grad, np.random.default_rng([77, n])).loss for n, each in enumerate(readers)]
        return float(np.mean(losses))

    before = mean_loss(weights)
    for number in range(rounds):
        total = Aggregate(gradient_shapes(weights))
        for place, reader in enumerate(readers):
            update = task.run(weights, reader, grad, np.random.default_rng([number, place]))
            total.add(protect(dict(clip_elementwise(shared(update.tensors), 0.1).tensors)))
        weights = FedAvg().apply(total, weights, Sgd(learning_rate))
    return before, mean_loss(weights)


def test_thirty_noiseless_rounds_lower_the_loss_on_planted_interests(
    task: RecallTask, oracle: TorchGradients, weights: Weights, readers: list[ReaderSamples]
) -> None:
    before, after = federated(
        replace(task, samples_limit=BATCH),
        oracle,
        readers[:6],
        weights,
        rounds=30,
        learning_rate=1.0,
        protect=lambda update: update,
    )

    assert before < np.log(5), "the cosine start is better than chance"
    assert after < before - 0.05


def test_noise_of_the_paper_is_larger_than_the_gradient(
    task: RecallTask, oracle: TorchGradients, weights: Weights, readers: list[ReaderSamples]
) -> None:
    protection = LocalLaplace()
    source = SeededNoise(1)
    clean = task.run(weights, readers[0], oracle, np.random.default_rng(0)).tensors
    update = clip_elementwise(shared(clean), protection.clip).tensors
    noise = {name: laplace(source, protection.scale, value.shape) for name, value in update.items()}
    signal_l2 = float(np.sqrt(sum(np.square(value).sum() for value in update.values())))
    noise_l2 = float(np.sqrt(sum(np.square(value).sum() for value in noise.values())))
    coordinates = sum(value.size for value in update.values())

    assert noise_l2 == pytest.approx(protection.scale * np.sqrt(2 * coordinates), rel=0.05), (
        "the law's own standard deviation"
    )
    assert noise_l2 > signal_l2 > 0
    assert protection.epsilon_per_upload(coordinates) == 20 * coordinates


def test_dropout_removes_its_share_of_inputs_and_keeps_the_mean() -> None:
    ones = np.ones((40, 50, 256), np.float32)
    thinned = dropped(ones, 0.2, np.random.default_rng(1))
    assert thinned.dtype == np.float32
    assert set(np.unique(thinned)) == {0.0, np.float32(1.25)}
    share = float((thinned == 0).mean())
    assert share == pytest.approx(0.2, abs=6 * np.sqrt(0.2 * 0.8 / ones.size))


def test_dropout_changes_the_gradient_but_not_the_clustering(
    task: RecallTask, oracle: TorchGradients, weights: Weights, readers: list[ReaderSamples]
) -> None:
    seen: list[Batch] = []

    def watched(params: Params, batch: Batch) -> Gradients:
        seen.append(batch)
        return oracle(params, batch)

    replace(task, dropout=0.2).run(weights, readers[4], watched, np.random.default_rng(3))
    thinned, seen[:] = list(seen), []
    task.run(weights, readers[4], watched, np.random.default_rng(3))
    for with_dropout, whole in zip(thinned, seen, strict=True):
        for name in ("membership", "quotas", "click_mask"):
            np.testing.assert_array_equal(with_dropout[name], whole[name])
        for name in ("clicks", "candidates"):
            kept = with_dropout[name] != 0
            np.testing.assert_allclose(with_dropout[name][kept], whole[name][kept] / 0.8, rtol=1e-6)
            assert 0.15 < 1 - kept[whole[name] != 0].mean() < 0.25
