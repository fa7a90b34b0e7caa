"""Fixtures: the small world of tests/doubles, once for each file.

A real backend over HTTP and real devices.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.doubles import small_world
from tests.doubles.small_world import SmallWorld


@pytest.fixture(scope="session")
def first_backend(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backend's data folder with its first release, exported once a run (about half a minute)."""
    return small_world.first_folder(small_world.shared_cache(tmp_path_factory))


@pytest.fixture(scope="module")
def idle_world(first_backend: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallWorld]:
    """A world whose backend is not serving yet."""
    with small_world.small_world(first_backend, tmp_path_factory.mktemp("world")) as world:
        yield world


@pytest.fixture(scope="module")
def world(idle_world: SmallWorld) -> Iterator[SmallWorld]:
    """A world whose backend serves for the whole file."""
    with idle_world.backend():
        yield idle_world
