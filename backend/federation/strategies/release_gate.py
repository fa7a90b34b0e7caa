"""The release gate: devices score a release on held-out clicks; a clear fall is undone.

The rule. Each device's gain (new AUC less old) is clipped to +-0.03, so that no device weighs more and the sum has a
bounded sensitivity. The sum over n devices gives the mean gain m and the spread s between devices; the standard
deviation of the noise is known. The error of m is e = sqrt(s^2 / n + noise^2). The release is rolled back if

    m < -tolerance   and   m < -z e,    z the normal quantile of `confidence`, one-sided

so a release that is no worse is rolled back with a probability of at most 1 - confidence, whatever the noise, and one
that fell by less than the tolerance stays. Each verdict states what can't be detected with few devices: a fall is found
with 80 % probability only from (z + .84) e on. With 60 devices and the noise of `release_gate` the noise alone makes e
.0036, so falls below about .009 are seldom found. Small falls of many consecutive releases can each stay below the
rule: the gate is a fuse and does not prove progress. The operator weighs errors of both kinds (`gate_tolerance`,
`gate_confidence`); a wrong rollback costs the work of one round.

If groups of the cohort are summed separately (`joined_sums.JoinedSums`), one vote can't undo a release. If more than
half of its groups have fallen by more than the tolerance, a newly drawn cohort votes a second time, and the rule is
applied to the groups of both votes: m, s and the level are medians over the groups, e is sqrt(pi / 2) times as large,
and four of five groups must each have fallen by more than a third of the tolerance. So one malicious client decides
nothing, and three that are in three of five groups in both votes succeed only if the noise of two of the four honest
groups helps them. A vote in one sum is decided by a single malicious client however often it is repeated, so it is held
once.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Engine, select, update
from sqlalchemy.orm import Session

from backend.db.engine import reading_session
from backend.db.tables import RoundRow
from backend.federation.bounded_mean import Aggregate
from backend.federation.errors import RoundImpossible
from backend.federation.protections.secure_sum import secure_sum_of
from backend.federation.protections.sum_bounds import noise_deviation
from backend.federation.strategies.joined_sums import JoinedSums, MedianOfSums
from backend.federation.strategies.strategy import FederatedSystem, Plan, RoundContext, RoundResult
from backend.releases.blobs import ReleaseDraft
from protocol.ids import release_number
from protocol.protections import SecureSum
from protocol.releases import ReleaseManifest
from protocol.ring import DETAIL_WEIGHT, GAIN, GAIN_LIMIT, LEVEL, SHAPES, SQUARE, WeightedSum
from protocol.rounds import RoundManifest

KEPT = 60


@dataclass(frozen=True)
class Score:
    """A verdict on a release: its gain in AUC over `before`, with standard error and outcome."""

    round: str
    release: str
    before: str
    model: str
    auc: float
    gain: float
    error: float
    devices: int
    taken_back: bool

    @property
    def auc_error(self) -> float:
        """An upper bound on the standard error of `auc` from the noise in its sum.

        It assumes that all of the gain's error is noise.
        """
        return self.error / (2 * GAIN_LIMIT * DETAIL_WEIGHT)


def scores(engine: Engine, gates: Collection[str], limit: int = KEPT) -> list[Score]:
    """Return the last verdicts of the gate systems, oldest first.

    A vote followed by a second one is left out.
    """
    with reading_session(engine) as session:
        rows = session.execute(
            select(RoundRow.number, RoundRow.facts)
            .where(RoundRow.state == "applied", RoundRow.facts.is_not(None), RoundRow.system.in_(gates))
            .order_by(RoundRow.number.desc())
            .limit(limit)
        ).all()
    found = []
    for number, facts in reversed(rows):
        gate = (facts or {}).get("gate")
        if gate is not None and not gate.get("doubted"):
            found.append(
                Score(
                    f"round-{number}",
                    gate["release"],
                    gate["before"],
                    gate["model"],
                    gate["auc"],
                    gate["gain"],
                    gate["error"],
                    gate["devices"],
                    gate["falls"],
                )
            )
    return found


VOTES, DEVICES = "votes", "devices"
"""Keys in the facts of a vote that doubts a release: its groups' sums, which are joined with the second vote's, and
their devices.
"""
WIDENED = math.sqrt(math.pi / 2)
"""The standard deviation of a median relative to a mean's, for many groups with normal noise; for few it is less."""
FALLING_SHARE = 0.8
"""The share of the groups of both votes, rounded down but at least two, that must each show a fall."""
FALL_OF_A_GROUP = 1 / 3
"""The share of the tolerance by which a group must have fallen. With all of the tolerance, one malicious client that
votes for a bad release succeeds more often than in one vote; with none of it, three that vote against a good one
succeed nearly as often.
"""


