"""Uni-FedRec (Qi et al., Findings of EMNLP 2021) as published, in NumPy, as an oracle.

It uses float64, has loops where the paper has sums, and imports nothing of the product.

What the paper leaves open follows docs/decisions: a dense scorer q . tanh(W g + b) for Att, no padding, C_max channels,
candidates merged as in the authors' published code, and noise on a grid of 2^-16.

Symbols: H clicks, D dimensions, C channels, B basic interests, K negatives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
GRID = 2.0**-16


@dataclass(frozen=True)
class PaperFigures:
    """The hyper-parameters of section 4.1."""

    heads: int = 16
    distance: float = 1.0  # d
    channels_limit: int = 5  # C_max; the paper has none
    clip: float = 0.2  # delta
    noise: float = 1.2  # lambda_I
    recalled: int = 400  # R
    gradient_clip: float = 0.1  # theta
    gradient_noise: float = 0.01  # lambda_g
    rate: float = 0.05  # omega


@dataclass(frozen=True)
class PaperModel:
    """The parameters Theta.

    Square maps of the self-attention [D, D], the dense scorer (hidden [A, D], bias [A], query [A]), and the basic
    interests' keys and values [B, D].
    """

    queries: Floats
    keys: Floats
    values: Floats
    hidden: Floats
    bias: Floats
    query: Floats
    basis_keys: Floats
    basis_values: Floats


def softmax(scores: Floats) -> Floats:
    powers = np.exp(scores - scores.max())
    return np.asarray(powers / powers.sum())


def laplace_of(words: bytes, scale: float, count: int) -> Floats:
    """La(0, scale) by its inverse distribution function, from 64 random bits a draw.

    53 bits give the size, one the sign.
    """
    bits = [int.from_bytes(words[8 * place : 8 * place + 8], "little") for place in range(count)]
    return np.array([(1.0 if word & 1 else -1.0) * -scale * np.log(((word >> 11) + 1) / 2**53) for word in bits])


@dataclass(frozen=True)
class PaperContexts:
    """g [H, D], with each head's attention weights [h, H, H] for the backward pass."""

    rows: Floats
    weights: list[Floats]


def contexts(model: PaperModel, clicks: Floats, heads: int) -> PaperContexts:
    """The global self-attention network: [h_1, ..., h_H] to [g_1, ..., g_H]."""
    size = clicks.shape[1] // heads
    parts, weights = [], []
    for head in range(heads):
        mine = slice(head * size, (head + 1) * size)
        asked, known, reported = (clicks @ each[mine].T for each in (model.queries, model.keys, model.values))
        weights.append(np.stack([softmax(row) for row in asked @ known.T / np.sqrt(size)]))
        parts.append(weights[-1] @ reported)
    return PaperContexts(np.concatenate(parts, axis=1), weights)


def clusters(rows: Floats, figures: PaperFigures) -> list[list[int]]:
    """Cluster the clicks as the paper says, until there are at most C_max clusters.

    "Hierarchically merges the clusters until the average distances between any two clusters are larger than a given
    threshold d". Largest first, then the one with the oldest click.
    """
    apart = np.linalg.norm(rows[:, None] - rows[None], axis=2)
    found = [[place] for place in range(len(rows))]
    while len(found) > 1:
        pairs = [(one, other) for other in range(len(found)) for one in range(other)]
        distances = [apart[np.ix_(found[one], found[other])].mean() for one, other in pairs]
        nearest, (one, other) = min(zip(distances, pairs, strict=True))
        if nearest > figures.distance and len(found) <= figures.channels_limit:
            break
        found[one] = sorted(found[one] + found.pop(other))
    return sorted(found, key=lambda group: (-len(group), group[0]))


@dataclass(frozen=True)
class PaperReader:
    """What a client computes from its clicks before any protection: r [C, D], a [C, B], |H_c|."""

    contexts: PaperContexts
    groups: list[list[int]]
    attention: list[Floats]
    channels: Floats
    scores: Floats

    @property
    def counts(self) -> list[int]:
        return [len(group) for group in self.groups]


def read(
    model: PaperModel, clicks: Floats, figures: PaperFigures, groups: list[list[int]] | None = None
) -> PaperReader:
    """ "Interest Modeling" and a_i = <r, e_i^k>; groups: given if clusters were computed from other vectors."""
    found = contexts(model, clicks, figures.heads)
    groups = clusters(found.rows, figures) if groups is None else groups
    attention, channels = [], []
    for group in groups:
        rows = found.rows[group]
        attention.append(softmax(np.tanh(rows @ model.hidden.T + model.bias) @ model.query))
        channels.append(attention[-1] @ rows)
    return PaperReader(found, groups, attention, np.stack(channels), np.stack(channels) @ model.basis_keys.T)


