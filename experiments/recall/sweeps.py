"""The report modes that the frontier measures, each over its epsilons: the device's, and the laboratory's own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from backend.measurements.frontier import DRAWN_FROM
from device_app.reports.modes import MODES
from experiments.recall.modes import MIXED
from experiments.recall.uni_fedrec import BOUNDS

PAPER = (1.0, 4.0, 16.0, 50.0, 300.0)
"""Epsilons of reports by scores; at the paper's noise one costs 50."""
COMMON = {16: (1.0, 4.0, 16.0)}
AT: Mapping[str, Mapping[int, Sequence[float]]] = {
    "code": {
        4: (1.0, 2.0),
        8: (4.0,),
        32: (4.0,),
        16: (1.0, 2.0, 4.0, 8.0, 16.0),
        64: (1.0, 2.0, 4.0, 8.0, 16.0),
    },
    "direction": {64: (1.0, 2.0, 4.0, 8.0, 16.0)},
}
"""Epsilons by mode and size of the codebook; COMMON for a mode that isn't named."""
LABORATORY = ("direction",)
"""Modes that no device offers: their reports are decoded by a codebook too."""


@dataclass(frozen=True)
class Sweep:
    """One mode over its epsilons.

    size: of the codebook that decodes it; None if reports are scores.
    """

    mode: str
    epsilons: Sequence[float]
    size: int | None = None

    @property
    def name(self) -> str:
        """The mode's name in the table."""
        return f"{self.mode}, as served" if self.size is None else f"{self.mode} K={self.size}"

    @property
    def drawn(self) -> bool:
        """Whether it has a line in the drawing."""
        return len(self.epsilons) >= DRAWN_FROM


def sweeps() -> Iterator[Sweep]:
    """All registered modes with which the server finds articles, except `unmeasured`, and the laboratory's."""
    for name, mode in MODES.items():
        if mode.reporter is None or name in unmeasured():
            continue
        if mode.reporter.made_from == "decomposition":
            yield Sweep(name, PAPER)
        else:
            yield from _by_codebook(name)
    for name in LABORATORY:
        yield from _by_codebook(name)


def _by_codebook(name: str) -> Iterator[Sweep]:
    return (Sweep(name, epsilons, size) for size, epsilons in AT.get(name, COMMON).items())


def unmeasured() -> tuple[str, ...]:
    """Report modes whose lists can't be computed here yet."""
    return tuple(name for name, mode in MODES.items() if mode.reporter is not None and name not in {*MIXED, *BOUNDS})
