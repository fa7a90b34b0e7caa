"""Trains the basis that reports refer to, and votes on a drafted basis, from the reader's clicks.

Both tasks evaluate the list that the server would return for the reader's report, in expectation over the K reports
that randomised response may send. No report is sent for this, and only the clipped result leaves the device, in a sum.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from device_app.errors import GraphMismatch, NotEligible
from device_app.privacy.mechanisms.code import nearest
from device_app.privacy.reporter import user_vector
from device_app.ranking.session import costs_of
from device_app.training.gradients import Batch, GradientFn, OnnxGradients, Params
from device_app.training.samples import Samples, SampleSource
from device_app.training.tasks.task import Shapes, TaskInputs, Update, gradient_shapes, pooled_gradient
from protocol.recall import BASIS, BEFORE, GRAPH, STEPS, ReportLists, report_chances
from protocol.ring import SHAPES, written
from protocol.tensors import TensorError


@dataclass(frozen=True)
class BasisGradientTask:
    """dL_u/d(steps) [K, m] of the mean loss over the reader's clicks, at the round's basis.

    Args:
        lists: the round's basis.
        epsilon: cost of a report.
        graph: the gradient graph.
        negatives: drawn but not used, since the whole pool takes their place.
        samples_limit: the maximum number of clicks used.
    """

    lists: ReportLists
    epsilon: float
    graph: GradientFn
    negatives: int
    samples_limit: int

    @property
    def start(self) -> Params:
        """Return the parameters that the round starts from."""
        return {STEPS: np.zeros((self.lists.size, len(self.lists.axes)), dtype=np.float32)}

    def shapes(self, params: Params) -> Shapes:
        """Return the shapes: one matrix."""
        return gradient_shapes(self.start)

    def run(self, params: Params, samples: SampleSource, grad: GradientFn, rng: np.random.Generator) -> Update:
        """Return the reader's gradient. Raises ValueError if there are no samples."""
        drawn = samples.draw(negatives=self.negatives, limit=self.samples_limit, rng=rng)
        lists = self.lists
        common = {
            "basis": lists.prototypes,
            "axes": lists.axes,
            "log_normalisers": lists.log_normalisers,
            "slopes": lists.slopes,
            "chances": report_chances(lists.size, self.epsilon).astype(np.float32),
            "log_posterior": lists.log_posterior(self.epsilon).astype(np.float32),
        }

        def batch(rows: slice) -> Batch:
            return {
                "clicks": drawn.clicks[rows],
                "click_mask": drawn.click_mask[rows],
                "clicked": drawn.candidates[rows, 0],
                **common,
            }

        return pooled_gradient(len(drawn), batch, self.start, self.graph)


@dataclass(frozen=True)
class BasisVoteTask:
    """Compares a drafted basis with the current one by the held-out clicks in the lists for the reader's report.

    The result is three bounded numbers. A click's standing is the logistic of its expected lift over the popular list,
    sum_y P(y | k) log(P(i | y) / pop(i)), k being the basic interest nearest to the clicks before it: .5 if the report
    gains nothing.

    Args:
        lists, before: those of the drafted basis, and of the current one.
        epsilon: cost of a report.
        negatives, samples_limit: the same as for the gradient.
    """

    lists: ReportLists
    before: ReportLists
    epsilon: float
    negatives: int
    samples_limit: int

    def shapes(self, params: Params) -> Shapes:
        """Return the shapes: three numbers."""
        return SHAPES

    def run(self, params: Params, samples: SampleSource, grad: GradientFn, rng: np.random.Generator) -> Update:
        """Return the device's numbers. Raises ValueError if there are no samples."""
        drawn = samples.draw(negatives=self.negatives, limit=self.samples_limit, rng=rng)
        numbers = written(*(standing(lists, drawn, self.epsilon) for lists in (self.lists, self.before)))
        return Update({name: np.array([each], np.float32) for name, each in numbers.items()}, 0.0, len(drawn))


def standing(lists: ReportLists, drawn: Samples, epsilon: float) -> float:
    """Return the mean standing over clicks, from 0 to 1."""
    histories = zip(drawn.clicks, drawn.click_mask, strict=True)
    true = [nearest(lists.prototypes, user_vector(clicks[mask > 0])) for clicks, mask in histories]
    chances = report_chances(lists.size, epsilon)[true]  # [n, K]
    lifts: NDArray[np.float64] = (chances * lists.lifts(drawn.candidates[:, 0], epsilon)).sum(axis=1)
    return float(np.mean(1 / (1 + np.exp(-lifts))))


def basis_gradient_task(inputs: TaskInputs) -> BasisGradientTask:
    """Make the task with the round's graph. Raises NotEligible if the round's data are invalid."""
    graph = inputs.materials(GRAPH)
    try:
        costs_of(graph)
    except GraphMismatch as broken:
        raise NotEligible(f"the round's graph is malformed: {broken}") from broken
    lists = _lists(inputs, BASIS)
    return BasisGradientTask(
        lists, _epsilon(inputs, lists), OnnxGradients(graph), inputs.manifest.negatives, inputs.manifest.samples_limit
    )


def basis_vote_task(inputs: TaskInputs) -> BasisVoteTask:
    """Make the task for the drafted basis and the current one.

    Raises NotEligible if the round's data are invalid."""
    lists, before = _lists(inputs, BASIS), _lists(inputs, BEFORE)
    if lists.size != before.size:
        raise NotEligible(f"the draft has {lists.size} basic interests, but the current codebook has {before.size}.")
    return BasisVoteTask(
        lists, before, _epsilon(inputs, lists), inputs.manifest.negatives, inputs.manifest.samples_limit
    )


def _lists(inputs: TaskInputs, material: str) -> ReportLists:
    try:
        lists = ReportLists.unpack(inputs.materials(material))
    except TensorError as broken:
        raise NotEligible(f"the round's basis is damaged: {broken}") from broken
    if lists.prototypes.shape[1] != inputs.release.manifest.dimensions:
        found, wanted = lists.prototypes.shape[1], inputs.release.manifest.dimensions
        raise NotEligible(f"its basis has {found} dimensions, news vectors have {wanted}.")
    return lists


def _epsilon(inputs: TaskInputs, lists: ReportLists) -> float:
    """Return the epsilon of a report with a codebook of that size, as the release states it."""
    book = inputs.release.manifest.recall.codebook(lists.size)
    if book is None:
        raise NotEligible(f"the release has no codebook of {lists.size} basic interests.")
    return book.epsilon
