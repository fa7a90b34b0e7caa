"""What views have handed over, by round: the account of a view inside its device."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from device_app.store.database import Database
from device_app.store.moment import to_us


class ViewLog:
    """One row a view and round, on the disk before the view's process starts."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def record(self, round_id: str, views: Sequence[str], *, clip: float, sigma: float, at: datetime) -> None:
        """These views are about to hand over a gradient each. Once more in the same round counts as one
        gradient with the noise that both together leave."""
        with self._database.transaction():
            for view in views:
                self._database.write(
                    """INSERT INTO view_round (round, view, clip, sigma, at) VALUES (?, ?, ?, ?, ?)
                       ON CONFLICT (round, view) DO UPDATE
                       SET sigma = 1 / sqrt(1 / (sigma * sigma) + 1 / (excluded.sigma * excluded.sigma))""",
                    (round_id, view, clip, sigma, to_us(at)),
                )

    def sigmas(self, view: str) -> list[float]:
        """The noise multiplier of each round this view took part in, oldest first."""
        found = self._database.rows("SELECT sigma FROM view_round WHERE view = ? ORDER BY at, round", (view,))
        return [row[0] for row in found]
