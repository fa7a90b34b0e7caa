"""The separate store of the searches view. Oracle: the file itself, and what was put in."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from device_app.store.database import LazyDatabase
from device_app.store.opinions import Stances
from device_app.store.searches import SEARCH_MIGRATIONS, Searches, SearchVector
from device_app.stores import DeviceStores

MINUTE = timedelta(minutes=1)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LazyDatabase]:
    late = LazyDatabase(tmp_path / "views" / "searches.sqlite", SEARCH_MIGRATIONS)
    yield late
    late.close()


def test_searches_view_has_no_file_until_it_is_used(store: LazyDatabase) -> None:
    searches, stances = Searches(store), Stances(store)
    assert searches.saved() == []
    assert searches.openings() == []
    assert searches.meanings("enc") == {}
    assert stances.followed() == stances.blocked() == set()
    assert not searches.delete(1)
    searches.forget_opened(["N1"])
    searches.looked("ships", datetime.now().astimezone())
    store.erase()
    assert not store.path.parent.exists()


def test_search_is_saved_once_listed_and_deleted_with_its_vector(store: LazyDatabase, now: datetime) -> None:
    searches = Searches(store)
    first = searches.save("  ships   in port ", now)
    assert searches.save("ships in port", now + MINUTE) == first
    assert first.words == "ships in port"
    vector = np.array([0.6, 0.8], np.float32)
    searches.keep_meaning(SearchVector("search", first.words, "enc", vector, now))
    np.testing.assert_array_equal(searches.meanings("enc")["search", first.words].vector, vector)
    assert searches.meanings("other") == {}
    searches.looked("ships in port", now + MINUTE)
    assert searches.saved()[0].looked_at == now + MINUTE
    assert searches.delete(first.id)
    assert not searches.delete(first.id)
    assert searches.saved() == []
    assert searches.meanings("enc") == {}


@pytest.mark.parametrize("words", ["", "   ", "x" * 201])
def test_blank_or_overlong_search_is_named_in_the_error(store: LazyDatabase, now: datetime, words: str) -> None:
    with pytest.raises(ValueError, match="words: 1 to 200 characters"):
        Searches(store).save(words, now)


def test_at_most_fifty_searches_are_saved(store: LazyDatabase, now: datetime) -> None:
    searches = Searches(store)
    for number in range(50):
        searches.save(f"search {number}", now)
    with pytest.raises(ValueError, match="50 searches are saved"):
        searches.save("one more", now)
    assert searches.save("search 7", now).words == "search 7"


def test_deleted_search_leaves_no_byte_of_its_text(store: LazyDatabase, now: datetime) -> None:
    searches = Searches(store)
    kept = searches.save("axolotl pond", now)
    searches.opened("N1", now)
    searches.delete(kept.id)
    store.close()
    for file in store.path.parent.iterdir():
        assert b"axolotl" not in file.read_bytes(), file.name
    assert searches.openings() == [("N1", now)]
    searches.forget_opened(["N1"])
    assert searches.openings() == []


def test_erase_deletes_both_views(tmp_path: Path, now: datetime) -> None:
    stores = DeviceStores(tmp_path / "device.sqlite")
    stores.searches.save("axolotl pond", now)
    stores.stances.set("topic", "axolotls", "follow", now)
    stores.clicks.add("N1", "f", now)
    stores.erase()
    assert stores.searches.saved() == []
    assert stores.stances.followed() == set()
    assert stores.clicks.count() == 0
    stores.close()
    for file in (tmp_path / "views").iterdir():
        assert b"axolotl" not in file.read_bytes(), file.name
