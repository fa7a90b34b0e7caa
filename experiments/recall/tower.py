"""The item tower of the frontier: a linear map of title vectors to 256.

A reader is the mean of the clicks. Trained by in-batch InfoNCE. A positive appears among the others' negatives as often
as it is popular, so the products learn what a reader adds to popularity, and log popularity is added afterwards.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from experiments.recall.measure import CLICKS_MOST, Rows

Vectors = NDArray[np.float32]

WIDTH = 256
EPOCHS = 8
BATCH = 256
LEARNING_RATE = 1e-3
SEED = 7


def train_tower(titles: Vectors, readers: Sequence[Rows], *, kept: Sequence[int] = (EPOCHS,)) -> dict[int, Vectors]:
    """Return the tower's matrix [256, D0] after each of the epochs `kept`.

    titles [n, D0] have length 1. Starts at the first 256 right singular vectors of the titles. Every click after a
    reader's first is a positive, with the up to 50 clicks before it as history; equal articles in a batch are no
    negatives. The matrix is rotated by a fixed rotation: products stay the same, but differences between articles
    spread evenly over the coordinates, as the shipped encoder's head does and product quantisation needs.
    """
    torch.manual_seed(SEED)
    dice = np.random.default_rng(SEED)
    histories, positives = _samples(titles, readers)
    table, history, positive = torch.from_numpy(titles), torch.from_numpy(histories), torch.from_numpy(positives)
    _, _, directions = np.linalg.svd(titles, full_matrices=False)
    matrix = torch.tensor(directions[:WIDTH], requires_grad=True)  # [256, D0]
    optimizer = torch.optim.Adam([matrix], lr=LEARNING_RATE)
    rotation, _ = np.linalg.qr(dice.standard_normal((WIDTH, WIDTH)))
    own = torch.arange(BATCH)
    found: dict[int, Vectors] = {}
    for epoch in range(1, max(kept) + 1):
        order = dice.permutation(len(positives))
        for start in range(0, len(order) - BATCH + 1, BATCH):
            rows = torch.from_numpy(order[start : start + BATCH])
            news = positive[rows]
            scores = (history[rows] @ matrix.T) @ (table[news] @ matrix.T).T  # [b, b]
            equal = (news[:, None] == news[None, :]) & ~torch.eye(BATCH, dtype=torch.bool)
            loss = torch.nn.functional.cross_entropy(scores.masked_fill(equal, -torch.inf), own)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        if epoch in kept:
            found[epoch] = np.asarray(rotation @ matrix.detach().numpy(), dtype=np.float32)
    return found


def reader_vectors(news: Vectors, histories: Sequence[Rows]) -> Vectors:
    """Return the mean of each reader's clicks, scaled to length 1: [readers, D]."""
    means = np.stack([news[history].mean(axis=0) for history in histories])
    return np.asarray(means / np.linalg.norm(means, axis=1, keepdims=True), dtype=np.float32)


def _samples(titles: Vectors, readers: Sequence[Rows]) -> tuple[Vectors, Rows]:
    means, positives = [], []
    for clicks in readers:
        sums = np.vstack([np.zeros(titles.shape[1]), np.cumsum(titles[clicks], axis=0, dtype=np.float64)])
        ends = np.arange(1, len(clicks))
        starts = np.maximum(ends - CLICKS_MOST, 0)
        means.append((sums[ends] - sums[starts]) / (ends - starts)[:, None])
        positives.append(clicks[1:])
    return np.concatenate(means).astype(np.float32), np.concatenate(positives)
