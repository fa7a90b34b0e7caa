"""Shows the outcomes of a fleet's rounds as a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median

from rich.console import Console
from rich.table import Table

from device_app.fleet.faults import FaultRates
from protocol.rounds import RoundStatus

FAULTS = ("dropout", "straggler", "crash", "liar")


@dataclass
class RoundTable:
    """One row per round, with columns of faults if the fleet has any."""

    faults: FaultRates | None = None
    rows: list[tuple[RoundStatus, Mapping[str, int], Mapping[str, int], float]] = field(default_factory=list)

    def add(self, status: RoundStatus, outcomes: Mapping[str, int], struck: Mapping[str, int], seconds: float) -> None:
        """Add a finished round: how many devices ended in each state, and how many each fault hit."""
        self.rows.append((status, dict(outcomes), dict(struck), seconds))

    def print(self, console: Console) -> None:
        """Print the table; nothing if no round has ended."""
        if not self.rows:
            return
        table = Table(title="Rounds of this fleet")
        for name in ("round", "system", "end", "joined", "in the sum"):
            table.add_column(name, justify="left" if name in ("round", "system", "end") else "right")
        for name in FAULTS if self.faults else ():
            table.add_column(name, justify="right")
        for name in ("MB", "seconds", "why"):
            table.add_column(name, justify="left" if name == "why" else "right")
        for status, _, struck, seconds in self.rows:
            counted = status.uploaded if status.survivors is None else status.survivors
            table.add_row(
                status.round,
                status.system,
                status.state,
                str(status.joined),
                str(counted),
                *(str(struck.get(name, 0)) for name in (FAULTS if self.faults else ())),
                f"{status.received_bytes / 1e6:.1f}",
                f"{seconds:.1f}",
                status.reason or "",
            )
        console.print(table)
        applied = [row for row in self.rows if row[0].state == "applied"]
        console.print(
            f"{len(applied)} of {len(self.rows)} rounds applied, {median(row[3] for row in self.rows):.1f} s each "
            "(median).",
            markup=False,
        )
