"""Combine a system with a protection of its updates and an aggregation of them.

A `System` states what its model or task needs; `System.compose` combines it with a name on each axis to a `SystemSpec`.
Its name has all three parts, as in `small_ranker/secure/median`; rounds, manifests and pages use it. Which combinations
exist follows from the parts; each of the others is refused with a reason (`System.refusal`).

A `SystemSpec` is the complete description of a system as one immutable value, without flags or branches.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from backend.federation.errors import RoundImpossible
from backend.federation.optimizers import MemoryOptimizer
from backend.federation.protections.registry import resolve
from backend.federation.strategies.fedavg import Centre, Median, MultiView, TrimmedMean
from backend.federation.strategies.joined_sums import HuberOfSums, JoinOfSums, MedianOfSums
from backend.federation.strategies.strategy import ChecksCohort, FailureHandler, RoundRequest, Strategy
from protocol.protections import LOCAL_NOISE, Protection, SecureSum

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
        """Return the request for the vote after a round opened by `request`, with the same cohort, at least 2."""
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
    if_failed: FailureHandler | None = None
    gate: GateRound | None = None
    changes: ChangedState = "release"

    def __post_init__(self) -> None:
        if self.centre is not None and resolve(self.protection).summed:
            raise ValueError(
                "centre: a robust mean is not possible with a secure sum, since the server doesn't see single updates"
            )
        if self.join is not None and resolve(self.protection).radius is None:
            raise ValueError("join: only secure sums of clipped vectors have bounds to check a group's sum against")

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


LOCAL, SECURE, SECURE_LARGE, EXACT = "local", "secure", "secure_large", "exact"
PROTECTIONS: Final = (LOCAL, SECURE, SECURE_LARGE, EXACT)
"""local: noise on each device's own update. secure: a secure sum with noise inside. secure_large: the same with less
noise from each device, for large cohorts. exact: a secure sum without noise, which no epsilon bounds.
"""

SERVED_ENCODER_TASKS: Final = frozenset({"head_gradient", "split_gradient"})

NOISY_SUM: Final = SecureSum(clip=0.1, sigma=4_900)
"""The default noisy sum: epsilon 1.62 at delta 1e-6 with 60 survivors, 4.33 with 10 (`small_ranker`)."""
WEIGHTED_SUM: Final = SecureSum(clip=1.0, weight_limit=32, fraction_bits=18, cohort_limit=250)
"""A sum of devices weighted by n_u. Fixed point: n C n_u 2^18 < 2^31 for 250 devices at C = 1 and n_u = 32."""

EVERY_SAMPLE: Final = 1_024
"""More samples than 50 feeds give, so n_u is never capped."""
UNCLIPPED_SUM: Final = SecureSum(clip=1_000.0, weight_limit=EVERY_SAMPLE, bits=64, fraction_bits=34, cohort_limit=250)
"""Protection of presets whose papers don't clip: gradients of a mean loss are far shorter than 1,000."""


@dataclass(frozen=True)
class Form:
    """A system's settings under one protection.

    Args:
        protection: the protocol's value.
        aggregation: the default one.
        changes: fields of `SystemSpec` that differ from the system's, such as a learning rate that suits the noise.
    """

    protection: Protection
    aggregation: str = "mean"
    changes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class System:
    """A model and a task, to be combined with a protection and an aggregation.

    Args:
        base: everything that protection and aggregation don't change; it has the system's name and the first form's
            protection.
        forms: form by the protection's name, the default one first.
        huber: joins noisy sums of numbers to which a device's largest contribution is known; None if it isn't.
    """

    base: SystemSpec
    forms: Mapping[str, Form]
    huber: HuberOfSums | None = None

    @property
    def name(self) -> str:
        """The name on the command line and on pages."""
        return self.base.name

    def compose(self, protection: str | None = None, aggregation: str | None = None) -> SystemSpec:
        """Return the system with these names; None: the default.

        Raises RoundImpossible with the reason.
        """
        protection = next(iter(self.forms)) if protection is None else protection
        if reason := self.refusal(protection):
            raise RoundImpossible(reason, field="protection", limit=", ".join(self.forms))
        form = self.forms[protection]
        aggregation = form.aggregation if aggregation is None else aggregation
        if reason := self.refusal(protection, aggregation):
            raise RoundImpossible(reason, field="aggregation", limit=", ".join(self.aggregations(protection)))
        spec = self._under(protection)
        return replace(
            spec, name=f"{self.name}/{protection}/{aggregation}", **AGGREGATIONS[aggregation].changes(self, spec)
        )

    def refusal(self, protection: str, aggregation: str | None = None) -> str | None:
        """Return why this combination does not exist, or None if it does."""
        if protection not in PROTECTIONS:
            return f"There is no protection {protection!r}."
        if protection not in self.forms:
            return self._no_form(protection)
        if aggregation is None:
            return None
        if aggregation not in AGGREGATIONS:
            return f"There is no aggregation {aggregation!r}."
        return AGGREGATIONS[aggregation].refusal(self, self._under(protection))

    def aggregations(self, protection: str) -> tuple[str, ...]:
        """Return the aggregations that work with a protection of this system, the default one first."""
        usual = self.forms[protection].aggregation
        return (usual, *(each for each in AGGREGATIONS if each != usual and self.refusal(protection, each) is None))

    def all(self) -> Iterator[SystemSpec]:
        """Yield every combination that exists."""
        for protection in self.forms:
            for aggregation in self.aggregations(protection):
                yield self.compose(protection, aggregation)

    def _under(self, protection: str) -> SystemSpec:
        form = self.forms[protection]
        return replace(self.base, protection=form.protection, **form.changes)

    def _no_form(self, protection: str) -> str:
        if protection == LOCAL and self.base.model not in LOCAL_NOISE:
            return f"No noise for single updates is known for {self.base.model or 'what ' + self.name + ' sums'}."
        if protection == SECURE_LARGE:
            return "Less noise from each device is for counts only, where the noise of the sum must stay the same."
        if isinstance(self.base.strategy, MultiView):
            return "Each view adds its own noise on the device already, and the sum of the views stays exact."
        if self.base.task in SERVED_ENCODER_TASKS:
            return (
                "The gradient of the encoder that serves is too large for noise on each update, so it is only summed."
            )
        return f"{self.name} is defined for {', '.join(self.forms)} only."


