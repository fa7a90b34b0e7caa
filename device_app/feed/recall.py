"""Finds candidates: by the report in use, or on this device, or says why the default list has to do."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from device_app.errors import AnswerMalformed, BackendRefused, BudgetSpent, ModeChanged
from device_app.feed.bodies import Bodies
from device_app.feed.broadcast import Broadcast, PoolBroken
from device_app.feed.candidates import Candidates, nothing
from device_app.feed.item import FeedMode
from device_app.feed.model_cache import ServingModels
from device_app.feed.recall_answers import RecallAnswers
from device_app.feed.report_choice import ReportChoice, VectorsIncomplete, why_not
from device_app.privacy.modes import MODES
from device_app.privacy.sealed import Sealed
from device_app.prose import Prose
from device_app.settings import PerformanceSettings
from device_app.uplink.backend_client import Uplink
from device_app.wire.ids import short_release
from device_app.wire.recall import RecallRequest
from device_app.wire.server_timing import Stopwatch

NOTICES = Prose("device_app.feed", "notices.toml")
INSTEAD = NOTICES.table("instead")

BUSY = (429, 503)


@dataclass(frozen=True)
class Found:
    """Candidates beyond the default list (perhaps none), and what the feed should say about it."""

    candidates: Candidates
    mode: FeedMode
    notice: str | None = None
    server_ms: dict[str, float] = field(default_factory=dict)


class Recall:
    """One report in use, one answer kept: refreshing a feed costs neither budget nor a request while both are young."""

    def __init__(
        self,
        uplink: Uplink,
        bodies: Bodies,
        reports: ReportChoice,
        broadcast: Broadcast,
        settings: PerformanceSettings,
    ) -> None:
        self.broadcast = broadcast
        self._uplink = uplink
        self._bodies = bodies
        self._reports = reports
        self._answers = RecallAnswers(settings.recall_max_age_sec)

    def find(
        self,
        models: ServingModels,
        clicks: NDArray[np.float32],
        contexts: NDArray[np.float32],
        labels: NDArray[np.int64],
        watch: Stopwatch,
    ) -> Found:
        """Candidates for the reader's interests; clicks, contexts [H, D] and labels [H] are of the recent clicks.

        Raises BackendUnreachable; BackendRefused by a backend that has too much to do, where no answer of it is kept.
        Any other refusal, a malformed answer or a spent budget gives candidates found here where
        this device keeps the pool's codes, else mode 'front', with a notice.
        """
        empty = nothing(models.encoder, models.dimensions)
        settings = self._reports.ledger.settings
        mode = MODES[settings.mode]
        if mode.finds == "nobody":
            return Found(empty, "front", NOTICES("silent"))
        # Of how many of the clicked news the server has given vectors must not show in whether something is sent.
        if not self._reports.clicks or (mode.finds == "here" and not len(labels)):
            return Found(empty, "cold")
        if mode.finds == "here":
            why = NOTICES("no_pool" if models.manifest.recall.pool_codes else "no_pool_offered")
            return self._here(models, clicks, watch) or Found(empty, "front", why)
        notice = None
        report = self._reports.in_use(models)
        if report is None:
            reporter = self._reports.reporter(models)
            if reporter is None:
                return self._without_report(
                    models, clicks, partial(NOTICES, "no_way", limit=settings.epsilon_per_report), watch
                )
            if self._reports.clicks < settings.clicks_before_report:
                return Found(empty, "cold")
            try:
                report = self._reports.fresh(reporter, models, clicks, contexts, labels, watch)
            except ModeChanged:  # in another tab, while this page is made
                return self.find(models, clicks, contexts, labels, watch)
            except (BudgetSpent, VectorsIncomplete) as spent:
                words = why_not(spent)
                report, notice = self._reports.left_over(models), words(how=INSTEAD["kept"])
                if report is None or self.broadcast.ready(models.encoder):
                    return self._without_report(models, clicks, words, watch)
        kept = self._answers.of(report, models.encoder, young=True)
        if kept is not None:
            return Found(kept, "personal", notice)
        try:
            self._answers.require_idle()
            return self._asked(report, models, notice, watch)
        except BackendRefused as refused:
            if refused.problem.status in BUSY:
                return self._meanwhile(report, models, refused)
            if report.message.release != short_release(models.release):
                self._reports.memo.clear()  # the backend no longer knows the release it was made under
            return Found(empty, "front", NOTICES("report_refused", why=refused))
        except AnswerMalformed as malformed:
            return Found(empty, "front", NOTICES("default_list", trouble=malformed))

    def fetch_texts(self) -> None:
        """Have the texts of the last answer's whole list fetched in the background.

        Called once its feed is built: until then the fetching would compete with the feed for the processor.
        """
        unfetched = self._answers.unfetched()
        if unfetched is not None:
            self._bodies.want(*unfetched)

    def known(self, default_list: Candidates) -> Candidates:
        """The kept answer and the default list together."""
        found = self._answers.found()
        return default_list if found is None else self.joined(found, default_list)

    def joined(self, found: Candidates, default_list: Candidates) -> Candidates:
        """The rows of an answer and of the default list in one, kept for the next feed."""
        return self._answers.joined(found, default_list)

    def finds_here(self) -> bool:
        """Whether the reader has chosen that this device finds news by itself, whose texts no returned list brings."""
        return MODES[self._reports.ledger.settings.mode].finds == "here"

    def forget(self) -> None:
        """Drop the kept answer."""
        self._answers.forget()
        self.broadcast.forget()
        self._uplink.forget()

    def _without_report(
        self, models: ServingModels, clicks: NDArray[np.float32], words: partial[str], watch: Stopwatch
    ) -> Found:
        """What is left where nothing may be reported: recall here, else the default list. words is told which."""
        found = self._here(models, clicks, watch, words(how=INSTEAD["here"]))
        empty = nothing(models.encoder, models.dimensions)
        return found or Found(empty, "front", words(how=INSTEAD["common"]))

    def _here(
        self, models: ServingModels, clicks: NDArray[np.float32], watch: Stopwatch, notice: str | None = None
    ) -> Found | None:
        """Recall on this device; None where it keeps no pool by this encoder."""
        if not self.broadcast.ready(models.encoder):
            return None
        try:
            with watch.stage("search"):
                vector = self._reports.reader(models, clicks).vector
                found = self.broadcast.find(vector, self._reports.limit, models.encoder)
        except PoolBroken:
            self.broadcast.discard()
            return None
        return Found(found, "personal", notice)

    def _meanwhile(self, report: Sealed[RecallRequest], models: ServingModels, busy: BackendRefused) -> Found:
        """What there is while the backend can't answer: the last answer to this report, however old. Nothing is wrong
        with the report, so it stays in use. Raises BackendRefused where no answer is kept: the last feed serves then.
        """
        self._answers.note_busy(busy)
        kept = self._answers.of(report, models.encoder, young=False)
        if kept is None:
            raise busy
        return Found(kept, "personal", NOTICES("last_answer", trouble=busy))

    def _asked(
        self, report: Sealed[RecallRequest], models: ServingModels, notice: str | None, watch: Stopwatch
    ) -> Found:
        answer, server_ms = self._uplink.recall(report, watch)
        if answer.encoder != models.encoder:
            return Found(nothing(models.encoder, models.dimensions), "front", NOTICES("moved_on"), server_ms)
        with watch.stage("decode"):
            found = self._answers.keep(report, models.encoder, answer, models.dimensions)
        return Found(found, "personal", notice, server_ms)
