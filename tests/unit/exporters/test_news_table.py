"""A user model fed from a table of distinct articles. Oracle: torch's index_add of the gradients of given vectors."""

from __future__ import annotations

import numpy as np
import onnxruntime as ort
import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from exporters.graphs import ranker_graphs, table_loss
from models.builders.rankers import nrms
from models.user.papers import NrmsUser
from tests.doubles.graphs import kept_graph

DIM, NEWS, BATCH = 16, 12, 3


@pytest.fixture(scope="module")
def model() -> NrmsUser:
    torch.manual_seed(0)
    return nrms(heads=4, head_dim=4, attention_dim=8)


@pytest.fixture(scope="module")
def session(model: NrmsUser) -> ort.InferenceSession:
    spec = next(each for each in ranker_graphs(model) if each.purpose == "table_gradient")
    return one_thread(kept_graph(model, spec))


def one_thread(graph: bytes) -> ort.InferenceSession:
    """Use one thread, as devices do: additions into one row race between the threads of a graph."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    return ort.InferenceSession(graph, options, providers=["CPUExecutionProvider"])


def sample() -> dict[str, Tensor]:
    """Row 11 is used by padding only, row 10 not at all, row 0 as a click and as a candidate."""
    draw = torch.Generator().manual_seed(5)
    click_rows = torch.randint(10, (BATCH, 50), generator=draw)
    click_mask = (torch.arange(50) >= torch.tensor([[0], [20], [49]])).float()
    click_rows[:, -1] = 0
    candidate_rows = torch.randint(10, (BATCH, 5), generator=draw)
    candidate_rows[:, 2] = 0
    return {
        "table": torch.randn(NEWS, DIM, generator=draw),
        "click_rows": torch.where(click_mask == 0, 11, click_rows),
        "click_mask": click_mask,
        "candidate_rows": candidate_rows,
    }


def run(session: ort.InferenceSession, model: NrmsUser, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
    feed = {f"p.{name}": each.detach().numpy() for name, each in model.named_parameters()}
    feed |= {name: each.numpy() for name, each in inputs.items()}
    names = [each.name for each in session.get_outputs()]
    results = session.run(names, {each.name: feed[each.name] for each in session.get_inputs()})
    return {name: torch.from_numpy(np.asarray(each)) for name, each in zip(names, results, strict=True)}


def test_table_gradient_sums_over_all_occurrences_of_an_article(session: ort.InferenceSession, model: NrmsUser) -> None:
    inputs = sample()
    clicks = inputs["table"][inputs["click_rows"]].requires_grad_(True)
    candidates = inputs["table"][inputs["candidate_rows"]].requires_grad_(True)
    loss = model.loss(clicks, inputs["click_mask"], candidates)
    of_clicks, of_candidates = torch.autograd.grad(loss, [clicks, candidates])
    wanted = torch.zeros(NEWS, DIM)
    wanted.index_add_(0, inputs["click_rows"].flatten(), of_clicks.flatten(0, 1))
    wanted.index_add_(0, inputs["candidate_rows"].flatten(), of_candidates.flatten(0, 1))
    got = run(session, model, inputs)
    assert_close(got["g.table"], wanted, atol=2e-6, rtol=0)
    assert_close(got["loss"], loss.detach(), atol=2e-6, rtol=0)
    assert (wanted[0] != 0).any()


def test_rows_used_only_as_padding_have_no_gradient(session: ort.InferenceSession, model: NrmsUser) -> None:
    gradient = run(session, model, sample())["g.table"]
    assert gradient[10:].count_nonzero() == 0
    assert (gradient[:10] != 0).any(dim=1).all()


def test_table_loss_equals_the_loss_on_vectors(model: NrmsUser) -> None:
    inputs = sample()
    direct = model.loss(
        inputs["table"][inputs["click_rows"]], inputs["click_mask"], inputs["table"][inputs["candidate_rows"]]
    )
    assert_close(table_loss(model, **inputs), direct, atol=0, rtol=0)
