"""Saved searches, and articles opened from search results.

All of it stays in this view's own store.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from device_app.store.database import Database, LateDatabase
from device_app.store.rows import from_us, to_us

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

    def __init__(self, database: Database | LateDatabase) -> None:
        self._database = database

    def save(self, words: str, at: datetime) -> SavedSearch:
        """Keep a search; the same words again keep their first time.

        Raises ValueError for a blank or overlong text, or when fifty are kept already.
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
        """(news id, when), oldest first."""
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
