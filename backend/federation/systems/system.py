"""The complete description of a system as one immutable value, without flags or branches."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from backend.federation.optimizers import MemoryOptimizer
from backend.federation.protections.registry import resolve
from backend.federation.strategies.joined_sums import JoinOfSums
from backend.federation.strategies.robust_mean import Centre
from backend.federation.strategies.strategy import IfFailed, RoundRequest, Strategy
from protocol.protections import Protection

OFFERS_OF_SUMS = 1.3
ChangedState = Literal["release", "counts"]
"""What rounds change. release: all published tensors at once, because a release is signed as a whole, directly follows
the one its round was opened on, and is scored against it; two rounds side by side would undo each other's training.
counts: the tables of private counts, which share no tensor with a release.
"""


@dataclass(frozen=True)
class GateRound:
    """The round in which devices score a ranker after training, while the release gate is on.

    Args:
        system: the gate's name among the systems.
        cohort_limit: the most votes that its sum can hold.
        seconds_minimum: the shortest time for votes, since devices have to fetch the new release before they can
            score it.
    """

    system: str
    cohort_limit: int
    seconds_minimum: float

    def after(self, request: RoundRequest) -> RoundRequest:
        """Return its request after a round opened by `request`, with the same cohort, at least 2."""
        cohort = min(request.cohort, self.cohort_limit)
        return replace(
            request,
            system=self.system,
            cohort=cohort,
            cohort_minimum=min(max(2, request.cohort_minimum), cohort),
            seconds=max(request.seconds, self.seconds_minimum),
        )


@dataclass(frozen=True)
class SystemSpec:
    """Everything that defines a system.

    Each name is looked up in one dict, here or on the device.

    Args:
        name: the name in rounds, on pages and on the command line.
        task: what a device computes.
        protection: what a device does to its update before sending it.
        strategy: what a round asks for, and what it does with the sum.
        architecture: name of the task's model (ModelEntry.architecture).
        model: key of that model in ReleaseManifest.models; None for a task without a model, or if the plan names
            it.
        graph: purpose of the graph that the model must have.
        optimizer: the server's optimizer, if there is one.
        negatives: K, the negatives that the device samples for each positive.
        samples_limit: most samples of one device in one round.
        begins_with: the system whose round comes first and orders this one's; a request for this system opens that.
        centre: a robust mean for updates under local noise; None: the plain mean.
        join: how to split the cohort into groups with sums of their own and join these; None: one sum.
        over_selection: places for each wanted update; None: as many as the protection makes harmless (`offers`).
        participation: r, the share of the waiting devices in a round without a requested number; None: the default
            number.
        dropout: share of inputs dropped during training on the device, if the task has it (`RoundManifest.dropout`).
        if_failed: the effect on the release if such a round fails or can't be opened; None: nothing.
        changes: the state that its rounds read and then write. Rounds that change the same state never overlap:
            they queue.
        gate: the round that scores a ranker's new weights while the release gate is on; None for a system that
            trains no ranker.
    """

    name: str
    task: str
    protection: Protection
    strategy: Strategy
    architecture: str | None = None
    model: str | None = None
    graph: str = "gradient"
    optimizer: MemoryOptimizer | None = None
    negatives: int = 1
    samples_limit: int = 32
    begins_with: str | None = None
    centre: Centre | None = None
    join: JoinOfSums | None = None
    over_selection: float | None = None
    participation: float | None = None
    dropout: float = 0.0
    if_failed: IfFailed | None = None
    gate: GateRound | None = None
    changes: ChangedState = "release"

    def __post_init__(self) -> None:
        if self.centre is not None and resolve(self.protection).summed:
            raise ValueError("centre: nobody sees the updates of a secure sum, so there is no robust mean of them")
        if self.join is not None and resolve(self.protection).radius is None:
            raise ValueError("join: only secure sums of clipped vectors have bounds that a group's sum is held to")

    @property
    def offers(self) -> float:
        """Places for each wanted update, to make up for devices that drop out.

        1 under local noise: an update after the cohort is complete would have cost its reader privacy for nothing, so
        it is better to wait until the deadline. 1.3 for secure sums: devices that come too late are refused with their
        keys, before they pay anything; the cohort itself stays as large as the terms say.
        """
        if self.over_selection is not None:
            return self.over_selection
        return OFFERS_OF_SUMS if resolve(self.protection).summed else 1.0
