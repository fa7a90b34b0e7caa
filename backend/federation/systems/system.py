"""A whole system as one frozen value: no flags, no branches."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from backend.federation.optimizers import MemoryOptimizer
from backend.federation.protections.registry import resolve
from backend.federation.strategies.joined_sums import JoinOfSums
from backend.federation.strategies.robust_mean import Centre
from backend.federation.strategies.strategy import IfFailed, RoundRequest, Strategy
from device_app.wire.protections import Protection

OFFERS_OF_SUMS = 1.3
ChangedState = Literal["release", "counts"]
"""What rounds change. release: all published tensors at once, since a release is signed whole, is the next one of the
release its round was opened on, and is scored against that; two trained side by side would each undo the other. counts:
the tables of private counts, in which no tensor of a release is read or written."""


@dataclass(frozen=True)
class GateRound:
    """The round by which devices score what a round has made of a ranker, while the release gate is on.

    Args:
        system: the gate's name among the systems.
        cohort_limit: votes that its sum has room for.
        seconds_minimum: the shortest time for its votes, since devices have to take the new release before they can
            score it.
    """

    system: str
    cohort_limit: int
    seconds_minimum: float

    def after(self, request: RoundRequest) -> RoundRequest:
        """Its request after a round opened by `request`: a cohort like the one that made the weights, two at least."""
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
    """Everything that makes a system: each name is resolved in one dict, here or on the device.

    Args:
        name: what rounds, pages and the command call it.
        task: what a device computes.
        protection: what a device does to its update before it leaves.
        strategy: what a round asks for, and what becomes of the sum.
        architecture: of the model that the task is about (ModelEntry.architecture).
        model: key of that model in ReleaseManifest.models; None for a task of no model, or one the plan names.
        graph: purpose of the graph that the model must have.
        optimizer: the server's step, where there is one.
        negatives: K, sampled by the device for each positive.
        samples_limit: most samples of one device in one round.
        begins_with: the system whose round comes first and orders this one's; who asks for this one opens that.
        centre: a robust mean, where updates come under local noise; None for the mean itself.
        join: how groups of the cohort are summed apart and joined; None for one sum.
        over_selection: offers for each wanted update; None for what the protection makes harmless (`offers`).
        participation: r, the share of the waiting devices in a round for which nobody has said how many; None: the
            usual number.
        dropout: of the inputs of a device's training, where its task has such (`RoundManifest.dropout`).
        if_failed: what becomes of the release where such a round fails or can't be opened; None: nothing.
        changes: what its rounds read and then write. Rounds that change the same never overlap: they queue.
        gate: the round that scores a ranker's new weights while the release gate is on; None for a system that trains
            no ranker.
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
        """Offers for each wanted update, which make up for devices that vanish.

        1 under local noise: an update that comes after the cohort is complete has cost its reader privacy for nothing,
        and the deadline is the kinder way. 1.3 for secure sums: who comes too late is turned away with its keys, before
        anything is paid; the cohort itself stays as large as the terms say.
        """
        if self.over_selection is not None:
            return self.over_selection
        return OFFERS_OF_SUMS if resolve(self.protection).summed else 1.0
