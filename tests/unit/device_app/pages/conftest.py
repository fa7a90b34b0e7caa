"""A reader in front of a typical stand-in device."""

from __future__ import annotations

import pytest

from tests.doubles.pages_reader import PagesReader


@pytest.fixture(scope="module")
def reader() -> PagesReader:
    return PagesReader()