@dataclass(frozen=True)
class Verdict:
    """The result of a cohort's scores of a release on held-out clicks.

    gain: mean AUC less its predecessor's. error: its standard error, including noise. auc: with the new weights, for
    information. doubted: a second vote decides.
    """

    gain: float
    error: float
    auc: float
    devices: int
    falls: bool
    doubted: bool = False


def judge(
    sums: Mapping[str, NDArray[np.float64]],
    devices: int,
    noise: float,
    *,
    tolerance: float,
    confidence: float,
    widened: float = 1.0,
    gains: NDArray[np.float64] | None = None,
) -> Verdict:
    """Apply the rule to the sums of a vote.

    noise: standard deviation of the noise in each opened sum, 0 for none. If sums of groups are joined, widened is how
    much larger the error is than that of one sum, and gains is the mean of GAIN in each group. Numbers are limited to
    what votes can give.
    """
    gain = _within(float(sums[GAIN][0]) / devices, 1.0)
    square = _within(float(sums[SQUARE][0]) / devices / DETAIL_WEIGHT, 1.0)
    spread = min(1.0, max(0.0, square - gain**2))
    error = widened * math.sqrt(spread / devices + (noise / devices) ** 2)
    z = NormalDist().inv_cdf(confidence)
    return Verdict(
        gain=GAIN_LIMIT * gain,
        error=GAIN_LIMIT * error,
        auc=(_within(float(sums[LEVEL][0]) / devices / DETAIL_WEIGHT, 1.0) + 1) / 2,
        devices=devices,
        falls=GAIN_LIMIT * gain < -max(tolerance, z * GAIN_LIMIT * error) and _seen_by_groups(gains, tolerance),
    )


def judge_sums(
    total: Aggregate,
    protection: SecureSum,
    *,
    tolerance: float,
    confidence: float,
    first: Sequence[WeightedSum] = (),
) -> Verdict:
    """Apply the rule to votes in one sum, or in the joined sums of groups.

    first: the groups' sums of the vote that doubted the release; without them joined votes can only doubt it.
    """
    parts = (*first, *(total.parts if isinstance(total, JoinedSums) else _as_group(total, first)))
    if not parts:
        noise = noise_deviation(protection, total.count)
        return judge(total.sums(), total.count, noise, tolerance=tolerance, confidence=confidence)
    joined = MedianOfSums().join(parts, None)
    gains = joined.means_of_groups(GAIN)
    verdict = judge(
        joined.sums(),
        joined.count,
        noise_deviation(protection, joined.count),
        tolerance=tolerance,
        confidence=confidence,
        widened=WIDENED,
        gains=gains,
    )
    if first:
        return verdict
    return replace(verdict, falls=False, doubted=_fallen(gains, tolerance) > len(gains) / 2)


def _as_group(total: Aggregate, first: Sequence[WeightedSum]) -> Sequence[WeightedSum]:
    """Return a second vote of too few devices for groups as one more group."""
    return (WeightedSum(total.sums(), total.count),) if first else ()


def _fallen(gains: NDArray[np.float64], tolerance: float) -> int:
    return int((GAIN_LIMIT * gains < -tolerance).sum())


def _seen_by_groups(gains: NDArray[np.float64] | None, tolerance: float) -> bool:
    if gains is None:
        return True
    return _fallen(gains, FALL_OF_A_GROUP * tolerance) >= max(2, math.floor(FALLING_SHARE * len(gains)))


