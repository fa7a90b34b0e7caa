"""The clicks cached between feeds equal what a freshly started device would read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from device_app.feed.preference_reader import PreferenceReader
from device_app.reading.interest_profile import InterestNames
from device_app.stores import DeviceStores
from protocol.news import NewsCard
from tests.doubles.news import NOW, synthetic_pool

POOL = synthetic_pool(40)
OLD, NEW = "a" * 64, "b" * 64


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[DeviceStores]:
    opened = DeviceStores(tmp_path / "device.sqlite")
    opened.news.put(POOL.cards, POOL.vectors, OLD, NOW)
    for row in range(10):
        opened.clicks.add(POOL.cards[row].id, "f1", NOW + timedelta(minutes=row))
    yield opened
    opened.database.close()


def _reader(stores: DeviceStores) -> PreferenceReader:
    names = InterestNames(stores.preferences)
    return PreferenceReader(stores, names)


def _read(reader: PreferenceReader, encoder: str = OLD) -> list[tuple[int, NewsCard, bytes]]:
    return [(one.click_id, one.card, one.vector.tobytes()) for one in reader.reading(encoder).active]


def test_only_new_clicks_are_read_from_the_store(stores: DeviceStores, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = _reader(stores)
    _read(reader)
    asked: list[Sequence[str]] = []
    cards = stores.news.cards

    def listened(ids: Sequence[str]) -> list[NewsCard]:
        asked.append(ids)
        return cards(ids)

    monkeypatch.setattr(stores.news, "cards", listened)
    stores.clicks.add(POOL.cards[20].id, "f2", NOW + timedelta(hours=1))
    assert [card.id for _, card, _ in _read(reader)] == [POOL.cards[row].id for row in (*range(10), 20)]
    assert asked == [[POOL.cards[20].id]]
    assert _read(reader) == _read(_reader(stores))


def test_deleted_click_returns_only_with_a_new_click(stores: DeviceStores) -> None:
    reader = _reader(stores)
    deleted = _read(reader)[3]
    stores.clicks.delete(deleted[0])
    assert [one[0] for one in _read(reader)] == [1, 2, 3, 5, 6, 7, 8, 9, 10]
    stores.clicks.add(deleted[1].id, "f1", NOW + timedelta(hours=1))
    assert _read(reader)[-1] == (11, *deleted[1:])


def test_corrected_headline_is_used_and_the_vector_of_the_click_stays(stores: DeviceStores) -> None:
    reader = _reader(stores)
    _read(reader)
    corrected = POOL.cards[2].model_copy(update={"title": "Corrected"})
    stores.news.put([corrected], -POOL.vectors[2:3], OLD, NOW)
    assert _read(reader)[2] == (3, corrected, POOL.vectors[2].tobytes())
    ids, rest = [POOL.cards[2].id, POOL.cards[30].id], -POOL.vectors[[2, 30]]
    stores.news.put_vectors(ids, rest, OLD, of_clicked=True)
    assert _read(reader)[2][2] == POOL.vectors[2].tobytes(), "nor does a shard replace it"
    np.testing.assert_array_equal(stores.news.vectors(ids, OLD)[1][1], rest[1])


def test_clicks_under_another_encoder_use_its_own_vectors(stores: DeviceStores) -> None:
    reader = _reader(stores)
    _read(reader)
    assert _read(reader, NEW) == []
    ids, others = [card.id for card in POOL.cards], np.ascontiguousarray(POOL.vectors[::-1])
    stores.news.put_vectors(ids, others, NEW)
    assert _read(reader, NEW) == [], "clicked news gets a new encoder's vectors with all others, from its shards"
    stores.news.put_vectors(ids, others, NEW, of_clicked=True)
    assert [vector for _, _, vector in _read(reader, NEW)] == [POOL.vectors[-1 - row].tobytes() for row in range(10)]
    assert [vector for _, _, vector in _read(reader)] == [POOL.vectors[row].tobytes() for row in range(10)]


def test_erased_device_forgets_clicks_even_when_ids_repeat(stores: DeviceStores) -> None:
    reader = _reader(stores)
    _read(reader)
    stores.database.erase()
    assert _read(reader) == []
    stores.news.put(POOL.cards, POOL.vectors, OLD, NOW)
    assert stores.clicks.add(POOL.cards[30].id, None, NOW) == 1
    assert [(click, card.id) for click, card, _ in _read(reader)] == [(1, POOL.cards[30].id)]


def test_pruned_articles_are_dropped_from_memory_too(stores: DeviceStores) -> None:
    reader = _reader(stores)
    _read(reader)
    assert stores.news.prune_vectors([NEW]) == len(POOL.cards)
    assert _read(reader) == []
