"""NRMS's user model (Wu et al., EMNLP 2019, section 3.2) and its loss, in NumPy, as an oracle.

It uses float64 and imports nothing of the product. Titles are vectors already; padding takes no part.

Symbols: H clicks, D dimensions, K negatives; maps [D, D] multiply from the left.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Q, K, V = "attention.query", "attention.key", "attention.value"
HIDDEN, SCORER = "pooling.hidden", "pooling.query"


def softmax(rows: Floats) -> Floats:
    powers = np.exp(rows - rows.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


def nrms_gradient(
    weights: Mapping[str, Floats], clicks: Floats, candidates: Floats, heads: int = 16
) -> tuple[float, dict[str, Floats], Floats, Floats]:
    """The loss of one sample, its gradient by parameter, and its gradients for the clicks [H, D] and candidates.

    candidates [1 + K, D], the clicked one first. loss = -log(exp(s_0) / sum_i exp(s_i)), s_i = <u, d_i>.
    """

    def linear(name: str, rows: Floats) -> Floats:
        bias = weights.get(f"{name}.bias")
        product = rows @ weights[f"{name}.weight"].T
        return product if bias is None else product + bias

    asked, known, reported = (linear(name, clicks) for name in (Q, K, V))
    size = asked.shape[1] // heads
    parts = [slice(head * size, (head + 1) * size) for head in range(heads)]
    attentions = [softmax(asked[:, part] @ known[:, part].T / np.sqrt(size)) for part in parts]
    contexts = np.concatenate([each @ reported[:, part] for each, part in zip(attentions, parts, strict=True)], axis=1)
    bent = np.tanh(linear(HIDDEN, contexts))
    shares = softmax(linear(SCORER, bent)[:, 0])
    user = shares @ contexts
    chances = softmax(candidates @ user)
    loss = -float(np.log(chances[0]))

    found: dict[str, Floats] = {}

    def back(name: str, rows: Floats, pull: Floats) -> Floats:
        """The gradient of `linear` for its rows; keeps that of its parameters."""
        found[f"{name}.weight"] = pull.T @ rows
        if f"{name}.bias" in weights:
            found[f"{name}.bias"] = pull.sum(axis=0)
        return np.asarray(pull @ weights[f"{name}.weight"])

    wrong = chances - np.eye(len(candidates))[0]
    to_candidates, to_user = np.outer(wrong, user), candidates.T @ wrong
    by_share = contexts @ to_user
    by_score = shares * (by_share - shares @ by_share)
    by_bent = back(SCORER, bent, by_score[:, None])
    to_contexts = np.outer(shares, to_user) + back(HIDDEN, contexts, by_bent * (1 - bent**2))
    to_asked, to_known, to_told = (np.zeros_like(each) for each in (asked, known, reported))
    for attention, part in zip(attentions, parts, strict=True):
        pull = to_contexts[:, part]
        by_attention = pull @ reported[:, part].T
        by_logit = attention * (by_attention - (attention * by_attention).sum(axis=1, keepdims=True)) / np.sqrt(size)
        to_asked[:, part], to_known[:, part] = by_logit @ known[:, part], by_logit.T @ asked[:, part]
        to_told[:, part] = attention.T @ pull
    to_clicks = back(Q, clicks, to_asked) + back(K, clicks, to_known) + back(V, clicks, to_told)
    return loss, found, to_clicks, to_candidates
