"""Search by words over the cards of the pool's copy, kept in step with it day by day."""

from __future__ import annotations

from collections.abc import Mapping

from device_app.store.database import Database
from device_app.store.news import readable_card
from device_app.store.pool_codes import PoolStore
from device_app.store.rows import to_us
from device_app.store.search_index import CARD_WEIGHT, WordHit, match_of, words_of, words_of_card
from device_app.wire.news import NewsCard

ROWS_A_STEP = 200
"""Cards taken in, or let go of, in one transaction: some 10 ms in which no page is answered."""


class PoolIndex:
    """Finds cards of the listing in use, by the same rules as `SearchIndex` finds news.

    What it holds follows from the listing alone: the words of every day that it names. Words searched for are kept
    nowhere.
    """

    def __init__(self, database: Database, pool: PoolStore) -> None:
        self._database, self._pool = database, pool

    def catch_up(self, limit: int | None = None) -> int:
        """Let go of days that the listing in use doesn't name, take in those that it does, at most about `limit` cards;
        returns how many were taken in."""
        kept = self._pool.current()
        days = {shard.cards.sha256: shard.count for shard in kept.listing.shards} if kept is not None else {}
        while self._let_go(days):
            pass
        done = 0
        while (limit is None or done < limit) and (taken := self._take_in(days)):
            done += taken
        return done

    def hits(self, text: str) -> list[WordHit]:
        """All cards that have every word of `text`, in no order; a card that two days have comes twice."""
        query = match_of(text)
        if not query:
            return []
        self.catch_up()
        found = self._database.rows(
            f"SELECT id, -bm25(pool_text, {CARD_WEIGHT}), published_us FROM pool_text WHERE pool_text MATCH ?",
            (query,),
        )
        return [WordHit(news_id, relevance, published_us) for news_id, relevance, published_us in found]

    def _let_go(self, days: Mapping[str, int]) -> bool:
        """Whether some rows of a day that isn't named were deleted."""
        with self._database.quick_transaction():
            for shard, first, size in self._database.rows("SELECT shard, first, size FROM pool_indexed"):
                if days.get(shard) == size:
                    continue
                left = max(0, size - ROWS_A_STEP)
                self._database.write(
                    "DELETE FROM pool_text WHERE rowid >= ? AND rowid < ?", (first + left, first + size)
                )
                if left:
                    self._database.write("UPDATE pool_indexed SET size = ? WHERE shard = ?", (left, shard))
                else:
                    self._database.write("DELETE FROM pool_indexed WHERE shard = ?", (shard,))
                return True
        return False

    def _take_in(self, days: Mapping[str, int]) -> int:
        """How many cards of a named day were taken in, of those that were not yet; 0 if all are in."""
        with self._database.quick_transaction():
            held: dict[str, list[int]] = {
                shard: rest for shard, *rest in self._database.rows("SELECT * FROM pool_indexed")
            }
            for shard, size in days.items():
                if size == 0 or (shard in held and held[shard][2] >= size):
                    continue
                if shard not in held:
                    first = self._database.number("SELECT max(first + size) FROM pool_indexed")
                    self._database.write("INSERT INTO pool_indexed VALUES (?, ?, ?, 0)", (shard, first, size))
                    held[shard] = [first, size, 0]
                first, _, done = held[shard]
                upto = min(size, done + ROWS_A_STEP)
                rows = self._database.rows(
                    "SELECT place, card FROM pool_card WHERE shard = ? AND place >= ? AND place < ?",
                    (shard, done, upto),
                )
                self._database.write_many(
                    "INSERT INTO pool_text (rowid, card, id, published_us) VALUES (?, ?, ?, ?)",
                    [(first + place, *_row(card)) for place, text in rows if (card := readable_card(text))],
                )
                self._database.write("UPDATE pool_indexed SET done = ? WHERE shard = ?", (upto, shard))
                return upto - done
        return 0


def _row(card: NewsCard) -> tuple[str, str, int]:
    return words_of(words_of_card(card)), card.id, to_us(card.published_at)