@dataclass(frozen=True)
class Aggregation:
    """How updates, or sums of groups of the cohort, are combined.

    refusal: returns why it doesn't work with a system under a protection, or None if it does. changes: returns the
    fields of `SystemSpec` that implement it.
    """

    refusal: Callable[[System, SystemSpec], str | None]
    changes: Callable[[System, SystemSpec], dict[str, Any]]


def _of_one_sum(system: System, spec: SystemSpec) -> str | None:
    """Return why a secure sum can't be split into groups."""
    protection = resolve(spec.protection)
    if not protection.noise_variance(1):
        return "An exact sum of a group says more about each of its readers than that of the cohort."
    if isinstance(spec.strategy, ChecksCohort):
        return f"{system.name} needs the noise of one sum: it judges by it whether a round teaches anything."
    if spec.begins_with is not None:
        return "The rows of this sum were opened by their owners in the whole cohort, not in a group of it."
    return None


def _never(_: System, __: SystemSpec) -> str | None:
    return None


def _no_trimmed(system: System, spec: SystemSpec) -> str | None:
    if resolve(spec.protection).summed:
        return "Nobody sees the updates inside a secure sum, so the extreme ones can't be cut off."
    return _no_centre(spec)


def _no_median(system: System, spec: SystemSpec) -> str | None:
    return _no_centre(spec) or (_of_one_sum(system, spec) if resolve(spec.protection).summed else None)


def _no_centre(spec: SystemSpec) -> str | None:
    if spec.changes == "counts":
        return "Most devices have no click on a given article, so a robust centre of their counts is zero."
    return None


def _no_huber(system: System, spec: SystemSpec) -> str | None:
    if system.huber is None:
        return "Huber's location is for counts, of which the most that a device can add is known."
    if not resolve(spec.protection).summed:
        return "Huber's location joins secure sums of groups, and here single updates are added up."
    if spec.protection != system.forms[SECURE].protection:
        return "With these shares of noise a group's sum would cost more than a device allows, or has no noise at all."
    return None


AGGREGATIONS: Final[Mapping[str, Aggregation]] = {
    "mean": Aggregation(_never, lambda system, spec: {}),
    "median": Aggregation(
        _no_median,
        lambda system, spec: {"join": MedianOfSums()} if resolve(spec.protection).summed else {"centre": Median()},
    ),
    "trimmed": Aggregation(_no_trimmed, lambda system, spec: {"centre": TrimmedMean(share=0.1)}),
    "huber": Aggregation(_no_huber, lambda system, spec: {"join": system.huber}),
}
"""Aggregations by name. median: of single updates, or of the sums of groups of the cohort; trimmed: without a tenth at
each end.
"""


def ranker_forms(model: str) -> dict[str, Form]:
    """Return all three forms of a ranker that releases have noise for, with one learning rate."""
    return {LOCAL: Form(LOCAL_NOISE[model]), SECURE: Form(NOISY_SUM), EXACT: Form(WEIGHTED_SUM)}
