"""A ranker of views in both devices. Oracle: the Python device's ranker, which its own tests compare with torch."""

from __future__ import annotations

import base64
from typing import cast

import numpy as np
import pytest
from numpy.typing import NDArray

from device_app.ranking.views_ranker import ReaderViews, ViewsRanker
from device_app.training.gradients import BoundGraph, GradientFn
from device_app.training.samples import Samples, SampleSource
from device_app.training.tasks.evaluate import EvaluateTask
from protocol.tensors import pack
from tests.conformance.node_end import ask_node
from tests.doubles.fixed_samples import FixedSamples
from tests.doubles.view_graph import towers_of_views, view_model

pytestmark = pytest.mark.node

DIM = 8


@pytest.mark.parametrize("semi", [True, False], ids=["private towers", "shared towers"])
def test_browser_ranks_by_the_mean_of_the_same_probabilities(semi: bool) -> None:
    rng = np.random.default_rng(4)
    candidates, clicks = rng.normal(size=(2, 30, DIM)).astype(np.float32)
    model = view_model(DIM, semi=semi)
    weights = model.shared if semi else towers_of_views(DIM)
    seen, nothing = [], np.zeros((0, DIM), np.float32)
    for rows, searched in (
        (clicks[:7], clicks[8:9]),
        (clicks[:7], nothing),
        (nothing, clicks[8:9]),
        (nothing, nothing),
    ):
        python = ViewsRanker(model.graphs["score"], weights, name="ranker", views=ReaderViews(searched=searched))
        asked = {
            "score": base64.b64encode(model.graphs["score"]).decode(),
            "weights": base64.b64encode(pack(dict(weights))).decode(),
            "clicks": rows.tolist(),
            "searched": searched.tolist(),
            "candidates": candidates.tolist(),
        }
        (found,) = ask_node([("views_scored", asked)])
        np.testing.assert_allclose(found, python.score(rows, candidates), rtol=0, atol=1e-5)
        seen.append(found)
    assert not np.any(seen[-1])
    assert all(np.abs(np.subtract(seen[0], other)).max() > 1e-3 for other in seen[1:])


@pytest.mark.parametrize("semi", [True, False], ids=["private towers", "shared towers"])
def test_browser_scores_a_views_ranker_like_python(semi: bool) -> None:
    rng = np.random.default_rng(5)
    model = view_model(DIM, semi=semi)
    weights = dict(model.shared if semi else towers_of_views(DIM))
    before = {name: (each + rng.normal(size=each.shape)).astype(np.float32) for name, each in weights.items()}
    mask = np.zeros((20, 50))
    mask[:, 44:] = 1
    clicks, candidates = rng.normal(size=(20, 50, DIM)), rng.normal(size=(20, 6, DIM))
    batch: dict[str, NDArray[np.float64]] = {
        "clicks": clicks * mask[:, :, None],
        "click_mask": mask,
        "candidates": candidates,
    }
    given = {name: each.astype(np.float32) for name, each in batch.items()}
    samples = cast(SampleSource, FixedSamples(Samples(**given)))
    graph = BoundGraph(model.graphs["score"], threads=1, private=model.private)
    task = EvaluateTask(lambda params, rows: graph(params, **rows)["scores"], before, 5, 20)
    expected = task.run(weights, samples, cast(GradientFn, None), rng).tensors
    contents = {"weights": pack(weights), "before": pack(before), "batch": pack(given), "score": model.graphs["score"]}
    asked = {name: base64.b64encode(each).decode() for name, each in contents.items()}
    (found,) = ask_node([("ranker_evaluated", asked)])
    assert {name: each["values"] for name, each in found.items()} == {
        name: pytest.approx(each.tolist(), abs=1e-6) for name, each in expected.items()
    }
    assert any(np.any(each) for each in expected.values())
