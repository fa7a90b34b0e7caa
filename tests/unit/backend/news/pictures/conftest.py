"""A worker over a pool of pictured stories."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import Engine

from backend.news.pictures import fetcher as fetcher_module
from tests.doubles.picture_files import small_picture
from tests.doubles.picture_rig import FEED, OTHER, Rig


@pytest.fixture
def rig(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rig:
    """A rig without conversion: each picture's bytes choose a colour, so that each has its own content."""
    colours = ("teal", "navy", "olive", "maroon", "purple", "gray")
    monkeypatch.setattr(
        fetcher_module, "convert", lambda content, *_: small_picture(colours[sum(content) % len(colours)])
    )
    made = Rig(engine, tmp_path)
    made.feeds.add(FEED, made.clock(), pictures=True)
    made.feeds.add(OTHER, made.clock())
    return made
