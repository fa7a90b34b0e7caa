"""Store the pool's codes and cards, for finding articles without a report.

They are the same for every device. `PoolIndex` is a word search over the pool's cards, updated one day at a time.
"""

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from device_app.store.database import Database
from device_app.store.news import readable_card
from device_app.store.rows import RowCache, from_us, if_readable, to_us
from device_app.store.searches import CARD_WEIGHT, WordHit, WordMatch, match_of, words_of, words_of_card
from protocol.broadcast import CodeShard, PoolCodes
from protocol.news import NewsCard

ROWS_A_STEP = 200
"""Cards added or deleted in one transaction: some 10 ms in which no page is answered."""
BETWEEN_STEPS_SEC = 0.001
"""Pause after each transaction, so that a waiting page gets the database's lock before this thread takes it again."""
BLOCK = 100
"""Texts of at least this many articles are requested together: about 300 KB, which hides one among a hundred."""


@dataclass(frozen=True)
class StoredPool:
    """A listing whose parts are all stored. text is the exact listing, from which its ETag is computed."""

    listing: PoolCodes
    text: bytes
    kept_at: datetime

    @property
    def pulled_bytes(self) -> int:
        """The size of the whole download."""
        shards = (part.size_bytes for shard in self.listing.shards for part in (shard.codes, shard.cards))
        return len(self.text) + self.listing.book.size_bytes + self.listing.priors.size_bytes + sum(shards)


@dataclass(frozen=True)
class PoolBlock:
    """Neighbouring articles of the pool, ordered by id; only `PoolStore.block` makes them."""

    ids: tuple[str, ...]


class PoolStore:
    """Parts (codes, book, priors) by hash, cards by shard and place.

    A listing is used once all its parts are stored. A shard's cards are stored under the hash of their blob, so that an
    interrupted pull can resume.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._current = RowCache(database, self._read)

    def current(self) -> StoredPool | None:
        """Return the listing in use."""
        return self._current.get()

    def part(self, digest: str) -> bytes | None:
        row = self._database.row("SELECT content FROM pool_part WHERE sha256 = ?", (digest,))
        return row[0] if row else None

    def put_part(self, digest: str, content: bytes) -> None:
        """Store a part whose hash was checked."""
        with self._database.quick_transaction():
            self._database.write(
                "INSERT INTO pool_part (sha256, content) VALUES (?, ?) ON CONFLICT DO NOTHING", (digest, content)
            )

    def put_shard(self, shard: CodeShard, codes: bytes, cards: Sequence[NewsCard]) -> None:
        """Store a shard's codes (checked, as a blob) and its cards, ROWS_A_STEP at a time.

        What an interrupted call has stored of it is replaced.
        """
        self.put_part(shard.codes.sha256, codes)
        digest, source = shard.cards.sha256, enumerate(cards)
        self._drop_cards(digest)
        while rows := [(digest, place, card.id, card.model_dump_json()) for place, card in islice(source, ROWS_A_STEP)]:
            with self._database.quick_transaction():
                self._database.write_many("INSERT INTO pool_card (shard, place, id, card) VALUES (?, ?, ?, ?)", rows)
            time.sleep(BETWEEN_STEPS_SEC)

    def has_cards(self, shard: CodeShard) -> bool:
        """Return whether all cards of this shard are stored."""
        found = self._database.number("SELECT count(*) FROM pool_card WHERE shard = ?", (shard.cards.sha256,))
        return found == shard.count

    def use(self, listing: PoolCodes, text: bytes, at: datetime) -> None:
        """Make this listing the current one in one step, then delete what it doesn't need.

        What an interrupted call has not deleted is deleted when the next listing becomes the current one.
        """
        parts = [listing.book.sha256, listing.priors.sha256, *(shard.codes.sha256 for shard in listing.shards)]
        with self._database.transaction():
            self._database.write(
                "INSERT OR REPLACE INTO pool (only, listing, kept_at) VALUES (1, ?, ?)", (text, to_us(at))
            )
            self._drop_parts_but(parts)
            self._current.forget()
        self._drop_cards_but([shard.cards.sha256 for shard in listing.shards])

    def drop(self) -> None:
        """Delete everything, when the reader's settings or the release no longer need it."""
        with self._database.transaction():
            self._database.write("DELETE FROM pool")
            self._drop_parts_but(())
            self._current.forget()
        self._drop_cards_but(())

    def cards(self, places: Iterable[tuple[str, int]]) -> list[NewsCard]:
        """Return the readable cards at these places, in that order.

        A place is (hash of the shard's cards, number).
        """
        wanted = list(places)
        found = self._database.rows(
            """SELECT pool_card.card FROM json_each(?) AS wanted CROSS JOIN pool_card
               ON shard = json_extract(wanted.value, '$[0]') AND place = json_extract(wanted.value, '$[1]')
               ORDER BY wanted.key""",
            (json.dumps(wanted),),
        )
        return [card for (text,) in found if (card := readable_card(text)) is not None]

    def places(self, ids: Sequence[str]) -> dict[str, tuple[str, int]]:
        """Return (hash of the shard's cards, place) by id, for articles of the current listing."""
        kept = self.current()
        shards = {shard.cards.sha256 for shard in kept.listing.shards} if kept is not None else set()
        found = self._database.rows(
            "SELECT id, shard, place FROM pool_card WHERE id IN (SELECT value FROM json_each(?))",
            (json.dumps(list(ids)),),
        )
        return {news_id: (shard, place) for news_id, shard, place in found if shard in shards}

    def block(self, news_id: str) -> PoolBlock | None:
        """Return the block of at least BLOCK articles that holds this one, or None.

        None if it isn't in the pool, or the pool is smaller. Blocks are cut at multiples of BLOCK in the ordered ids of
        the pool, each id counted once, so that every device requests the same blocks, and the way the server cuts its
        days can't make them smaller. The remainder at the end belongs to the last full block.
        """
        kept = self.current()
        if kept is None:
            return None
        within = json.dumps([shard.cards.sha256 for shard in kept.listing.shards])
        source = "FROM pool_card WHERE shard IN (SELECT value FROM json_each(?))"
        if not self._database.number(f"SELECT count(*) {source} AND id = ?", (within, news_id)):
            return None
        size = self._database.number(f"SELECT count(DISTINCT id) {source}", (within,))
        if size < BLOCK:
            return None
        before = self._database.number(f"SELECT count(DISTINCT id) {source} AND id < ?", (within, news_id))
        number, last = before // BLOCK, size // BLOCK - 1
        start, length = (number * BLOCK, BLOCK) if number < last else (last * BLOCK, size - last * BLOCK)
        found = self._database.rows(
            f"SELECT DISTINCT id {source} ORDER BY id LIMIT ? OFFSET ?", (within, length, start)
        )
        return PoolBlock(tuple(one[0] for one in found))

    def _drop_parts_but(self, parts: Sequence[str]) -> None:
        self._database.write(
            "DELETE FROM pool_part WHERE sha256 NOT IN (SELECT value FROM json_each(?))", (json.dumps(list(parts)),)
        )

    def _drop_cards_but(self, shards: Sequence[str]) -> None:
        found = self._database.rows("SELECT DISTINCT shard FROM pool_card")
        for (shard,) in found:
            if shard not in shards:
                self._drop_cards(shard)

    def _drop_cards(self, shard: str) -> None:
        """Delete a shard's cards, ROWS_A_STEP at a time."""
        last = self._database.number("SELECT max(place) FROM pool_card WHERE shard = ?", (shard,))
        for upto in range(ROWS_A_STEP, last + ROWS_A_STEP + 1, ROWS_A_STEP):
            with self._database.quick_transaction():
                self._database.write("DELETE FROM pool_card WHERE shard = ? AND place < ?", (shard, upto))
            time.sleep(BETWEEN_STEPS_SEC)

    def _read(self) -> StoredPool | None:
        row = self._database.row("SELECT listing, kept_at FROM pool")
        listing = if_readable("the pool's list", lambda: PoolCodes.model_validate_json(row[0])) if row else None
        return StoredPool(listing, row[0], from_us(row[1])) if row and listing else None


