"""A demo fleet's published results: three releases by two measures, the second within noise, and one round."""

from __future__ import annotations

from datetime import UTC, datetime

from protocol.fleet_figures import FleetFigures, InterestCurve, InterestPoint, RoundOfFleet


def _curve(measure: str, value: float) -> InterestCurve:
    steps = (("r1", 0.0, 0.0), ("r2", 0.0021, 0.0034), ("r3", 0.0142, 0.0051))
    points = tuple(
        InterestPoint(release=release, readers=58, value=value + gain, gain=gain, low=gain - within, high=gain + within)
        for release, gain, within in steps
    )
    return InterestCurve(measure=measure, news=287.0, points=points)


FLEET_FIGURES = FleetFigures(
    readers=60,
    since=datetime(2026, 1, 2, 3, 4, tzinfo=UTC),
    curves=(_curve("auc", 0.81), _curve("ndcg", 0.62)),
    rounds=(
        RoundOfFleet(round="round-6", devices=60, became={"sent": 11, "full": 1, "late": 44, "spent": 4}),
        RoundOfFleet(round="round-7", devices=60, became={"sent": 60}),
    ),
)