def protected(scores: Floats, words: bytes, figures: PaperFigures) -> Floats:
    """a^ = f(a) + n, n ~ La(0, lambda_I)."""
    noise = laplace_of(words, figures.noise, scores.size).reshape(scores.shape)
    return np.round((np.clip(scores, -figures.clip, figures.clip) + noise) / GRID) * GRID


def recalled(
    model: PaperModel, scores: Floats, counts: Sequence[int], pool: Floats, figures: PaperFigures
) -> tuple[list[int], float]:
    """ "News Recall" on the server: rows of the pool [n, D], in the order of the authors' code.

    Also returns the smallest difference of inner product between neighbours of a channel's list; below it the order is
    arbitrary.
    """
    lists, closest = [], np.inf
    for row in scores:
        interest = softmax(row) @ model.basis_values
        relevance = pool @ interest
        ranked = np.argsort(-relevance, kind="stable")[: figures.recalled]
        closest = min(closest, float(-np.diff(relevance[ranked]).max()))
        lists.append(ranked.tolist())
    shares = [count / sum(counts) for count in counts]
    places = figures.recalled
    taken: list[int] = []
    for ranked, share in zip(lists, shares, strict=True):
        taken += [row for row in ranked[: max(int(places * share) - 1, 1)] if row not in taken]
    largest = int(np.argmax(shares))
    for row in lists[largest][int(places * shares[largest]) :]:
        if len(taken) < places and row not in taken:
            taken.append(row)
    return taken, closest


def sample_gradient(
    model: PaperModel, clicks: Floats, groups: list[list[int]], candidates: Floats, figures: PaperFigures
) -> tuple[float, PaperModel]:
    """The InfoNCE loss of one sample, and its gradient for every parameter.

    candidates [1 + K, D], the clicked one first; clicks [H, D] are the real ones; groups are their clusters.
    """
    reader = read(model, clicks, figures, groups)
    clipped = np.clip(reader.scores, -figures.clip, figures.clip)
    shares = np.array(reader.counts) / len(clicks)
    weights = np.stack([softmax(row) for row in clipped])  # [C, B]
    unified = shares @ weights @ model.basis_values  # <this, d> is the unified score of d
    chances = softmax(candidates @ unified)
    loss = -float(np.log(chances[0]))

    wrong = chances - np.eye(len(candidates))[0]
    to_interests = np.outer(shares, candidates.T @ wrong)  # [C, D]
    to_values = weights.T @ to_interests
    to_weights = to_interests @ model.basis_values.T
    to_scores = weights * (to_weights - (weights * to_weights).sum(axis=1, keepdims=True))
    to_scores = to_scores * (np.abs(reader.scores) < figures.clip)
    to_keys = to_scores.T @ reader.channels
    to_channels = to_scores @ model.basis_keys

    to_rows = np.zeros_like(reader.contexts.rows)
    to_hidden, to_bias, to_query = np.zeros_like(model.hidden), np.zeros_like(model.bias), np.zeros_like(model.query)
    for group, attention, pull in zip(reader.groups, reader.attention, to_channels, strict=True):
        rows = reader.contexts.rows[group]
        by_weight = rows @ pull
        by_score = attention * (by_weight - attention @ by_weight)  # [|H_c|]
        bent = np.tanh(rows @ model.hidden.T + model.bias)
        by_hidden = by_score[:, None] * model.query * (1 - bent**2)
        to_query += by_score @ bent
        to_hidden += by_hidden.T @ rows
        to_bias += by_hidden.sum(axis=0)
        to_rows[group] += attention[:, None] * pull + by_hidden @ model.hidden

    size = clicks.shape[1] // figures.heads
    to_queries, to_known, to_told = (np.zeros_like(each) for each in (model.queries, model.keys, model.values))
    for head, attention in enumerate(reader.contexts.weights):
        mine = slice(head * size, (head + 1) * size)
        asked, known, reported = (clicks @ each[mine].T for each in (model.queries, model.keys, model.values))
        pull = to_rows[:, mine]
        by_attention = pull @ reported.T
        by_logit = attention * (by_attention - (attention * by_attention).sum(axis=1, keepdims=True)) / np.sqrt(size)
        to_queries[mine] = (by_logit @ known).T @ clicks
        to_known[mine] = (by_logit.T @ asked).T @ clicks
        to_told[mine] = (attention.T @ pull).T @ clicks
    return loss, PaperModel(to_queries, to_known, to_told, to_hidden, to_bias, to_query, to_keys, to_values)


def protected_gradient(
    gradient: Mapping[str, Floats], words: Mapping[str, bytes], figures: PaperFigures
) -> dict[str, Floats]:
    """Equation 8: G^ = f(dL/dTheta) + n, n ~ La(0, lambda_g), coordinate by coordinate."""
    return {
        name: np.clip(value, -figures.gradient_clip, figures.gradient_clip)
        + laplace_of(words[name], figures.gradient_noise, value.size).reshape(value.shape)
        for name, value in gradient.items()
    }
