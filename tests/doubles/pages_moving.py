"""Takes files over for a stand-in device."""

from __future__ import annotations

from types import SimpleNamespace

from device_app.errors import ExportRefused

GOOD = b"good"


class PagesMoving:
    """Nothing is taken but one file."""

    def take_over(self, content: bytes, *, used: bool, settings: bool) -> None:
        """Refuses a field of any other."""
        if content != GOOD:
            raise ExportRefused("tables.click.3.at: must be a whole number")


class PagesPictures:
    """No publisher's picture is here; whether they are wanted is remembered."""

    def __init__(self) -> None:
        self.wanted = True

    def shown(self) -> bool:
        return self.wanted

    def show(self, wanted: bool) -> None:
        self.wanted = wanted

    def path(self, news_id: str) -> str:
        return ""

    def content(self, news_id: str) -> bytes | None:
        return None


def pages_parts() -> SimpleNamespace:
    """Of a device's parts what pages reach by themselves."""
    news = SimpleNamespace(cards=lambda news_ids: [])
    return SimpleNamespace(
        stores=SimpleNamespace(pictures=PagesPictures(), news=news), serving=SimpleNamespace(erasures=0)
    )
