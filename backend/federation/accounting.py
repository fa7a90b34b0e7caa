"""Computes the privacy cost of a device that took part in every round, composed over the rounds."""

import math
from dataclasses import dataclass, field

from sqlalchemy import Engine, select

from backend.db.engine import reading_session
from backend.db.tables import RoundRow
from backend.federation.protections.registry import resolve
from protocol.concentrated import epsilon_of
from protocol.ids import RoundId
from protocol.rounds import RoundManifest

DELTA = 1e-6
"""The delta of the composed epsilon."""


@dataclass(frozen=True)
class SpentRound:
    """The cost of one round with a noisy sum.

    rho and epsilon: of its opened sum, with the noise of its survivors. epsilon_so_far: of this and all earlier sums.
    """

    round: RoundId
    system: str
    survivors: int
    rho: float
    epsilon: float
    epsilon_so_far: float


@dataclass(frozen=True)
class Spending:
    """The privacy cost of all applied rounds for a device that took part in each of them.

    epsilon, at delta, covers all noisy sums together. local is the pure epsilon of updates under local noise; it adds
    up and is reported separately. exact counts the sums without noise, which no epsilon bounds.

    Formal guarantees: epsilon is an upper bound for replacing all of a device's data in all noisy sums, even if each
    round was chosen after the earlier results were known: rho adds up (Bun and Steinke 2016) and is converted to
    epsilon once. It assumes that every survivor added its noise and nobody colludes. A device charges itself for the
    smallest number of survivors that a round allowed, so its own ledger shows at least as much.
    """

    delta: float = DELTA
    rho: float = 0.0
    epsilon: float = 0.0
    local: float = 0.0
    local_rounds: int = 0
    exact_rounds: int = 0
    rounds: tuple[SpentRound, ...] = field(default=())


def spending(engine: Engine, delta: float = DELTA) -> Spending:
    """Return the composed privacy cost of the applied rounds, oldest first."""
    with reading_session(engine) as session:
        found = session.execute(
            select(RoundRow.number, RoundRow.system, RoundRow.manifest, RoundRow.survivors)
            .where(RoundRow.state == "applied")
            .order_by(RoundRow.number)
        ).all()
    lines: list[SpentRound] = []
    total, local, local_rounds, exact = 0.0, 0.0, 0, 0
    for number, system, text, survivors in found:
        manifest = RoundManifest.model_validate_json(text)
        cost = resolve(manifest.protection).account(coordinates_of(manifest), survivors)
        if cost.local is not None:
            local += cost.local.upload
            local_rounds += 1
        elif cost.rho is None or survivors is None:
            exact += 1
        else:
            total += cost.rho
            epsilon, so_far = epsilon_of(cost.rho, delta), epsilon_of(total, delta)
            lines.append(SpentRound(f"round-{number}", system, survivors, cost.rho, epsilon, so_far))
    return Spending(delta, total, epsilon_of(total, delta), local, local_rounds, exact, tuple(lines))


def coordinates_of(manifest: RoundManifest) -> int:
    """Return how many numbers one update of the round has."""
    return sum(math.prod(shape) for shape in manifest.shapes.values())


def epsilon_spent(rho: float, delta: float) -> float:
    """Return the epsilon at this delta of opened sums with this total rho.

    Computed by dp-accounting's Renyi accountant.

    Formal guarantees: it holds for any mechanism with that rho in zero-concentrated differential privacy.
    """
    # A slow import, which pages without this figure don't need.
    from dp_accounting import dp_event
    from dp_accounting.rdp import RdpAccountant

    renyi = RdpAccountant()
    renyi.compose(dp_event.ZCDpEvent(rho))
    return float(renyi.get_epsilon(delta))
