"""Search the device's articles by words, in any script; saved searches, and articles opened from search results.

The search uses substrings and SQLite's FTS5, and stores no query. Everything stays in this view's own store.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from device_app.store.database import Database, LazyDatabase
from device_app.store.rows import from_us, to_us
from protocol.bodies import pieces_of, text_of_body
from protocol.news import NewsCard

QUERY_WORDS_LIMIT = 16


def folded(text: str) -> str:
    """Return text normalised for comparison: composed, without case."""
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


class WordMatch(NamedTuple):
    """An article that matches an FTS5 expression; topic: its section and topic, published_us as in `WordHit`."""

    id: str
    topic: tuple[str, str]
    published_us: int


class SearchIndex:
    """Find articles by words.

    Every query word of two letters or more must begin a word of the card or the text. Titles, abstracts, publishers,
    sections and topics have eight times the weight of the text (BM25). The index is in the device's own database beside
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
                deleted_rows = [(row[0],) for row in rows]
                self._database.write_many("DELETE FROM news_text WHERE rowid = ?", deleted_rows)
                self._database.write_many(
                    "INSERT INTO news_text (rowid, card, body) VALUES (?, ?, ?)",
                    [
                        (rowid, words_of(card), words_of(text_of_body(pieces_of(body), pictures=True)))
                        for rowid, card, body in rows
                    ],
                )
                self._database.write_many("DELETE FROM unindexed WHERE news_rowid = ?", deleted_rows)
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
        """Return all articles that have every word of `text`, in no particular order."""
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

    def matching(self, expression: str) -> list[WordMatch]:
        """Return the articles whose cards match an FTS5 expression, in no order. Call `hits` first: it indexes new
        ones.
        """
        found = self._database.rows(
            """SELECT article.id, article.section, article.topic, article.published_at
               FROM news_text JOIN news ON news.rowid = news_text.rowid JOIN article ON article.id = news.id
               WHERE news_text MATCH ?""",
            (f"card : ({expression})",),
        )
        return [WordMatch(news_id, (section, topic), at) for news_id, section, topic, at in found]


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

    '' if none of them contains a letter or a number.
    """
    phrases = []
    for word in folded(text).split()[:QUERY_WORDS_LIMIT]:
        plain = " ".join(re.findall(r"\w+", words_of(word).replace("_", " ")))
        if plain:  # a single letter begins too many words
            phrases.append(f'"{plain}" *' if len(plain.split()[-1]) > 1 else f'"{plain}"')
    return " AND ".join(phrases)


SEARCH_MIGRATIONS = Path(__file__).parent / "search_migrations"
WORDS_LIMIT_CHARS = 200
SAVED_LIMIT = 50
MeaningKind = Literal["search", "topic", "news"]


@dataclass(frozen=True)
class SavedSearch:
    """A query that the reader saved; looked_at is when its results were last viewed."""

    id: int
    words: str
    saved_at: datetime
    looked_at: datetime


@dataclass(frozen=True)
class SearchVector:
    """The vector [D] of a search, a followed topic or an article, by one encoder."""

    kind: MeaningKind
    name: str
    encoder: str
    vector: NDArray[np.float32]
    made_at: datetime


class Searches:
    """Saved searches, articles opened from results, and the vectors of both.

    Unsaved queries are not stored.
    """

    def __init__(self, database: Database | LazyDatabase) -> None:
        self._database = database

    def save(self, words: str, at: datetime) -> SavedSearch:
        """Store a search; the same words again keep their first time.

        Raises ValueError for a blank or overlong text, or if fifty are already stored.
        """
        plain = " ".join(words.split())
        if not 1 <= len(plain) <= WORDS_LIMIT_CHARS:
            raise ValueError(f"words: 1 to {WORDS_LIMIT_CHARS} characters, got {len(plain)}")
        with self._database.transaction():
            held = self.saved()
            known = next((one for one in held if one.words == plain), None)
            if known is not None:
                return known
            if len(held) >= SAVED_LIMIT:
                raise ValueError(f"{SAVED_LIMIT} searches are saved, which is the limit: delete one first")
            self._database.write(
                "INSERT INTO search (words, saved_at, looked_at) VALUES (?, ?, ?)", (plain, to_us(at), to_us(at))
            )
        return next(one for one in self.saved() if one.words == plain)

    def saved(self) -> list[SavedSearch]:
        """Return all saved searches, oldest first."""
        found = self._database.rows("SELECT id, words, saved_at, looked_at FROM search ORDER BY id")
        return [SavedSearch(id, words, from_us(saved), from_us(looked)) for id, words, saved, looked in found]

    def looked(self, words: str, at: datetime) -> None:
        """Record that the results of this query were viewed, if it is saved."""
        plain = " ".join(words.split())
        if any(one.words == plain for one in self.saved()):
            with self._database.transaction():
                self._database.write("UPDATE search SET looked_at = ? WHERE words = ?", (to_us(at), plain))

    def delete(self, search_id: int) -> bool:
        """Delete a saved search and its vector permanently; False if there was none."""
        if self._database.known() is None:
            return False
        with self._database.transaction():
            self._database.write(
                "DELETE FROM meaning WHERE kind = 'search' AND name = (SELECT words FROM search WHERE id = ?)",
                (search_id,),
            )
            return self._database.write("DELETE FROM search WHERE id = ?", (search_id,)).rowcount > 0

    def opened(self, news_id: str, at: datetime) -> None:
        """Record that an article was opened from results; a repeated one keeps its first time."""
        with self._database.transaction():
            self._database.write(
                "INSERT INTO opened (news_id, at) VALUES (?, ?) ON CONFLICT DO NOTHING", (news_id, to_us(at))
            )

    def openings(self) -> list[tuple[str, datetime]]:
        """Return (article id, time), oldest first."""
        found = self._database.rows("SELECT news_id, at FROM opened ORDER BY at, news_id")
        return [(news_id, from_us(at)) for news_id, at in found]

    def forget_opened(self, news_ids: Sequence[str]) -> None:
        """Delete these articles from those opened from results, with their vectors."""
        if self._database.known() is None:
            return
        with self._database.transaction():
            for news_id in news_ids:
                self._database.write("DELETE FROM opened WHERE news_id = ?", (news_id,))
                self._database.write("DELETE FROM meaning WHERE kind = 'news' AND name = ?", (news_id,))

    def keep_meaning(self, meaning: SearchVector) -> None:
        """Store a vector, replacing the previous one. Raises ValueError if it isn't finite.

        A topic's vector is stored only while the topic is followed, since the reader may have unfollowed it meanwhile.
        """
        if not np.isfinite(meaning.vector).all():
            raise ValueError("vector: has values that are not finite")
        blob = np.ascontiguousarray(meaning.vector, dtype="<f4").tobytes()
        with self._database.transaction():
            self._database.write(
                """INSERT INTO meaning (kind, name, encoder, float32, made_at) SELECT ?1, ?2, ?3, ?4, ?5
                   WHERE ?1 <> 'topic' OR EXISTS (
                     SELECT 1 FROM stance WHERE kind = 'topic' AND name = ?2 AND stance = 'follow')
                   ON CONFLICT (kind, name) DO UPDATE SET encoder = excluded.encoder, float32 = excluded.float32,
                     made_at = excluded.made_at""",
                (meaning.kind, meaning.name, meaning.encoder, blob, to_us(meaning.made_at)),
            )

    def meanings(self, encoder: str) -> Mapping[tuple[str, str], SearchVector]:
        """Return vectors by this encoder, by kind and name."""
        found = self._database.rows(
            "SELECT kind, name, float32, made_at FROM meaning WHERE encoder = ? ORDER BY kind, name", (encoder,)
        )
        return {
            (kind, name): SearchVector(kind, name, encoder, np.frombuffer(blob, dtype="<f4"), from_us(at))
            for kind, name, blob, at in found
        }
