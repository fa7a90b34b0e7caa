"""The browser's device makes the same feed as the Python device from the same store, release, clock and seed.

It also syncs with the same requests. Oracles: the Python device, numpy and scipy.
"""

from __future__ import annotations

import random
import re
import shutil
import sqlite3
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter

from device_app.composition import build_device
from device_app.device import Device
from device_app.feed.item import Feed
from device_app.privacy.noise_sources import SeededNoise
from device_app.privacy.settings import PrivacySettings
from device_app.reading.click_clusters import average_linkage
from device_app.settings import PerformanceSettings
from device_app.store.opinions import ReactionKind
from device_app.stores import searches_of
from protocol.popularity import Popularity
from protocol.similarity import similarity_floor
from tests.conformance.node_end import ask_node
from tests.doubles.long_form import by_length
from tests.doubles.new_page import new_page
from tests.doubles.small_world import WORDS, SmallWorld

pytestmark = pytest.mark.node

FEED = TypeAdapter(Feed)
READERS = by_length(8, long=20)
"""Eight have every mode, slot and notice, too."""
TOPICS = [(section, topic) for section, topics in WORDS.items() for topic in topics]
NOW = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=5)
MODES = ("interest", "broadcast", "none", "auto")

PARTS = {
    r"GET /v1/releases/current": "release",
    r"GET /v1/releases/chain": "chain",
    r"GET /v1/blobs/": "blobs",
    r"GET /v1/news/front": "list",
    r"GET /v1/releases/\d+/popularity": "popularity",
    r"POST /v1/news/bodies": "texts",
    r"GET /v1/releases/\d+/codes": "pool",
    r"GET /v1/pictures": "pictures",
}
"""What a request is for, by the beginning of its method and path."""
FIRST_LOOK = ["release", "blobs", "list", "popularity", "texts", "pool", "blobs", "pictures"]
"""Models of feeds and reports come first of a release, those of rounds after all that pages need."""
SECOND_LOOK = ["release", "chain", "list", "popularity", "pool", "pictures"]


@dataclass(frozen=True)
class RecordedReader:
    """The browser device's input, and what the Python device made of the same."""

    asked: dict[str, Any]
    feed: Feed
    interests: tuple[str, ...]
    spent: float


@pytest.fixture(scope="module")
def synced(world: SmallWorld) -> Path:
    """Return the folder of a device that has synced and was closed, with some articles counted as popular."""
    device = world.device("synced")
    device.sync()
    stores = device.parts.stores
    kept, release = stores.default_list.current(), stores.releases.current()
    assert kept is not None
    assert release is not None
    draw = random.Random(4)
    lifted = tuple(sorted(draw.sample(kept.news_ids, 60)))
    reported = Popularity(
        release=release.manifest.release,
        rounds=1,
        devices=60,
        counted_at=NOW - timedelta(hours=1),
        news=lifted,
        lifts=tuple(draw.randint(-64, 64) for _ in lifted),
        popular=lifted[:20],
    )
    stores.popularity.keep(reported.model_dump_json().encode(), NOW)
    device.close()
    world.devices.remove(device)
    return device.settings.home


def settings_of(number: int) -> PrivacySettings:
    return PrivacySettings(mode=MODES[number % len(MODES)], searches_in_reports=number % 5 != 2)


def open_device(world: SmallWorld, synced: Path, number: int, **replaced: Any) -> Device:
    settings = world.device_settings(
        f"reader-{number}", privacy=settings_of(number), performance=PerformanceSettings(watch_backend=False)
    )
    if not settings.home.exists():
        shutil.copytree(synced, settings.home)
    return build_device(settings, blob_folder=synced / "blobs", clock=lambda: NOW, **replaced)


