"""What the reader said of interests, kept in the store: names and mutes, each with the clicked news it was said of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from threading import RLock

from device_app.interests.profile import KeptInterest
from device_app.store.preferences import Preferences

PREFERENCE = "interests"
NAME_LIMIT_CHARS = 60


class InterestNames:
    """Named and muted interests of this reader, few enough to be one preference."""

    def __init__(self, preferences: Preferences) -> None:
        self._preferences = preferences
        self._lock = RLock()

    def kept(self) -> tuple[KeptInterest, ...]:
        """All of them, oldest first."""
        return tuple(
            KeptInterest(row["id"], row["name"], row["muted"], frozenset(row["news"]))
            for row in self._preferences.get(PREFERENCE) or []
        )

    def muted(self) -> frozenset[str]:
        """Clicked news of muted interests."""
        return frozenset(news_id for one in self.kept() if one.muted for news_id in one.news_ids)

    def name(self, news_ids: Iterable[str], name: str) -> None:
        """Call the interest that holds these news so; a blank name gives it its own label back.

        Raises ValueError if the name is longer than 60 characters.
        """
        plain = " ".join(name.split())
        if len(plain) > NAME_LIMIT_CHARS:
            raise ValueError(f"name: {len(plain)} characters, limit {NAME_LIMIT_CHARS}")
        self._say(frozenset(news_ids), name=plain or None)

    def mute(self, news_ids: Iterable[str], muted: bool) -> None:
        """Leave these news out of reports and ranking, or take them in again."""
        self._say(frozenset(news_ids), muted=muted)

    def forget(self, news_ids: Iterable[str]) -> None:
        """Drop what was said of these news."""
        gone = frozenset(news_ids)
        with self._lock:
            self._keep([_replaced(one, news_ids=one.news_ids - gone) for one in self.kept()])

    def _say(self, news: frozenset[str], *, name: str | None = None, muted: bool | None = None) -> None:
        """One interest a piece of news: whatever held these news before gives them up to the one said of now."""
        if not news:
            return
        with self._lock:
            kept = self.kept()
            held = max(kept, key=lambda one: len(one.news_ids & news), default=None)
            known = held is not None and bool(held.news_ids & news)
            said = KeptInterest(
                interest_id=held.interest_id if known and held else max((k.interest_id for k in kept), default=0) + 1,
                name=(held.name if known and held else None) if muted is not None else name,
                muted=muted if muted is not None else bool(known and held and held.muted),
                news_ids=news,
            )
            others = [
                _replaced(one, news_ids=one.news_ids - news) for one in kept if one.interest_id != said.interest_id
            ]
            self._keep([*others, said])

    def _keep(self, interests: Sequence[KeptInterest]) -> None:
        worth = [one for one in interests if one.news_ids and (one.muted or one.name)]
        rows = [
            {"id": one.interest_id, "name": one.name, "muted": one.muted, "news": sorted(one.news_ids)}
            for one in sorted(worth, key=lambda one: one.interest_id)
        ]
        self._preferences.set(PREFERENCE, rows or None)


def _replaced(interest: KeptInterest, *, news_ids: frozenset[str]) -> KeptInterest:
    return KeptInterest(interest.interest_id, interest.name, interest.muted, news_ids)
