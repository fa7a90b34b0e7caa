"""The textbook layers that benches compare with have the values and gradients of ours."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from experiments.bench.graphs import PlainAttention, PlainGru, PlainPooling, plain
from models.builders.rankers import nrms
from models.builders.user import fednewsrec, lstur
from models.one_vector import UserModel


@pytest.mark.parametrize(
    "model",
    [
        nrms(heads=2, head_dim=3, attention_dim=4),
        fednewsrec(heads=2, head_dim=3, attention_dim=4),
        lstur("ini", dim=6),
        lstur("con", dim=6),
    ],
    ids=lambda model: type(model).__name__,
)
def test_textbook_layers_match_our_values_and_gradients(model: UserModel) -> None:
    torch.manual_seed(1)
    for each in model.parameters():
        torch.nn.init.normal_(each, std=0.3)
    ours = model.double()
    theirs = plain(ours)
    assert any(isinstance(each, PlainAttention | PlainGru | PlainPooling) for each in theirs.modules())
    mask = (torch.rand(5, 9) > 0.4).double()
    mask[0] = 0
    inputs = torch.randn(5, 9, 6).double() * mask[..., None], mask, torch.randn(5, 4, 6).double()
    for one in (ours, theirs):
        one.zero_grad()
        one.loss(*inputs).backward()
    assert_close(theirs.loss(*inputs), ours.loss(*inputs), atol=1e-12, rtol=0)
    got = dict(theirs.named_parameters())
    for name, each in ours.named_parameters():
        assert_close(got[name].grad, each.grad, atol=1e-10, rtol=0, msg=name)
