"""The papers' user models: sizes, starts, masks and order (by hand)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from models.builders.rankers import nrms
from models.builders.user import (
    LsturForm,
    fednewsrec,
    fednewsrec_user,
    fednewsrec_user_400,
    lstur,
    lstur_user,
    naml,
    naml_user,
    nrms_400,
)
from models.one_vector import UserModel
from models.user.papers import LsturConUser, LsturIniUser, most_recent

seeds = st.integers(0, 2**31)
D = 8


def small_nrms() -> UserModel:
    return nrms(heads=2, head_dim=4, attention_dim=3)


def small_naml() -> UserModel:
    return naml(dim=D, attention_dim=3)


def small_ini() -> UserModel:
    return lstur("ini", dim=D)


def small_con() -> UserModel:
    return lstur("con", dim=D)


def small_fednewsrec() -> UserModel:
    return fednewsrec(heads=2, head_dim=4, attention_dim=3)


SMALL = (small_nrms, small_naml, small_ini, small_con, small_fednewsrec)
WITHOUT_GRU = (small_nrms, small_naml)
WITH_GRU = (small_ini, small_con, small_fednewsrec)


def unit_news(seed: int, *shape: int) -> torch.Tensor:
    drawn = torch.randn(shape, generator=torch.Generator().manual_seed(seed))
    return torch.nn.functional.normalize(drawn, dim=-1)


def left_mask(counts: list[int], length: int) -> torch.Tensor:
    return (torch.arange(length) >= length - torch.tensor(counts)[:, None]).float()


def size(model: torch.nn.Module) -> int:
    return sum(each.numel() for each in model.parameters())


def test_parameter_counts_match_the_papers() -> None:
    assert size(nrms_400()) == 561_601, "3.1: Efficient-FedRec"
    assert size(fednewsrec_user_400()) == 1_602_002, "4.1: FedNewsRec's user model"
    assert size(fednewsrec_user()) == 3 * 256 * 256 + 2 * 51_601 + 3 * (2 * 256 * 256 + 256)
    assert size(naml_user()) == 256 * 200 + 200 + 200 + 1
    assert size(lstur_user("ini")) == 3 * (2 * 256 * 256 + 256) + 256
    assert size(lstur_user("con")) == size(lstur_user("ini")) + 2 * 256 * 256


@pytest.mark.parametrize("make", [nrms_400, naml_user, fednewsrec_user_400, fednewsrec_user])
def test_scores_start_at_the_mean_cosine_of_clicks_and_candidate(make: Callable[[], UserModel]) -> None:
    model = make()
    clicks, mask, news = unit_news(1, 3, 50, model.dim), left_mask([1, 7, 50], 50), unit_news(2, 3, 20, model.dim)
    cosines = torch.cosine_similarity(clicks[:, None], news[:, :, None], dim=-1)  # [b, R, H]
    wanted = (cosines * mask[:, None]).sum(-1) / mask.sum(-1, keepdim=True)
    assert_close(model(clicks, mask, news).detach(), wanted, atol=1e-5, rtol=0)


@pytest.mark.parametrize(("form", "scale"), [("ini", 0.1), ("con", 1.0)])
def test_lstur_starts_at_a_mean_of_cosines_that_favours_recent_clicks(form: LsturForm, scale: float) -> None:
    """The k-th newest click has weight .1 * .9^k, as h' = .9 h + .1 x gives."""
    clicks, mask, news = unit_news(1, 3, 50, 256), left_mask([1, 7, 50], 50), unit_news(2, 3, 20, 256)
    cosines = torch.cosine_similarity(clicks[:, None], news[:, :, None], dim=-1)  # [b, R, H]
    weights = 0.1 * 0.9 ** torch.arange(49, -1, -1.0) * mask
    wanted = (cosines * weights[:, None]).sum(-1)
    assert_close(lstur_user(form)(clicks, mask, news).detach() / scale, wanted, atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    ("make", "learning"),
    [
        (nrms_400, {"attention.key.weight", "attention.value.weight"}),
        (naml_user, {"pooling.query.weight"}),
        (
            lambda: lstur_user("ini"),
            {"user_embedding", "gru.input.weight", "gru.input.bias", "gru.recurrent.weight"},
        ),
        (
            lambda: lstur_user("con"),
            {"user_embedding", "gru.input.weight", "gru.input.bias", "gru.recurrent.weight", "joined.weight"},
        ),
        (
            fednewsrec_user_400,
            {"attention.key.weight", "attention.value.weight", "gru.input.weight", "fusion.query.weight"},
        ),
    ],
)
def test_every_part_has_gradients_within_five_steps_of_the_cosine_start(
    make: Callable[[], UserModel], learning: set[str]
) -> None:
    """At the first step at least the named parameters have a gradient; at the fifth all do, with two exceptions.

    These are the scorers' last bias, which no softmax notices, and the bias of keys, which adds the same to every logit
    of a query.
    """
    model = make()
    clicks, mask, news = unit_news(1, 8, 50, model.dim), left_mask([50] * 8, 50), unit_news(2, 8, 5, model.dim)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001)

    def moving(above: float) -> set[str]:
        optimizer.zero_grad()
        model.loss(clicks, mask, news).backward()
        return {name for name, p in model.named_parameters() if p.grad is not None and p.grad.abs().max() > above}

    assert moving(1e-8) >= learning
    for _ in range(4):
        optimizer.step()
        later = moving(0.0)
    without_effect = {"pooling.query.bias", "fusion.query.bias", "attention.key.bias"}
    assert later >= {name for name, _ in model.named_parameters()} - without_effect


