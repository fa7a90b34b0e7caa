"""A small Efficient-FedRec: a news model, an NRMS user model, and readers with common articles.

The news model works on given token states.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from device_app.store.clicks import Click
from device_app.store.impressions import Shown
from device_app.training.samples import ReaderSamples, RowSamples
from exporters.graphs import ranker_graphs, table_loss
from models.builders.rankers import nrms
from models.news.plm import UpperEncoder
from models.user.papers import NrmsUser
from tests.doubles.graphs import kept_graph

WIDTH, DIM, NEWS, NEGATIVES = 12, 16, 24, 4
MORNING = datetime(2026, 11, 20, 8, tzinfo=UTC)


def news_id(row: int) -> str:
    """Return the article id of a row; ids ascend like rows."""
    return f"n{row:02d}"


def news_model(seed: int = 0) -> UpperEncoder:
    """Pooling and head, float64, attention away from its uniform start."""
    torch.manual_seed(seed)
    model = UpperEncoder.headed([], WIDTH, DIM).double()
    nn.init.normal_(model.pooling.query.weight)
    return model


def user_model(seed: int = 1) -> NrmsUser:
    """4 x 4 heads, away from the cosine start."""
    torch.manual_seed(seed)
    return nrms(heads=4, head_dim=4, attention_dim=8)


def token_states(seed: int = 2) -> tuple[Tensor, Tensor]:
    """States [NEWS, 6, WIDTH] float64 of titles of 2 to 6 pieces, and their mask."""
    draw = torch.Generator().manual_seed(seed)
    lengths = torch.randint(2, 7, (NEWS,), generator=draw)
    mask = (torch.arange(6) < lengths[:, None]).double()
    states = torch.randn(NEWS, 6, WIDTH, generator=draw, dtype=torch.float64) * mask[..., None]
    return states, mask


def pooled_states() -> NDArray[np.float16]:
    """Pooled states of all articles, [NEWS, WIDTH], as a round distributes them."""
    with torch.no_grad():
        pooled = news_model().pooling(*token_states())
    return np.asarray(pooled.numpy(), dtype=np.float16)


def head_parameters() -> dict[str, NDArray[np.float32]]:
    """Parameters of the news model's head, by torch name."""
    found = {name: each.detach().numpy().astype(np.float32) for name, each in news_model().named_parameters()}
    return {name: each for name, each in found.items() if name.startswith("head.")}


def reader(seed: int, vectors: NDArray[np.float32], feeds: int, rows: range | list[int]) -> ReaderSamples:
    """One who saw `feeds` feeds of six articles out of `rows`, and clicked one or two of each."""
    rng = np.random.default_rng(seed)
    shown: list[Shown] = []
    clicks: list[Click] = []
    for number in range(feeds):
        at = MORNING + timedelta(hours=number)
        offered = [news_id(int(row)) for row in rng.choice(list(rows), size=6, replace=False)]
        chosen = tuple(offered[: int(rng.integers(1, 3))])
        shown.append(Shown(f"feed{number}", at, tuple(offered), chosen))
        clicks += [
            Click(len(clicks) + place, one, f"feed{number}", at + timedelta(minutes=5 + place))
            for place, one in enumerate(chosen)
        ]
    held = {news_id(row): vectors[row] for row in range(NEWS)}
    return ReaderSamples(feeds=shown, clicks=clicks, vectors=held)


def readers(vectors: NDArray[np.float32]) -> list[ReaderSamples]:
    """Five readers with overlapping articles and different numbers of samples."""
    return [reader(seed, vectors, feeds, range(20)) for seed, feeds in enumerate((2, 5, 3, 4, 6))]


def drawn_by(samples: ReaderSamples, seed: int) -> RowSamples:
    """The samples that a device with this seed draws in a round."""
    return samples.draw_rows(negatives=NEGATIVES, limit=32, rng=np.random.default_rng(seed))


def batch_of(drawn: RowSamples) -> tuple[Tensor, Tensor, Tensor]:
    """Its samples with rows of the whole list of articles."""
    rows = torch.tensor([int(one[1:]) for one in drawn.ids])
    clicks = rows[torch.from_numpy(drawn.click_rows)]
    return clicks, torch.from_numpy(drawn.click_mask).double(), rows[torch.from_numpy(drawn.candidate_rows)]


def pooled_gradient(
    news: UpperEncoder, user: NrmsUser, drawn: list[RowSamples]
) -> tuple[dict[str, Tensor], dict[str, Tensor], Tensor]:
    """Gradients of the mean loss over all readers' samples, end to end, in float64.

    They are for the news model, the user model, and the vectors E.
    """
    states, mask = token_states()
    exact = user_model().double()
    exact.load_state_dict({name: each.double() for name, each in user.state_dict().items()})
    vectors = news(states, mask)
    parts = [batch_of(one) for one in drawn]
    loss = table_loss(exact, vectors, *(torch.cat(each) for each in zip(*parts, strict=True)))
    of_news, of_user = dict(news.named_parameters()), dict(exact.named_parameters())
    found = torch.autograd.grad(loss, [*of_news.values(), *of_user.values(), vectors], materialize_grads=True)
    ends = len(of_news), len(of_news) + len(of_user)
    return (
        dict(zip(of_news, found[: ends[0]], strict=True)),
        dict(zip(of_user, found[ends[0] : ends[1]], strict=True)),
        found[-1],
    )


def table_gradient_graph(user: NrmsUser) -> bytes:
    """The gradient graph as a release brings it to devices."""
    spec = next(each for each in ranker_graphs(user) if each.purpose == "table_gradient")
    return kept_graph(user, spec)


def parameters(user: NrmsUser) -> dict[str, NDArray[np.float32]]:
    """Return weights in the form that devices have."""
    return {name: each.detach().numpy() for name, each in user.named_parameters()}
