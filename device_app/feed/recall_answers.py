"""Stores the last answer to a report, across restarts, and the outcome of the last request."""

from dataclasses import dataclass

from device_app.errors import BudgetSpent, DeviceError
from device_app.feed.candidates import Candidates, CardColumns, candidates_of, together
from device_app.reports.choice import VectorsIncomplete
from device_app.store.news import NewsStore
from device_app.store.preferences import LAST_ANSWER, Preferences
from protocol.recall import RecallAnswer


@dataclass(frozen=True)
class LastRequest:
    """The outcome of a request: why no fresh report was drawn, and what failed."""

    why: BudgetSpent | VectorsIncomplete | None = None
    trouble: DeviceError | None = None
    moved_on: bool = False


@dataclass(frozen=True)
class _Kept:
    found: Candidates
    blank: bool
    answer: RecallAnswer | None = None


class RecallAnswers:
    """Keeps at most one answer, with cached columns of its cards and of the default list.

    The answer's ids are stored as a preference, and its cards and vectors in the article store, so that it survives a
    restart. An erase removes all of it.
    """

    def __init__(self, preferences: Preferences, news: NewsStore) -> None:
        self._preferences = preferences
        self._news = news
        self._columns = CardColumns()
        self._kept: _Kept | None = None
        self._looked = False
        self._joined: tuple[Candidates, Candidates, Candidates] | None = None
        self.asked = LastRequest()

    def forget(self) -> None:
        """Drop the stored answer, its columns and the outcome of the last request."""
        self._preferences.set(LAST_ANSWER, None)
        self._kept = self._joined = None
        self.asked = LastRequest()
        self._columns.forget()

    def keep(self, answer: RecallAnswer, dimensions: int, *, blank: bool) -> Candidates:
        """Store an answer just received and return its candidates. Raises AnswerMalformed.

        blank: whether the report that it answers was blank.
        """
        if self._kept is not None and self._kept.answer is answer:
            found = self._kept.found
        else:
            found = candidates_of(answer, dimensions, self._columns)
        ids = [card.id for card in found.cards]
        self._preferences.set(LAST_ANSWER, {"encoder": found.encoder, "ids": ids, "blank": blank})
        self._kept = _Kept(found, blank, answer)
        return found

    def found(self) -> Candidates | None:
        """Return the stored answer's candidates; it may answer any earlier report."""
        kept = self._in_use()
        return None if kept is None else kept.found

    def personal(self, encoder: str) -> Candidates | None:
        """Return the stored answer's candidates for this reader and encoder.

        None if it answers a blank report or has another encoder.
        """
        kept = self._in_use()
        return None if kept is None or kept.blank or kept.found.encoder != encoder else kept.found

    def _in_use(self) -> _Kept | None:
        """Return the answer in memory.

        Before this run's first answer, that is the one from the previous run.
        """
        if self._kept is None and not self._looked:
            self._looked = True
            self._kept = self._of_last_run()
        return self._kept

    def _of_last_run(self) -> _Kept | None:
        """Return what is left of the previous run's answer: the cards that are still here with vectors, or None."""
        kept = self._preferences.get(LAST_ANSWER)
        if kept is None:
            return None
        cards = self._news.cards(kept["ids"])
        present, vectors = self._news.vectors([card.id for card in cards], kept["encoder"])
        if not present.any():
            return None
        here = tuple(card for card, is_here in zip(cards, present, strict=True) if is_here)
        return _Kept(Candidates(here, vectors[present], kept["encoder"]), kept["blank"])

    def joined(self, found: Candidates, default_list: Candidates) -> Candidates:
        """Return `together` of both, cached because both outlive a feed."""
        last = self._joined
        if last is None or last[0] is not found or last[1] is not default_list:
            whole = (
                default_list
                if len(default_list) and found.encoder != default_list.encoder
                else together(found, default_list)
            )
            last = self._joined = (found, default_list, whole)
        return last[2]
