"""The presets `finding` and `finding_naml` from samples to the models of all groups.

Oracle: the paper's Algorithm 1 and eqs. 1a and 4 to 7 in NumPy, in float64, with Adam as Kingma and Ba publish it. The
paper doesn't say what happens to Adam's moments when models are interpolated; its code interpolates them, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from backend.federation.bounded_mean import Aggregate
from backend.federation.grouping import Models, interpolated
from backend.federation.strategies.grouped import Clustering, Grouped
from backend.federation.systems import COMPOSED
from device_app.ranking.groups import GroupModels
from device_app.training.gradients import OnnxGradients
from device_app.training.samples import ReaderSamples
from device_app.training.tasks.full_gradient import FullGradientTask
from device_app.training.tasks.group_gradient import GroupGradientTask
from exporters.graphs import ranker_graphs
from models.rankers import RANKERS
from models.shapes import NEWS_DIM
from protocol.protections import SecureSum
from tests.doubles.graphs import kept_graph
from tests.doubles.nrms_paper import Floats, nrms_gradient
from tests.doubles.secure_sums import cohort, run_sum
from tests.doubles.split_world import DIM, news_model, parameters, readers, token_states, user_model

PUBLISHED = COMPOSED["finding"]
ETA, ALPHA, BETA, N, K, T = 1e-4, 1.0003, 0.5, 5, 8, 500
LAYER = {"attention": 3, "pooling": 4}
"""i: below them are the paper's word embedding, self-attention and attention of the news encoder."""
SHIFTS = ("attention.key.bias", "pooling.query.bias")
"""Each adds the same to all scores of a softmax, so its gradient is zero. Adam divides what rounding leaves of it by
its own size, so only the gradient is compared.
"""
HEADS, ROUNDS = 4, 3
GROUP_OF = (0, 1, 1, 5, 0)
"""m: the readers' groups; nobody is in the others."""


@dataclass
class PaperModel:
    """Weights w with Adam's moments m and v and its number of steps."""

    w: dict[str, Floats]
    m: dict[str, Floats] = field(default_factory=dict)
    v: dict[str, Floats] = field(default_factory=dict)
    steps: int = 0

    def step(self, gradient: Mapping[str, Floats]) -> PaperModel:
        steps, w, m, v = self.steps + 1, {}, {}, {}
        for name, g in gradient.items():
            m[name] = 0.9 * self.m.get(name, 0.0) + 0.1 * g
            v[name] = 0.999 * self.v.get(name, 0.0) + 0.001 * g**2
            w[name] = self.w[name] - ETA * (m[name] / (1 - 0.9**steps)) / (np.sqrt(v[name] / (1 - 0.999**steps)) + 1e-8)
        return PaperModel(w, m, v, steps)

    def towards(self, shared: PaperModel, t: int) -> PaperModel:
        """Line 7: w' = lambda w + (1 - lambda) w_g, lambda = (1 - alpha^-t) ((i + 1) / N)^beta."""

        def mixed(mine: Mapping[str, Floats], theirs: Mapping[str, Floats]) -> dict[str, Floats]:
            found = {}
            for name in theirs:
                share = (1 - ALPHA**-t) * ((LAYER[name.split(".")[0]] + 1) / N) ** BETA
                found[name] = share * mine.get(name, np.zeros(())) + (1 - share) * theirs[name]
            return found

        # Moments of a group that had no reader yet are zeros.
        mean = np.mean([(1 - ALPHA**-t) * ((i + 1) / N) ** BETA for i in LAYER.values()])
        steps = round(float(mean * self.steps + (1 - mean) * shared.steps))
        return PaperModel(mixed(self.w, shared.w), mixed(self.m, shared.m), mixed(self.v, shared.v), steps)


def moved() -> dict[str, NDArray[np.float32]]:
    """Return weights far from the start, where the pooling's gradients are so small that Adam enlarges rounding."""
    draw = np.random.default_rng(6)
    return {
        name: (value + 0.5 * draw.normal(size=value.shape)).astype(np.float32)
        for name, value in sorted(parameters(user_model()).items())
    }


def compared(model: PaperModel) -> dict[str, Floats]:
    return {name: value for name, value in model.w.items() if name not in SHIFTS}


def paper_round(
    shared: PaperModel, groups: list[PaperModel], t: int, drawn: list[Any]
) -> tuple[PaperModel, list[PaperModel]]:
    """Run lines 6 to 14: every reader's gradient at its group's interpolated model, weighted by |d_i|."""
    groups = [each.towards(shared, t) for each in groups]
    sums: dict[int | None, dict[str, Floats]] = {}
    sizes: dict[int | None, int] = {}
    for samples, group in zip(drawn, GROUP_OF, strict=True):
        for clicks, mask, candidates in zip(samples.clicks, samples.click_mask, samples.candidates, strict=True):
            read, offered = clicks[mask > 0].astype(np.float64), candidates.astype(np.float64)
            _, found, _, _ = nrms_gradient(groups[group].w, read, offered, HEADS)
            for where in (group, None):
                sizes[where] = sizes.get(where, 0) + 1
                total = sums.setdefault(where, {name: np.zeros_like(value) for name, value in found.items()})
                for name, value in found.items():
                    total[name] += value
    means = {where: {name: each / sizes[where] for name, each in total.items()} for where, total in sums.items()}
    return shared.step(means[None]), [each.step(means[at]) if at in means else each for at, each in enumerate(groups)]


