"""The server's half of a system: what a round asks for, and what it does with the sum."""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from backend.embedding.batch_executor import HERE, ExecutorSettings
from backend.federation.bounded_mean import Aggregate
from backend.federation.optimizers import Memory, MemoryOptimizer
from backend.popularity.store import HALF_LIFE_HOURS
from backend.releases.blobs import ReleaseDraft
from backend.releases.store import ReleaseStore
from protocol.ids import ReleaseId
from protocol.protections import Protection
from protocol.releases import BlobRef, ReleaseManifest
from protocol.rounds import RoundManifest


@dataclass(frozen=True)
class RoundRequest:
    """A round to be opened: by the operator, by the schedule, or by the end of another round.

    participation: a share of the devices that wait when the round opens, in place of a number; cohort and admission
    then follow from it, and cohort_minimum is at most that cohort.
    """

    system: str
    cohort: int
    cohort_minimum: int
    seconds: float
    admission: float = 1.0
    participation: float | None = None

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        return cls(**json.loads(text))


@dataclass(frozen=True)
class PreviousRound:
    """The ended round that this one follows."""

    request: RoundRequest
    manifest: RoundManifest
    facts: Mapping[str, Any]
    published: ReleaseId | None
    survivors: int | None


@dataclass(frozen=True)
class RoundContext:
    """Everything that a strategy may read.

    Args:
        release: the release that the round was opened on.
        request: the request that opened the round.
        releases: weights and blobs; a strategy may add blobs but does not publish.
        engine: pool and tables, for reading.
        clock: returns the time with its zone.
        data_dir: the server's folder.
        past: the round that this one follows.
        held_out: share of its samples that a device reserves for the release gate; 0 if the gate is off.
        memory: the optimizer's state after the last applied round of this system.
        counts_half_life_hours: half-life of the private counts by which popularity is raised.
        executor: computes batches of titles.
    """

    release: ReleaseManifest
    request: RoundRequest
    releases: ReleaseStore
    engine: Engine
    clock: Callable[[], datetime]
    data_dir: Path
    past: PreviousRound | None = None
    held_out: float = 0.0
    memory: Memory = field(default_factory=Memory)
    counts_half_life_hours: float = HALF_LIFE_HOURS
    executor: ExecutorSettings = HERE


@dataclass(frozen=True)
class Plan:
    """What a round asks of devices.

    Args:
        shapes: shape of every float32 tensor of an update, by tensor name (`g.<parameter>` for gradients).
        materials: blobs that devices fetch in addition to the release, the same for every device.
        model: the release's model that the task uses, if the system leaves it open.
    """

    shapes: Mapping[str, tuple[int, ...]]
    materials: Mapping[str, BlobRef] = field(default_factory=dict)
    model: str | None = None


@dataclass(frozen=True)
class RoundResult:
    """The result of a round, written in one transaction.

    Args:
        weights: weights by model, published as the next release.
        draft: other changes of the next release, such as codebooks; applied after the weights.
        rows: writes further rows.
        facts: stored with the round, and with the release if there is one; JSON.
        next: a round that is opened at once.
        memory: the optimizer's state for the next round of this system.
        note: text for the release's history; None for the default.
        summary: the outcome of the round, in a sentence for people.

    Without weights and draft nothing is published.
    """

    weights: Mapping[str, Mapping[str, NDArray[np.float32]]] | None = None
    draft: Callable[[ReleaseDraft], ReleaseDraft] | None = None
    rows: Callable[[Session], None] | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    next: RoundRequest | None = None
    memory: Memory | None = None
    note: str | None = None
    summary: str | None = None

    @property
    def publishes(self) -> bool:
        """Whether there is a next release."""
        return self.weights is not None or self.draft is not None


class FederatedSystem(Protocol):
    """What a strategy reads of its system (`backend.federation.systems.composition.SystemSpec`).

    Systems import strategies, not the other way round.
    """

    @property
    def name(self) -> str:
        """The name in rounds, on pages and on the command line."""

    @property
    def model(self) -> str | None:
        """Key in ReleaseManifest.models of the trained model.

        None if there is none or the plan names it.
        """

    @property
    def protection(self) -> Protection:
        """What a device does to its update before sending it."""

    @property
    def optimizer(self) -> MemoryOptimizer | None:
        """The server's optimizer, if there is one."""


class Strategy(Protocol):
    """Plans a round, and concludes it from its devices' aggregated updates."""

    def plan(self, system: FederatedSystem, context: RoundContext) -> Plan:
        """Return what to ask of devices.

        Raises RoundImpossible with the reason if there can't be a round now.
        """

    def conclude(
        self, system: FederatedSystem, total: Aggregate, context: RoundContext, manifest: RoundManifest
    ) -> RoundResult:
        """Return the result of the round.

        Changes nothing itself, since it may be called again after a kill. An OwnfeedError fails the round with its
        message.
        """


class FailureHandler(Protocol):
    """Defines the effect of a failed round on the release that it was opened for."""

    def __call__(self, context: RoundContext, reason: str) -> RoundResult | None:
        """Return a result that publishes, or None; `reason`: why the round failed.

        Changes nothing itself.
        """


@runtime_checkable
class ChecksReliability(Protocol):
    """A strategy that knows in advance when a round would give no result."""

    def why_not(self, system: FederatedSystem, engine: Engine, devices: int) -> str | None:
        """Return why a round with this many waiting devices would give no result, or None."""


@runtime_checkable
class ChecksCohort(Protocol):
    """A strategy that refuses cohorts too small to give a result, whoever requests the round."""

    def check_cohort(self, system: FederatedSystem, cohort: int) -> None:
        """Raise RoundImpossible with the number of devices that would be enough."""


@runtime_checkable
class HasExtraTensors(Protocol):
    """A strategy whose updates contain more than its system's model."""

    def numbers_besides(self, data_dir: Path) -> int | None:
        """Return how many numbers more, on a server with this folder; None if that isn't known yet."""
