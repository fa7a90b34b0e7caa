"""News encoder and user model together.

Oracles: the two by hand, repeated articles, and Efficient-FedRec's identity.
"""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.func import functional_call
from torch.testing import assert_close

from models.builders.news import cnn_title, fednewsrec_news, fednewsrec_title, naml
from models.builders.rankers import nrms
from models.builders.user import fednewsrec_user_400
from models.one_vector import UserModel
from models.scoring import EndToEnd
from tests.doubles.torch_gradients import ModelLoss

VOCABULARY, NEWS, CLICKS = 15, 6, 4


def random_ids(seed: int, high: int, *shape: int) -> Tensor:
    return torch.randint(high, shape, generator=torch.Generator().manual_seed(seed))


def small(seed: int = 0) -> EndToEnd:
    torch.manual_seed(seed)
    news = fednewsrec_title(
        vocabulary=VOCABULARY,
        word_dim=4,
        filters=5,
        heads=2,
        head_dim=3,
        attention_dim=4,
        train_words=True,
        rectified=False,
    )
    return EndToEnd(news, nrms(heads=2, head_dim=3, attention_dim=4)).double()


def inputs(seed: int = 0, batch: int = 2) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    mask = (random_ids(seed + 1, 4, batch, CLICKS) > 0).double()
    return (
        random_ids(seed, VOCABULARY, NEWS, 7),
        random_ids(seed + 2, NEWS, batch, CLICKS) * mask.long(),
        mask,
        random_ids(seed + 3, NEWS, batch, 5),
    )


def user_of(model: EndToEnd) -> UserModel:
    assert isinstance(model.user, UserModel)
    return model.user


def gradients(model: nn.Module, loss: Tensor) -> dict[str, Tensor]:
    found = torch.autograd.grad(loss, list(model.parameters()), allow_unused=True, materialize_grads=True)
    return dict(zip(dict(model.named_parameters()), found, strict=True))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**31))
def test_loss_equals_the_user_models_loss_on_encoded_articles(seed: int) -> None:
    model, (words, click_rows, mask, candidate_rows) = small(seed), inputs(seed)
    vectors = model.news(words)
    clicks = torch.stack([torch.stack([vectors[row] for row in reader]) for reader in click_rows])
    candidates = torch.stack([torch.stack([vectors[row] for row in reader]) for reader in candidate_rows])
    assert_close(model(words, click_rows, mask, candidate_rows), model.user(clicks, mask, candidates))
    assert_close(model.loss(words, click_rows, mask, candidate_rows), user_of(model).loss(clicks, mask, candidates))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**31))
def test_article_used_twice_sums_its_gradients(seed: int) -> None:
    """Oracle: the same readers with every occurrence encoded as an article of its own."""
    model, (words, click_rows, mask, candidate_rows) = small(seed), inputs(seed)
    occurrences = torch.cat([click_rows.flatten(), candidate_rows.flatten()])
    apart = torch.arange(len(occurrences))
    split = click_rows.numel()
    own_clicks, own_candidates = apart[:split].view_as(click_rows), apart[split:].view_as(candidate_rows)
    once = gradients(model, model.loss(words, click_rows, mask, candidate_rows))
    each = gradients(model, model.loss(words[occurrences], own_clicks, mask, own_candidates))
    for name, gradient in once.items():
        assert_close(gradient, each[name], msg=name)


def test_gradient_of_the_encoder_is_its_pullback_of_vector_gradients_as_in_section_3_2() -> None:
    """The main identity of Efficient-FedRec: one backward of the encoder with the summed vector gradients."""
    model, (words, click_rows, mask, candidate_rows) = small(), inputs()
    whole = gradients(model.news, model.loss(words, click_rows, mask, candidate_rows))
    vectors = model.news(words)
    table = vectors.detach().requires_grad_(True)
    loss = user_of(model).loss(table[click_rows], mask, table[candidate_rows])
    (upstream,) = torch.autograd.grad(loss, table)
    pulled = torch.autograd.grad(vectors, list(model.news.parameters()), upstream)
    for (name, gradient), each in zip(whole.items(), pulled, strict=True):
        assert_close(gradient, each, atol=1e-6, rtol=0, msg=name)


