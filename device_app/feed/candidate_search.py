"""Finds a page's candidates on this device.

They come from the last answer to a report, the copy of the pool, and the default list. The copy is used whenever this
device has one: the answer to a noisy report may contain hardly anything that the reader would read, and searching the
copy sends nothing. There is no index: all codes of the copy are scanned (`broadcast.py`).
"""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from device_app.errors import BackendRefused, BackendUnreachable, BudgetSpent, CodebooksSpent, DeviceError
from device_app.feed.broadcast import Broadcast, PoolBroken
from device_app.feed.candidates import Candidates, nothing, together
from device_app.feed.item import FeedMode
from device_app.feed.model_cache import ServingModels
from device_app.feed.recall_answers import RecallAnswers
from device_app.reports.choice import ReportChoice, VectorsIncomplete
from protocol.server_timing import Stopwatch
from protocol.text_catalogue import TextCatalogue

NOTICES = TextCatalogue("device_app.feed", "notices.toml")
INSTEAD = NOTICES.table("instead")

BUSY = (429, 503)


@dataclass(frozen=True)
class Found:
    """Candidates beyond the default list (perhaps none), and the notice to show with them."""

    candidates: Candidates
    mode: FeedMode
    notice: str | None = None


@dataclass(frozen=True)
class _Search:
    """clicks: how many have vectors. pool: what this device's copy of the pool has near them; None without a copy."""

    models: ServingModels
    clicks: int
    pool: Candidates | None

    def default_list(self, notice: str | None = None, mode: FeedMode = "front") -> Found:
        """Return no candidates beyond the default list."""
        return Found(nothing(self.models.encoder, self.models.dimensions), mode, notice)

    def in_own_pool(self, notice: str | None = None) -> Found | None:
        """Return what this device finds in its pool; None if it finds nothing there."""
        return None if self.pool is None else Found(self.pool, "personal", notice)


