"""Read marks and the table of all articles. Oracle: sets and counts made by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from device_app.store.articles import Place, Selection
from device_app.store.database import Database
from device_app.store.news import report_of
from device_app.store.rows import to_us
from device_app.stores import DeviceStores
from protocol.broadcast import CodeShard
from protocol.news import AlsoIn, NewsCard
from protocol.releases import BlobRef

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.fixture
def stores(tmp_path: Path) -> DeviceStores:
    return DeviceStores(tmp_path / "device.sqlite")


def card(news_id: str, publisher: str = "A", hours: float = 0) -> NewsCard:
    return NewsCard(
        id=news_id, title=news_id, abstract="", url="", publisher=publisher, section="sea", topic="ports",
        published_at=NOW - timedelta(hours=hours, milliseconds=1), weight=0.5,
    )  # fmt: skip


def put(stores: DeviceStores, *cards: NewsCard) -> None:
    stores.news.put_cards(cards, NOW)


def shard(letter: str, count: int) -> CodeShard:
    codes, cards = (BlobRef(sha256=one * 64, size_bytes=1) for one in (letter, letter))
    return CodeShard(name="2026-11-20.1", count=count, codes=codes, cards=cards)


def test_opened_story_is_read_until_its_click_is_deleted(stores: DeviceStores) -> None:
    put(stores, card("a"), card("b"))
    clicked = stores.clicks.add("a", None, NOW)
    assert "a" in stores.read_marks
    assert "b" not in stores.read_marks
    assert stores.articles.counts() == {"A": (2, 1)}
    stores.clicks.delete(clicked)
    assert stores.articles.counts() == {"A": (2, 2)}


def test_events_are_those_of_opened_and_marked_stories_and_cards_that_list_them(stores: DeviceStores) -> None:
    also = AlsoIn(id="c", title="c", publisher="B", url="", published_at=NOW)
    put(stores, *(card(name).model_copy(update={"story": f"event {name}"}) for name in "ab"))
    put(stores, card("lead").model_copy(update={"also": (also,)}), card("unread").model_copy(update={"story": "other"}))
    assert stores.read_marks.events() == frozenset()
    clicked = stores.clicks.add("a", None, NOW)
    stores.read_marks.mark(["b", "c"], NOW)
    assert stores.read_marks.events() == {"event a", "event b", "lead"}
    stores.clicks.delete(clicked)
    assert stores.read_marks.events() == {"event b", "lead"}


def test_read_marks_are_not_clicks_and_can_be_undone_together(stores: DeviceStores) -> None:
    put(stores, card("a"), card("b"), card("c", "B"))
    stores.clicks.add("a", None, NOW)
    batch = stores.read_marks.mark(["a", "b", "c"], NOW)
    assert stores.clicks.count() == 1
    assert stores.read_marks.size(batch) == 2
    assert stores.articles.counts() == {"A": (2, 0), "B": (1, 0)}
    assert stores.read_marks.undo(batch) == 2
    assert stores.read_marks.ids() == {"a"}
    assert stores.read_marks.mark(["a"], NOW) == 0


def test_reopening_a_story_marked_unread_marks_it_read(stores: DeviceStores) -> None:
    put(stores, card("a"))
    stores.clicks.add("a", None, NOW)
    stores.read_marks.unmark(["a"])
    assert "a" not in stores.read_marks
    stores.read_marks.opened("a", NOW)
    assert stores.articles.counts() == {"A": (1, 0)}


def test_marking_a_list_spares_newer_stories_above_and_those_below(stores: DeviceStores) -> None:
    put(stores, *(card(f"n{at}", hours=at) for at in range(6)))
    places = stores.articles.page(Selection(("A",)), 10)
    assert [one.id for one in places] == [f"n{at}" for at in range(6)]
    stores.read_marks.mark_all(Selection(("A",)), NOW, upto=places[1], above=places[4])
    assert stores.read_marks.ids() == {"n1", "n2", "n3"}


def test_pages_of_a_selection_contain_every_article_once(stores: DeviceStores) -> None:
    put(stores, *(card(f"n{at}", "AB"[at % 2], hours=at // 4) for at in range(23)))
    seen: list[str] = []
    after: Place | None = None
    while page := stores.articles.page(Selection(("A", "B")), 5, after):
        seen += [one.id for one in page]
        after = page[-1]
    assert sorted(seen) == sorted(f"n{at}" for at in range(23))
    times = [stores.news.card(one).published_at for one in seen]
    assert times == sorted(times, reverse=True)


def test_unread_list_keeps_stories_read_since_it_was_opened(stores: DeviceStores) -> None:
    put(stores, card("a"), card("b"), card("c"))
    stores.read_marks.mark(["a"], NOW - timedelta(hours=2))
    stores.read_marks.mark(["b"], NOW)
    listed = stores.articles.page(Selection(unread_since=NOW - timedelta(hours=1)), 10)
    assert {one.id for one in listed} == {"b", "c"}


def test_article_counts_follow_the_pool_copy_and_count_shared_cards_once(stores: DeviceStores) -> None:
    pool, first, second = stores.pool, shard("1", 2), shard("2", 1)
    pool.put_shard(first, b"", [card("a"), card("b", "B")])
    put(stores, card("a"))
    pool.put_shard(second, b"", [card("b", "B renamed")])
    assert stores.articles.counts() == {"A": (1, 1), "B renamed": (1, 1)}
    pool.drop()
    assert stores.articles.counts() == {"A": (1, 1)}
    assert stores.articles.page(Selection(), 1) == [(to_us(NOW - timedelta(milliseconds=1)), "a")]


def test_read_mark_survives_removal_and_return_of_the_story(stores: DeviceStores) -> None:
    put(stores, card("a"))
    stores.read_marks.mark(["a"], NOW)
    with stores.database.transaction():
        stores.database.write("DELETE FROM news")
    assert stores.articles.counts() == {}
    put(stores, card("a"))
    assert stores.articles.counts() == {"A": (1, 0)}


def test_old_marks_of_removed_stories_are_pruned(stores: DeviceStores) -> None:
    put(stores, card("here"))
    stores.read_marks.mark(["here", "gone"], NOW - timedelta(days=500))
    stores.read_marks.mark(["gone-lately"], NOW)
    assert stores.read_marks.prune(NOW - timedelta(days=400)) == 1
    assert stores.read_marks.ids() == {"here", "gone-lately"}


def test_imported_marks_stay_separate_from_local_ones(stores: DeviceStores) -> None:
    mine = stores.read_marks.mark(["a"], NOW)
    with stores.database.transaction():
        stores.read_marks.take_over([("a", 1, 7), ("b", 2, mine), ("c", 3, 0)])
    assert stores.read_marks.size(mine) == 1
    assert stores.read_marks.ids() == {"a", "b", "c"}


def test_erase_leaves_no_marks_or_articles(stores: DeviceStores) -> None:
    put(stores, card("a"))
    stores.read_marks.mark(["a"], NOW)
    stores.erase()
    assert not stores.read_marks.ids()
    assert stores.articles.counts() == {}


def test_card_that_is_not_json_is_not_an_article(tmp_path: Path) -> None:
    database = Database(tmp_path / "device.sqlite")
    with database.transaction():
        database.write("INSERT INTO pool_card (shard, place, id, card) VALUES ('s', 0, 'a', '{')")
    assert database.number("SELECT count(*) FROM article") == 0


def test_event_is_listed_once_with_its_sources_but_fully_in_each_publishers_list(stores: DeviceStores) -> None:
    reported = {"story": "storm"}
    reports = [card(f"s{at}", name, hours=at).model_copy(update=reported) for at, name in enumerate("ABBC")]
    put(stores, *reports, card("other", "A", hours=9))
    assert stores.articles.by_name([("section", "sea")], events=True) == ["s0", "other"]
    assert stores.articles.by_name([("publisher", "B")]) == ["s1", "s2"]
    assert [source.id for source in stores.articles.other_sources(reports[0])] == ["s1", "s3"]
    assert stores.articles.other_sources(card("x")) == []


def test_report_grouped_under_another_card_is_in_its_publishers_list(stores: DeviceStores) -> None:
    other = AlsoIn(id="o", title="Same", url="", publisher="B", published_at=NOW - timedelta(hours=1))
    lead = card("a").model_copy(update={"also": (other,)})
    put(stores, lead)
    assert stores.articles.counts() == {"A": (1, 1), "B": (1, 1)}
    assert [source.publisher for source in stores.articles.other_sources(lead)] == ["B"]
    assert stores.articles.leads(["a", "o"]) == {"o": "a"}
    report = report_of(lead, "o")
    assert report is not None
    assert (report.id, report.publisher, [one.id for one in report.also]) == ("o", "B", ["a"])
    put(stores, card("a"))
    assert stores.articles.counts() == {"A": (1, 1)}
    put(stores, lead, report)
    assert stores.articles.leads(["o"]) == {}, "it has a card of its own"


def test_undated_story_is_listed_after_dated_ones(stores: DeviceStores) -> None:
    put(stores, card("old", hours=48), card("undated").model_copy(update={"dated": False}))
    assert [place.id for place in stores.articles.page(Selection(), 10)] == ["old", "undated"]


def test_topics_are_counted_from_an_index_alone(stores: DeviceStores) -> None:
    """Oracle: SQLite's own plan. With 50,000 stories of 500 feeds, a scan took two thirds of a search."""
    put(stores, card("a"), card("b"), card("c").model_copy(update={"section": "sport", "topic": "rowing"}))
    assert stores.articles.topic_sizes() == {("sea", card("a").topic): 2, ("sport", "rowing"): 1}
    plan = stores.news._database.rows(
        "EXPLAIN QUERY PLAN SELECT section, topic, count(*) FROM article WHERE lead IS NULL GROUP BY section, topic"
    )
    assert [step[3] for step in plan] == ["SCAN article USING INDEX article_by_section_and_topic"]
