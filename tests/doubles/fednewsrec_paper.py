"""FedNewsRec (EMNLP Findings 2020, sections 3.1 and 3.2) for one device, as an oracle.

Written from the paper's formulas in torch, in float64, which differentiates them; it imports nothing of the product.
What the paper leaves open: padding words are zeros for the CNN, `short` is the GRU over the 20 newest clicks (as in the
authors' code), whose reset gate acts after the matrix product, and news vectors have length 1, as served.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Floats = NDArray[np.float64]
SHORT = 20


def attention(w: Mapping[str, Tensor], name: str, rows: Tensor) -> Tensor:
    """The attention network: rows [T, D] -> their sum, weighted by softmax_t(q . tanh(W x_t + b))."""
    hidden = torch.tanh(rows @ w[f"{name}.hidden.weight"].T + w[f"{name}.hidden.bias"])
    scores = hidden @ w[f"{name}.query.weight"][0] + w[f"{name}.query.bias"]
    return torch.softmax(scores, dim=0) @ rows


def self_attention(w: Mapping[str, Tensor], name: str, rows: Tensor, heads: int) -> Tensor:
    """Vaswani et al. (2017), heads side by side: rows [T, D] -> [T, heads d]."""
    made = []
    asked, known, reported = (rows @ w[f"{name}.{part}.weight"].T for part in ("query", "key", "value"))
    size = asked.shape[1] // heads
    for head in range(heads):
        part = slice(head * size, (head + 1) * size)
        made.append(torch.softmax(asked[:, part] @ known[:, part].T / size**0.5, dim=1) @ reported[:, part])
    return torch.cat(made, dim=1)


def news_vector(w: Mapping[str, Tensor], words: Tensor, heads: int) -> Tensor:
    """Word vectors [L, E] of a title, without padding -> CNN of width 3, self-attention, attention -> t [D]."""
    nothing = torch.zeros(1, words.shape[1], dtype=words.dtype)
    before, after = torch.cat([nothing, words[:-1]]), torch.cat([words[1:], nothing])
    window = torch.cat([before, words, after], dim=1)
    local = torch.relu(window @ w["title.layers.0.window.weight"].T + w["title.layers.0.window.bias"])
    t = attention(w, "title.pooling", self_attention(w, "title.layers.1", local, heads))
    return t / t.norm()


def gru(w: Mapping[str, Tensor], rows: Tensor) -> Tensor:
    """Cho et al. (2014): rows [T, D], oldest first -> the last state."""
    state = torch.zeros(w["gru.recurrent.weight"].shape[1], dtype=rows.dtype)
    for row in rows:
        given = w["gru.input.weight"] @ row + w["gru.input.bias"]
        held = w["gru.recurrent.weight"] @ state
        (r, z, n), (hr, hz, hn) = given.chunk(3), held.chunk(3)
        keep = torch.sigmoid(z + hz)
        new = torch.tanh(n + torch.sigmoid(r + hr) * hn)
        state = (1 - keep) * new + keep * state
    return state


def user_vector(w: Mapping[str, Tensor], clicks: Tensor, heads: int) -> Tensor:
    """Clicks [T, D], oldest first -> u [D]: long- and short-term interest, joined by attention."""
    long = attention(w, "pooling", self_attention(w, "attention", clicks, heads))
    return attention(w, "fusion", torch.stack([long, gru(w, clicks[-SHORT:])]))


def device_gradient(
    user: Mapping[str, Floats],
    news: Mapping[str, Floats],
    words: Sequence[Floats],
    samples: Sequence[tuple[Sequence[int], Sequence[int]]],
    heads: int,
) -> dict[str, Floats]:
    """g_u = dL_u / dTheta by name in an update, L_u the mean of eq. 3 over the device's samples.

    words: each article's word vectors [L, E]. samples: (clicks, candidates) as places in `words`, the clicked candidate
    first.
    """
    of_user = {name: torch.tensor(value, requires_grad=True) for name, value in user.items()}
    of_news = {name: torch.tensor(value, requires_grad=True) for name, value in news.items()}
    vectors = torch.stack([news_vector(of_news, torch.tensor(each), heads) for each in words])
    losses = []
    for clicks, candidates in samples:
        scores = vectors[list(candidates)] @ user_vector(of_user, vectors[list(clicks)], heads)
        losses.append(torch.logsumexp(scores, dim=0) - scores[0])
    torch.stack(losses).mean().backward()
    trained = {**of_user, **{f"news.{name}": value for name, value in of_news.items()}}
    assert all(value.grad is not None for value in trained.values())
    return {name: value.grad.numpy() for name, value in trained.items() if value.grad is not None}
