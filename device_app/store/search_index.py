"""Search the device's articles by words, in any script.

It uses substrings and SQLite's FTS5. Search queries are not stored here.
"""

from __future__ import annotations

import re
import unicodedata
from datetime import datetime
from typing import NamedTuple

from device_app.store.database import Database
from device_app.store.rows import to_us
from protocol.bodies import pieces_of, text_of_body
from protocol.news import NewsCard

QUERY_WORDS_LIMIT = 16


def folded(text: str) -> str:
    """Text normalised for comparison: composed, without case."""
    return unicodedata.normalize("NFKC", text).casefold()


def all_words(text: str) -> tuple[list[str], list[str]]:
    """Return SQL conditions for news.words to contain every word of `text`, and their values.

    Only the first sixteen words count.
    """
    words = folded(text).split()[:QUERY_WORDS_LIMIT]
    return ["instr(news.words, ?) > 0"] * len(words), words


BATCH = 50
CARD_WEIGHT, BODY_WEIGHT = 8.0, 1.0
UNSPACED = re.compile("([\u2e80-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])")
"""Scripts without spaces between words: each character is indexed as a word, and a query word is a phrase of them."""


class WordHit(NamedTuple):
    """An article that has all words.

    relevance is BM25, higher is better; published_us is in microseconds since 1970.
    """

    id: str
    relevance: float
    published_us: int


class SearchIndex:
    """Find articles by words.

    Every query word of two letters or more must begin a word of the card or the text. Titles, abstracts, publishers,
    sections and topics weigh eight times as much as the text (BM25). The index is in the device's own database beside
    the articles and is deleted with them.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def catch_up(self, limit: int | None = None) -> int:
        """Index articles that are new or changed, at most `limit`; returns how many."""
        done = 0
        while limit is None or done < limit:
            size = BATCH if limit is None else min(BATCH, limit - done)
            with self._database.quick_transaction():
                rows = self._database.rows(
                    """SELECT unindexed.news_rowid, news.words, coalesce(body.body, '')
                       FROM unindexed JOIN news ON news.rowid = unindexed.news_rowid
                       LEFT JOIN body ON body.news_id = news.id LIMIT ?""",
                    (size,),
                )
                if not rows:
                    return done
                gone = [(row[0],) for row in rows]
                self._database.write_many("DELETE FROM news_text WHERE rowid = ?", gone)
                self._database.write_many(
                    "INSERT INTO news_text (rowid, card, body) VALUES (?, ?, ?)",
                    [
                        (rowid, words_of(card), words_of(text_of_body(pieces_of(body), pictures=True)))
                        for rowid, card, body in rows
                    ],
                )
                self._database.write_many("DELETE FROM unindexed WHERE news_rowid = ?", gone)
            done += len(rows)
        return done

    def tidy(self) -> None:
        """Remove the words of deleted articles; deleting a row only marks them."""
        with self._database.quick_transaction():
            self._database.write("INSERT INTO news_text (news_text) VALUES ('optimize')")

    def find(self, text: str, limit: int = 50) -> list[str]:
        """Return ids of the articles that have every word of `text`, best first.

        None for a text without a word.
        """
        query = match_of(text)
        if not query:
            return []
        self.catch_up()
        found = self._database.rows(
            f"""SELECT news.id FROM news_text JOIN news ON news.rowid = news_text.rowid WHERE news_text MATCH ?
                ORDER BY bm25(news_text, {CARD_WEIGHT}, {BODY_WEIGHT}),
                         json_extract(news.card, '$.published_at') DESC, news.id LIMIT ?""",
            (query, limit),
        )
        return [row[0] for row in found]

    def hits(self, text: str) -> list[WordHit]:
        """Return all articles that have every word of `text`, in no order."""
        query = match_of(text)
        if not query:
            return []
        self.catch_up()
        found = self._database.rows(
            f"""SELECT news.id, -bm25(news_text, {CARD_WEIGHT}, {BODY_WEIGHT}),
                       json_extract(news.card, '$.published_at')
                FROM news_text JOIN news ON news.rowid = news_text.rowid WHERE news_text MATCH ?""",
            (query,),
        )
        return [WordHit(id, relevance, to_us(datetime.fromisoformat(at))) for id, relevance, at in found]


def words_of_card(card: NewsCard) -> str:
    """Return the searchable text of a card, normalised for comparison."""
    return folded("\n".join((card.title, card.abstract, card.publisher, card.section, card.topic)))


def words_of(text: str) -> str:
    """Return text normalised for indexing: no case, no diacritics, unspaced scripts spaced."""
    if text.isascii():
        return text.lower()
    bare = "".join(each for each in unicodedata.normalize("NFKD", folded(text)) if unicodedata.category(each) != "Mn")
    return UNSPACED.sub(r" \1 ", bare)


def match_of(text: str) -> str:
    """Return the FTS5 query for the first sixteen words of `text`.

    '' if none of them holds a letter or a number.
    """
    phrases = []
    for word in folded(text).split()[:QUERY_WORDS_LIMIT]:
        plain = " ".join(re.findall(r"\w+", words_of(word).replace("_", " ")))
        if plain:  # a single letter begins too many words
            phrases.append(f'"{plain}" *' if len(plain.split()[-1]) > 1 else f'"{plain}"')
    return " AND ".join(phrases)