class Recall:
    """Finds a page's candidates beyond the default list.

    Formal guarantees: it opens no connection and causes no request. The answer comes from `recall_step`, which polls at
    times drawn for this purpose, no matter what the reader does.
    """

    def __init__(self, answers: RecallAnswers, reports: ReportChoice, broadcast: Broadcast) -> None:
        self.broadcast = broadcast
        self._answers = answers
        self._reports = reports

    def find(
        self,
        models: ServingModels,
        clicks: NDArray[np.float32],
        watch: Stopwatch,
    ) -> Found:
        """Return candidates for the reader's interests, from the first applicable source.

        If this device has a copy of the pool, candidates from it are added. clicks [H, D] are the recent clicks.
        """
        search = _Search(models, len(clicks), self._of_own_pool(models, clicks, watch))
        found = (
            self._if_nobody_searches(search)
            or self._if_nothing_was_clicked(search)
            or self._if_this_device_searches(search)
            or self._if_no_report_can_be_made(search)
            or self._if_too_little_was_read(search)
            or self._if_no_report_was_drawn(search)
            or self._last_answer(search)
            or self._default_list(search)
        )
        if search.pool is None or found.candidates is search.pool or found.mode == "front":
            return found
        return replace(found, candidates=together(found.candidates, search.pool))

    def known(self, default_list: Candidates) -> Candidates:
        """Return the last answer and the default list together."""
        found = self._answers.found()
        return default_list if found is None else self.joined(found, default_list)

    def joined(self, found: Candidates, default_list: Candidates) -> Candidates:
        """Return the rows of an answer and of the default list joined, cached for the next feed."""
        return self._answers.joined(found, default_list)

    def finds_here(self) -> bool:
        """Return whether this device finds articles by itself, without their texts."""
        return self._finds() == "here"

    def forget(self) -> None:
        """Drop the last answer and the pool's codes from memory."""
        self._answers.forget()
        self.broadcast.forget()

    def _finds(self) -> str:
        return self._reports.policy.mode.finds

    def _if_nobody_searches(self, search: _Search) -> Found | None:
        return search.default_list(NOTICES("silent")) if self._finds() == "nobody" else None

    def _if_nothing_was_clicked(self, search: _Search) -> Found | None:
        clicked = self._reports.clicks and (self._finds() != "here" or search.clicks)
        return None if clicked else search.default_list(mode="cold")

    def _if_this_device_searches(self, search: _Search) -> Found | None:
        if self._finds() != "here":
            return None
        why = NOTICES("no_pool" if search.models.manifest.recall.pool_codes else "no_pool_offered")
        return search.in_own_pool() or search.default_list(why)

    def _if_no_report_can_be_made(self, search: _Search) -> Found | None:
        reporter = self._reports.reporter(search.models)
        if reporter is None:
            limit = self._reports.policy.settings.epsilon_per_report
            return self._without_report(search, partial(NOTICES, "no_way", limit=limit))
        beyond = self._reports.beyond(reporter)
        return None if beyond is None else self._without_report(search, _spent(lifetime=beyond == "life"))

    def _if_too_little_was_read(self, search: _Search) -> Found | None:
        return None if self._reports.reads_enough() else search.default_list(mode="cold")

    def _if_no_report_was_drawn(self, search: _Search) -> Found | None:
        why = self._answers.asked.why
        if why is None:
            return None
        notice, encoder = _why_not(why), search.models.encoder
        answer = self._answers.personal(encoder)
        if answer is None or self.broadcast.ready(encoder):
            return self._without_report(search, notice)
        return Found(answer, "personal", notice(how=INSTEAD["kept"]))

    def _last_answer(self, search: _Search) -> Found | None:
        """Return the last answer, however old; before the first one, what this device finds."""
        answer, trouble = self._answers.personal(search.models.encoder), self._answers.asked.trouble
        if _is_silent(trouble):
            return search.in_own_pool() if answer is None else Found(answer, "personal")
        if answer is not None and isinstance(trouble, BackendRefused) and trouble.problem.status in BUSY:
            return Found(answer, "personal", NOTICES("last_answer", trouble=trouble))
        return None

    def _default_list(self, search: _Search) -> Found:
        """Return no candidates, and why the last request brought none."""
        request = self._answers.asked
        if _is_silent(request.trouble):
            return search.default_list(NOTICES("moved_on") if request.moved_on else None)
        if isinstance(request.trouble, BackendRefused) and request.trouble.problem.status not in BUSY:
            return search.default_list(NOTICES("report_refused", why=request.trouble))
        return search.default_list(NOTICES("default_list", trouble=request.trouble))

    def _without_report(self, search: _Search, notice: partial[str]) -> Found:
        """Return what this device finds without a report, else the default list.

        notice: makes the notice; its argument `how` names which of the two is shown.
        """
        found = search.in_own_pool(notice(how=INSTEAD["here"]))
        return found or search.default_list(notice(how=INSTEAD["common"]))

    def _of_own_pool(self, models: ServingModels, clicks: NDArray[np.float32], watch: Stopwatch) -> Candidates | None:
        """Return the nearest articles of this device's pool; None without clicks or without a pool of this encoder."""
        if not len(clicks) or self._finds() == "nobody" or not self.broadcast.ready(models.encoder):
            return None
        try:
            with watch.stage("search"):
                vector = self._reports.reader(models, clicks).vector
                return self.broadcast.find(vector, self._reports.limit, models.encoder)
        except PoolBroken:
            self.broadcast.discard()
            return None


def _is_silent(trouble: DeviceError | None) -> bool:
    """Whether no notice is due: nothing failed, or the server is unreachable, which every page shows by itself."""
    return trouble is None or isinstance(trouble, BackendUnreachable)


def _why_not(why: BudgetSpent | VectorsIncomplete) -> partial[str]:
    """Return a message about why no report was drawn.

    Call it with `how`, which names the fallback.
    """
    if isinstance(why, VectorsIncomplete):
        return partial(NOTICES, "vectors_coming")
    if isinstance(why, CodebooksSpent):
        return partial(NOTICES, "codebooks_spent")
    return _spent(lifetime=why.lifetime)


def _spent(*, lifetime: bool) -> partial[str]:
    return partial(NOTICES, "spent_for_good" if lifetime else "spent_today")
