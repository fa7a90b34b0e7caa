"""FedAvg with one gradient per device (FedSGD), then one step of the server's optimizer.

The gradient is G = mean_u G_u.

Source: Uni-FedRec, section 3.5. Every device has the same weight, however much its reader has read, so the mean is over
devices and not over samples. The server adds no noise: the devices did.

FedNewsRec and Efficient-FedRec (eqs. 6 and 4) weight devices by n_u. Under local noise the server then sees n_u, how
much a reader has read, in clear; only the preset `fednewsrec` does that (`LocalLaplace.weight_limit`). A plain mean
needs no n_u, limits every device's influence equally, and has the least noise for a cohort: the standard deviation of
the weighted mean is sqrt(n sum p_u^2) times as large. Weights belong in a secure sum, where n_u is one more summed
number.

`MultiView` is the server's side of FL-MV-DSSM: FedAvg of the shared parameters, with the settings of every view.

The robust means are those that few malicious clients can't move far, if the server sees single updates, as in rounds
under local noise. The cost is low: Laplace noise is far longer than any clipped gradient, and for such
noise the coordinate median has less variance than the mean (b^2/n instead of 2 b^2/n for many updates; .59 of it for
60), and the trimmed mean without a tenth at each end has .76 of it. As long as the noise dominates, both still point
where the mean of the gradients points, to first order in clip/scale. If it doesn't, a coordinate in which few readers
have a gradient is drawn towards zero: what only a minority reads is then left out as if it were malicious. That is the
cost.

The protection: an update may have values up to theta + 60 lambda. If a tenth of a cohort sends these, the mean moves by
six scales, the median by .13 scales, and the trimmed mean by .3. Malicious updates that look like noise are not
stopped: a tenth that all add one scale in one direction moves each of the means by about a tenth of a scale. All
updates must be in memory at once, where a sum needs one at a time. In a secure sum nobody sees single updates: there
groups of the cohort are joined instead (`joined_sums`).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from backend.federation.bounded_mean import PREFIX, Aggregate, Shapes, gradient_shapes
from backend.federation.optimizers import Optimizer, Weights
from backend.federation.strategies.strategy import FederatedSystem, Plan, RoundContext, RoundResult
from protocol.rounds import RoundManifest

STACK_LIMIT_BYTES = 512 * 1024 * 1024


class Centre(Protocol):
    """Reduces many values of each coordinate to one."""

    def __call__(self, stack: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
        """Return the centre of a stack: [n, ...] -> [...]."""


@dataclass(frozen=True)
class Median:
    """The coordinate median (Yin et al. 2018)."""

    def __call__(self, stack: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
        """Return the median; for an even number of values, the mean of the middle two."""
        return np.asarray(np.median(stack.astype(np.float64), axis=0))


@dataclass(frozen=True)
class TrimmedMean:
    """The coordinate-wise mean without a share of the values at each end."""

    share: float = 0.1

    def __post_init__(self) -> None:
        if not 0 <= self.share < 0.5:
            raise ValueError(f"share: must be at least 0 and below 0.5, got {self.share}")

    def __call__(self, stack: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
        """Return the trimmed mean.

        The number cut off at each end is rounded up to cover the whole share.
        """
        cut = min(int(np.ceil(self.share * len(stack))), (len(stack) - 1) // 2)
        ordered = np.sort(stack.astype(np.float64), axis=0)
        return np.asarray(ordered[cut : len(stack) - cut].mean(axis=0))


class Stacked(Aggregate):
    """Stores all updates; `mean` is the centre of each coordinate, `sums` that times the count."""

    def __init__(self, shapes: Shapes, centre: Centre) -> None:
        super().__init__({})
        self._shapes, self._centre = dict(shapes), centre
        self._updates: list[Mapping[str, NDArray[np.float32]]] = []

    def add(self, update: Mapping[str, NDArray[np.float32]], weight: int = 1) -> None:
        """Keep one update, which must already have been validated. Raises ValueError for a weight other than 1."""
        if weight != 1:
            raise ValueError(f"weight: a robust mean gives all devices equal weight, got {weight}")
        self._updates.append(update)
        self.count += 1

    def mean(self) -> dict[str, NDArray[np.float64]]:
        """Return the centre of the updates. Raises ValueError if there are none."""
        if self.count == 0:
            raise ValueError("count: the centre of zero updates is not defined")
        return {name: self._centre(np.stack([each[name] for each in self._updates])) for name in self._shapes}

    def sums(self) -> dict[str, NDArray[np.float64]]:
        """Return what the updates would sum up to if each were the centre."""
        return {name: self.count * each for name, each in self.mean().items()}


@dataclass(frozen=True)
class FedAvg:
    """Uses the mean of the updates as the gradient.

    Args:
        follow: the system whose round comes next; None: none.
    """

    follow: str | None = field(default=None, kw_only=True)

    def plan(self, system: FederatedSystem, context: RoundContext) -> Plan:
        """Ask for a gradient for every shared parameter of the system's model."""
        assert system.model is not None
        return Plan(gradient_shapes(context.releases.weights(context.release, system.model)))

    def conclude(
        self, system: FederatedSystem, total: Aggregate, context: RoundContext, manifest: RoundManifest
    ) -> RoundResult:
        """Return the model's new weights and the optimizer's state."""
        assert system.model is not None
        assert system.optimizer is not None
        weights = context.releases.weights(context.release, system.model)
        stepped, memory = system.optimizer.advance(weights, self.gradient(total), context.memory)
        following = None if self.follow is None else replace(context.request, system=self.follow)
        return RoundResult(weights={system.model: stepped}, memory=memory, next=following)

    def gradient(self, total: Aggregate) -> dict[str, NDArray[np.float64]]:
        """Return the gradient by parameter name."""
        return {name.removeprefix(PREFIX): mean for name, mean in total.mean().items()}

    def apply(self, total: Aggregate, weights: Weights, optimizer: Optimizer) -> dict[str, NDArray[np.float32]]:
        """Return only the new weights, for rounds outside a server; `weights` are not modified."""
        return optimizer.step(weights, self.gradient(total))


