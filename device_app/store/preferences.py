"""The reader's preferences by name, and model parameters that stay on this device.

Preferences are small: privacy switches, chosen sections, names of interests. The parameters are a release's private
ones and each view's own user tower.
"""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load, save

from device_app.store.database import Database, LazyDatabase

MOVED_SEARCHES = "moved_searches"
"""Another view's rows waiting to be moved into its store (`exported.MovedSearches`); left out of copies and exports."""
CHOSEN_SECTIONS = "chosen_sections"
"""Sections that lead the first pages, until there is enough reading to rank by."""
TAKEN_OVER = "taken_over"
"""When another device's export was last imported."""
LAST_ANSWER = "last_answer"
"""Encoder and ids of the last answer to a report, and whether the report was blank."""
PICTURES_HIDDEN = "pictures_hidden"
"""Whether the reader has hidden publishers' pictures."""
FEEDS_ONLY_UNREAD = "feeds_only_unread"
"""Whether the lists of the reader's own feeds leave out what was read."""
RARE_FIRST = "rare_first"
"""False: publishers that publish rarely get no lift in the ranking."""
TRAINING_PAUSED = "training_paused"
"""Whether training is paused: it stays on, but nothing is sent."""


class Preferences:
    """JSON values by name."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, name: str) -> Any:
        """Return the value, or None if it was never set."""
        found = self._database.row("SELECT value FROM preference WHERE name = ?", (name,))
        return json.loads(found[0]) if found else None

    def set(self, name: str, value: Any) -> None:
        """Store a JSON value; None deletes it."""
        with self._database.transaction():
            if value is None:
                self._database.write("DELETE FROM preference WHERE name = ?", (name,))
            else:
                self._database.write(
                    "INSERT OR REPLACE INTO preference (name, value) VALUES (?, ?)",
                    (name, json.dumps(value, allow_nan=False)),
                )

    def rows(self) -> list[tuple[str, str]]:
        """Return all preferences as stored, for a copy: name and JSON."""
        found = self._database.rows(
            "SELECT name, value FROM preference WHERE name <> ? ORDER BY name", (MOVED_SEARCHES,)
        )
        return [(row[0], row[1]) for row in found]


Parameters = Mapping[str, NDArray[np.float32]]


class PrivateParameters:
    """Private parameters by the model's name.

    They are kept across releases, but not across a change of the encoder that they were trained with.

    Formal guarantees: none by itself. Values are read by ranking and training on this device; what is sent is made from
    `SharedUpdate` only, which refuses them.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, model: str, encoder: str) -> Parameters:
        """Return parameters by name; empty before the first step under this encoder."""
        found = self._database.row(
            "SELECT parameters FROM private_parameters WHERE model = ? AND encoder = ?", (model, encoder)
        )
        return {} if found is None else load(found[0])

    def keep(self, model: str, encoder: str, parameters: Parameters) -> None:
        """Replace the parameters, in the caller's transaction.

        Raises ValueError for values that are not finite.
        """
        for name, value in parameters.items():
            if not np.isfinite(value).all():
                raise ValueError(f"parameter {name}: has values that are not finite")
        blob = save({name: np.ascontiguousarray(value, dtype=np.float32) for name, value in parameters.items()})
        self._database.write(
            """INSERT INTO private_parameters (model, encoder, parameters, steps) VALUES (?, ?, ?, 1)
               ON CONFLICT (model) DO UPDATE SET parameters = excluded.parameters,
                 steps = iif(encoder = excluded.encoder, steps + 1, 1), encoder = excluded.encoder""",
            (model, encoder, blob),
        )


TowerWeights = Mapping[str, NDArray[np.float32]]


class TowerStore:
    """User towers by the model's name. The view's own process writes them; serving reads them."""

    def __init__(self, database: Database | LazyDatabase) -> None:
        self._database = database

    def get(self, model: str) -> TowerWeights | None:
        """Return the parameters by name, or None before the first step."""
        found = self._database.row("SELECT parameters FROM tower WHERE model = ?", (model,))
        return None if found is None else load(found[0])

    def keep(self, model: str, parameters: TowerWeights) -> None:
        """Replace the parameters. Raises ValueError for values that are not finite."""
        for name, value in parameters.items():
            if not np.isfinite(value).all():
                raise ValueError(f"parameter {name}: has values that are not finite")
        blob = save({name: np.ascontiguousarray(value, dtype=np.float32) for name, value in parameters.items()})
        with self._database.transaction():
            self._database.write(
                """INSERT INTO tower (model, parameters, steps) VALUES (?, ?, 1)
                   ON CONFLICT (model) DO UPDATE SET parameters = excluded.parameters, steps = steps + 1""",
                (model, blob),
            )