def give_history(device: Device, number: int) -> None:
    """Give a reader a past that depends on the number."""
    draw = random.Random(f"reader {number}")
    stores = device.parts.stores
    kept = stores.default_list.current()
    assert kept is not None
    cards = stores.news.cards(kept.news_ids)
    tastes = draw.sample(TOPICS, 3)
    liked = [card for card in cards if (card.section, card.topic) in tastes]
    clicked = draw.sample(liked, min(len(liked), number * 3)) + draw.sample(cards, number // 3)
    draw.shuffle(clicked)
    for place, card in enumerate(clicked):
        stores.clicks.add(card.id, f"feed-{place // 4}", NOW - timedelta(minutes=5 * (len(clicked) - place)))
    rest = [card for card in cards if card not in clicked]
    kinds: tuple[ReactionKind, ...] = ("like", "less", "save", "like")
    for place, kind in enumerate(kinds[: number % 5]):
        stores.feedback.react(draw.choice(rest).id, kind, NOW - timedelta(minutes=place))
    for feed in range(number % 3):
        shown = [card.id for card in draw.sample(cards, 25)]
        stores.impressions.record(f"seen-{feed}", shown, NOW - timedelta(hours=1 + feed))
    if number % 2:
        stores.preferences.set("chosen_sections", sorted(draw.sample(sorted(WORDS), 2)))
    if number % 7 == 3 and clicked:
        device.parts.names.mute([card.id for card in clicked if card.topic == clicked[0].topic], True)
    if number % 7 == 5 and clicked:
        device.parts.names.name([card.id for card in clicked if card.topic == clicked[0].topic], "Mine")
    stances = [("topic", draw.choice(TOPICS)[1], "follow")] if number % 4 == 1 else []
    stances += [("section", draw.choice(sorted(WORDS)), "block")] if number % 4 == 2 else []
    for stance in stances:
        stores.stances.set(*stance, NOW)  # type: ignore[arg-type]
    for words in draw.sample(sorted(WORDS), number % 3):
        device.library.save_search(words[:4])


def as_browser_has_it(database: Path, copied: Path) -> str:
    """Return a URL of a complete copy of the file."""
    shutil.copyfile(database, copied)
    connection = sqlite3.connect(copied)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return copied.as_uri()


@pytest.fixture(scope="module")
def recorded(world: SmallWorld, synced: Path) -> list[RecordedReader]:
    """Return readers with the browser device's input and the Python device's feed."""
    found = []
    for number in range(READERS):
        device = open_device(world, synced, number)
        give_history(device, number)
        device.close()
        file = as_browser_has_it(device.settings.database, synced / f"reader-{number}.sqlite")
        searches: str | None = None
        if searches_of(device.settings.database).exists():
            searches = as_browser_has_it(searches_of(device.settings.database), synced / f"searches-{number}.sqlite")
        seed = 1_000 + number
        device = open_device(world, synced, number, chance=random.Random(seed), noise=SeededNoise(seed))
        serving = device.parts.serving
        feed = new_page(device)
        more = number % 5 == 4
        if more:
            grown = serving.more(feed.feed_id)
            assert grown is not None
            feed = grown
        asked = {
            "file": file,
            "searches": searches,
            "privacy": settings_of(number).model_dump(),
            "url": world.url,
            "key": sha256(f"ownfeed simulated noise {seed}".encode()).hexdigest(),
            "seed": str(seed),
            "now": NOW.timestamp() * 1_000,
            "more": more,
        }
        spent = device.parts.ledger.spent_today("reports")
        found.append(RecordedReader(asked, feed, serving.profile().names, spent))
        device.close()
    return found


@pytest.fixture(scope="module")
def blobs(synced: Path) -> tuple[str, list[str]]:
    """Return the question that gives the browser's end the release's graphs and weights."""
    return "feed_blobs", [file.as_uri() for file in sorted((synced / "blobs").iterdir())]


@pytest.fixture(scope="module")
def browser_feeds(recorded: list[RecordedReader], blobs: tuple[str, list[str]]) -> list[dict[str, Any]]:
    """Return what the browser's device made for each reader, all in one process."""
    _, *answers = ask_node([blobs, *(("feed_built", reader.asked) for reader in recorded)])
    return answers


@pytest.mark.long_form
def test_both_devices_show_readers_the_same_stories_in_order(
    recorded: list[RecordedReader], browser_feeds: list[dict[str, Any]]
) -> None:
    for number, (reader, answer) in enumerate(zip(recorded, browser_feeds, strict=True)):
        theirs = FEED.validate_json(answer["feed"])
        mine = reader.feed
        assert (theirs.mode, theirs.notice) == (mine.mode, mine.notice), number
        assert [item.card.id for item in theirs.items] == [item.card.id for item in mine.items], number
        assert [item.slot for item in theirs.items] == [item.slot for item in mine.items], number
        assert [item.reason for item in theirs.items] == [item.reason for item in mine.items], number
        assert [item.score for item in theirs.items] == pytest.approx([item.score for item in mine.items], abs=1e-3)
        assert (theirs.recalled, theirs.fresh, theirs.complete) == (mine.recalled, mine.fresh, mine.complete)
        assert tuple(answer["interests"]) == reader.interests, number
        assert answer["spent"] == reader.spent, number
    assert {reader.feed.mode for reader in recorded} == {"personal", "cold", "front"}
    assert {item.slot for reader in recorded for item in reader.feed.items} >= {
        "lead",
        "for_you",
        "fresh",
        "explore",
        "more",
    }
    assert sum(reader.spent > 0 for reader in recorded) >= by_length(2, long=3)
    assert sum(reader.asked["searches"] is not None for reader in recorded) >= READERS // 2


def test_browser_starts_with_the_last_answer_and_erases_it(
    recorded: list[RecordedReader], blobs: tuple[str, list[str]]
) -> None:
    """Regression: the first pages of a visit had the default list alone until the next request was due."""
    reader = next(each for each in recorded if each.feed.mode == "personal" and each.feed.recalled)
    _, (before, after, erased) = ask_node([blobs, ("feed_started_again", reader.asked)])
    assert before == after == ["personal", reader.feed.recalled]
    assert erased is None


def test_concurrent_release_swaps_free_no_model_in_use(
    recorded: list[RecordedReader], blobs: tuple[str, list[str]]
) -> None:
    reader = recorded[-1]
    _, answer = ask_node([blobs, ("feed_swapped", reader.asked)])
    assert answer["swapped"]
    assert tuple(answer["before"]) == tuple(answer["after"]) == reader.interests


def test_browser_sync_sends_the_same_requests_as_the_python_device(world: SmallWorld) -> None:
    settings = world.device_settings("fresh", privacy=PrivacySettings(mode="broadcast"))
    before = len(world.requests())
    device = world.device("fresh", privacy=settings.privacy)
    device.sync()
    while device.prefetch_step():
        pass
    device.sync()
    python = world.requests()[before:]
    asked = {
        "privacy": settings.privacy.model_dump(),
        "url": world.url,
        "key": "00" * 32,
        "seed": "1",
        "now": NOW.timestamp() * 1_000,
        "more": False,
    }
    (answer,) = ask_node([("feed_synced", asked)])
    browser = world.requests()[before + len(python) :]
    assert (answer["items"], answer["mode"], answer["lead"]) == (30, "cold", 1)
    assert answer["body"]
    assert answer["same"]
    assert not answer["again"]

    def lines(requests: list[Any]) -> list[tuple[str, str, str, bytes]]:
        return [(one.method, one.path, one.query, one.body) for one in requests]

    assert sorted(lines(browser)) == sorted(lines(python))  # in another order: a first page waits for little
    assert parts_of_a_start([[one.method, one.path] for one in browser]) == FIRST_LOOK + SECOND_LOOK
    assert [(line["method"], line["status"]) for line in answer["sent"]] == [
        (one.method, one.status) for one in browser
    ]
    assert all(line["words"] for line in answer["sent"])


def parts_of_a_start(sent: list[list[str]]) -> list[str]:
    """Return the purposes of a browser's requests in order; consecutive ones of one purpose count once."""
    asked = (f"{method} {path}" for method, path in sent)
    named = [next(part for start, part in PARTS.items() if re.match(start, one)) for one in asked]
    return [part for part, before in zip(named, ["", *named], strict=False) if part != before]


def requests_at_start(world: SmallWorld, *, reads: bool = False, stalled: bool = False) -> dict[str, Any]:
    asked = {
        "privacy": PrivacySettings(mode="broadcast").model_dump(),
        "url": world.url,
        "key": "00" * 32,
        "seed": "1",
        "now": NOW.timestamp() * 1_000,
        "more": False,
        "reads": reads,
        "stalled": stalled,
    }
    (answer,) = ask_node([("feed_started", asked)])
    assert answer["alerts"] == []
    assert answer["items"] == 30
    return dict(answer)


def test_request_order_at_start_does_not_depend_on_the_reader(world: SmallWorld) -> None:
    idle, reading = requests_at_start(world), requests_at_start(world, reads=True)
    assert parts_of_a_start(idle["sent"]) == parts_of_a_start(reading["sent"]) == FIRST_LOOK
    assert sorted(idle["sent"]) == sorted(reading["sent"])
    assert idle["texts"] == reading["texts"] == 30


def test_feed_does_not_wait_for_texts_pool_or_round_models(world: SmallWorld) -> None:
    """Pauses never end here, so nothing is requested that comes after one."""
    found = requests_at_start(world, stalled=True)
    assert parts_of_a_start(found["sent"]) == FIRST_LOOK[: FIRST_LOOK.index("popularity") + 1]
    assert found["texts"] == 0


def test_random_draws_clusters_and_similarities_match_in_browser_and_python() -> None:
    draw = np.random.default_rng(8)
    seeds: list[int | str] = [0, 1, 17, 2**31, 2**64 + 5, "12345678901234567890 rowing-07", "é", ""]
    rows = draw.normal(size=(70, 16)).astype(np.float32)
    rows[40:50] = rows[0] + 0.1 * rows[40:50]  # some near each other, and some alike
    rows[60:63] = rows[5]
    asked = [("int" if isinstance(seed, int) else "text", str(seed)) for seed in seeds]
    cuts = [(1.0, 5), (4.5, 5), (5.0, 40), (6.0, 3), (9.0, 5)]
    reported = [
        ("feed_vectors", {"rows": rows.ravel().tolist(), "width": 16, "distance": distance, "limit": limit})
        for distance, limit in cuts
    ]
    chances, *found = ask_node([("feed_chance", asked), *reported])
    for seed, answer in zip(seeds, chances, strict=True):
        chance = random.Random(seed)
        assert answer["bits"] == [str(chance.getrandbits(64)) for _ in range(400)], seed
        assert answer["random"] == chance.random()
    for (distance, limit), answer in zip(cuts, found, strict=True):
        assert answer["labels"] == average_linkage(rows, distance, limit).tolist(), (distance, limit)
        assert answer["floor"] == pytest.approx(similarity_floor(rows), abs=1e-6)
