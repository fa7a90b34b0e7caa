"""Articles on the device: cards, bodies and vectors, kept until pruned."""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from device_app.errors import NewsNotHere
from device_app.store.database import Database
from device_app.store.rows import if_readable, to_us
from device_app.store.searches import words_of_card
from protocol.news import AlsoIn, NewsCard

KEPT_OF_A_PUBLISHER = 20
"""This many of a publisher's articles are never pruned, as on the server."""
Naming = Literal["topic", "section", "publisher"]
_WIDE = "SELECT value FROM json_each(?)"
_LAST_OF_PUBLISHERS = f"""
    SELECT id FROM (
        SELECT id, row_number() OVER (
            PARTITION BY json_extract(card, '$.publisher')
            ORDER BY shelved_at DESC, json_extract(card, '$.published_at') DESC, id
        ) AS place FROM news WHERE json_valid(card)
    ) WHERE place <= {KEPT_OF_A_PUBLISHER}"""


def readable_card(text: str) -> NewsCard | None:
    """Parse a stored card; None if it can't be read any more."""
    return if_readable("a story", lambda: NewsCard.model_validate_json(text))


def report_of(card: NewsCard, news_id: str) -> NewsCard | None:
    """Return the card of another source's report that this card lists.

    None if it doesn't list it.
    """
    entry = next((one for one in card.also if one.id == news_id), None)
    if entry is None:
        return None
    mine = AlsoIn(id=card.id, title=card.title, url=card.url, publisher=card.publisher, published_at=card.published_at)
    also = (mine, *(one for one in card.also if one.id != news_id))
    return card.model_copy(update=dict(entry) | {"dated": True, "abstract": "", "also": also})


