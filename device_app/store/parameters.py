"""Parameters of models that stay on this device: a release's private ones, and a view's own user tower."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load, save

from device_app.store.database import Database
from device_app.store.late_database import LateDatabase

Parameters = Mapping[str, NDArray[np.float32]]


class PrivateParameters:
    """By the model's name in its release. They outlive releases, but not the encoder in whose space they were learnt.

    Formal guarantees: none by itself. Values are read by ranking and training on this device; what leaves is made of
    `SharedUpdate` alone, which refuses them.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, model: str, encoder: str) -> Parameters:
        """By name; empty before the first step under this encoder."""
        found = self._database.row(
            "SELECT parameters FROM private_parameters WHERE model = ? AND encoder = ?", (model, encoder)
        )
        return {} if found is None else load(found[0])

    def keep(self, model: str, encoder: str, parameters: Parameters) -> None:
        """Keep them in place of those before, in the caller's transaction. Raises ValueError for values not finite."""
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
    """By the model's name in its release. Kept by the view's own process; serving reads them."""

    def __init__(self, database: Database | LateDatabase) -> None:
        self._database = database

    def get(self, model: str) -> TowerWeights | None:
        """The parameters by name, or None before the first step."""
        found = self._database.row("SELECT parameters FROM tower WHERE model = ?", (model,))
        return None if found is None else load(found[0])

    def keep(self, model: str, parameters: TowerWeights) -> None:
        """Keep them in place of those before. Raises ValueError for values that are not finite."""
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
