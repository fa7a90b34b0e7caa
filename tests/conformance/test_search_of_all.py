"""Both devices find the same in the copy of the pool, in the same order: by a search, and on a topic's page.

Oracle: the Python device over the same store, whose own search `tests/unit/device_app/journeys` compares with a scan of
every card.
"""

from __future__ import annotations

import random
import shutil
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from device_app.composition import build_device
from device_app.device import Device
from device_app.feed.whole_pool import SearchResults
from device_app.privacy.noise_sources import SeededNoise
from device_app.settings import DeviceSettings, PerformanceSettings
from device_app.store.news import Naming
from device_app.store.pool_codes import ROWS_A_STEP
from tests.conformance.node_end import ask_node
from tests.doubles.backend import FakeBackend
from tests.doubles.clock import StillClock
from tests.doubles.news import NOW

LISTED = 50
WORDS = (("harbour", 1), ("harbour", 2), ("harbour", 4), ("Harbour, part 1", 1), ("nothing has this", 1), ("港", 1))


def searched_pool(backend: FakeBackend) -> None:
    """Every fifth headline has a word with a diacritic, and one is in a script without spaces."""
    cards = tuple(
        card.model_copy(update={"title": f"The hárbour, part {row}{' 港口の朝' if row == 10 else ''}"})
        if row % 5 == 0
        else card
        for row, card in enumerate(backend.pool.cards)
    )
    backend.pool = replace(backend.pool, cards=cards)
    backend.publish()


def result_fields(device: Device, found: SearchResults) -> dict[str, Any]:
    cards, near = [card.id for card in found.cards], [card.id for card in found.near]
    missing = list(device.parts.stores.news.missing([*cards, *near]))
    return {"cards": cards, "near": near, "total": found.total, "upto": found.upto, "here": missing}


