"""Search on the device. Oracle: words compared one by one, without an index."""

from __future__ import annotations

import re
import unicodedata
from datetime import datetime, timedelta

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from device_app.store.clicks import Clicks
from device_app.store.database import Database
from device_app.store.news import KEPT_OF_A_PUBLISHER, NewsStore
from device_app.store.searches import SearchIndex, match_of
from protocol.news import NewsCard
from tests.unit.device_app.store.conftest import MakeCard

WORDS = [
    "port", "ports", "Portugal", "STRIKE", "Straße", "strasse", "Ölpreis", "olpreis", "الميناء", "ميناء", "地震",
    "東京で地震", "covid-19", "19", "o'neill", "100%", "_under_score_", "naïve", "naive", "ﬁsh", "Жить", "e\u0301te",
]  # fmt: skip


def tokens(text: str) -> list[str]:
    """Return runs of letters and numbers without diacritics; a Chinese or Japanese character is a word by itself."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    bare = [each for each in unicodedata.normalize("NFKD", folded) if unicodedata.category(each) != "Mn"]
    spaced = "".join(f" {each} " if "\u2e80" <= each <= "\u9fff" else each for each in bare)
    return re.findall(r"[^\W_]+", spaced)


def found_by_hand(query: str, texts: dict[str, str]) -> set[str]:
    """Return the matches: the last token of a query word, if longer than a letter, may be a prefix."""

    def has(word: list[str], held: list[str]) -> bool:
        rows = (held[at : at + len(word)] for at in range(len(held) - len(word) + 1))
        return any(
            row[:-1] == word[:-1] and (row[-1].startswith(word[-1]) if len(word[-1]) > 1 else row[-1] == word[-1])
            for row in rows
        )

    asked = [parts for word in unicodedata.normalize("NFKC", query).casefold().split() if (parts := tokens(word))]
    return {id for id, text in texts.items() if asked and all(has(word, tokens(text)) for word in asked)}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join), min_size=1, max_size=6),
    st.lists(
        st.sampled_from([*WORDS, "por", "p", "str", "震", "京で", "%", '"', "AND", "NEAR("]), min_size=1, max_size=3
    ),
)
def test_index_search_matches_a_word_by_word_comparison(
    database: Database, now: datetime, make_card: MakeCard, texts: list[str], asked: list[str]
) -> None:
    store, index = NewsStore(database), SearchIndex(database)
    cards = {
        f"N{at}": make_card(f"N{at}", text, abstract="", publisher="", section="s", topic="t")
        for at, text in enumerate(texts)
    }
    store.put_cards(cards.values(), now)
    whole = {id: f"{card.title}\n\n\ns\nt" for id, card in cards.items()}
    query = " ".join(asked)
    assert set(index.find(query)) == found_by_hand(query, whole)
    with database.transaction():
        database.write("DELETE FROM news")


def test_text_is_found_once_stored_and_a_match_in_a_title_weighs_more(
    database: Database, now: datetime, make_card: MakeCard
) -> None:
    store, index = NewsStore(database), SearchIndex(database)
    store.put_cards([make_card("A", "Harvest late"), make_card("B", "Volcano wakes")], now)
    assert index.find("volcano") == ["B"]
    store.put_bodies({"A": "Ash from the volcano darkens the fields. " + "Farmers wait. " * 40})
    assert index.find("volcano") == ["B", "A"]
    assert index.find("volc ash") == ["A"]
    store.put_bodies({"A": "Rain."})
    assert index.find("volcano") == ["B"]


def test_pruned_and_changed_articles_are_no_longer_found(
    database: Database, now: datetime, make_card: MakeCard
) -> None:
    store, index = NewsStore(database), SearchIndex(database)
    store.put_cards([make_card("A", "Volcano wakes"), make_card("B", "Volcano sleeps")], now)
    assert index.catch_up(1) == 1
    assert index.catch_up() == 1
    store.put_cards([make_card("B", "Glacier melts")], now)
    assert index.find("volcano") == ["A"]
    Clicks(database).add("B", "f", now)
    store.put_cards([make_card(f"later{at}") for at in range(KEPT_OF_A_PUBLISHER)], now + timedelta(days=1))
    assert store.prune(now + timedelta(days=1)) == 1
    assert index.find("volcano") == []
    assert index.find("glacier") == ["B"]
    index.tidy()
    assert database.number("SELECT count(*) FROM news_text") == 1 + KEPT_OF_A_PUBLISHER
    assert index.find("glacier") == ["B"]


def test_query_syntax_is_escaped_for_the_index() -> None:
    assert match_of('a OR b" NEAR(c') == '"a" AND "or" * AND "b" AND "near c"'
    assert match_of('% " -- _') == ""


def test_erase_leaves_no_article_text_in_the_index(database: Database, now: datetime, make_card: MakeCard) -> None:
    store, index = NewsStore(database), SearchIndex(database)
    cards: list[NewsCard] = [make_card(f"N{at}", f"Quokka number {at}") for at in range(50)]
    store.put_cards(cards, now)
    assert len(index.find("quokka")) == 50
    database.erase()
    for file in database.path.parent.iterdir():
        assert b"uokka" not in file.read_bytes(), file.name
    store.put_cards(cards[:2], now)
    assert set(index.find("quokka")) == {"N0", "N1"}
