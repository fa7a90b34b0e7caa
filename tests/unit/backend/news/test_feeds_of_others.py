"""A feed that delivers articles under other people's links. Oracle: what the pool offers afterwards."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlalchemy import Engine

from backend.news.followed_feeds import FollowedFeeds
from backend.news.item import NewsItem
from backend.news.pool import NewsPool
from tests.unit.backend.news.conftest import NOW

PAPER, ATTACKER = "https://paper.example/feed", "https://attacker.example/feed"
LINK = "https://paper.example/1"
Make = Callable[..., NewsItem]


@pytest.fixture
def followed(engine: Engine) -> FollowedFeeds:
    feeds = FollowedFeeds(engine)
    for url in (PAPER, ATTACKER):
        feeds.add(url, NOW)
    return feeds


def title_of(pool: NewsPool) -> str:
    return next(row.title for row in pool.live(NOW) if row.id == "w1")


@pytest.mark.parametrize("source", [PAPER, "a file of the operator's"])
@pytest.mark.usefixtures("followed")
def test_feed_cannot_change_an_article_delivered_by_another(pool: NewsPool, item: Make, source: str) -> None:
    """Regression: the id comes from the link alone, so the later delivery won."""
    pool.add([item("w1", "Harbour opens", url=LINK, publisher="Paper")], source=source)
    report = pool.add([item("w1", "Mayor arrested", url=LINK, publisher="Paper")], source=ATTACKER)
    assert (report.withheld, report.updated) == (1, 0)
    assert title_of(pool) == "Harbour opens"
    assert pool.add([item("w1", "Harbour opened", url=LINK)], source=source).updated == 1


@pytest.mark.parametrize("link", [LINK, "https://www.paper.example/1", "https://news.paper.example/1"])
@pytest.mark.usefixtures("followed")
def test_feed_on_the_host_of_an_article_overrides_other_feeds(pool: NewsPool, item: Make, link: str) -> None:
    pool.add([item("w1", "Mayor arrested", url=link)], source=ATTACKER)
    assert pool.add([item("w1", "Harbour opens", url=link)], source=PAPER).updated == 1
    assert pool.add([item("w1", "Mayor arrested", url=link)], source=ATTACKER).withheld == 1
    assert title_of(pool) == "Harbour opens"


@pytest.mark.parametrize(
    "link", ["https://notpaper.example/1", "https://example/1", "https://paper.example.evil.test/1"]
)
@pytest.mark.usefixtures("followed")
def test_host_with_a_similar_name_counts_as_another(pool: NewsPool, item: Make, link: str) -> None:
    pool.add([item("w1", "First", url=link)], source=ATTACKER)
    assert pool.add([item("w1", "Second", url=link)], source=PAPER).withheld == 1


def test_article_of_a_removed_feed_can_be_changed_by_any_feed(
    pool: NewsPool, item: Make, followed: FollowedFeeds
) -> None:
    elsewhere = "https://elsewhere.example/1"
    pool.add([item("w1", "First", url=elsewhere)], source=ATTACKER)
    assert pool.add([item("w1", "Second", url=elsewhere)], source=PAPER).withheld == 1
    followed.remove(ATTACKER, NOW)
    assert pool.add([item("w1", "Second", url=elsewhere)], source=PAPER).updated == 1


@pytest.mark.usefixtures("followed")
def test_operator_may_change_an_article_of_any_feed(pool: NewsPool, item: Make) -> None:
    pool.add([item("w1", "First", url=LINK)], source=PAPER)
    assert pool.add([item("w1", "Corrected", url=LINK)], source="corrections.jsonl").updated == 1
