"""The reader's mute rules, and which articles they hide."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from device_app.store.database import Database
from device_app.store.news import readable_card, report_of
from device_app.store.rows import to_us
from protocol.news import NewsCard

RULES_LIMIT = 200
BATCH = 500
RuleField = Literal["anywhere", "title", "text", "publisher", "address"]
RuleKind = Literal["word", "phrase", "regex"]


@dataclass(frozen=True)
class MuteRule:
    """One rule: articles whose field matches the pattern are hidden everywhere."""

    id: int
    field: RuleField
    kind: RuleKind
    pattern: str


Judge = Callable[[NewsCard, str], int | None]
"""Returns the id of the first rule that hides an article, given its card and its text ('' if it isn't here)."""


class MuteRules:
    """Rules by id, in the order in which they were made."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def all(self) -> tuple[MuteRule, ...]:
        """Return all rules, oldest first."""
        return tuple(
            MuteRule(*row) for row in self._database.rows("SELECT id, field, kind, pattern FROM mute_rule ORDER BY id")
        )

    def put(self, field: RuleField, kind: RuleKind, pattern: str, at: datetime) -> None:
        """Store a rule; it is applied to every article.

        Raises ValueError if there are RULES_LIMIT already.
        """
        with self._database.transaction():
            if self._database.number("SELECT count(*) FROM mute_rule") >= RULES_LIMIT:
                raise ValueError(f"at most {RULES_LIMIT} rules are allowed: remove one first")
            self._database.write(
                "INSERT INTO mute_rule (field, kind, pattern, at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
                (field, kind, pattern, to_us(at)),
            )
            self._database.write(
                "INSERT INTO unjudged (news_id) SELECT id FROM article WHERE hidden_by IS NULL ON CONFLICT DO NOTHING"
            )

    def delete(self, rule_id: int) -> MuteRule | None:
        """Delete a rule and show what it hid, unless another rule hides it.

        Return it, or None if there was none.
        """
        with self._database.transaction():
            row = self._database.row("SELECT id, field, kind, pattern FROM mute_rule WHERE id = ?", (rule_id,))
            if row is None:
                return None
            self._database.write("DELETE FROM mute_rule WHERE id = ?", (rule_id,))
            self._database.write(
                "INSERT INTO unjudged (news_id) SELECT id FROM article WHERE hidden_by = ? ON CONFLICT DO NOTHING",
                (rule_id,),
            )
            return MuteRule(*row)

    def judge(self, judge: Judge, limit: int | None = None) -> int:
        """Apply rules to articles that were not checked yet, at most about `limit`; return how many."""
        done = 0
        while limit is None or done < limit:
            with self._database.quick_transaction():
                rows = self._database.rows(
                    """SELECT unjudged.news_id, coalesce(news.card, pool_card.card, lead.card, pool_lead.card),
                         coalesce(body.body, ''), article.lead
                       FROM (SELECT news_id FROM unjudged LIMIT ?) AS unjudged
                       LEFT JOIN news ON news.id = unjudged.news_id LEFT JOIN body ON body.news_id = unjudged.news_id
                       LEFT JOIN pool_card ON pool_card.id = unjudged.news_id AND news.id IS NULL
                       LEFT JOIN article ON article.id = unjudged.news_id
                       LEFT JOIN news AS lead ON lead.id = article.lead
                       LEFT JOIN pool_card AS pool_lead ON pool_lead.id = article.lead AND lead.id IS NULL""",
                    (BATCH,),
                )
                if not rows:
                    return done
                cards = [(news_id, _card_of(news_id, card, lead), body) for news_id, card, body, lead in rows]
                self._database.write_many(
                    "UPDATE article SET hidden_by = ? WHERE id = ?",
                    [(judge(card, body), news_id) for news_id, card, body in cards if card is not None],
                )
                self._database.write_many("DELETE FROM unjudged WHERE news_id = ?", [(row[0],) for row in rows])
            done += len(rows)
        return done

    def hidden(self) -> frozenset[str]:
        """Return the ids of all hidden articles."""
        return frozenset(row[0] for row in self._database.rows("SELECT id FROM article WHERE hidden_by IS NOT NULL"))

    def hidden_among(self, news_ids: Iterable[str]) -> set[str]:
        """Return those of these articles that are hidden."""
        found = self._database.rows(
            "SELECT id FROM article WHERE hidden_by IS NOT NULL AND id IN (SELECT value FROM json_each(?))",
            (json.dumps(list(news_ids)),),
        )
        return {row[0] for row in found}

    def counts(self, since: datetime) -> dict[int, int]:
        """Return how many articles published since a time each rule hides, by rule."""
        found = self._database.rows(
            """SELECT hidden_by, count(*) FROM article WHERE hidden_by IS NOT NULL AND published_at >= ?
               GROUP BY hidden_by""",
            (to_us(since),),
        )
        return dict(found)


def _card_of(news_id: str, text: str | None, lead: str | None) -> NewsCard | None:
    """Return an article's card; lead: the text is the card of the article that lists it."""
    card = readable_card(text) if text else None
    return card if card is None or lead is None else report_of(card, news_id)
