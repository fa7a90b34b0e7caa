"""The recall model compared with Uni-FedRec's formulas: an example by hand, its properties, its start."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.func import functional_call
from torch.testing import assert_close

from models.builders.recall import basis_recall, uni_fedrec_recall
from models.recall.basis import BasisRecall
from tests.doubles.torch_gradients import ModelLoss

seeds = st.integers(0, 2**31)


def small(seed: int = 0, *, basis_size: int = 5, score_clip: float = 0.2) -> BasisRecall:
    torch.manual_seed(seed)
    return basis_recall(heads=2, head_dim=4, attention_dim=3, basis_size=basis_size, score_clip=score_clip).double()


def random_tensor(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def golden() -> BasisRecall:
    model = basis_recall(heads=1, head_dim=2, attention_dim=3, basis_size=3, score_clip=0.5)
    with torch.no_grad():
        model.basis_keys.copy_(torch.tensor([[1.0, 0], [0, 1], [1, -1]]))
        model.basis_values.copy_(torch.tensor([[2.0, 0], [0, 2], [1, 1]]))
    return model


def test_uni_fedrec_has_the_244_993_parameters_of_section_2_2() -> None:
    assert sum(each.numel() for each in uni_fedrec_recall().parameters()) == 244_993


def test_decomposition_clip_and_aggregation_match_the_golden_values_of_section_2_3() -> None:
    model = golden()
    scores = model.decompose(torch.tensor([[[1.0, 2.0]]]), torch.ones(1, 1, 1))
    assert_close(scores, torch.tensor([[[1.0, 2.0, -1.0]]]))
    clipped = model.clip(scores)
    assert_close(clipped, torch.tensor([[[0.5, 0.5, -0.5]]]))
    noisy = clipped + torch.tensor([0.1, -0.2, 0.0])
    assert_close(noisy.softmax(-1), torch.tensor([[[0.482232, 0.357246, 0.160521]]]), atol=1e-6, rtol=0)
    assert_close(model.aggregate(noisy), torch.tensor([[[1.124986, 0.875014]]]), atol=1e-6, rtol=0)
    assert_close(model.aggregate(clipped), torch.tensor([[[1.0, 1.0]]]))


@settings(max_examples=50, deadline=None)
@given(seeds, st.floats(0.01, 30))
def test_interest_is_in_the_convex_hull_of_the_values(seed: int, size: float) -> None:
    model = small(seed)
    interest, directions = model.aggregate(size * random_tensor(seed, 1, 3, 5)), random_tensor(seed + 1, 8, 40)
    reach = (model.basis_values @ directions).amax(dim=0)  # a point is in the hull iff no direction separates it
    assert (interest @ directions <= reach + 1e-12).all()


@settings(max_examples=50, deadline=None)
@given(seeds, st.floats(-50, 50))
def test_adding_a_constant_to_all_scores_changes_nothing(seed: int, shift: float) -> None:
    model, scores = small(seed), random_tensor(seed, 1, 3, 5)
    assert_close(model.aggregate(scores + shift), model.aggregate(scores))


@settings(max_examples=50, deadline=None)
@given(seeds)
def test_weights_from_clipped_scores_stay_in_the_range_of_section_2_3(seed: int) -> None:
    model = basis_recall(heads=1, head_dim=30, attention_dim=3, basis_size=30, score_clip=0.2).double()
    with torch.no_grad():
        model.basis_values.copy_(torch.eye(30))  # so that the interest is its own weights
    scores = torch.where(random_tensor(seed, 1, 4, 30) > 0, 9.0, -9.0).double()
    weights = model.aggregate(model.clip(scores))
    assert weights.min() >= 0.0226 - 5e-5
    assert weights.max() <= 0.0489 + 5e-5
    one_up = torch.full((1, 1, 30), -9.0).double().index_fill(2, torch.tensor([0]), 9.0)
    assert_close(model.aggregate(model.clip(one_up)).max().item(), 0.0489, atol=5e-5, rtol=0)
    assert_close(model.aggregate(model.clip(-one_up)).min().item(), 0.0226, atol=5e-5, rtol=0)


@settings(max_examples=50, deadline=None)
@given(seeds)
def test_unified_score_depends_only_on_the_quota_weighted_mean_interest(seed: int) -> None:
    model = small(seed)
    interests, quotas, news = (
        random_tensor(seed, 2, 3, 8),
        random_tensor(seed + 1, 2, 3).softmax(-1),
        random_tensor(seed + 2, 2, 7, 8),
    )
    each = torch.einsum("bc,bcd,brd->br", quotas, interests, news)  # z(d) = sum_c q_c <r^_c, d>
    assert_close(model.unified_score(interests, quotas, news), each)
    mean = torch.einsum("bc,bcd->bd", quotas, interests)
    assert_close(model.unified_score(mean[:, None], torch.ones(2, 1).double(), news), each)


def history(seed: int, length: int, padding: int) -> dict[str, torch.Tensor]:
    clicks = torch.cat([random_tensor(seed, 1, padding, 8), random_tensor(seed + 1, 1, length, 8)], dim=1)
    mask = torch.cat([torch.zeros(1, padding), torch.ones(1, length)], dim=1).double()
    labels = torch.cat([torch.zeros(padding).long(), torch.arange(length) % 2], dim=0)
    members = torch.nn.functional.one_hot(labels, 3).t()[None] * mask[:, None]
    return {"clicks": clicks, "click_mask": mask, "membership": members, "quotas": members.sum(-1) / length}


@settings(max_examples=40, deadline=None)
@given(seeds, st.integers(1, 8), st.integers(1, 5))
def test_padding_changes_neither_scores_nor_loss(seed: int, length: int, padding: int) -> None:
    model, news = small(seed), random_tensor(seed + 9, 1, 5, 8)
    padded, plain = history(seed, length, padding), history(seed, length, 0)
    plain["clicks"] = padded["clicks"][:, padding:]
    assert_close(model(**padded, candidates=news), model(**plain, candidates=news))
    assert_close(model.loss(**padded, candidates=news), model.loss(**plain, candidates=news))


@settings(max_examples=40, deadline=None)
@given(seeds, st.integers(2, 8))
def test_order_of_clicks_does_not_matter(seed: int, length: int) -> None:
    model, news, reported = small(seed), random_tensor(seed + 9, 1, 5, 8), history(seed, length, 0)
    order = torch.randperm(length, generator=torch.Generator().manual_seed(seed))
    shuffled = {**reported, "clicks": reported["clicks"][:, order], "membership": reported["membership"][..., order]}
    assert_close(model(**shuffled, candidates=news), model(**reported, candidates=news))


def test_empty_channel_and_empty_reader_are_zero_with_finite_gradients() -> None:
    model = small()
    reported = history(1, 4, 2)
    empty = {name: torch.cat([each, torch.zeros_like(each)]) for name, each in reported.items()}
    channels = model.channels(model.contexts(empty["clicks"], empty["click_mask"]), empty["membership"])
    assert channels[0, 2].eq(0).all()  # history() never uses the third channel
    assert channels[1].eq(0).all()
    model.loss(**empty, candidates=random_tensor(2, 2, 5, 8)).backward()
    for name, each in model.named_parameters():
        assert each.grad is not None, name
        assert each.grad.isfinite().all(), name


@pytest.mark.parametrize("score_clip", [1e3, 1e-9])
def test_gradients_match_finite_differences_and_vanish_outside_the_clip(
    score_clip: float,
) -> None:
    model, reported, news = small(3, score_clip=score_clip), history(1, 4, 2), random_tensor(4, 1, 5, 8)
    names = [name for name, _ in model.named_parameters()]

    def compute(*values: torch.Tensor) -> torch.Tensor:
        return functional_call(
            ModelLoss(model),
            {f"model.{n}": v for n, v in zip(names, values, strict=True)},
            (),
            {**reported, "candidates": news},
        )

    leaves = [each.detach().clone().requires_grad_(True) for each in model.parameters()]
    if score_clip > 1:
        assert torch.autograd.gradcheck(compute, tuple(leaves))
    else:
        gradients = dict(zip(names, torch.autograd.grad(compute(*leaves), leaves), strict=True))
        assert gradients["basis_keys"].eq(0).all()
        assert gradients["basis_values"].abs().max() > 0


def topics() -> torch.Tensor:
    """Return centroids as a pool has them: unit vectors around a common direction, so that all topics share a mean."""
    common = random_tensor(11, 1, 256)
    return torch.nn.functional.normalize(0.5 * common + random_tensor(12, 30, 256), dim=-1).float()


def cosine_started() -> BasisRecall:
    model = uni_fedrec_recall()
    model.cosine_start(topics())
    return model


def test_cosine_start_recovers_the_topic_of_a_single_topic_reader() -> None:
    model, centroids = cosine_started(), topics()
    clicks, mask = centroids[:, None], torch.ones(30, 1)
    scores = model.clip(model.decompose(model.contexts(clicks, mask), torch.ones(30, 1, 1)))
    found = (model.aggregate(scores)[:, 0] @ centroids.t()).argmax(dim=-1)
    assert_close(found, torch.arange(30))


def test_cosine_start_uses_the_clip_range_and_cosine_sized_scores() -> None:
    model, centroids = cosine_started(), topics()
    scores = centroids @ model.basis_keys.t()
    assert_close(scores.abs().amax(dim=-1).mean().item(), 3 * model.score_clip, atol=1e-5, rtol=0)
    assert_close(model.aggregate(model.clip(scores)).norm(dim=-1).mean().item(), 1.0, atol=1e-4, rtol=0)


def test_aggregate_of_zero_scores_is_close_to_zero_at_the_cosine_start() -> None:
    model = cosine_started()
    nothing = model.aggregate(torch.zeros(1, 1, 30))
    assert nothing.norm() < 1e-4 * model.basis_values.norm(dim=-1).mean()


def test_cosine_start_keeps_contexts_near_their_clicks() -> None:
    clicks = torch.nn.functional.normalize(random_tensor(13, 1, 50, 256).float(), dim=-1)
    contexts = cosine_started().contexts(clicks, torch.ones(1, 50))
    assert torch.cosine_similarity(contexts, clicks, dim=-1).mean() > 0.8


@pytest.mark.parametrize(
    ("centroids", "words"),
    [
        (torch.zeros(29, 256), r"shape \(30, 256\), got \(29, 256\)"),
        (torch.full((30, 256), float("nan")), "finite"),
        (torch.ones(30, 256), "differ"),
    ],
)
def test_error_of_the_cosine_start_names_bad_centroids(centroids: torch.Tensor, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        uni_fedrec_recall().cosine_start(centroids)


def test_sizes_out_of_range_are_named_in_the_error() -> None:
    with pytest.raises(ValueError, match="basis_size"):
        basis_recall(heads=1, head_dim=2, attention_dim=3, basis_size=0, score_clip=0.2)
    with pytest.raises(ValueError, match="score_clip"):
        basis_recall(heads=1, head_dim=2, attention_dim=3, basis_size=3, score_clip=0.0)


@pytest.mark.parametrize(
    ("name", "shape", "words"),
    [
        ("clicks", (1, 4, 7), r"clicks must have shape \[b, H, 8\], got \(1, 4, 7\)"),
        ("click_mask", (1, 3), r"click_mask must have shape \[b, 4\] as clicks, got \(1, 3\)"),
        ("membership", (1, 3, 5), r"membership must have shape \[b, C, 4\], got \(1, 3, 5\)"),
        ("quotas", (1, 2), r"quotas must have shape \[b, 3\], got \(1, 2\)"),
        ("candidates", (1, 5, 9), r"candidates must have shape \[b, R, 8\], got \(1, 5, 9\)"),
    ],
)
def test_mismatched_shapes_are_named_in_the_error(name: str, shape: tuple[int, ...], words: str) -> None:
    reported = {**history(1, 4, 0), "candidates": random_tensor(2, 1, 5, 8)}
    with pytest.raises(ValueError, match=words):
        small()(**{**reported, name: torch.zeros(shape).double()})
