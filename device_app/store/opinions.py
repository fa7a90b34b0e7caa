"""The reader's explicit feedback: liked, less of this, saved; followed and blocked."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from device_app.store.database import Database, LazyDatabase
from device_app.store.rows import from_us, to_us

ReactionKind = Literal["like", "less", "save"]
StanceKind = Literal["topic", "section", "publisher"]
Stance = Literal["follow", "block"]
Names = set[tuple[StanceKind, str]]
_OPPOSITE: dict[str, str] = {"like": "less", "less": "like"}
FORGET_UNFOLLOWED = """DELETE FROM meaning WHERE kind = 'topic'
  AND name NOT IN (SELECT name FROM stance WHERE kind = 'topic' AND stance = 'follow')"""
"""For the second view's store: deletes a topic's vector once the topic is no longer followed."""


@dataclass(frozen=True)
class Reaction:
    news_id: str
    kind: ReactionKind
    at: datetime


class Feedback:
    """Reactions to articles; 'like' and 'less' exclude each other."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def react(self, news_id: str, kind: ReactionKind, at: datetime) -> None:
        """Store a reaction; a repeated one keeps its first time."""
        with self._database.transaction():
            if kind in _OPPOSITE:
                self._database.write("DELETE FROM reaction WHERE news_id = ? AND kind = ?", (news_id, _OPPOSITE[kind]))
            self._database.write(
                "INSERT INTO reaction (news_id, kind, at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                (news_id, kind, to_us(at)),
            )

    def retract(self, news_id: str, kind: ReactionKind) -> bool:
        """Undo a reaction; False if there was none."""
        with self._database.transaction():
            return (
                self._database.write("DELETE FROM reaction WHERE news_id = ? AND kind = ?", (news_id, kind)).rowcount
                > 0
            )

    def reactions(self, kind: ReactionKind | None = None) -> list[Reaction]:
        """Return all reactions (of one kind), newest first."""
        found = self._database.rows(
            "SELECT news_id, kind, at FROM reaction WHERE ?1 IS NULL OR kind = ?1 ORDER BY at DESC, news_id", (kind,)
        )
        return [Reaction(news_id, kept, from_us(at)) for news_id, kept, at in found]

    def kinds(self) -> dict[str, frozenset[str]]:
        """Return the kinds of reaction by article id."""
        found: dict[str, set[str]] = {}
        for one in self.reactions():
            found.setdefault(one.news_id, set()).add(one.kind)
        return {news_id: frozenset(kinds) for news_id, kinds in found.items()}


class Stances:
    """Topics, sections and publishers that the reader follows or blocks.

    On a device they are in the second view's store.
    """

    def __init__(self, database: Database | LazyDatabase) -> None:
        self._database = database

    def set(self, kind: StanceKind, name: str, stance: Stance | None, at: datetime) -> None:
        """Follow or block a name; None undoes it. Unfollowing a topic deletes its vector."""
        with self._database.transaction():
            if stance is None:
                self._database.write("DELETE FROM stance WHERE kind = ? AND name = ?", (kind, name))
            else:
                self._database.write(
                    """INSERT INTO stance (kind, name, stance, at) VALUES (?, ?, ?, ?)
                       ON CONFLICT (kind, name) DO UPDATE SET stance = excluded.stance, at = excluded.at""",
                    (kind, name, stance, to_us(at)),
                )
            self._database.write(FORGET_UNFOLLOWED)

    def followed(self) -> Names:
        """Return (kind, name) of everything that is followed."""
        return self._with("follow")

    def followed_topics(self) -> list[tuple[str, datetime]]:
        """Followed topics, by name, and when each was followed."""
        found = self._database.rows(
            "SELECT name, at FROM stance WHERE stance = 'follow' AND kind = 'topic' ORDER BY name"
        )
        return [(name, from_us(at)) for name, at in found]

    def blocked(self) -> Names:
        """Return (kind, name) of everything that is blocked."""
        return self._with("block")

    def all(self) -> dict[tuple[str, str], str]:
        """'follow' or 'block' by (kind, name)."""
        found = self._database.rows("SELECT kind, name, stance FROM stance ORDER BY kind, name")
        return {(kind, name): stance for kind, name, stance in found}

    def _with(self, stance: Stance) -> Names:
        found = self._database.rows("SELECT kind, name FROM stance WHERE stance = ?", (stance,))
        return {(kind, name) for kind, name in found}
