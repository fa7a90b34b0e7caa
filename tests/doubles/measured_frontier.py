"""A measured frontier of five rows, for the console's page and the drawing."""

from __future__ import annotations

from backend.measurements.frontier import Frontier, FrontierRow, PairedGain, ValidationChoice


def row(mode: str, epsilon: float, gain: float, attack: tuple[float, float] | None = None) -> FrontierRow:
    gains = (PairedGain(gain, gain - 1, gain + 1),) * 4
    return FrontierRow(mode, epsilon, (20.0, 30.0, 50.0, 70.0 + gain), gains, 15.0, 9.0, 14.0, True, attack)


FRONTIER = Frontier(
    rows=(
        row("popularity (none)", 0.0, 0.0, (21.9, 45.4)),
        row("exact vector", float("inf"), 5.8, (46.6, 70.4)),
        row("code K=16", 1.0, 0.1),
        row("code K=16", 4.0, 2.1, (24.7, 49.3)),
        row("basis_laplace, naive", 50.0, -1.9),
    ),
    chosen=ValidationChoice(4, {"exact": 0.8}),
    wide=77.2,
    readers=709,
    channels=3.7,
    code_bytes={16: 196_992},
)
