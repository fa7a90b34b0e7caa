"""Efficient-FedRec in rows as shipped, for every number of BERT's layers that may train.

Covers the server's step and what the setting refuses. Oracle: torch's autograd in float64 through BERT's top layers,
pooling, head and user model, on all samples in one place, with samples weighted less where the clip applies.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertModel

from backend.composition import build_services
from backend.embedding.weights import WeightsRefused, check_layers
from backend.errors import BackendSettingsRefused
from backend.federation.bounded_mean import Aggregate
from backend.federation.errors import RoundImpossible
from backend.federation.optimizers import Memory
from backend.federation.split.adam_step import carried_on
from backend.federation.split.torch_tasks import vector_jacobian
from backend.federation.strategies.news_split import NewsSplit
from backend.federation.systems import COMPOSED
from backend.federation.systems.efficient_fedrec import with_news_layers
from backend.settings import BackendSettings, load_settings
from device_app.privacy.private_parameters import shared_part
from device_app.privacy.protections.secure_sum import clip_norm
from device_app.training.gradients import OnnxGradients
from device_app.training.samples import ReaderSamples
from device_app.training.tasks.split_gradient import SplitGradientTask
from exporters.graphs import table_loss
from models.news.plm import UpperEncoder, stack
from protocol.protections import SecureSum
from protocol.releases import ModelEntry
from protocol.ring import UpdateLayout
from tests.doubles.secure_sums import cohort, run_sum
from tests.doubles.split_world import (
    DIM,
    NEGATIVES,
    NEWS,
    WIDTH,
    batch_of,
    drawn_by,
    news_id,
    parameters,
    readers,
    table_gradient_graph,
    token_states,
    user_model,
)

NEWS_ROWS = COMPOSED["news_rows/exact/mean"]

LAYERS = 3
MODEL = ModelEntry(architecture="nrms", role="ranker", graphs={})
FLOAT32 = 2e-8 / 0.03
"""Rounding of the devices' float32 gradients, as a share of the largest: 2e-8 where that is .03, as live."""


def news_model(layers: int) -> UpperEncoder:
    """The top layers of a BERT of three, pooling away from its uniform start, and a head; float64."""
    torch.manual_seed(4)
    config = BertConfig(
        vocab_size=40, hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=2, intermediate_size=16
    )
    config._attn_implementation = "eager"
    bert = BertModel(config, add_pooling_layer=False)
    model = UpperEncoder.headed(list(stack(bert, layers)), WIDTH, DIM).double().eval()
    torch.nn.init.normal_(model.pooling.query.weight)
    return model


@pytest.fixture(scope="module")
def graph() -> bytes:
    return table_gradient_graph(user_model())


@pytest.mark.parametrize("layers", range(LAYERS + 1))
@pytest.mark.parametrize("loud", [False, True], ids=["within the clip", "beyond the clip"])
def test_shipped_step_equals_the_pooled_gradient_up_to_clipping_and_rounding(
    graph: bytes, layers: int, loud: bool
) -> None:
    """The clip of 1 applies where a device's gradient is longer than 1: its samples then weigh 1 / |g_u| of others'."""
    protection = with_news_layers(COMPOSED, layers)[NEWS_ROWS.name].protection
    assert isinstance(protection, SecureSum)
    assert (protection.clip, protection.fraction_bits, protection.sigma) == (1.0, 18, 0)
    news, user = news_model(layers), user_model()
    assert len(news.layers) == layers
    if not loud:
        with torch.no_grad():  # a head and a user model that say little give short gradients
            for parameter in user.parameters():
                parameter.mul_(0.3)
    with torch.no_grad():
        table = news(*token_states()).float().numpy()
    task = SplitGradientTask([news_id(row) for row in range(NEWS)], table, NEGATIVES, 32)
    people = readers(table)
    found = [
        task.run(parameters(user), one, OnnxGradients(graph), np.random.default_rng(seed))
        for seed, one in enumerate(people)
    ]
    shapes = {name: each.shape for name, each in found[0].tensors.items()}
    size = sum(each.size for each in found[0].tensors.values())
    agreed = protection.terms("round-1", cohort=len(found), cohort_minimum=2, coordinates=size)
    layout: UpdateLayout = protection.layout(shapes, agreed)
    server, devices = cohort(agreed)
    lengths = []
    for device, update in zip(devices, found, strict=True):
        lengths.append(np.sqrt(sum(np.square(each.astype(np.float64)).sum() for each in update.tensors.values())))
        clipped = clip_norm(shared_part(update.tensors, MODEL), protection.clip).update.tensors
        device.vector = layout.encode(clipped, update.samples)
    mean = Aggregate.of_opened(layout.sums(run_sum(server, devices, {}).vector)).mean()

    weights = np.minimum(1.0, protection.clip / np.array(lengths))
    wanted_news, wanted = weighted_gradients(news, user, people, weights)
    limit = 2.0 ** -(protection.fraction_bits + 1) + FLOAT32 * max(np.abs(each).max() for each in wanted.values())
    assert mean.keys() == wanted.keys()
    for name, each in wanted.items():
        assert np.abs(mean[name] - each).max() <= limit, name
    states, mask = token_states()
    stepped = vector_jacobian(news, [(np.arange(NEWS), (states, mask))], mean["g.news"])
    assert stepped.keys() == wanted_news.keys()
    assert any(name.startswith("layers.") for name in stepped) == (layers > 0)
    # The vectors' derivative for one weight has a length of at most some tens over all rows.
    for name, each in wanted_news.items():
        assert np.abs(stepped[name] - each).max() <= 60 * limit, name
    assert max(np.abs(each).max() for each in wanted_news.values()) > 120 * limit, "another gradient would show"

    _, whole = weighted_gradients(news, user, people, np.ones(len(people)))
    apart = max(np.abs(mean[name] - each).max() for name, each in whole.items())
    assert (apart > 10 * limit) == loud == bool((weights < 1).any()), (lengths, "what the clip does is this")


