"""What the release gate has found so far, release by release."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import Engine, select

from backend.db.engine import reading_session
from backend.db.tables_federation import RoundRow
from device_app.wire.sum_vectors import DETAIL_WEIGHT, GAIN_LIMIT

KEPT = 60


@dataclass(frozen=True)
class Score:
    """A verdict: the release, its gain in AUC over `before` with its standard error, and whether it was taken back."""

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
        """Standard error of `auc` by the noise in its sum: at most this, as if all of the gain's error were noise."""
        return self.error / (2 * GAIN_LIMIT * DETAIL_WEIGHT)


def scores(engine: Engine, gates: Collection[str], limit: int = KEPT) -> list[Score]:
    """The last verdicts of the systems that are gates, oldest first; a vote that was followed by a second is none."""
    with reading_session(engine) as session:
        rows = session.execute(
            select(RoundRow.number, RoundRow.facts)
            .where(RoundRow.state == "applied", RoundRow.facts.is_not(None), RoundRow.system.in_(gates))
            .order_by(RoundRow.number.desc())
            .limit(limit)
        ).all()
    found = []
    for number, facts in reversed(rows):
        told = (facts or {}).get("gate")
        if told is not None and not told.get("doubted"):
            found.append(
                Score(
                    f"round-{number}",
                    told["release"],
                    told["before"],
                    told["model"],
                    told["auc"],
                    told["gain"],
                    told["error"],
                    told["devices"],
                    told["falls"],
                )
            )
    return found
