"""The server half of a system: what a round asks of devices, and what becomes of their sum."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
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
from backend.releases.draft import ReleaseDraft
from backend.releases.store import ReleaseStore
from device_app.wire.ids import ReleaseId
from device_app.wire.protections import Protection
from device_app.wire.releases import BlobRef, ReleaseManifest
from device_app.wire.rounds import RoundManifest


@dataclass(frozen=True)
class RoundRequest:
    """A round to be opened: by the operator, by the schedule, or by the end of another.

    participation: a share of the devices that wait when it opens, in the place of a number: then cohort and admission
    follow from it, and cohort_minimum is at most that cohort.
    """

    system: str
    cohort: int
    cohort_minimum: int
    seconds: float
    admission: float = 1.0
    participation: float | None = None

    def to_json(self) -> str:
        """The request as a row keeps it: what is as usual is left out, so that a field more stops no server of before
        that reads the row in a rolling upgrade."""
        usual = {field.name: field.default for field in fields(self)}
        return json.dumps({name: value for name, value in asdict(self).items() if value != usual[name]})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The request of a row that `to_json` wrote."""
        return cls(**json.loads(text))


@dataclass(frozen=True)
class PreviousRound:
    """The round that this one follows, as it ended."""

    request: RoundRequest
    manifest: RoundManifest
    facts: Mapping[str, Any]
    published: ReleaseId | None
    survivors: int | None


@dataclass(frozen=True)
class RoundContext:
    """What a strategy may read.

    Args:
        release: the round's.
        request: the round's.
        releases: weights and blobs; a strategy adds blobs, and leaves publishing to the conclusion.
        engine: pool and tables, for reading.
        clock: tells the time, with its zone.
        data_dir: the server's folder.
        past: the round that this one follows.
        held_out: share of their samples that devices leave to the release gate; 0 while it's off.
        memory: of the optimizer, after the last applied round of this system.
        counts_half_life_hours: of the private counts that popularity is lifted by.
        executor: who computes batches of titles.
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
    """What a round asks for.

    Args:
        shapes: of every float32 tensor of an update, by its name there (`g.<parameter>` for gradients).
        materials: blobs that devices fetch besides the release, the same for every device.
        model: of the release that the task is about, where the system leaves it open.
    """

    shapes: Mapping[str, tuple[int, ...]]
    materials: Mapping[str, BlobRef] = field(default_factory=dict)
    model: str | None = None


@dataclass(frozen=True)
class RoundResult:
    """What becomes of a round, all of it in one transaction.

    Args:
        weights: by model, published as the next release.
        draft: other changes of the next release, such as codebooks; applied after the weights.
        rows: rows that are written besides.
        facts: kept with the round, and with the release if there is one; JSON.
        next: a round that is opened at once.
        memory: of the optimizer, for the next round of this system.
        note: words for the release's history; None for the usual ones.
        summary: what came of the round, in a sentence for people.

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
    """What a strategy reads of the system that it is part of (`backend.federation.systems.system.SystemSpec`).

    Systems know strategies and not the other way round.
    """

    @property
    def name(self) -> str:
        """What rounds, pages and the command call it."""
        ...

    @property
    def model(self) -> str | None:
        """Key in ReleaseManifest.models of the model that is trained; None for none, or one that the plan names."""
        ...

    @property
    def protection(self) -> Protection:
        """What a device does to its update before it leaves."""
        ...

    @property
    def optimizer(self) -> MemoryOptimizer | None:
        """The server's step, where there is one."""
        ...


class Strategy(Protocol):
    """Plans a round, and concludes it from what its devices' updates come to."""

    def plan(self, system: FederatedSystem, context: RoundContext) -> Plan:
        """What to ask for. Raises RoundImpossible, saying why there can't be such a round now."""
        ...

    def conclude(
        self, system: FederatedSystem, total: Aggregate, context: RoundContext, manifest: RoundManifest
    ) -> RoundResult:
        """What the sum means. May be called again with the same sum after a kill: it changes nothing itself.

        An OwnfeedError fails the round with its words.
        """
        ...


class IfFailed(Protocol):
    """What a failed round does to the release that it was opened for."""

    def __call__(self, context: RoundContext, reason: str) -> RoundResult | None:
        """A conclusion that publishes, or None; `reason`: why the round failed. Changes nothing itself."""
        ...


@runtime_checkable
class ChecksReliability(Protocol):
    """A strategy that knows beforehand when a round would tell nothing."""

    def why_not(self, system: FederatedSystem, engine: Engine, devices: int) -> str | None:
        """In a sentence, for a round that so many devices wait for; None where it is worth opening."""
        ...


@runtime_checkable
class ChecksCohort(Protocol):
    """A strategy that can tell nothing of a cohort that is too small, whoever asks for the round."""

    def check_cohort(self, system: FederatedSystem, cohort: int) -> None:
        """Raises RoundImpossible, saying how many devices would be enough."""
        ...


@runtime_checkable
class TrainsBesides(Protocol):
    """A strategy whose updates hold more than its system's model."""

    def numbers_besides(self, data_dir: Path) -> int | None:
        """How many numbers more, on a server with this folder; None while that isn't known."""
        ...
