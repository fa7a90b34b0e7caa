"""FL-MV-DSSM (Huang et al. 2020, eqs. 3 to 7) for one view, in NumPy, as an oracle.

It uses float64 and imports nothing of the product. f is tanh, in every layer: the paper names no function, and its eq.
3 has a linear first layer without bias.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Tower = Sequence[tuple[Floats, Floats]]
"""W_i and b_i of each layer."""


def tower_of(weights: Mapping[str, Floats], prefix: str) -> Tower:
    """The layers `<prefix>layers.<i>.weight` and `.bias`, from the first."""
    count = sum(name.startswith(prefix) and name.endswith("weight") for name in weights)
    return [(weights[f"{prefix}layers.{i}.weight"], weights[f"{prefix}layers.{i}.bias"]) for i in range(count)]


def forward(tower: Tower, x: Floats) -> list[Floats]:
    """Eq. 3: x, l_1, ..., y."""
    layers = [x]
    for w, b in tower:
        layers.append(np.tanh(w @ layers[-1] + b))
    return layers


def backward(tower: Tower, layers: Sequence[Floats], pull: Floats) -> list[tuple[Floats, Floats]]:
    """Gradients of W_i and b_i from that of y."""
    found = []
    for (w, _), below, above in zip(reversed(tower), reversed(layers[:-1]), reversed(layers[1:]), strict=True):
        pull = pull * (1 - above**2)
        found.append((np.outer(pull, below), pull))
        pull = w.T @ pull
    return found[::-1]


def view_gradient(
    user: Tower, item: Tower, samples: Sequence[tuple[Floats, Floats]], gamma: float
) -> tuple[list[tuple[Floats, Floats]], list[tuple[Floats, Floats]]]:
    """Lines 4 and 5 of Algorithm 1: gradients of the user's and the item's tower.

    samples: (the user's features Q, the items' features [1 + N, F], the clicked one D+ first). L is the mean of
    -log P(D+ | Q), eqs. 4 to 6.
    """
    of_user = [(np.zeros_like(w), np.zeros_like(b)) for w, b in user]
    of_item = [(np.zeros_like(w), np.zeros_like(b)) for w, b in item]

    def add(total: list[tuple[Floats, Floats]], more: list[tuple[Floats, Floats]]) -> None:
        for (w, b), (dw, db) in zip(total, more, strict=True):
            w += dw / len(samples)
            b += db / len(samples)

    for query, items in samples:
        q, ds = forward(user, query), [forward(item, each) for each in items]
        y = q[-1]
        lengths = [np.linalg.norm(y) * np.linalg.norm(d[-1]) for d in ds]
        r = np.array([y @ d[-1] / length for d, length in zip(ds, lengths, strict=True)])
        p = np.exp(gamma * r) / np.exp(gamma * r).sum()
        pull_r = gamma * (p - np.eye(len(p))[0])
        pull_y = np.zeros_like(y)
        for d, length, cosine, pull in zip(ds, lengths, r, pull_r, strict=True):
            pull_y += pull * (d[-1] / length - cosine * y / (y @ y))
            add(of_item, backward(item, d, pull * (y / length - cosine * d[-1] / (d[-1] @ d[-1]))))
        add(of_user, backward(user, q, pull_y))
    return of_user, of_item


def clipped(gradient: Mapping[str, Floats], bound: float) -> dict[str, Floats]:
    """Step 2 of section IV-C: g / max(1, ||g||_2 / C), over all tensors of the view."""
    norm = np.sqrt(sum(float((each**2).sum()) for each in gradient.values()))
    return {name: each / max(1.0, norm / bound) for name, each in gradient.items()}
