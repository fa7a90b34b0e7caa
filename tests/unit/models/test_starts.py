"""Starts in NumPy. Oracle: the same models in torch, started there."""

from __future__ import annotations

import math

import numpy as np
import torch

from models.builders.recall import uni_fedrec_recall
from models.starts import basis_recall_start, uniform_attention
from tests.doubles.news import synthetic_pool

HIDDEN = "cluster_attention.hidden.weight"


def test_recall_model_starts_as_in_torch_except_for_the_random_layer() -> None:
    centroids = synthetic_pool(30).vectors
    model = uni_fedrec_recall(score_clip=0.2, dim=256)
    model.cosine_start(torch.from_numpy(centroids))
    start, wanted = basis_recall_start(centroids, 0.2, seed=7), dict(model.named_parameters())
    assert start.keys() == wanted.keys()
    for name, value in start.items():
        assert value.dtype == np.float32
        assert value.shape == tuple(wanted[name].shape), name
        if name != HIDDEN:
            np.testing.assert_allclose(value, wanted[name].detach().numpy(), atol=1e-6, err_msg=name)


def test_random_layer_follows_xaviers_distribution_and_its_seed_only() -> None:
    drawn = uniform_attention(256, 128, seed=7)["hidden.weight"]
    bound = math.sqrt(6 / (256 + 128))
    assert bound * 0.999 < np.abs(drawn).max() <= bound
    assert abs(drawn.var() / (bound**2 / 3) - 1) < 0.02, "of 32,768 uniform numbers: .02 is five standard errors"
    assert (drawn == uniform_attention(256, 128, seed=7)["hidden.weight"]).all()
    assert (drawn != uniform_attention(256, 128, seed=8)["hidden.weight"]).any()