def test_gradients_match_finite_differences() -> None:
    model, reported = small(), inputs()
    names = [name for name, _ in model.named_parameters()]

    def compute(*values: Tensor) -> Tensor:
        return functional_call(
            ModelLoss(model), {f"model.{n}": v for n, v in zip(names, values, strict=True)}, tuple(reported)
        )

    leaves = [each.detach().clone().requires_grad_(True) for each in model.parameters()]
    assert torch.autograd.gradcheck(compute, tuple(leaves))


def test_padding_row_choice_changes_nothing_and_gives_no_gradient() -> None:
    model, (words, click_rows, mask, candidate_rows) = small(), inputs(seed=5)
    elsewhere = torch.where(mask > 0, click_rows, (click_rows + 1) % NEWS)
    assert not elsewhere.equal(click_rows)
    reported, moved = (model.loss(words, rows, mask, candidate_rows) for rows in (click_rows, elsewhere))
    assert_close(reported, moved)
    for name, gradient in gradients(model, reported).items():
        assert_close(gradient, gradients(model, model.loss(words, elsewhere, mask, candidate_rows))[name])


def test_reader_without_clicks_scores_zero_without_gradients() -> None:
    model, (words, click_rows, _, candidate_rows) = small(), inputs()
    empty = torch.zeros(2, CLICKS).double()
    assert model(words, click_rows, empty, candidate_rows).eq(0).all()
    for name, gradient in gradients(model, model.loss(words, click_rows, empty, candidate_rows)).items():
        assert gradient.eq(0).all(), name


def test_encoder_of_several_views_takes_its_own_inputs_first() -> None:
    news = naml(
        vocabulary=VOCABULARY, categories=4, subcategories=5, word_dim=4, element_dim=3, filters=6, attention_dim=3
    )
    model = EndToEnd(news, nrms(heads=2, head_dim=3, attention_dim=4)).double()
    views = (
        random_ids(1, VOCABULARY, NEWS, 7),
        random_ids(2, VOCABULARY, NEWS, 9),
        random_ids(3, 4, NEWS),
        random_ids(4, 5, NEWS),
    )
    _, click_rows, mask, candidate_rows = inputs()
    vectors = news(*views)
    expected = user_of(model).loss(vectors[click_rows], mask, vectors[candidate_rows])
    assert_close(model.loss(*views, click_rows, mask, candidate_rows), expected)


def test_error_names_bad_input_and_the_expected_form() -> None:
    model, (words, click_rows, mask, candidate_rows) = small(), inputs()
    with pytest.raises(ValueError, match=r"click_rows \[2, 4\] must be rows of 6 articles, got .* to 9"):
        model.loss(words, click_rows.index_fill(1, torch.tensor([0]), 9), mask, candidate_rows)
    with pytest.raises(ValueError, match=r"candidate_rows \[2, 5\] must be rows of 6 articles, got -1 to"):
        model.loss(words, click_rows, mask, candidate_rows.index_fill(1, torch.tensor([0]), -1))
    with pytest.raises(ValueError, match=r"click_mask must have shape \[2, 4\], got \[2, 3\]"):
        model.loss(words, click_rows, mask[:, :3], candidate_rows)
    with pytest.raises(ValueError, match=r"candidate_rows must have shape \[2, R\], got \[1, 5\]"):
        model.loss(words, click_rows, mask, candidate_rows[:1])
    with pytest.raises(ValueError, match="got 3 tensors"):
        model.loss(click_rows, mask, candidate_rows)
    with pytest.raises(ValueError, match="user must have a loss method, got Linear"):
        EndToEnd(cnn_title(vocabulary=4, word_dim=2, filters=2, attention_dim=2), nn.Linear(2, 2))


def test_fednewsrec_trains_the_2_522_803_parameters_of_section_4_1() -> None:
    model = EndToEnd(fednewsrec_news(), fednewsrec_user_400())
    assert sum(each.numel() for each in model.parameters() if each.requires_grad) == 2_522_803
