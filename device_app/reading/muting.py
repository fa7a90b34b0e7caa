"""Applies the reader's mute rules to articles."""

import logging
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from device_app.reading.mute_patterns import Matches, PatternRefused, matcher, plain
from device_app.store.mute_rules import MuteRule, MuteRules, RuleField, RuleKind
from protocol.bodies import pieces_of, text_of_body
from protocol.news import NewsCard

log = logging.getLogger(__name__)

TODAY = timedelta(days=1)
AT_ONCE = 20_000
"""Articles judged while the reader waits, within a second or two; the others follow in the background."""


class Muting:
    """Adds and removes rules, and keeps track of which articles they hide."""

    def __init__(self, rules: MuteRules, clock: Callable[[], datetime]) -> None:
        self._rules, self._clock = rules, clock
        self._compiled: tuple[tuple[MuteRule, ...], list[tuple[MuteRule, Matches]]] = ((), [])

    def add(self, field: RuleField, kind: RuleKind, pattern: str) -> None:
        """Store a rule and apply it to all articles on this device. Raises PatternRefused, or ValueError if there are
        too many."""
        pattern = " ".join(pattern.split())
        matcher(kind, pattern)
        self._rules.put(field, kind, pattern, self._clock())
        self.catch_up(AT_ONCE)

    def remove(self, rule_id: int) -> MuteRule | None:
        """Delete a rule and show the articles again that only this rule hid; None if there is no such rule."""
        deleted = self._rules.delete(rule_id)
        self.catch_up(AT_ONCE)
        return deleted

    def rules(self) -> list[tuple[MuteRule, int]]:
        """Return the rules, each with how many stories of the last day it hides."""
        self.catch_up(AT_ONCE)
        counts = self._rules.counts(self._clock() - TODAY)
        return [(rule, counts.get(rule.id, 0)) for rule in self._rules.all()]

    def catch_up(self, limit: int | None = None) -> int:
        """Apply the rules to new and changed articles, at most about `limit`; return how many."""
        return self._rules.judge(self._judge, limit)

    def _judge(self, card: NewsCard, body: str) -> int | None:
        rules = self._rules_now()
        if not rules:
            return None
        title, publisher, address = plain(card.title), plain(card.publisher), plain(card.url)
        text = plain(card.abstract), plain(text_of_body(pieces_of(body), pictures=True)) if body else ""
        of: dict[RuleField, Sequence[str]] = {
            "title": (title,),
            "text": text,
            "publisher": (publisher,),
            "address": (address,),
            "anywhere": (title, *text, publisher),
        }
        return next((rule.id for rule, matches in rules if any(map(matches, of[rule.field]))), None)

    def _rules_now(self) -> list[tuple[MuteRule, Matches]]:
        rules = self._rules.all()
        if rules != self._compiled[0]:
            compiled = []
            for rule in rules:
                try:
                    compiled.append((rule, matcher(rule.kind, rule.pattern)))
                except PatternRefused as refused:
                    log.warning("mute rule %d can't be used: %s", rule.id, refused)  # another version wrote it
            self._compiled = rules, compiled
        return self._compiled[1]