class NewsStore:
    """Cards by id, bodies by id, vectors by (id, encoder).

    edition increases whenever a stored card or vector is replaced or deleted; caches stay valid while it is unchanged.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self.edition = 0
        database.when_undone(self._revise)

    def put(self, cards: Sequence[NewsCard], vectors: NDArray[np.float32], encoder: str, at: datetime) -> None:
        """Store cards and their vectors [n, D] by `encoder`.

        Older ones are replaced, except vectors of clicked articles.

        Raises ValueError unless there is one finite vector per card.
        """
        if vectors.ndim != 2 or len(vectors) != len(cards):
            raise ValueError(f"vectors of shape {vectors.shape} for {len(cards)} cards")
        ids = [card.id for card in cards]
        with self._database.quick_transaction():
            self.put_cards(cards, at)
            self.put_vectors(ids, vectors, encoder)

    def put_cards(self, cards: Iterable[NewsCard], at: datetime) -> None:
        """Store cards whose vectors come later."""
        cards = list(cards)
        offered = {card.id: card.model_dump_json() for card in cards}
        # A recall answer mostly repeats the last one: comparing first is five times faster than writing all again.
        known: dict[str, str] = dict(
            self._database.rows(f"SELECT id, card FROM news WHERE id IN ({_WIDE})", (json.dumps(list(offered)),))
        )
        changed = [card for card in cards if known.get(card.id) != offered[card.id]]
        if not changed:
            return
        with self._database.quick_transaction():
            self._database.write_many(
                """INSERT INTO news (id, card, words, shelved_at) VALUES (?, ?, ?, ?)
                   ON CONFLICT (id) DO UPDATE SET card = excluded.card, words = excluded.words""",
                [(card.id, offered[card.id], words_of_card(card), to_us(at)) for card in changed],
            )
            if any(card.id in known for card in changed):
                self._revise()

    def put_vectors(
        self, ids: Sequence[str], vectors: NDArray[np.float32], encoder: str, *, of_clicked: bool = False
    ) -> None:
        """Store vectors [n, D] of articles in the store; rows of other articles are ignored.

        of_clicked: whether clicked articles may get a vector that they lack, as when a new encoder's shards are pulled.
        Their existing vectors never change: the input of the reader's true value must not change because the server
        later sends something else.
        """
        if vectors.ndim != 2 or len(vectors) != len(ids):
            raise ValueError(f"vectors of shape {vectors.shape} for {len(ids)} ids")
        if not np.isfinite(vectors).all():
            raise ValueError("vectors has values that are not finite")
        rows = np.ascontiguousarray(vectors, dtype="<f4")
        named = json.dumps(list(ids))
        known: dict[str, bytes] = dict(
            self._database.rows(
                f"SELECT news_id, float32 FROM vector WHERE encoder = ? AND news_id IN ({_WIDE})", (encoder, named)
            )
        )
        offered = [(news_id, encoder, row.tobytes()) for news_id, row in zip(ids, rows, strict=True)]
        changed = [one for one in offered if known.get(one[0]) != one[2]]
        if not changed:
            return
        found = self._database.rows(f"SELECT DISTINCT news_id FROM click WHERE news_id IN ({_WIDE})", (named,))
        settled = {row[0] for row in found if not of_clicked or row[0] in known}
        changed = [one for one in changed if one[0] not in settled]
        with self._database.quick_transaction():
            self._database.write_many(
                """INSERT INTO vector (news_id, encoder, float32)
                   SELECT ?1, ?2, ?3 WHERE EXISTS (SELECT 1 FROM news WHERE id = ?1)
                   ON CONFLICT (news_id, encoder) DO UPDATE SET float32 = excluded.float32""",
                changed,
            )
            if any(one[0] in known for one in changed):
                self._revise()

    def card(self, news_id: str) -> NewsCard:
        """Return one card. Raises NewsNotHere."""
        found = self._database.row("SELECT card FROM news WHERE id = ?", (news_id,))
        card = None if found is None else readable_card(found[0])
        if card is None:
            raise NewsNotHere(news_id)
        return card

    def cards(self, ids: Sequence[str]) -> list[NewsCard]:
        """Return the cards that are here, in the order of `ids`."""
        found = self._database.rows(f"SELECT id, card FROM news WHERE id IN ({_WIDE})", (json.dumps(list(ids)),))
        by_id = {news_id: card for news_id, text in found if (card := readable_card(text)) is not None}
        return [by_id[news_id] for news_id in ids if news_id in by_id]

    def vectors(self, ids: Sequence[str], encoder: str) -> tuple[NDArray[np.bool_], NDArray[np.float32]]:
        """Return which of `ids` have a vector by `encoder`, [n], and the vectors, float32 [n, D].

        The vectors are in the order of `ids`, zeros where missing. D is 0 if none of them has one. A vector whose width
        differs from `width` counts as missing: it comes from a release in which this encoder had other dimensions, and
        it must not be visible which articles have one.
        """
        found = self._database.rows(
            f"SELECT news_id, float32 FROM vector WHERE encoder = ? AND news_id IN ({_WIDE})",
            (encoder, json.dumps(list(ids))),
        )
        width = self.width(encoder)
        size_bytes = 4 * width if width is not None else max((len(row[1]) for row in found), default=0)
        by_id: dict[str, bytes] = {news_id: row for news_id, row in found if len(row) == size_bytes}
        present = np.array([news_id in by_id for news_id in ids], dtype=np.bool_)
        blank = bytes(size_bytes if by_id else 0)
        joined = b"".join([by_id.get(news_id, blank) for news_id in ids])
        return present, np.frombuffer(joined, dtype="<f4").reshape(len(ids), len(blank) // 4)

    def width(self, encoder: str) -> int | None:
        """D of this encoder's vectors in the release in use; None for any other encoder."""
        row = self._database.row(
            """SELECT json_extract(manifest, '$.dimensions') FROM release
               WHERE id = (SELECT max(id) FROM release) AND json_extract(manifest, '$.encoder') = ?""",
            (encoder,),
        )
        return None if row is None else int(row[0])

    def missing(self, ids: Sequence[str]) -> list[str]:
        """Return those of `ids` that have no card here, in order."""
        found = self._database.rows(f"SELECT id FROM news WHERE id IN ({_WIDE})", (json.dumps(list(ids)),))
        here = {row[0] for row in found}
        return [news_id for news_id in ids if news_id not in here]

    def arrived_since(self, moment: datetime, ids: Sequence[str]) -> set[str]:
        """Return those of `ids` whose card was first stored after a time."""
        found = self._database.rows(
            f"SELECT id FROM news WHERE shelved_at > ? AND id IN ({_WIDE})", (to_us(moment), json.dumps(list(ids)))
        )
        return {row[0] for row in found}

    def without_vector(self, encoder: str) -> list[str]:
        """Return ids in the store that have no vector by `encoder`."""
        found = self._database.rows(
            "SELECT id FROM news WHERE id NOT IN (SELECT news_id FROM vector WHERE encoder = ?) ORDER BY id", (encoder,)
        )
        return [row[0] for row in found]

    def put_bodies(self, bodies: Mapping[str, str]) -> None:
        """Store the texts of articles in the store; others are ignored."""
        known: dict[str, str] = dict(
            self._database.rows(
                f"SELECT news_id, body FROM body WHERE news_id IN ({_WIDE})", (json.dumps(list(bodies)),)
            )
        )
        changed = [(news_id, body) for news_id, body in bodies.items() if known.get(news_id) != body]
        if not changed:
            return
        with self._database.quick_transaction():
            self._database.write_many(
                """INSERT INTO body (news_id, body) SELECT ?1, ?2 WHERE EXISTS (SELECT 1 FROM news WHERE id = ?1)
                   ON CONFLICT (news_id) DO UPDATE SET body = excluded.body""",
                changed,
            )

    def body(self, news_id: str) -> str | None:
        """Return the text of one article, or None if it isn't stored."""
        found = self._database.row("SELECT body FROM body WHERE news_id = ?", (news_id,))
        return found[0] if found else None

    def without_body(self, ids: Sequence[str]) -> list[str]:
        """Return those of `ids` whose text isn't stored, in order."""
        found = self._database.rows(f"SELECT news_id FROM body WHERE news_id IN ({_WIDE})", (json.dumps(list(ids)),))
        here = {row[0] for row in found}
        return [news_id for news_id in ids if news_id not in here]

    def named(self, kind: Naming, name: str, limit: int) -> list[str]:
        """Return ids of the newest articles of a topic, section or publisher."""
        found = self._database.rows(
            """SELECT id FROM news WHERE CASE WHEN json_valid(card) THEN json_extract(card, ?) END = ?
               ORDER BY json_extract(card, '$.published_at') DESC, id LIMIT ?""",
            (f"$.{kind}", name, limit),
        )
        return [row[0] for row in found]

    def count(self) -> int:
        """Return how many cards are here."""
        return self._database.number("SELECT count(*) FROM news")

    def prune(self, before: datetime, keep: Iterable[str] = ()) -> int:
        """Delete articles stored before a time, with bodies and vectors; returns how many.

        Clicked articles, those the reader reacted to, and `keep` stay: history and training need them. So do the latest
        articles of each publisher, since some publish only once in months.
        """
        with self._database.transaction():
            self._revise()
            return self._database.write(
                f"""DELETE FROM news WHERE shelved_at < ? AND id NOT IN ({_LAST_OF_PUBLISHERS})
                    AND id NOT IN (SELECT news_id FROM click) AND id NOT IN (SELECT news_id FROM reaction)
                    AND id NOT IN ({_WIDE})""",
                (to_us(before), json.dumps(sorted(keep))),
            ).rowcount

    def prune_vectors(self, keep_encoders: Iterable[str]) -> int:
        """Delete vectors of encoders that no stored release uses any more; returns how many."""
        with self._database.transaction():
            self._revise()
            return self._database.write(
                f"DELETE FROM vector WHERE encoder NOT IN ({_WIDE})", (json.dumps(sorted(keep_encoders)),)
            ).rowcount

    def _revise(self) -> None:
        self.edition += 1