@dataclass(frozen=True)
class MultiView(FedAvg):
    """FL-MV-DSSM: averages the views' gradients by the round's secure sum.

    That sum is the paper's `remote_secure_aggregate`. The views' settings travel to devices as the round's material
    `views`, an extra file of the round (see `Plan.materials`). Private parameters (SEMI's user towers) are in no
    release and therefore in no plan; shared user towers (one in FL-DSSM, one for each view in FL-MV-DSSM) are trained
    like the item tower. The mean of a view's tower is over all devices, including those without that view, since a sum
    does not reveal which devices have it.

    Args:
        views: which views of a device take part; FL-DSSM has one.
        clip: C of every view's gradient.
        sigma: noise multiplier of every view.
        tower_rate: learning rate of a view's own user tower.
        at_once: |B_v|, how many of a device's views a round draws; None: all, as in the paper's experiments.
    """

    views: tuple[Literal["reading", "searches"], ...] = ("reading", "searches")
    clip: float = 0.5
    sigma: float = 1.0
    tower_rate: float = 0.2
    at_once: int | None = None

    def plan(self, system: FederatedSystem, context: RoundContext) -> Plan:
        """Ask for FedAvg's gradients, with the material `views`."""
        return replace(super().plan(system, context), materials={"views": context.releases.add_blob(self.terms())})

    def terms(self) -> bytes:
        """Return the material: the settings of the views on every device, as JSON."""
        terms = {"views": self.views, "clip": self.clip, "sigma": self.sigma, "tower_rate": self.tower_rate}
        if self.at_once is not None:
            terms["at_once"] = self.at_once
        return json.dumps(terms, sort_keys=True).encode()
