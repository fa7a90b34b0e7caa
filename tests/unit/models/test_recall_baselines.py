"""The trainable recall baselines: common properties, sizes, and their start at the cosine."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.func import functional_call
from torch.testing import assert_close

from models.builders import recall
from models.layers.attention import AdditiveAttention
from models.layers.gru import MaskedGru
from models.one_vector import CosineResidual, OneVectorModel
from models.recall.baselines import Ebnr, Huita, Octopus
from tests.doubles.torch_gradients import ModelLoss

seeds = st.integers(0, 2**31)
lengths = st.integers(1, 7)
DIM = 6

SMALL: dict[str, Callable[[], nn.Module]] = {
    "youtubenet": lambda: recall.dense_recall(dim=DIM, hidden_dim=8),
    "huita": lambda: Huita(AdditiveAttention(DIM, 4)),
    "ebnr": lambda: Ebnr(MaskedGru(DIM, DIM)),
    "sasrec": lambda: recall.sequence_recall(dim=DIM, heads=2, blocks=2, clicks_limit=12),
    "octopus": lambda: Octopus(DIM, 3, 0.01),
    "residual": lambda: CosineResidual(Ebnr(MaskedGru(DIM, DIM))),
}
ORDERED = ("ebnr", "sasrec", "residual")


def random_tensor(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def small(name: str, seed: int = 0) -> nn.Module:
    """Return a model with every parameter drawn: no bias or correction stays zero."""
    model = SMALL[name]().double()
    with torch.no_grad():
        for place, each in enumerate(model.parameters()):
            each.copy_(0.7 * random_tensor(seed + place, *each.shape))
    return model


def real(length: int) -> Tensor:
    return torch.ones(1, length, dtype=torch.float64)


@pytest.mark.parametrize("name", SMALL)
@settings(max_examples=15, deadline=None)
@given(seeds, lengths, st.integers(1, 4), st.booleans())
def test_padding_with_any_content_changes_neither_scores_nor_loss(
    name: str, seed: int, length: int, padding: int, on_the_left: bool
) -> None:
    model, x, news = small(name, seed), random_tensor(seed, 1, length, DIM), random_tensor(seed + 9, 1, 5, DIM)
    parts = [(random_tensor(seed + 1, 1, padding, DIM), 0 * real(padding)), (x, real(length))]
    rows, masks = zip(*(parts if on_the_left else parts[::-1]), strict=True)
    padded = torch.cat(rows, dim=1), torch.cat(masks, dim=1)
    assert_close(model(*padded, news), model(x, real(length), news))
    assert_close(model.loss(*padded, news), model.loss(x, real(length), news))  # type: ignore[operator]


@pytest.mark.parametrize("name", SMALL)
def test_reader_without_clicks_scores_zero_without_gradients(name: str) -> None:
    model = small(name)
    model.penalty = 0.0  # type: ignore[assignment]
    clicks = random_tensor(1, 2, 4, DIM).requires_grad_(True)
    mask = torch.zeros(2, 4).double()
    news = random_tensor(2, 2, 5, DIM)
    assert model(clicks, mask, news).eq(0).all()
    leaves = [clicks, *model.parameters()]
    for each in torch.autograd.grad(model.loss(clicks, mask, news), leaves, allow_unused=True):  # type: ignore[operator]
        assert each is None or each.eq(0).all()


@pytest.mark.parametrize("name", SMALL)
def test_readers_of_one_batch_are_independent(name: str) -> None:
    model, clicks, news = small(name), random_tensor(3, 3, 5, DIM), random_tensor(4, 3, 7, DIM)
    mask = torch.tensor([[0, 0, 1, 1, 1], [1, 1, 1, 1, 1], [0, 0, 0, 0, 1]]).double()
    alone = torch.cat([model(clicks[i : i + 1], mask[i : i + 1], news[i : i + 1]) for i in range(3)])
    assert_close(model(clicks, mask, news), alone)


@pytest.mark.parametrize("name", SMALL)
@settings(max_examples=10, deadline=None)
@given(seeds, st.integers(2, 7))
def test_order_of_clicks_matters_only_to_the_sequence_models(name: str, seed: int, length: int) -> None:
    model, x, news = small(name, seed), random_tensor(seed, 1, length, DIM), random_tensor(seed + 9, 1, 5, DIM)
    same = torch.allclose(model(x.flip(1), real(length), news), model(x, real(length), news), rtol=1e-9, atol=1e-12)
    assert same == (name not in ORDERED)


@pytest.mark.parametrize("name", [name for name in SMALL if name != "mean"])
def test_loss_gradients_match_finite_differences(name: str) -> None:
    model = small(name, 5)
    names = [name for name, _ in model.named_parameters()]
    clicks, news = random_tensor(6, 3, 4, DIM), random_tensor(7, 3, 5, DIM)
    mask = torch.tensor([[0, 0, 1, 1], [0, 0, 0, 0], [1, 1, 1, 1]]).double()

    def compute(clicks: Tensor, news: Tensor, *values: Tensor) -> Tensor:
        named = {f"model.{each}": value for each, value in zip(names, values, strict=True)}
        return functional_call(ModelLoss(model), named, (clicks, mask, news))

    leaves = [each.detach().clone().requires_grad_(True) for each in (clicks, news, *model.parameters())]
    assert torch.autograd.gradcheck(compute, tuple(leaves), fast_mode=name == "sasrec")  # 500 numbers, two blocks deep


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        (((2, 4, 5), (2, 4), (2, 3, DIM)), r"clicks must have shape \[b, H, 6\], got \(2, 4, 5\)"),
        (((2, 4, DIM), (2, 3), (2, 3, DIM)), r"click_mask must have shape \[b, 4\] as clicks, got \(2, 3\)"),
        (((2, 4, DIM), (2, 4), (2, 3, 5)), r"candidates must have shape \[b, R, 6\], got \(2, 3, 5\)"),
        (((4, DIM), (2, 4), (2, 3, DIM)), r"clicks must have shape"),
    ],
)
def test_mismatched_shapes_are_named_in_the_error(name: str, shapes: tuple[tuple[int, ...], ...], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        small(name)(*(torch.zeros(shape).double() for shape in shapes))


@pytest.mark.parametrize("name", [name for name in SMALL if name != "mean"])
def test_training_finds_the_informative_click_among_common_ones(name: str) -> None:
    torch.manual_seed(3)
    model, draw = SMALL[name](), torch.Generator().manual_seed(4)
    topics = torch.eye(DIM)

    def near(rows: Tensor) -> Tensor:
        return torch.nn.functional.normalize(topics[rows] + 0.2 * torch.randn(*rows.shape, DIM, generator=draw), dim=-1)

    own = torch.randint(3, (256, 1), generator=draw)  # of topics 0 to 2; topics 3 to 5 tell nothing
    common, place = torch.randint(3, 6, (256, 4), generator=draw), torch.randint(4, (256, 1), generator=draw)
    clicks = near(common.scatter(1, place, own))
    candidates = near(torch.cat([own, (own + 1) % 3, (own + 2) % 3, common[:, :2]], dim=1))
    learners = torch.optim.Adam(model.parameters(), lr=0.03)
    losses = []
    for _ in range(150):
        learners.zero_grad()
        loss = model.loss(clicks, torch.ones(256, 4), candidates)  # type: ignore[operator]
        loss.backward()
        learners.step()
        losses.append(loss.item())
    # One list for all readers can rank topics 0 to 2 above the others, and has ln 3 at best.
    assert losses[-1] < 1.0986 < losses[0]


PRESETS: dict[Callable[[], nn.Module], int] = {
    recall.youtubenet: 2 * (256 * 256 + 256),
    recall.youtubenet_residual: 2 * (256 * 256 + 256) + 256 * 256,
    recall.huita: 256 * 200 + 200 + 200 + 1,
    recall.ebnr: 3 * (256 + 256 + 1) * 256,
    recall.ebnr_residual: 3 * (256 + 256 + 1) * 256 + 256 * 256,
    recall.sasrec: 50 * 256 + 2 * (5 * 256 * 256 + 6 * 256),
    recall.sasrec_residual: 50 * 256 + 2 * (5 * 256 * 256 + 6 * 256) + 256 * 256,
    recall.octopus: 8 * 256 + 256 * 256 + 256,
}


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.__name__)
def test_presets_have_the_parameters_their_docstring_counts(preset: Callable[[], nn.Module]) -> None:
    assert sum(each.numel() for each in preset().parameters()) == PRESETS[preset]
    assert f"{PRESETS[preset]:,} parameters" in str(preset.__doc__)


def readers() -> tuple[Tensor, Tensor, Tensor]:
    unit = torch.nn.functional.normalize
    clicks, news = unit(random_tensor(1, 4, 50, 256).float(), dim=-1), unit(random_tensor(2, 4, 9, 256).float(), dim=-1)
    mask = (torch.arange(50) >= torch.tensor([0, 20, 49, 50])[:, None]).float()
    return clicks, mask, news


@pytest.mark.parametrize(
    "preset",
    [recall.huita, recall.youtubenet_residual, recall.ebnr_residual, recall.sasrec_residual],
    ids=lambda preset: preset.__name__,
)
def test_baselines_start_at_the_mean_cosine_and_move_away_when_trained(preset: Callable[[], OneVectorModel]) -> None:
    torch.manual_seed(0)
    model, (clicks, mask, news) = preset(), readers()
    each = torch.cosine_similarity(clicks[:, None], news[:, :, None], dim=-1)  # [b, R, H], the oracle's own norms
    mean = (each * mask[:, None]).sum(-1) / mask.sum(-1).clamp_min(1)[:, None]
    assert_close(model(clicks, mask, news), mean, atol=1e-5, rtol=0)
    learners = torch.optim.SGD(model.parameters(), lr=1.0)
    for _ in range(2):
        learners.zero_grad()
        model.loss(clicks, mask, news[:, :5]).backward()
        learners.step()
    # The scorer's last bias never has a gradient: softmax does not see it.
    unmoved = {name for name, one in model.named_parameters() if one.grad is None or one.grad.abs().max() == 0}
    assert unmoved <= {"pooling.query.bias"}


def test_youtubenet_without_clicks_is_zero_despite_its_biases() -> None:
    model = recall.youtubenet()
    nn.init.ones_(model.tower[2].bias)  # type: ignore[index]
    assert model.user_vector(torch.zeros(1, 50, 256), torch.zeros(1, 50)).eq(0).all()
    assert model.user_vector(torch.zeros(1, 50, 256), torch.ones(1, 50)).gt(0).any()


def test_ebnr_ends_in_the_state_of_torchs_gru() -> None:
    model = small("ebnr", 3)
    gru = nn.GRU(DIM, DIM, batch_first=True).double()
    own = model.state_dict()
    gru.load_state_dict(
        {
            "weight_ih_l0": own["gru.input.weight"],
            "weight_hh_l0": own["gru.recurrent.weight"],
            "bias_ih_l0": own["gru.input.bias"],
            "bias_hh_l0": torch.zeros(3 * DIM),
        }
    )
    x = random_tensor(4, 2, 6, DIM)
    assert_close(model.user_vector(x, torch.ones(2, 6).double()), gru(x)[1][0])  # type: ignore[operator]


def test_state_of_another_size_than_the_article_vectors_is_refused() -> None:
    with pytest.raises(ValueError, match="size of a news vector, 5; got 6"):
        Ebnr(MaskedGru(5, 6))
