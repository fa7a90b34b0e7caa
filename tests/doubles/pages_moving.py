"""Takes files over for a stand-in device."""

from __future__ import annotations

from device_app.errors import ExportRefused

GOOD = b"good"


class PagesMoving:
    """Nothing is taken but one file."""

    def take_over(self, content: bytes, *, used: bool, settings: bool) -> None:
        """Refuses a field of any other."""
        if content != GOOD:
            raise ExportRefused("tables.click.3.at: must be a whole number")
