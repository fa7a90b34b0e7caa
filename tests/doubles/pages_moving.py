"""File import for a stand-in device."""

from __future__ import annotations

from types import SimpleNamespace

from device_app.errors import ExportRefused

GOOD = b"good"


class PagesMoving:
    """Accepts only the file GOOD."""

    def take_over(self, content: bytes, *, used: bool, settings: bool) -> None:
        """Raise ExportRefused, naming a field, for any other file."""
        if content != GOOD:
            raise ExportRefused("tables.click.3.at: must be a whole number")


class PagesPictures:
    """There is no publisher's picture; it only records whether pictures are wanted."""

    def __init__(self) -> None:
        self.wanted = True

    def shown(self) -> bool:
        return self.wanted

    def show(self, wanted: bool) -> None:
        self.wanted = wanted

    def path(self, news_id: str, number: int = 0) -> str:
        return ""

    def content(self, news_id: str, number: int = 0) -> bytes | None:
        return None


def pages_parts() -> SimpleNamespace:
    """The parts of a device that pages use directly."""
    news = SimpleNamespace(cards=lambda news_ids: [])
    return SimpleNamespace(
        stores=SimpleNamespace(pictures=PagesPictures(), news=news), serving=SimpleNamespace(erasures=0)
    )
