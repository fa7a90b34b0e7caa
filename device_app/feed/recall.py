"""Asks the backend for candidates with the report in use, or says why the common list has to do."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from device_app.errors import AnswerMalformed, BackendRefused, BudgetSpent
from device_app.feed.bodies import Bodies
from device_app.feed.candidates import Candidates, candidates_of, nothing, together
from device_app.feed.columns import CardColumns
from device_app.feed.item import FeedMode
from device_app.feed.models import ServingModels
from device_app.privacy.budget import Ledger
from device_app.privacy.noise import NoiseSource
from device_app.privacy.reports import last_report, memoised, seal_report
from device_app.privacy.sealed import Sealed
from device_app.settings import PerformanceSettings
from device_app.store.clicks import Clicks
from device_app.store.release_shelf import ReleaseShelf
from device_app.store.report_memo import ReportMemo
from device_app.uplink.server import Uplink
from device_app.wire.recall import RecallAnswer, RecallRequest
from device_app.wire.timing import Stopwatch

SILENT = "Reports are switched off: this feed was ranked on this device from the list that everybody gets."
SPENT = (
    "Today's budget for reports is spent: this feed was ranked on this device from the list that everybody gets. "
    "Nothing new is sent until midnight UTC."
)
SPENT_BUT_KEPT = "Today's budget for reports is spent: your last report goes on being used until midnight UTC."


@dataclass(frozen=True)
class Found:
    """Candidates beyond the common list (perhaps none), and what the feed should say about it."""

    candidates: Candidates
    mode: FeedMode
    notice: str | None = None
    server_ms: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class _Kept:
    payload_sha256: str
    encoder: str
    at_sec: float
    answer: RecallAnswer
    found: Candidates


class Recall:
    """One report in use, one answer kept: refreshing a feed costs neither budget nor a request while both are young."""

    def __init__(
        self,
        uplink: Uplink,
        bodies: Bodies,
        ledger: Ledger,
        noise: NoiseSource,
        memo: ReportMemo,
        clicks: Clicks,
        releases: ReleaseShelf,
        settings: PerformanceSettings,
        clock: Callable[[], datetime],
    ) -> None:
        self.ledger = ledger
        self.memo = memo
        self._uplink = uplink
        self._bodies = bodies
        self._noise = noise
        self._clicks = clicks
        self._releases = releases
        self._settings = settings
        self._clock = clock
        self._columns = CardColumns()
        self._kept: _Kept | None = None
        self._joined: tuple[Candidates, Candidates, Candidates] | None = None
        self._unfetched: tuple[RecallAnswer, NDArray[np.float32]] | None = None

    def find(
        self, models: ServingModels, contexts: NDArray[np.float32], labels: NDArray[np.int64], watch: Stopwatch
    ) -> Found:
        """Candidates for the reader's interests; contexts [H, D] and labels [H] are of the recent clicks.

        Raises BackendUnreachable. A refusal, a malformed answer or a spent budget gives mode 'front' with a notice.
        """
        empty = nothing(models.encoder, models.dimensions)
        if self.ledger.settings.mode == "none":
            return Found(empty, "front", SILENT)
        if not len(labels):
            return Found(empty, "cold")
        notice = None
        report = self._in_use(models)
        if report is None:
            try:
                report = self._fresh(models, contexts, labels, watch)
            except BudgetSpent:
                report, notice = self._left_over(models), SPENT_BUT_KEPT
                if report is None:
                    return Found(empty, "front", SPENT)
        kept = self._young(report, models)
        if kept is not None:
            return Found(kept, "personal", notice)
        try:
            return self._asked(report, models, notice, watch)
        except BackendRefused as refused:
            if report.message.release != models.release:
                self.memo.clear()  # the backend no longer knows the release it was made under
            return Found(empty, "front", f"The backend refused the report ({refused}); this is the common list.")
        except AnswerMalformed as malformed:
            return Found(empty, "front", f"{malformed} This feed was ranked from the common list.")

    def fetch_texts(self) -> None:
        """Have the texts of the last answer's whole list fetched in the background.

        Called once its feed is built: until then the fetching would compete with the feed for the processor.
        """
        if self._unfetched is not None:
            self._bodies.want(*self._unfetched)
            self._unfetched = None

    def known(self, front: Candidates) -> Candidates:
        """The kept answer and the common list together."""
        return front if self._kept is None else self.joined(self._kept.found, front)

    def joined(self, found: Candidates, front: Candidates) -> Candidates:
        """`together`, remembered: both live longer than a feed."""
        last = self._joined
        if last is None or last[0] is not found or last[1] is not front:
            whole = front if len(front) and found.encoder != front.encoder else together(found, front)
            last = self._joined = (found, front, whole)
        return last[2]

    def forget(self) -> None:
        """Drop the kept answer."""
        self._kept = self._joined = self._unfetched = None
        self._columns.forget()
        self._uplink.forget()

    def _in_use(self, models: ServingModels) -> Sealed[RecallRequest] | None:
        """The memoised report, also one of an earlier release of the same encoder: sending it again costs nothing."""
        memo = self.memo.latest()
        if memo is None or not self._same_encoder(memo.release, models):
            return None
        return memoised(
            self.memo,
            release=memo.release,
            limit=self._settings.recall_limit,
            clicks=self._clicks.latest_id(),
            settings=self.ledger.settings,
            now=self._clock(),
        )

    def _left_over(self, models: ServingModels) -> Sealed[RecallRequest] | None:
        memo = self.memo.latest()
        if memo is None or not self._same_encoder(memo.release, models):
            return None
        return last_report(
            self.memo, release=memo.release, limit=self._settings.recall_limit, settings=self.ledger.settings
        )

    def _same_encoder(self, release: str, models: ServingModels) -> bool:
        if release == models.release:
            return True
        earlier = [kept.manifest for kept in self._releases.history(5) if kept.manifest.release == release]
        return bool(earlier) and earlier[0].encoder == models.encoder

    def _fresh(
        self, models: ServingModels, contexts: NDArray[np.float32], labels: NDArray[np.int64], watch: Stopwatch
    ) -> Sealed[RecallRequest]:
        """Decompose, clip, add noise, pay. Raises BudgetSpent."""
        clicks = self._clicks.latest_id()
        with watch.stage("decompose"):
            interests = models.recall.decompose(contexts, labels)
        with watch.stage("noise"):
            return seal_report(
                interests.scores,
                interests.counts,
                protocol=models.manifest.recall,
                release=models.release,
                limit=self._settings.recall_limit,
                ledger=self.ledger,
                noise=self._noise,
                memo=self.memo,
                clicks=clicks,
            )

    def _young(self, report: Sealed[RecallRequest], models: ServingModels) -> Candidates | None:
        kept = self._kept
        if kept is None or kept.payload_sha256 != report.sha256 or kept.encoder != models.encoder:
            return None
        return kept.found if time.monotonic() - kept.at_sec < self._settings.recall_max_age_sec else None

    def _candidates(self, answer: RecallAnswer, dimensions: int) -> Candidates:
        if self._kept is not None and self._kept.answer is answer:
            return self._kept.found
        found = candidates_of(answer, dimensions)
        self._columns.fill(found)
        return found

    def _asked(
        self, report: Sealed[RecallRequest], models: ServingModels, notice: str | None, watch: Stopwatch
    ) -> Found:
        answer, server_ms = self._uplink.recall(report, watch)
        if answer.encoder != models.encoder:
            words = "The backend has moved on to a newer release; this feed was ranked from the common list meanwhile."
            return Found(nothing(models.encoder, models.dimensions), "front", words, server_ms)
        with watch.stage("decode"):
            found = self._candidates(answer, models.dimensions)
        self._kept = _Kept(report.sha256, models.encoder, time.monotonic(), answer, found)
        self._unfetched = (answer, found.vectors)
        return Found(found, "personal", notice, server_ms)
