"""DSSM towers and views: examples by hand, the paper's sizes, finite differences, what views share."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.func import functional_call
from torch.testing import assert_close

from models.builders.dssm import dssm_item, dssm_strict, dssm_user, fl_dssm, fl_mv_dssm, semi_fl_mv_dssm
from models.dssm import Dssm, MultiViewDssm, SemiDssm, Tower
from models.scoring import cosines, unit
from models.shapes import private_names, scopes
from tests.doubles.torch_gradients import ModelLoss


def random_tensor(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def count(model: nn.Module) -> int:
    return sum(each.numel() for each in model.parameters())


class IdentityTower(Tower):
    """A tower whose output is its input, for goldens that name the outputs."""

    def __init__(self) -> None:
        super().__init__((2, 2))

    def forward(self, features: Tensor) -> Tensor:
        return features


GOLDEN_USER, GOLDEN_ITEMS = torch.tensor([[1.0, 0]]), torch.tensor([[[1.0, 0], [1, 1], [0, 1]]])


@pytest.mark.parametrize(
    ("gamma", "probabilities", "loss"),
    [(1.0, [0.473041, 0.352937, 0.174022], 0.748573), (10.0, [0.949217, 0.050740, 0.000043], 0.052117)],
)
def test_score_softmax_and_loss_match_the_golden_values_of_section_6_1(
    gamma: float, probabilities: list[float], loss: float
) -> None:
    model = Dssm(IdentityTower(), IdentityTower(), gamma)
    assert_close(model(GOLDEN_USER, GOLDEN_ITEMS), torch.tensor([[1, 0.707107, 0]]), atol=1e-6, rtol=0)
    seen = model.probabilities(GOLDEN_USER, GOLDEN_ITEMS)
    assert_close(seen, torch.tensor([probabilities]), atol=1e-6, rtol=0)
    assert_close(model.loss(GOLDEN_USER, GOLDEN_ITEMS).item(), loss, atol=1e-6, rtol=0)


def test_towers_have_the_number_of_parameters_of_section_6_1() -> None:
    assert count(dssm_item()) == 305_968
    assert count(dssm_user(23)) == 4_144
    assert count(dssm_user(30)) == 4_592
    assert count(fl_mv_dssm()) == 305_968 + 4_144 + 4_592
    for features in (4_739, 23, 30):
        assert count(dssm_strict(features)) == count(Tower((features, 64, 32, 16))) - 64


def test_tower_matches_its_formula_and_the_strict_variant_has_no_biases() -> None:
    x = random_tensor(1, 3, 5)
    for strict in (False, True):
        tower = Tower((5, 4, 3), strict=strict).double()
        for place, each in enumerate(tower.parameters()):
            each.data.copy_(random_tensor(2 + place, *each.shape))
        named = dict(tower.named_parameters())
        assert ("layers.0.bias" in named) != strict
        first = x @ named["layers.0.weight"].t()
        first = first if strict else (first + named["layers.0.bias"]).tanh()
        assert_close(tower(x), (first @ named["layers.1.weight"].t() + named["layers.1.bias"]).tanh())


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**31), st.floats(1e-3, 1e3))
def test_cosine_matches_torch_and_ignores_vector_lengths(seed: int, scale: float) -> None:
    user, items = random_tensor(seed, 2, 4), random_tensor(seed + 1, 2, 5, 4)
    wanted = torch.cosine_similarity(user[:, None], items, dim=-1)
    assert_close(cosines(scale * user, items), wanted)
    assert_close(cosines(user, scale * items), wanted)


def test_zero_vector_has_cosine_zero_and_no_gradient() -> None:
    user = torch.zeros(2, 3)
    user[1] = torch.tensor([1.0, 2, 3])
    items = torch.randn(2, 4, 3)
    items[:, 1] = 0
    user.requires_grad_(True), items.requires_grad_(True)
    scores = cosines(user, items)
    assert scores[0].eq(0).all()
    assert scores[:, 1].eq(0).all()
    (scores * torch.randn(2, 4)).sum().backward()
    assert user.grad is not None
    assert items.grad is not None
    assert user.grad.isfinite().all()
    assert user.grad[0].eq(0).all()
    assert items.grad[:, 1].eq(0).all()
    assert items.grad.isfinite().all()
    assert unit(torch.full((3,), 1e-20)).eq(0).all()


def test_cold_user_without_features_leaves_the_towers_unchanged() -> None:
    model = fl_dssm(30)
    model.loss(torch.zeros(1, 30), torch.rand(1, 5, 4_739)).backward()
    assert all(each.grad is not None and each.grad.eq(0).all() for each in model.parameters())


def test_gradients_match_finite_differences() -> None:
    torch.manual_seed(0)
    model = Dssm(Tower((3, 4, 2)), Tower((5, 4, 2), strict=True), 10.0).double()
    names = [name for name, _ in model.named_parameters()]
    users, items = random_tensor(1, 2, 3), random_tensor(2, 2, 4, 5)

    def compute(*values: Tensor) -> Tensor:
        return functional_call(
            ModelLoss(model), {f"model.{n}": v for n, v in zip(names, values, strict=True)}, (users, items)
        )

    assert torch.autograd.gradcheck(compute, tuple(p.detach().clone().requires_grad_(True) for p in model.parameters()))


def small_views() -> MultiViewDssm:
    torch.manual_seed(1)
    return MultiViewDssm({"a": Tower((3, 2)), "b": Tower((4, 2))}, Tower((5, 2)), 10.0).double()


def test_views_share_only_the_item_tower() -> None:
    model = small_views()
    a, b = model.view("a"), model.view("b")
    assert a.item_tower is b.item_tower is model.item_tower
    assert a.user_tower is not b.user_tower
    a.loss(random_tensor(1, 2, 3), random_tensor(2, 2, 4, 5)).backward()
    moved = {name for name, each in model.named_parameters() if each.grad is not None}
    assert moved == {name for name, _ in model.named_parameters() if not name.startswith("user_towers.b.")}


def test_prediction_is_the_mean_of_the_views_probabilities() -> None:
    model, items = small_views(), random_tensor(3, 2, 6, 5)
    a, b = random_tensor(1, 2, 3), random_tensor(2, 2, 4)
    wanted = (model.view("a").probabilities(a, items) + model.view("b").probabilities(b, items)) / 2
    assert_close(model(a, b, items), wanted)
    assert_close(model(a, b, items).sum(-1), torch.ones(2).double())


def test_one_view_predicts_exactly_like_the_single_model() -> None:
    torch.manual_seed(2)
    alone = Dssm(Tower((3, 2)), Tower((5, 2)), 10.0)
    model = MultiViewDssm({"only": alone.user_tower}, alone.item_tower, 10.0)
    users, items = random_tensor(4, 2, 3).float(), random_tensor(5, 2, 6, 5).float()
    assert torch.equal(model(users, items), alone.probabilities(users, items))


def test_user_towers_are_private_under_semi_and_shared_otherwise() -> None:
    assert set(scopes(fl_mv_dssm()).values()) == {"shared"}
    semi = semi_fl_mv_dssm()
    own = {name for name, _ in semi.named_parameters() if name.startswith("user_towers.")}
    assert len(own) == 12
    assert set(private_names(semi)) == own
    assert private_names(semi.view("view_1")) == tuple(sorted(f"user_tower.layers.{i}.{p}" for i in range(3)
                                                              for p in ("weight", "bias")))  # fmt: skip
    assert isinstance(semi.view("view_2"), SemiDssm)


def test_bad_input_is_named_in_the_error() -> None:
    model = small_views()
    with pytest.raises(ValueError, match=r"features must have shape \[\.\.\., 3\], got \(2, 4\)"):
        model.view("a")(torch.zeros(2, 4), torch.zeros(2, 4, 5))
    with pytest.raises(ValueError, match="name must be one of a, b, got 'c'"):
        model.view("c")
    with pytest.raises(ValueError, match="2 views, got 1"):
        model(torch.zeros(2, 3), torch.zeros(2, 4, 5))
    with pytest.raises(ValueError, match="23 or 30, got 24"):
        dssm_user(24)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="sizes"):
        Tower((3,))
    with pytest.raises(ValueError, match="gamma"):
        Dssm(Tower((3, 2)), Tower((3, 2)), 0.0)
    with pytest.raises(ValueError, match="at least one view"):
        MultiViewDssm({}, Tower((3, 2)), 1.0)