def weighted_gradients(
    news: UpperEncoder, user: torch.nn.Module, people: list[ReaderSamples], weights: np.ndarray
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Return end-to-end gradients of sum_u w_u n_u L_u / sum_u n_u: of the news model, and by an update's names."""
    exact = user_model().double()
    exact.load_state_dict({name: each.double() for name, each in user.state_dict().items()})
    vectors = news(*token_states())
    drawn = [drawn_by(one, seed) for seed, one in enumerate(people)]
    total = sum(len(one) for one in drawn)
    loss = sum(
        float(weight) * len(one) / total * table_loss(exact, vectors, *batch_of(one))
        for weight, one in zip(weights, drawn, strict=True)
    )
    of_news, of_user = dict(news.named_parameters()), dict(exact.named_parameters())
    found = torch.autograd.grad(loss, [*of_news.values(), *of_user.values(), vectors], materialize_grads=True)  # type: ignore[arg-type]
    names = [*of_news, *(f"g.{name}" for name in of_user), "g.news"]
    by_name = {name: each.numpy() for name, each in zip(names, found, strict=True)}
    return {name: by_name[name] for name in of_news}, {n: each for n, each in by_name.items() if n not in of_news}


def test_news_layers_setting_applies_only_to_rounds_with_row_gradients(tmp_path: Path) -> None:
    services = build_services(BackendSettings(data_dir=tmp_path, news_layers=2))
    try:
        systems = services.coordinator._systems
        layers = {name: each.strategy.layers for name, each in systems.items() if isinstance(each.strategy, NewsSplit)}
        in_rows = ("news_rows/exact/mean", "news_rows/secure/mean", "efficient_fedrec")
        assert layers == dict.fromkeys(in_rows, 2)
    finally:
        services.close()


def test_too_many_news_layers_are_refused_at_start_with_the_limit(tmp_path: Path) -> None:
    with pytest.raises(BackendSettingsRefused, match=r"news_layers: 7, but the BERT 'packaged' has 6") as refused:
        build_services(BackendSettings(data_dir=tmp_path / "never", news_layers=7))
    assert (refused.value.field, refused.value.limit) == ("news_layers", "0 to 6")
    assert not (tmp_path / "never").exists()
    with pytest.raises(BackendSettingsRefused, match=r"news_layers: .*less than or equal to 48"):
        load_settings(data_dir=tmp_path, news_layers=49)
    (tmp_path / "config.json").write_text(json.dumps({"num_hidden_layers": 12}), encoding="utf-8")
    check_layers(12, str(tmp_path))
    (tmp_path / "config.json").write_text("[]", encoding="utf-8")
    with pytest.raises(WeightsRefused, match="doesn't state its number of layers"):
        check_layers(1, str(tmp_path))


def test_round_training_fewer_layers_than_already_trained_is_refused(
    tmp_path: Path,
) -> None:
    (tmp_path / "encoder").mkdir()
    about = {"digest": "trained-2", "layers": 2, "dimensions": 256, "parameters": {}, "sha256": {}}
    (tmp_path / "encoder" / "encoder.json").write_text(json.dumps(about), encoding="utf-8")
    context = SimpleNamespace(data_dir=tmp_path, release=SimpleNamespace(encoder="trained-2"))
    with pytest.raises(RoundImpossible, match="trained the top 2 layers") as refused:
        NewsSplit(layers=1).plan(NEWS_ROWS, context)  # type: ignore[arg-type]
    assert refused.value.limit == "the setting news_layers at least 2"


def test_optimizer_memory_moves_with_layers_when_more_are_added_below() -> None:
    memory = Memory(4, {"m.layers.0.a": np.ones(1), "v.layers.1.a": np.full(1, 2.0), "m.head.weight": np.zeros(2)})
    moved = carried_on(memory, 1)
    assert moved.steps == 4
    assert {name: each[0] for name, each in moved.tensors.items()} == {
        "m.layers.1.a": 1.0,
        "v.layers.2.a": 2.0,
        "m.head.weight": 0.0,
    }
    assert carried_on(memory, 0).tensors.keys() == memory.tensors.keys()