@pytest.fixture(scope="module")
def browser_input(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the browser end's input; "mine": what the Python device finds."""
    folder, backend = tmp_path_factory.mktemp("search"), FakeBackend(pool_codes=True)
    searched_pool(backend)
    settings = DeviceSettings(data_dir=folder, performance=PerformanceSettings(default_list_limit=LISTED))
    device = build_device(
        settings,
        transport=backend.transport(),
        noise=SeededNoise("search"),
        chance=random.Random(5),
        clock=StillClock(NOW),
    )
    try:
        device.sync()
        device.reading.feed(refresh=True)
        while device.prefetch_step():
            pass
        database = device.parts.stores.database
        database.rows("PRAGMA wal_checkpoint(TRUNCATE)")
        copy = Path(shutil.copy(database.path, folder / "given.sqlite"))
        cards = backend.pool.cards
        names: list[tuple[Naming, str]] = [
            ("topic", cards[0].topic),
            ("section", cards[7].section),
            ("publisher", cards[3].publisher),
            ("topic", "no such topic"),
        ]
        backend.requests.clear()
        mine: dict[str, Any] = {"size": device.whole_pool.size()}
        mine["first"] = [result_fields(device, device.library.search(words, page)) for words, page in WORDS]
        hits = device.whole_pool.hits(WORDS[0][0])
        mine["relevances"] = [[hit.id, hit.relevance, hit.published_us] for hit in hits]
        mine["named"] = [device.whole_pool.named(kind, name) for kind, name in names]
        mine["again"] = [result_fields(device, device.library.search(words, page)) for words, page in WORDS]
        assert backend.requests == []
        given = {
            "file": copy.as_uri(),
            "searches": None,
            "privacy": device.settings.privacy.model_dump(mode="json"),
            "url": "http://127.0.0.1:9",
            "key": "00" * 32,
            "seed": "5",
            "now": NOW.timestamp() * 1000,
            "more": False,
            "words": WORDS,
            "names": names,
        }
    finally:
        device.close()
    return given | {"mine": mine}


@pytest.fixture(scope="module")
def both_results(browser_input: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what the Python device and the browser's find."""
    (theirs,) = ask_node([("feed_searched", {name: value for name, value in browser_input.items() if name != "mine"})])
    return browser_input["mine"], theirs


def test_both_devices_search_the_whole_pool_before_loading_a_model(both_results: Any) -> None:
    """As in a tab that was reloaded with a search in its address."""
    mine, theirs = both_results
    assert mine["size"] == 800
    assert (theirs["loaded"], theirs["size"]) == (False, mine["size"])


def test_first_search_indexes_the_pool_in_small_steps(both_results: Any) -> None:
    steps = both_results[1]["steps"]
    assert steps[-1] == 800
    assert all(0 < after - before <= ROWS_A_STEP for before, after in pairwise([0, *steps]))


def test_topic_list_waits_until_the_pool_copy_is_read_and_then_keeps_its_cards(browser_input: dict[str, Any]) -> None:
    """The copy's encoder differs from the release's, then equals it, then differs again."""
    asked = {name: value for name, value in browser_input.items() if name not in ("mine", "words", "names")}
    topic = browser_input["names"][0][1]
    (found,) = ask_node([("feed_unread", asked | {"words": WORDS[0][0], "topic": topic})])
    before, read, after = found
    assert before["size"] is after["size"] is None
    assert before["total"] < read["total"] == after["total"] == 160
    assert read["size"] == 800
    assert (before["statuses"], read["statuses"], after["statuses"]) == ([200, 404], [200, 200], [200, 200])


def test_search_during_an_erase_finds_and_stores_nothing(browser_input: dict[str, Any]) -> None:
    """tests/privacy/test_deleted_meanwhile does the same to the Python device."""
    asked = {name: value for name, value in browser_input.items() if name not in ("mine", "words", "names")}
    topic = browser_input["names"][0][1]
    (found,) = ask_node([("feed_erased", asked | {"words": WORDS[0][0], "topic": topic})])
    assert found.pop("before") == "page"
    assert found == {
        "found": "Everything on this device has just been erased.",
        "page": {"kind": "see_other", "path": "/welcome"},
        "erased": {"kind": "see_other", "path": "/welcome?said=erased", "erased": True},
        "lists": [True, None],
        "held": 0,
        "news": 0,
        "indexed": 0,
    }


def test_both_devices_find_the_same_stories_in_the_same_order(both_results: Any) -> None:
    mine, theirs = both_results
    assert mine["first"][0]["total"] == 160
    assert [len(page["cards"]) for page in mine["first"]][:3] == [50, 50, 10]
    assert mine["first"][-1]["total"] == 1, "of a script without spaces"
    assert theirs["first"] == mine["first"]
    assert theirs["again"] == mine["again"] == mine["first"], "results hold still"


def test_both_devices_show_the_same_similar_stories_on_the_first_page_only(both_results: Any) -> None:
    mine, theirs = both_results
    assert 1 <= len(mine["first"][0]["near"]) <= 10
    assert [page["near"] for page in mine["first"][1:3]] == [[], []]
    assert [page["near"] for page in theirs["first"]] == [page["near"] for page in mine["first"]]


def test_listed_search_results_can_be_opened(both_results: Any) -> None:
    for found in both_results:
        assert all(page["here"] == [] for page in found["first"])


def test_both_devices_give_search_terms_the_same_weights(both_results: Any) -> None:
    mine, theirs = both_results
    assert len(mine["relevances"]) == 160
    for one, other in zip(mine["relevances"], theirs["relevances"], strict=True):
        assert one[0] == other[0]
        assert other[1] == pytest.approx(one[1], rel=1e-9)
        assert one[2] == other[2]


def test_both_devices_list_the_same_articles_of_a_topic_or_publisher(both_results: Any) -> None:
    mine, theirs = both_results
    assert [bool(found) for found in mine["named"]] == [True, True, True, False]
    assert max(map(len, mine["named"])) > LISTED, "more than the lists brought"
    assert theirs["named"] == mine["named"]