@pytest.mark.parametrize("make", SMALL)
@settings(max_examples=15, deadline=None)
@given(seed=seeds, count=st.integers(1, 6))
def test_padding_changes_no_score(make: Callable[[], UserModel], seed: int, count: int) -> None:
    torch.manual_seed(seed % 1_000)
    model = make()
    clicks, news, mask = unit_news(seed, 1, 6, D), unit_news(seed + 1, 1, 5, D), left_mask([count], 6)
    alone = model(clicks[:, 6 - count :], torch.ones(1, count), news)
    assert_close(model(clicks, mask, news), alone, atol=1e-6, rtol=1e-5)
    right_padded = torch.cat([clicks[:, 6 - count :], unit_news(seed + 2, 1, 6 - count, D)], dim=1)
    assert_close(model(right_padded, mask.flip(1), news), alone, atol=1e-6, rtol=1e-5)


@settings(max_examples=15, deadline=None)
@given(seed=seeds, count=st.integers(2, 6))
@pytest.mark.parametrize("make", WITHOUT_GRU)
def test_order_of_clicks_changes_no_score_without_a_gru(make: Callable[[], UserModel], seed: int, count: int) -> None:
    torch.manual_seed(seed % 1_000)
    model = make()
    clicks, news, mask = unit_news(seed, 1, count, D), unit_news(seed + 1, 1, 5, D), torch.ones(1, count)
    assert_close(model(clicks.flip(1), mask, news), model(clicks, mask, news), atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("make", WITH_GRU)
def test_order_of_clicks_matters_to_a_gru(make: Callable[[], UserModel]) -> None:
    torch.manual_seed(3)
    model = make()
    clicks, news, mask = unit_news(1, 1, 5, D), unit_news(2, 1, 5, D), torch.ones(1, 5)
    assert (model(clicks.flip(1), mask, news) - model(clicks, mask, news)).abs().max() > 1e-4


@pytest.mark.parametrize("make", SMALL)
def test_reader_without_clicks_scores_zero_without_gradients(make: Callable[[], UserModel]) -> None:
    torch.manual_seed(3)
    model = make()
    clicks, news = unit_news(1, 2, 6, D), unit_news(2, 2, 5, D)
    assert model(clicks, torch.zeros(2, 6), news).eq(0).all()
    model.loss(clicks, torch.zeros(2, 6), news).backward()
    taught = {name: p.grad for name, p in model.named_parameters() if p.grad is not None and p.grad.abs().max() > 0}
    assert taught.keys() <= {"user_embedding"}, "the reader's own vector is there without clicks, and is no click"
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


@pytest.mark.parametrize("make", SMALL)
def test_gradients_of_news_vectors_match_finite_differences(make: Callable[[], UserModel]) -> None:
    torch.manual_seed(5)
    model = make().double()
    clicks, news = (unit_news(seed, 2, 4, D).double().requires_grad_(True) for seed in (1, 2))
    mask = left_mask([2, 0], 4).double()
    assert torch.autograd.gradcheck(lambda c, n: model.loss(c, mask, n), (clicks, news))


def test_lstur_ini_with_a_zero_vector_is_torchs_gru() -> None:
    """Section 7: with the id vector 0 `ini` equals a plain GRU; the oracle is nn.GRU with the same weights and bias_hh
    = 0."""
    torch.manual_seed(2)
    model = lstur("ini", dim=D)
    oracle = torch.nn.GRU(D, D, batch_first=True)
    oracle.load_state_dict(
        {
            "weight_ih_l0": model.gru.input.weight,
            "weight_hh_l0": model.gru.recurrent.weight,
            "bias_ih_l0": model.gru.input.bias,
            "bias_hh_l0": torch.zeros(3 * D),
        }
    )
    with torch.no_grad():
        clicks = unit_news(1, 2, 6, D)
        _, wanted = oracle(clicks[:, 2:])
        assert_close(model.user_vector(clicks, left_mask([4, 4], 6)), wanted[0])
        model.user_embedding.copy_(unit_news(4, D))
        _, started = oracle(clicks[:, 2:], model.user_embedding.expand(1, 2, -1).contiguous())
        assert_close(model.user_vector(clicks, left_mask([4, 4], 6)), started[0])
        assert (started - wanted).abs().max() > 1e-3


def test_lstur_con_with_a_zero_vector_is_only_its_short_term() -> None:
    torch.manual_seed(2)
    model = lstur("con", dim=D)
    clicks, mask = unit_news(1, 2, 6, D), left_mask([4, 6], 6)
    assert isinstance(model, LsturConUser)
    assert_close(model.user_vector(clicks, mask), model.gru(clicks, mask) @ model.joined.weight[:, :D].t())


@pytest.mark.parametrize(("removed", "left"), [(0, 1), (1, 0)])
def test_fusion_without_the_short_or_long_term_vector_returns_the_other(removed: int, left: int) -> None:
    """From section 4.1."""
    torch.manual_seed(2)
    model = fednewsrec(heads=2, head_dim=4, attention_dim=3)
    terms = (unit_news(1, 3, D), unit_news(2, 3, D))
    present = torch.ones(3, 2)
    present[:, removed] = 0
    assert_close(model.fuse(*terms, present), terms[left])
    both = model.fuse(*terms, torch.ones(3, 2))
    assert (both - terms[left]).abs().max() > 1e-3


def test_short_term_with_few_clicks_is_a_gru_on_the_real_suffix() -> None:
    """From section 4.1. With more clicks, it is a GRU on the newest 20."""
    torch.manual_seed(2)
    model = fednewsrec(heads=2, head_dim=4, attention_dim=3)
    clicks = unit_news(1, 2, 30, D)
    short = model.short_term(clicks, left_mask([7, 28], 30))
    assert_close(short[0:1], model.gru(clicks[0:1, -7:], torch.ones(1, 7)))
    assert_close(short[1:2], model.gru(clicks[1:2, -20:], torch.ones(1, 20)))


def test_most_recent_clicks_are_found_for_any_padding() -> None:
    rows = torch.arange(1.0, 7.0)[None, :, None]
    mask = torch.tensor([[1.0, 0, 1, 1, 0, 0]])
    found, kept = most_recent(rows, mask, 2)
    assert found.flatten().tolist() == [3, 4]
    assert kept.tolist() == [[1, 1]]
    found, kept = most_recent(rows, mask, 5)
    assert found.flatten().tolist() == [0, 0, 1, 3, 4]
    assert kept.tolist() == [[0, 0, 1, 1, 1]]


@pytest.mark.parametrize("make", SMALL)
@pytest.mark.parametrize(
    ("clicks", "mask", "news", "message"),
    [
        ((2, 6, 9), (2, 6), (2, 5, 8), r"clicks must have shape \[b, H, 8\], got \(2, 6, 9\)"),
        ((2, 6, 8), (2, 5), (2, 5, 8), r"click_mask must have shape \[b, 6\] as clicks, got \(2, 5\)"),
        ((2, 6, 8), (2, 6), (5, 8), r"candidates must have shape \[b, R, 8\], got \(5, 8\)"),
    ],
)
def test_mismatched_shapes_are_named_in_the_error(
    make: Callable[[], UserModel], clicks: tuple[int, ...], mask: tuple[int, ...], news: tuple[int, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        make()(torch.zeros(clicks), torch.zeros(mask), torch.zeros(news))


def test_unknown_form_of_lstur_is_refused() -> None:
    with pytest.raises(ValueError, match="form must be 'ini' or 'con', got 'mix'"):
        lstur("mix", dim=D)  # type: ignore[arg-type]
    assert isinstance(lstur("ini", dim=D), LsturIniUser)