class PoolIndex:
    """Finds cards of the current listing, by the same rules as `SearchIndex` for articles.

    Its content follows from the listing alone: the words of every day that it names. Search queries are not stored.
    """

    def __init__(self, database: Database, pool: PoolStore) -> None:
        self._database, self._pool = database, pool

    def catch_up(self, limit: int | None = None) -> int:
        """Delete days that the current listing doesn't name, and add at most about `limit` cards of missing days.

        Returns how many cards were added.
        """
        kept = self._pool.current()
        days = {shard.cards.sha256: shard.count for shard in kept.listing.shards} if kept is not None else {}
        while self._drop_unnamed(days):
            time.sleep(BETWEEN_STEPS_SEC)
        done = 0
        while (limit is None or done < limit) and (added := self._add_missing(days)):
            done += added
            time.sleep(BETWEEN_STEPS_SEC)
        return done

    def hits(self, text: str) -> list[WordHit]:
        """Return all cards that have every word of `text`, in no particular order.

        A card listed on two days is returned twice.
        """
        query = match_of(text)
        if not query:
            return []
        self.catch_up()
        found = self._database.rows(
            f"SELECT id, -bm25(pool_text, {CARD_WEIGHT}), published_us FROM pool_text WHERE pool_text MATCH ?",
            (query,),
        )
        return [WordHit(news_id, relevance, published_us) for news_id, relevance, published_us in found]

    def matching(self, expression: str) -> list[WordMatch]:
        """Return the cards that match an FTS5 expression, in no order. Call `hits` first: it indexes new cards."""
        found = self._database.rows(
            """SELECT article.id, article.section, article.topic, article.published_at
               FROM pool_text JOIN article ON article.id = pool_text.id WHERE pool_text MATCH ?""",
            (expression,),
        )
        return [WordMatch(news_id, (section, topic), at) for news_id, section, topic, at in found]

    def _drop_unnamed(self, days: Mapping[str, int]) -> bool:
        """Delete some rows of a day that isn't named; return whether there were any."""
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

    def _add_missing(self, days: Mapping[str, int]) -> int:
        """Add missing cards of a named day; return how many, 0 if none are missing."""
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
    return words_of(words_of_card(card)), card.id, to_us(card.counted_at)