@dataclass(frozen=True)
class ReleaseGate:
    """Keeps a release, or publishes its predecessor's content again.

    Args:
        tolerance: a fall in AUC up to this size is accepted.
        confidence: one-sided; a release that is no worse is rolled back with a probability of at most 1 -
            confidence.
    """

    tolerance: float = 0.003
    confidence: float = 0.95

    def plan(self, system: FederatedSystem, context: RoundContext) -> Plan:
        """Ask devices to score both weights of the ranker that the newest release has changed."""
        if not context.held_out:
            raise RoundImpossible(
                "The release gate is off, so devices hold out no clicks.", field="system", limit="the setting gate"
            )
        before = _predecessor(context)
        model = _changed_ranker(before, context.release)
        weights = before.models[model].weights
        assert weights is not None
        return Plan(SHAPES, {"before": weights}, model)

    def conclude(
        self, system: FederatedSystem, total: Aggregate, context: RoundContext, manifest: RoundManifest
    ) -> RoundResult:
        """Return the verdict and, if due, the second vote or the rollback.

        A rollback also drops the optimizer's state of the undone round.
        """
        protection, before, release = secure_sum_of(manifest.protection), _predecessor(context), manifest.release
        first = _doubting_vote(context, manifest)
        verdict = judge_sums(total, protection, tolerance=self.tolerance, confidence=self.confidence, first=first)
        facts = {"gate": asdict(verdict) | {"model": manifest.model, "release": release, "before": before.release}}
        scored = (
            f"{release} scores {verdict.gain:+.4f} AUC against {before.release} on clicks held out by "
            f"{verdict.devices} devices (standard error {verdict.error:.4f})"
        )
        if verdict.doubted and isinstance(total, JoinedSums):
            facts[VOTES] = {"groups": [_written(each) for each in total.parts]}
            return RoundResult(facts=facts, next=context.request, summary=f"{scored}: a second vote decides.")
        if not verdict.falls:
            return RoundResult(facts=facts, summary=f"{scored}: it stays.")

        return replace(
            _back_to(before, release),
            facts=facts,
            note=f"back to {before.release}, since {release} scored {verdict.gain:+.4f} AUC against it",
            summary=f"{scored}: rolled back.",
        )


def take_back_unscored(context: RoundContext, reason: str) -> RoundResult | None:
    """Return the predecessor's content, since nobody can say whether the release is worse.

    Returns None if the gate is off, the release was scored before, another was published meanwhile, or there is no
    predecessor.
    """
    release = context.release
    if (
        not context.held_out
        or release.previous is None
        or context.releases.require_current().release != release.release
    ):
        return None
    if any(each.release == release.release for each in scores(context.engine, [context.request.system])):
        return None
    before = context.releases.manifest(release.previous)
    return replace(
        _back_to(before, release.release),
        note=f"back to {before.release}, since {release.release} was not scored: {reason}",
        summary=f"{release.release} was not scored, so it was rolled back.",
    )


def _back_to(before: ReleaseManifest, undone: str) -> RoundResult:
    """Return the predecessor's content, without the optimizer's state of the undone round."""

    def forget_memory(session: Session) -> None:
        session.execute(update(RoundRow).where(RoundRow.published == release_number(undone)).values(memory=None))

    return RoundResult(draft=lambda _: ReleaseDraft.like(before), rows=forget_memory)


def _doubting_vote(context: RoundContext, manifest: RoundManifest) -> list[WeightedSum]:
    """Return the groups' sums of the earlier vote that ordered this one; none for a first vote."""
    past = context.past
    if past is None or (past.manifest.system, past.manifest.release) != (manifest.system, manifest.release):
        return []
    return [
        WeightedSum({name: np.array([each[name]]) for name in SHAPES}, each[DEVICES])
        for each in past.facts.get(VOTES, {}).get("groups", [])
    ]


def _written(group: WeightedSum) -> dict[str, float]:
    return {name: float(group.tensors[name][0]) for name in SHAPES} | {DEVICES: group.samples}


def _within(value: float, reach: float) -> float:
    return min(max(value, -reach), reach)


def _predecessor(context: RoundContext) -> ReleaseManifest:
    if context.release.previous is None:
        raise RoundImpossible(f"{context.release.release} has no previous release to compare with.", field="system")
    return context.releases.manifest(context.release.previous)


def _changed_ranker(before: ReleaseManifest, after: ReleaseManifest) -> str:
    """Return the default ranker if it has changed, else the first that has.

    Raises RoundImpossible.
    """
    changed = [
        name
        for name, entry in after.models.items()
        if entry.role == "ranker"
        and (old := before.models.get(name)) is not None
        and old.weights is not None
        and (old.architecture, old.features) == (entry.architecture, entry.features)
        and old.weights != entry.weights
    ]
    if not changed:
        raise RoundImpossible(
            f"No ranker has different weights in {after.release} than in {before.release}.", field="system"
        )
    return after.default_ranker if after.default_ranker in changed else changed[0]
