"""The pool's codes and cards on this device, the same for everybody, for recall without a report."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from device_app.store.database import Database
from device_app.store.news import Naming, readable_card
from device_app.store.rows import RowCache, from_us, if_readable, to_us
from device_app.wire.broadcast import CodeShard, PoolCodes
from device_app.wire.news import NewsCard

BLOCK = 100
"""Texts of at least this many news are asked for together: about 300 KB, and one in a hundred is not named."""


@dataclass(frozen=True)
class StoredPool:
    """A listing whose every part is here. text is the listing to the byte, from which its ETag is computed."""

    listing: PoolCodes
    text: bytes
    kept_at: datetime

    @property
    def pulled_bytes(self) -> int:
        """What came over the wire for it, if it was pulled at once."""
        shards = (part.size_bytes for shard in self.listing.shards for part in (shard.codes, shard.cards))
        return len(self.text) + self.listing.book.size_bytes + self.listing.priors.size_bytes + sum(shards)


@dataclass(frozen=True)
class PoolBlock:
    """Neighbours in the pool, in the order of ids; only `PoolStore.block` cuts them."""

    ids: tuple[str, ...]


class PoolStore:
    """Parts (codes, book, priors) by hash, cards by shard and place; a listing is in use once all its parts are here.

    A shard's cards are kept under the hash of their blob, so that a pull that was cut off goes on where it was.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._current = RowCache(database, self._read)

    def current(self) -> StoredPool | None:
        """The listing in use."""
        return self._current.get()

    def part(self, digest: str) -> bytes | None:
        """A part by its hash."""
        row = self._database.row("SELECT content FROM pool_part WHERE sha256 = ?", (digest,))
        return row[0] if row else None

    def put_part(self, digest: str, content: bytes) -> None:
        """Keep a part whose hash was checked."""
        with self._database.quick_transaction():
            self._database.write(
                "INSERT INTO pool_part (sha256, content) VALUES (?, ?) ON CONFLICT DO NOTHING", (digest, content)
            )

    def put_shard(self, shard: CodeShard, codes: bytes, cards: Sequence[NewsCard]) -> None:
        """Keep a shard's codes (checked, as a blob) and its cards, in one step."""
        rows = [(shard.cards.sha256, place, card.id, card.model_dump_json()) for place, card in enumerate(cards)]
        with self._database.quick_transaction():
            self.put_part(shard.codes.sha256, codes)
            self._database.write("DELETE FROM pool_card WHERE shard = ?", (shard.cards.sha256,))
            self._database.write_many("INSERT INTO pool_card (shard, place, id, card) VALUES (?, ?, ?, ?)", rows)

    def has_cards(self, shard: CodeShard) -> bool:
        """Whether the cards of this shard are here, as many as it says: they come whole or not at all."""
        found = self._database.number("SELECT count(*) FROM pool_card WHERE shard = ?", (shard.cards.sha256,))
        return found == shard.count

    def use(self, listing: PoolCodes, text: bytes, at: datetime) -> None:
        """Put a listing in use, in one step, and let go of what it has no use for."""
        parts = [listing.book.sha256, listing.priors.sha256, *(shard.codes.sha256 for shard in listing.shards)]
        with self._database.transaction():
            self._database.write(
                "INSERT OR REPLACE INTO pool (only, listing, kept_at) VALUES (1, ?, ?)", (text, to_us(at))
            )
            self._drop_all_but(parts, [shard.cards.sha256 for shard in listing.shards])
            self._current.forget()

    def drop(self) -> None:
        """Let go of everything: this reader, or this release, has no use for it."""
        with self._database.transaction():
            self._database.write("DELETE FROM pool")
            self._drop_all_but((), ())
            self._current.forget()

    def cards(self, places: Iterable[tuple[str, int]]) -> list[NewsCard]:
        """The cards at (hash of the shard's cards, place), in that order; without those that can't be read."""
        wanted = list(places)
        found = self._database.rows(
            """SELECT pool_card.card FROM json_each(?) AS wanted CROSS JOIN pool_card
               ON shard = json_extract(wanted.value, '$[0]') AND place = json_extract(wanted.value, '$[1]')
               ORDER BY wanted.key""",
            (json.dumps(wanted),),
        )
        return [card for (text,) in found if (card := readable_card(text)) is not None]

    def named(self, kind: Naming, name: str, limit: int) -> list[NewsCard]:
        """The newest cards of a topic, section or publisher."""
        found = self._database.rows(
            """SELECT card FROM pool_card WHERE CASE WHEN json_valid(card) THEN json_extract(card, ?) END = ?
               ORDER BY json_extract(card, '$.published_at') DESC, id LIMIT ?""",
            (f"$.{kind}", name, limit),
        )
        return [card for (text,) in found if (card := readable_card(text)) is not None]

    def places(self, ids: Sequence[str]) -> dict[str, tuple[str, int]]:
        """(Hash of the shard's cards, place) by id, of those that are here."""
        found = self._database.rows(
            "SELECT id, shard, place FROM pool_card WHERE id IN (SELECT value FROM json_each(?))",
            (json.dumps(list(ids)),),
        )
        return {news_id: (shard, place) for news_id, shard, place in found}

    def block(self, news_id: str) -> PoolBlock | None:
        """The block of BLOCK news or more that holds this one; None if it isn't in the pool, or the pool is smaller.

        Blocks are cut at multiples of BLOCK of all ids of the pool in their order, each id counted once, so that every
        device asks in the same blocks, and how the server cuts its days makes none of them smaller. What is left at the
        end belongs to the last whole one.
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

    def _drop_all_but(self, parts: Sequence[str], shards: Sequence[str]) -> None:
        self._database.write(
            "DELETE FROM pool_part WHERE sha256 NOT IN (SELECT value FROM json_each(?))", (json.dumps(list(parts)),)
        )
        self._database.write(
            "DELETE FROM pool_card WHERE shard NOT IN (SELECT value FROM json_each(?))", (json.dumps(list(shards)),)
        )

    def _read(self) -> StoredPool | None:
        row = self._database.row("SELECT listing, kept_at FROM pool")
        listing = if_readable("the pool's list", lambda: PoolCodes.model_validate_json(row[0])) if row else None
        return StoredPool(listing, row[0], from_us(row[1])) if row and listing else None
