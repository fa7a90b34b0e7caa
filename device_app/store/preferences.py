"""Small choices of the reader by name: privacy switches, chosen sections, names of interests."""

from __future__ import annotations

import json
from typing import Any

from device_app.store.database import Database

MOVED_SEARCHES = "moved_searches"
"""Another view's rows on their way into its store (`moved_searches`): in no copy of this one and no export."""
CHOSEN_SECTIONS = "chosen_sections"
"""Sections that lead the first pages, until the reader's reading has taken over."""
TAKEN_OVER = "taken_over"
"""When another device's export was last taken over."""
PICTURES_HIDDEN = "pictures_hidden"
"""Whether the reader wants to see no pictures of publishers."""
TRAINING_PAUSED = "training_paused"
"""Whether training is on, and nothing is sent."""


class Preferences:
    """JSON values by name."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, name: str) -> Any:
        """The value, or None if it was never set."""
        found = self._database.row("SELECT value FROM preference WHERE name = ?", (name,))
        return json.loads(found[0]) if found else None

    def set(self, name: str, value: Any) -> None:
        """Keep a JSON value; None forgets the name."""
        with self._database.transaction():
            if value is None:
                self._database.write("DELETE FROM preference WHERE name = ?", (name,))
            else:
                self._database.write(
                    "INSERT OR REPLACE INTO preference (name, value) VALUES (?, ?)",
                    (name, json.dumps(value, allow_nan=False)),
                )

    def rows(self) -> list[tuple[str, str]]:
        """All of them as they are kept, for a copy: name and JSON."""
        found = self._database.rows(
            "SELECT name, value FROM preference WHERE name <> ? ORDER BY name", (MOVED_SEARCHES,)
        )
        return [(row[0], row[1]) for row in found]
