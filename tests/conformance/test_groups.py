"""FINDING's groups in both devices: the reader's group, the ranker's scores, and the updates of both rounds.

Oracle: the Python device with its own ONNX Runtime, on the exported graphs of the ranker with groups.
"""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from backend.federation.systems import COMPOSED
from device_app.ranking.groups import GroupChoice, GroupModels, GroupRanker
from device_app.ranking.ranker import FeatureContext, Ranker
from device_app.ranking.session import GraphSession
from device_app.training.gradients import OnnxGradients
from device_app.training.samples import Samples, SampleSource
from device_app.training.tasks.full_gradient import FullGradientTask
from device_app.training.tasks.group_gradient import GroupGradientTask
from device_app.training.tasks.nearest_prototype import NearestGroupTask
from exporters.architectures import architectures
from exporters.exported import ExportedModel
from exporters.package import export_once
from exporters.parity import FULL, ONE, SOME, draw_inputs
from protocol.tensors import pack
from tests.conformance.node_end import ask_node
from tests.doubles.fixed_samples import FixedSamples
from tests.doubles.graphs import shared_graphs

GROUPS = COMPOSED["groups/secure/median"]

pytestmark = pytest.mark.node

K, CLIP, CANDIDATES = 4, 0.1, 7
FEATURES = ("section_affinity", "topic_affinity", "popularity", "recency")
Rows = NDArray[np.float32]


@pytest.fixture(scope="module")
def exported() -> tuple[ExportedModel, dict[str, Rows]]:
    """FINDING's ranker, and a batch of three samples."""
    name = str(GROUPS.architecture)
    kind = architectures()[name]
    model = kind.build()
    specs = kind.graphs(model)
    made = export_once(name, kind.kind, model, specs, shared_graphs())
    gradient = next(each for each in specs if each.purpose == "gradient")
    drawn = draw_inputs(gradient, (FULL, SOME, ONE), torch.Generator().manual_seed(3))
    return made, {name: np.ascontiguousarray(value.numpy(), dtype=np.float32) for name, value in drawn.items()}


def unit(rows: NDArray[np.float64]) -> Rows:
    return (rows / np.linalg.norm(rows, axis=-1, keepdims=True)).astype(np.float32)


def models_near(exported: ExportedModel, rng: np.random.Generator, dim: int) -> GroupModels:
    """Four groups that differ from the exported weights, and centroids of any direction."""

    def moved() -> dict[str, Rows]:
        return {
            name: (value + 0.2 * rng.normal(size=value.shape)).astype(np.float32)
            for name, value in exported.weights.items()
        }

    groups = [moved() for _ in range(K)]
    weights = {name: np.stack([each[name] for each in groups]) for name in exported.weights}
    return GroupModels(weights, unit(rng.normal(size=(K, dim))), moved(), unit(rng.normal(size=(K, dim))), moved())


def browser_input(
    exported: ExportedModel, batch: dict[str, Rows], groups: GroupModels, clicks: Rows, candidates: Rows
) -> dict[str, Any]:
    def text(content: bytes) -> str:
        return base64.b64encode(content).decode()

    return {
        "score": text(exported.graphs["score"]),
        "gradient": text(exported.graphs["gradient"]),
        "features": FEATURES,
        "groups": {name: text(pack(dict(getattr(groups, name)))) for name in ("weights", "vectors", "next_vectors")},
        "everybody": text(pack(dict(exported.weights))),
        "centroids": groups.centroids.tolist(),
        "next_centroids": groups.next_centroids.tolist(),
        "clicks": clicks.tolist(),
        "candidates": candidates.tolist(),
        "sections": [f"{at % 3}" for at in range(CANDIDATES)],
        "batch": text(pack(batch)),
        "clip": CLIP,
    }


def context() -> FeatureContext:
    sections = np.arange(CANDIDATES) % 3
    empty = np.empty(0, dtype=np.int64)
    return FeatureContext(
        sections, sections, sections[:3], empty, 1 / (1.0 + np.arange(CANDIDATES)), np.zeros(CANDIDATES)
    )


def same(found: dict[str, Any], expected: dict[str, Rows], atol: float) -> None:
    assert set(found) == set(expected)
    for name, value in expected.items():
        assert tuple(found[name]["shape"]) == value.shape, name
        np.testing.assert_allclose(found[name]["values"], value.ravel(), rtol=0, atol=atol, err_msg=name)


def test_browser_chooses_the_same_group_and_the_same_contribution_as_python(
    exported: tuple[ExportedModel, dict[str, Rows]],
) -> None:
    made, batch = exported
    rng, dim = np.random.default_rng(8), batch["clicks"].shape[2]
    source, none = (
        cast(
            SampleSource,
            FixedSamples(Samples(batch["clicks"], batch["click_mask"], batch["candidates"], batch["features"])),
        ),
        np.random.default_rng(0),
    )
    gradients = OnnxGradients(made.graphs["gradient"])
    seen = set()
    for _ in range(6):
        groups = models_near(made, rng, dim)
        clicks, candidates = unit(rng.normal(size=(5, dim))), unit(rng.normal(size=(CANDIDATES, dim)))
        ranker = GroupRanker(made.graphs["score"], groups, everybody=made.weights, name="ranker", features=FEATURES)
        choice = GroupChoice(made.graphs["score"], groups, features=len(FEATURES))
        nearest = NearestGroupTask(choice, clicks, K, dim, CLIP)
        own = GroupGradientTask(FullGradientTask(1, 8, FEATURES), groups, ranker.group(clicks), CLIP)
        (found,) = ask_node([("groups_computed", browser_input(made, batch, groups, clicks, candidates))])
        assert found["group"] == ranker.group(clicks)
        seen.add(found["group"])
        np.testing.assert_allclose(found["scores"], ranker.score(clicks, candidates, context()), rtol=0, atol=1e-5)
        nobody, empty = np.empty((0, dim), np.float32), replace(context(), clicked_sections=np.empty(0, dtype=np.int64))
        alone = Ranker(GraphSession(made.graphs["score"], made.weights), name="ranker", features=FEATURES)
        for scores in (found["without_clicks"], ranker.score(nobody, candidates, empty)):
            np.testing.assert_allclose(scores, alone.score(nobody, candidates, empty), rtol=0, atol=1e-5)
        same(found["nearest"], dict(nearest.run({}, source, gradients, none).tensors), 1e-6)
        gradient = dict(own.run({}, source, gradients, none).tensors)
        same(found["gradient"], gradient, 1e-6)
        assert gradient["members"][found["group"]] == np.float32(CLIP / 2)
        assert found["shapes"] == [
            {name: list(shape) for name, shape in task.shapes({}).items()} for task in (nearest, own)
        ]
    assert len(seen) > 1, "readers of several groups"