@pytest.fixture(scope="module")
def cohort_of_five() -> list[ReaderSamples]:
    return readers(news_model()(*token_states()).detach().numpy().astype(np.float32))


def test_rounds_follow_algorithm_1_from_samples_to_models(cohort_of_five: list[ReaderSamples]) -> None:
    strategy, protection, optimizer = PUBLISHED.strategy, PUBLISHED.protection, PUBLISHED.optimizer
    assert isinstance(strategy, Grouped)
    assert isinstance(protection, SecureSum)
    assert optimizer is not None
    spec = next(each for each in ranker_graphs(user_model()) if each.purpose == "gradient")
    graph = OnnxGradients(kept_graph(user_model(), spec))
    start = {name: value.astype(np.float64) for name, value in moved().items()}
    shared, groups = PaperModel(start), [PaperModel(start) for _ in range(K)]
    # What the devices have: float32, interpolated for the round that they train in.
    ours = Models.alike(moved(), K)
    ours = interpolated(ours, strategy.layers, strategy.personalisation.coefficients(1, strategy.layers))
    for t in range(1, ROUNDS + 1):
        blocks = {name: np.stack([each.weights[name] for each in ours.groups]) for name in start}
        of_device = GroupModels(blocks, np.eye(K, DIM, dtype=np.float32), {}, np.eye(K, DIM, dtype=np.float32), {})
        task = FullGradientTask(PUBLISHED.negatives, PUBLISHED.samples_limit)
        updates = [
            GroupGradientTask(task, of_device, group, protection.clip).run(
                moved(), reader, graph, np.random.default_rng((t, seed))
            )
            for seed, (reader, group) in enumerate(zip(cohort_of_five, GROUP_OF, strict=True))
        ]
        shapes = {name: each.shape for name, each in updates[0].tensors.items()}
        coordinates = sum(each.size for each in updates[0].tensors.values())
        terms = protection.terms("round-1", cohort=5, cohort_minimum=2, coordinates=coordinates)
        layout = protection.layout(shapes, terms)
        server, devices = cohort(terms)
        for device, update in zip(devices, updates, strict=True):
            device.vector = layout.encode(update.tensors, update.samples)
        total = Aggregate.of_opened(layout.sums(run_sum(server, devices, {}).vector))
        for name in SHIFTS:
            np.testing.assert_allclose(total.mean()[f"g.{name}"], 0.0, rtol=0, atol=1e-7, err_msg=name)
        ours, members = strategy.advance(ours, total, protection, optimizer)

        drawn = [
            reader.draw(negatives=4, limit=1_024, rng=np.random.default_rng((t, seed)))
            for seed, reader in enumerate(cohort_of_five)
        ]
        shared, groups = paper_round(shared, groups, t, drawn)
        sizes = np.bincount(GROUP_OF, weights=[len(each) for each in drawn], minlength=K)
        np.testing.assert_allclose(members, sizes, rtol=0, atol=1e-6, err_msg="|d_i| by group")
        for name, value in compared(shared).items():
            np.testing.assert_allclose(
                ours.shared.weights[name], value, rtol=0, atol=1e-6, err_msg=f"{name}, round {t}"
            )
        # Ours are interpolated already for the next round.
        for group, each in enumerate(groups):
            for name, value in compared(each.towards(shared, t + 1)).items():
                np.testing.assert_allclose(
                    ours.groups[group].weights[name],
                    value,
                    rtol=0,
                    atol=1e-6,
                    err_msg=f"{name}, group {group}, round {t}",
                )


@pytest.mark.parametrize(("name", "depth", "trained"), [("finding", 5, (0.8944, 1.0)), ("finding_naml", 4, (1.0,))])
def test_settings_are_those_of_section_5_1_3(name: str, depth: int, trained: tuple[float, ...]) -> None:
    """Oracles: lambda = (1 - 1.0003^-t) ((i + 1) / N)^0.5, K = 8, T = 500; N of NRMS is 5 and of NAML 4."""
    spec = COMPOSED[name]
    assert isinstance(spec.strategy, Grouped)
    layers, rule = spec.strategy.layers, spec.strategy.personalisation
    assert (spec.strategy.recluster_every, spec.strategy.as_published, layers.depth) == (T, True, depth)
    for t in (1, 500, 12_000):
        share = 1 - ALPHA**-t
        assert rule.coefficients(t, layers) == pytest.approx([share * each for each in trained], abs=1e-4)
    assert spec.model is not None
    assert RANKERS[spec.model].groups == K
    model = RANKERS[spec.model].build(NEWS_DIM)
    assert {layers.place(each) for each, _ in model.named_parameters()} == set(range(len(layers)))
    clustering = COMPOSED[spec.strategy.clustering]
    assert (clustering.model, clustering.architecture, clustering.task) == (
        spec.model,
        spec.architecture,
        "nearest_group",
    )
    assert isinstance(clustering.strategy, Clustering)
    assert clustering.strategy.iterations > 1, "K-means, not one step of it"
