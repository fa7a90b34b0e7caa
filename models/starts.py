"""Where models start, in NumPy: a first start computes it from the pool's vectors without torch."""

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

# Chosen on MIND histories with the last click held out (docs/decisions/029).
CONTEXT_SHARPNESS = 16.0  # Q = K = this * identity: a context has cosine .95 with its click; d = 1 cuts 3 channels
RIDGE = 0.05  # of the mean eigenvalue of the centroids' Gram matrix
KEY_REACH = 3.0
TINY_SPREAD = 1e-9
RECALL_HIDDEN = 128
ROTATION_SEED = 256

Weights = Mapping[str, NDArray[np.float32]]


def basic_interests(
    centroids: NDArray[np.floating], score_clip: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return keys and values [B, D] with which untrained recall is useful: every basic interest is a topic of the pool.

    centroids [B, D]: centres of topics among the pool's unit vectors. Values are the centred centroids c_i: uncentred,
    their mean would be in every reader's r^ and, with scores inside +-delta, dominate the rest. Keys are the ridge
    inverse (C C^T + rho I)^-1 C, so that sum_i <r, key_i> c_i is nearly r in the span of the topics rather than their
    covariance times r. Key scale: a centroid's largest score is KEY_REACH times delta on average; about a tenth of
    readers' scores are then clipped. Value scale: the r^ of a centroid has length 1 on average, so the unified score
    starts at the size of a cosine. Raises ValueError for values that are not finite, or centroids that are all equal.
    """
    exact = np.asarray(centroids, dtype=np.float64)
    if not np.isfinite(exact).all():
        raise ValueError("centroids must be finite")
    centred = exact - exact.mean(axis=0)
    gram = centred @ centred.T  # [B, B]
    spread = gram.diagonal().mean()  # the mean eigenvalue
    if spread < TINY_SPREAD:
        raise ValueError("centroids must differ from each other")
    keys = np.linalg.solve(gram + RIDGE * spread * np.eye(len(gram)), centred)
    reach = np.abs(exact @ keys.T).max(axis=-1).mean()
    keys = keys * (KEY_REACH * score_clip / reach)
    scores = np.exp(np.clip(exact @ keys.T, -score_clip, score_clip))
    rebuilt = scores / scores.sum(axis=-1, keepdims=True) @ centred  # [B, D]
    return keys, centred / np.linalg.norm(rebuilt, axis=-1).mean()


def basis_recall_start(centroids: NDArray[np.floating], score_clip: float, seed: int) -> Weights:
    """Return the parameters of Uni-FedRec's recall model at the cosine start, by torch name.

    They are those of `models.recall.basis.BasisRecall` after `cosine_start`: each context is near its own click, and
    all clicks of a channel have the same weight. Raises what `basic_interests` raises.
    """
    keys, values = basic_interests(centroids, score_clip)
    dim = keys.shape[1]
    sharp, same = np.eye(dim) * CONTEXT_SHARPNESS, np.eye(dim)
    start = {
        "basis_keys": keys,
        "basis_values": values,
        "attention.query.weight": sharp,
        "attention.key.weight": sharp,
        "attention.value.weight": same,
        **{f"cluster_attention.{name}": each for name, each in uniform_attention(dim, RECALL_HIDDEN, seed).items()},
    }
    return {name: np.asarray(each, dtype=np.float32) for name, each in start.items()}


def uniform_attention(dim: int, hidden_dim: int, seed: int) -> Weights:
    """Return additive attention with equal weights for all real rows, by torch name.

    The query is 0; the hidden layer is random (Xavier, uniform), so that the query has a gradient from the first step.
    """
    bound = math.sqrt(6 / (dim + hidden_dim))
    drawn = np.random.default_rng(seed).uniform(-bound, bound, size=(hidden_dim, dim))
    return {
        "hidden.weight": drawn.astype(np.float32),
        "hidden.bias": np.zeros(hidden_dim, dtype=np.float32),
        "query.weight": np.zeros((1, hidden_dim), dtype=np.float32),
        "query.bias": np.zeros(1, dtype=np.float32),
    }


def fitted_head(pooled: NDArray[np.floating], out_dim: int) -> tuple[NDArray[np.float64], float]:
    """Return a head [D, S] of the main directions of pooled states [n, S], followed by a fixed random rotation.

    Directions are those of the second moment of unit rows; rows are not centred, because centring lowers AUC. The
    rotation keeps every inner product and gives each attention head about an equal share of it. The second value is the
    share of the squared length that the head keeps. Raises ValueError for another shape, or values that are not finite.
    """
    exact = np.asarray(pooled, dtype=np.float64)
    if exact.ndim != 2 or not len(exact):
        raise ValueError(f"pooled must have shape [n, S] with n at least 1, got {exact.shape}")
    if not np.isfinite(exact).all():
        raise ValueError("pooled must be finite")
    rows = exact / np.maximum(np.linalg.norm(exact, axis=1, keepdims=True), 1e-12)
    energy, directions = np.linalg.eigh(rows.T @ rows)  # ascending
    kept = min(out_dim, exact.shape[1])
    main = directions[:, -kept:]  # [S, kept]
    largest = np.abs(main).argmax(axis=0)
    main = main * np.sign(main[largest, np.arange(kept)])  # eigenvectors have an arbitrary sign
    return rotation(out_dim)[:, :kept] @ main.T, float(energy[-out_dim:].sum() / energy.sum())


def rotation(dim: int) -> NDArray[np.float64]:
    """Return the same random orthogonal [dim, dim] matrix at every call."""
    q, r = np.linalg.qr(np.random.default_rng(ROTATION_SEED).standard_normal((dim, dim)))
    return np.asarray(q * np.sign(r.diagonal()))  # QR leaves the signs undetermined
