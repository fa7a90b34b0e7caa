"""Efficient-FedRec's identity (eqs. 4 and 6): what the split round computes is the gradient of end-to-end training.

Oracle: torch's autograd through both models on all samples in one place, in float64.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from backend.federation.bounded_mean import Aggregate
from backend.federation.optimizers import Memory
from backend.federation.split.torch_tasks import vector_jacobian
from backend.federation.strategies.news_model_release import divided, joined
from backend.federation.strategies.news_split import SplitCost
from device_app.training.gradients import OnnxGradients
from device_app.training.tasks.split_gradient import NEWS_GRADIENT, SplitGradientTask
from device_app.training.tasks.task import Update
from exporters.graphs import table_loss
from models.news.plm import UpperEncoder
from protocol.protections import SecureSum
from protocol.ring import UpdateLayout
from tests.doubles.secure_sums import cohort, run_sum
from tests.doubles.split_world import (
    DIM,
    NEGATIVES,
    NEWS,
    batch_of,
    drawn_by,
    news_id,
    news_model,
    parameters,
    pooled_gradient,
    readers,
    table_gradient_graph,
    token_states,
    user_model,
)

ALL = [news_id(row) for row in range(NEWS)]


def whole_cost(news_model: int, user_model: int) -> int:
    """Return the cost of FedRec, where devices train the news model too: both models down and up."""
    return 2 * (news_model + user_model)


def bert_size(
    *, layers: int, width: int, pieces: int = 30_522, positions: int = 512, segments: int = 2, feed: int | None = None
) -> int:
    """Return the number of parameters of a BERT with its pooler (Devlin et al. 2019): embeddings, layers, pooler.

    feed: width of the inner dense layer, 4 x width if not given.
    """
    inner = 4 * width if feed is None else feed
    embeddings = (pieces + positions + segments) * width + 2 * width
    attention = 4 * (width * width + width)
    dense = width * inner + inner + inner * width + width
    norms = 2 * 2 * width
    return embeddings + layers * (attention + dense + norms) + width * width + width


def plm_head_size(width: int, dimensions: int) -> int:
    """Return the size of additive attention with hidden size width / 2 and a dense layer (the paper's section 3.2)."""
    hidden = width // 2
    return width * hidden + hidden + hidden + 1 + width * dimensions + dimensions


def vectors(model: UpperEncoder) -> np.ndarray:
    with torch.no_grad():
        return model(*token_states()).numpy()


@pytest.fixture(scope="module")
def graph() -> bytes:
    return table_gradient_graph(user_model())


@pytest.fixture(scope="module")
def updates(graph: bytes) -> list[Update]:
    """Return the updates of five devices by a release's graph, in float32."""
    found, table = [], vectors(news_model()).astype(np.float32)
    for seed, samples in enumerate(readers(table)):
        task = SplitGradientTask(ALL, table, NEGATIVES, 32)
        found.append(task.run(parameters(user_model()), samples, OnnxGradients(graph), np.random.default_rng(seed)))
    return found


def test_vector_jacobian_product_of_a_linear_encoder_matches_the_golden_values() -> None:
    encoder = nn.Linear(3, 2, bias=False).double()
    inputs = torch.tensor([[1.0, 0.0, 2.0], [0.0, 1.0, 1.0]], dtype=torch.float64)
    found = vector_jacobian(encoder, [(np.arange(2), (inputs,))], np.array([[0.1, -0.2], [0.3, 0.4]]))
    assert pytest.approx(np.array([[0.1, -0.2], [0.3, 0.4], [0.5, 0.0]]), abs=1e-15) == found["weight"].T


@pytest.mark.parametrize("split", [[24], [7, 7, 10], [1] * 24])
def test_weighted_device_gradients_equal_the_pooled_loss_gradient(split: list[int]) -> None:
    news, user = news_model(), user_model().double()
    table = vectors(news)
    drawn = [drawn_by(one, seed) for seed, one in enumerate(readers(table.astype(np.float32)))]
    sizes = [len(one) for one in drawn]
    assert len(set(sizes)) > 1, "devices of different weights"
    rows = np.concatenate([one.candidate_rows.ravel() for one in drawn])
    assert len(rows) > len(np.unique(rows)), "news that repeat"

    slopes = np.zeros_like(table)
    of_user = {name: np.zeros(tuple(each.shape)) for name, each in user.named_parameters()}
    for one in drawn:
        leaf = torch.from_numpy(table).requires_grad_(True)
        loss = table_loss(user, leaf, *batch_of(one))
        found = torch.autograd.grad(loss, [leaf, *user.parameters()], materialize_grads=True)
        share = len(one) / sum(sizes)
        slopes += share * found[0].numpy()
        for name, each in zip(of_user, found[1:], strict=True):
            of_user[name] = of_user[name] + share * each.numpy()

    states, mask = token_states()
    order = np.random.default_rng(3).permutation(NEWS)
    batches = [(part, (states[part], mask[part])) for part in np.split(order, np.cumsum(split)[:-1])]
    of_news = vector_jacobian(news, batches, slopes)
    wanted_news, wanted_user, wanted_rows = pooled_gradient(news, user_model(), drawn)
    assert slopes == pytest.approx(wanted_rows.numpy(), abs=1e-14)
    for name, each in wanted_news.items():
        assert of_news[name] == pytest.approx(each.numpy(), abs=1e-13), name
    for name, each in wanted_user.items():
        assert of_user[name] == pytest.approx(each.numpy(), abs=1e-14), name


@pytest.mark.parametrize(("bits", "fraction_bits"), [(32, 8), (32, 16), (64, 24), (64, 40)])
def test_secure_sum_of_updates_equals_the_sum_of_gradients_within_half_a_step(
    updates: list[Update], bits: int, fraction_bits: int
) -> None:
    protection = SecureSum(clip=50.0, weight_limit=32, bits=bits, fraction_bits=fraction_bits, cohort_limit=5)  # type: ignore[arg-type]
    shapes = {name: each.shape for name, each in updates[0].tensors.items()}
    size = sum(each.size for each in updates[0].tensors.values())
    agreed = protection.terms("round-1", cohort=5, cohort_minimum=2, coordinates=size)
    layout: UpdateLayout = protection.layout(shapes, agreed)
    server, devices = cohort(agreed)
    for device, update in zip(devices, updates, strict=True):
        device.vector = layout.encode(update.tensors, update.samples)
    opened = layout.sums(run_sum(server, devices, {}).vector)
    mean = Aggregate.of_opened(opened).mean()

    table = vectors(news_model()).astype(np.float32)
    drawn = [drawn_by(one, seed) for seed, one in enumerate(readers(table))]
    assert opened.samples == sum(len(one) for one in drawn)
    _, of_user, of_rows = pooled_gradient(news_model(), user_model(), drawn)
    wanted = {"g.news": of_rows.numpy(), **{f"g.{name}": each.numpy() for name, each in of_user.items()}}
    assert mean.keys() == wanted.keys()
    # Devices compute in float32, from vectors in float32: the graph's own tolerance.
    limit = 2.0 ** -(fraction_bits + 1) + 2e-6
    for name, each in wanted.items():
        assert np.abs(mean[name] - each).max() <= limit, name


def test_gradients_of_articles_outside_the_union_stay_on_the_device(graph: bytes, updates: list[Update]) -> None:
    table = vectors(news_model()).astype(np.float32)
    some = [3, 4, 11, 17]
    task = SplitGradientTask([ALL[row] for row in some], table[some], NEGATIVES, 32)
    found = task.run(parameters(user_model()), readers(table)[1], OnnxGradients(graph), np.random.default_rng(1))
    assert found.samples == updates[1].samples, "no sample is lost"
    assert found.tensors[NEWS_GRADIENT].shape == (4, DIM)
    for name, each in found.tensors.items():
        whole = updates[1].tensors[name]
        assert each == pytest.approx(whole[some] if name == NEWS_GRADIENT else whole, abs=1e-7), name
    none = SplitGradientTask(["x"], np.ones((1, DIM), np.float32), NEGATIVES, 32)
    assert (
        not none.run(parameters(user_model()), readers(table)[1], OnnxGradients(graph), np.random.default_rng(1))
        .tensors[NEWS_GRADIENT]
        .any()
    )


def test_repeated_or_missing_rows_are_refused() -> None:
    encoder, slopes = nn.Linear(3, 2), np.zeros((2, 2))
    for rows in ([0], [0, 0, 1]):
        with pytest.raises(ValueError, match="each of 2 rows once"):
            vector_jacobian(encoder, [(np.array(rows), (torch.zeros(len(rows), 3),))], slopes)


def test_communication_size_matches_the_paper() -> None:
    assert SplitCost(news=1_320, dimensions=400, user_model=561_601).total == 2 * (400 * 1_320 + 561_601) == 2_179_202


@pytest.mark.parametrize(
    ("layers", "width", "millions"),
    [(2, 128, 10.015), (4, 256, 23.736), (4, 512, 59.324), (8, 512, 84.543), (12, 768, 221.294), (24, 1_024, 673.278)],
)
def test_communication_size_of_fedrec_matches_the_paper_for_every_bert(
    layers: int, width: int, millions: float
) -> None:
    news = bert_size(layers=layers, width=width) + plm_head_size(width, 400)
    assert round(whole_cost(news, 561_601) / 1e6, 3) == millions
    assert news == 110_085_521 or width != 768


def test_optimizer_memories_of_both_models_are_stored_together() -> None:
    user = Memory(3, {"m.head.weight": np.ones(2), "v.head.weight": np.full(2, 4.0)})
    news = Memory(3, {"m.head.weight": np.zeros(5), "v.pooling.query.bias": np.ones(1)})
    once = Memory.from_bytes(joined(user, news).to_bytes())
    apart = divided(once)
    for found, wanted in zip(apart, (user, news), strict=True):
        assert found.steps == 3
        assert found.tensors.keys() == wanted.tensors.keys()
        assert all((found.tensors[name] == each).all() for name, each in wanted.tensors.items())
