"""Efficient-FedRec for a head: what devices compute is the gradient of end-to-end training.

Oracle: torch's autograd through head and user model on all samples in one place, in float64, from the same pooled
states in float16.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from backend.federation.bounded_mean import Aggregate
from device_app.privacy.private_parameters import shared_part
from device_app.privacy.protections.secure_sum import clip_norm
from device_app.training.gradients import OnnxGradients
from device_app.training.tasks.head_gradient import PooledNews
from device_app.training.tasks.news_gradient import NewsGradientTask
from device_app.training.tasks.task import Update
from exporters.graphs import table_loss
from models.news.plm import PooledHead
from protocol.protections import SecureSum
from protocol.releases import ModelEntry
from protocol.ring import UpdateLayout
from tests.doubles.graphs import kept_head_gradient
from tests.doubles.secure_sums import cohort, run_sum
from tests.doubles.split_world import (
    DIM,
    NEGATIVES,
    NEWS,
    WIDTH,
    batch_of,
    drawn_by,
    head_parameters,
    news_id,
    parameters,
    pooled_states,
    readers,
    table_gradient_graph,
    user_model,
)

MODEL = ModelEntry(architecture="nrms", role="ranker", graphs={})
FLOAT32 = 1e-6
"""Of gradients of up to about one, in float32."""


@pytest.fixture(scope="module")
def graphs() -> tuple[bytes, bytes]:
    return table_gradient_graph(user_model()), kept_head_gradient(WIDTH, DIM)


@pytest.fixture(scope="module")
def states() -> np.ndarray:
    return pooled_states()


def exact_head() -> PooledHead:
    exact = PooledHead.sized(WIDTH, DIM).double()
    exact.load_state_dict({name: torch.from_numpy(each).double() for name, each in head_parameters().items()})
    return exact


def table(states: np.ndarray) -> np.ndarray:
    """Return vectors as devices hold them, which differ from the head's by the rounding of int8 codes."""
    with torch.no_grad():
        served = exact_head()(torch.from_numpy(states).double()).numpy().astype(np.float32)
    return served + np.random.default_rng(0).normal(scale=1e-3, size=served.shape).astype(np.float32)


def updates(graphs: tuple[bytes, bytes], states: np.ndarray, known: range = range(NEWS)) -> list[Update]:
    """Return the updates of five devices by a release's graphs, in float32, if the round's shards have the articles
    `known`."""
    of_user, of_head = graphs
    row_of = {news_id(row): place for place, row in enumerate(known)}
    task = NewsGradientTask(
        PooledNews(head_parameters(), OnnxGradients(of_head), row_of, states[list(known)]), NEGATIVES, 32
    )
    found = []
    for seed, samples in enumerate(readers(table(states))):
        rng = np.random.default_rng(seed)
        found.append(task.run(parameters(user_model()), samples, OnnxGradients(of_user), rng))
    assert all(
        {n: each.shape for n, each in one.tensors.items()} == task.shapes(parameters(user_model())) for one in found
    )
    return found


def pooled(states: np.ndarray, known: range = range(NEWS)) -> dict[str, np.ndarray]:
    """Return end-to-end gradients by name in an update; articles not in `known` have the devices' vectors, as
    constants."""
    news, user, held = exact_head(), user_model().double(), table(states)
    drawn = [drawn_by(one, seed) for seed, one in enumerate(readers(held))]
    made = news(torch.from_numpy(states).double())
    here = torch.tensor([row in known for row in range(NEWS)])[:, None]
    vectors = torch.where(here, made, torch.from_numpy(held).double())
    loss = table_loss(user, vectors, *(torch.cat(each) for each in zip(*map(batch_of, drawn), strict=True)))
    named = {f"g.news.{name}": each for name, each in news.named_parameters()}
    named |= {f"g.{name}": each for name, each in user.named_parameters()}
    found = torch.autograd.grad(loss, list(named.values()), materialize_grads=True)
    return {name: each.numpy() for name, each in zip(named, found, strict=True)}


@pytest.mark.parametrize("known", [range(NEWS), range(10)], ids=["the whole pool", "some news have left it"])
def test_weighted_device_gradients_equal_those_of_the_pooled_loss(
    graphs: tuple[bytes, bytes], states: np.ndarray, known: range
) -> None:
    found = updates(graphs, states, known)
    total = sum(one.samples for one in found)
    for name, wanted in pooled(states, known).items():
        mean = sum(one.samples * one.tensors[name].astype(np.float64) for one in found) / total
        assert np.abs(mean - wanted).max() <= FLOAT32, name
    assert np.abs(pooled(states, known)["g.news.head.weight"]).max() > 1e-3, "another gradient would show"


@pytest.mark.parametrize(("bits", "fraction_bits"), [(32, 10), (32, 18), (64, 40)])
def test_secure_sum_of_gradients_is_exact_within_half_a_step(
    graphs: tuple[bytes, bytes], states: np.ndarray, bits: int, fraction_bits: int
) -> None:
    # No device of these is longer than the clip, which would be the third difference.
    protection = SecureSum(clip=8.0, weight_limit=32, bits=bits, fraction_bits=fraction_bits, cohort_limit=5)  # type: ignore[arg-type]
    found = updates(graphs, states)
    shapes = {name: each.shape for name, each in found[0].tensors.items()}
    size = sum(each.size for each in found[0].tensors.values())
    agreed = protection.terms("round-1", cohort=5, cohort_minimum=2, coordinates=size)
    layout: UpdateLayout = protection.layout(shapes, agreed)
    server, devices = cohort(agreed)
    for device, update in zip(devices, found, strict=True):
        whole = shared_part(update.tensors, MODEL)
        clipped = clip_norm(whole, protection.clip)
        assert clipped.update.tensors is whole.tensors or all(
            (clipped.update.tensors[name] == each).all() for name, each in update.tensors.items()
        )
        device.vector = layout.encode(clipped.update.tensors, update.samples)
    mean = Aggregate.of_opened(layout.sums(run_sum(server, devices, {}).vector)).mean()
    wanted = pooled(states)
    assert mean.keys() == wanted.keys(), "and nothing of single news"
    for name, each in wanted.items():
        assert np.abs(mean[name] - each).max() <= 2.0 ** -(fraction_bits + 1) + FLOAT32, name


def test_clipping_shortens_an_update_and_keeps_its_direction(graphs: tuple[bytes, bytes], states: np.ndarray) -> None:
    update = updates(graphs, states)[0]
    whole = shared_part(update.tensors, MODEL)
    length = float(np.sqrt(sum(np.square(each.astype(np.float64)).sum() for each in update.tensors.values())))
    clipped = clip_norm(whole, length / 4)
    for name, each in whole.tensors.items():
        assert clipped.update.tensors[name] == pytest.approx(each / 4, abs=1e-7), name


def test_reader_without_articles_of_the_shard_contributes_zeros_to_the_head(
    graphs: tuple[bytes, bytes], states: np.ndarray
) -> None:
    for update in updates(graphs, states, range(NEWS, NEWS)):
        assert not update.tensors["g.news.head.weight"].any()
        assert any(each.any() for each in update.tensors.values()), "and trains the user model on the vectors it holds"
