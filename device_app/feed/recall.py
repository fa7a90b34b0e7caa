"""Finds candidates: by the report in use, or on this device, or says why the default list has to do."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from device_app.errors import AnswerMalformed, BackendRefused, BudgetSpent, CodebooksSpent
from device_app.feed.bodies import Bodies
from device_app.feed.broadcast import Broadcast, PoolBroken
from device_app.feed.candidates import Candidates, candidates_of, nothing, together
from device_app.feed.columns import CardColumns
from device_app.feed.item import FeedMode
from device_app.feed.model_cache import ServingModels
from device_app.privacy.budget import Ledger
from device_app.privacy.modes import MODES
from device_app.privacy.modes.mode import Reporter, Under
from device_app.privacy.modes.report_input import ReportInput
from device_app.privacy.noise import NoiseSource
from device_app.privacy.reports import last_report, meaning_of, memoised, reporter_of, seal_report
from device_app.privacy.sealed import Sealed
from device_app.settings import PerformanceSettings
from device_app.store.clicks import Clicks
from device_app.store.drawn_reports import DrawnReports
from device_app.store.releases import InstalledReleases
from device_app.store.report_memo import Memo, ReportMemo
from device_app.uplink.server import Uplink
from device_app.wire.ids import ReleaseId, short_release
from device_app.wire.recall import RecallAnswer, RecallRequest
from device_app.wire.timing import Stopwatch

SILENT = "Reports are switched off: this feed was ranked on this device from the list that everybody gets."
HERE = "this feed was found on this device, in its copy of the pool"
COMMON = "this feed was ranked on this device from the list that everybody gets"
SPENT_TODAY = "Today's budget for reports is spent: {how}. Nothing new is sent until midnight UTC."
SPENT_FOR_GOOD = "The lifetime budget for reports is spent: {how}. Nothing new is sent; the privacy page says how much."
CODEBOOKS_SPENT = (
    "The server has changed what reports are made with as often today as you allow: {how}. Nothing new is sent until "
    "midnight UTC."
)
VECTORS_COMING = "The news vectors of the new release are not all here yet, so nothing new was sent: {how}."
KEPT = "your last report goes on being used"
NO_POOL = "No copy of the pool is on this device yet: this feed was ranked here from the list that everybody gets."
NO_POOL_OFFERED = "This release has no codes of the pool to search here: this feed was ranked from the default list."
NO_CODEBOOK = (
    "This release has no way to report within {limit:g} epsilon in the mode you chose, so nothing was sent: {how}."
)


BUSY = (429, 503)
BUSY_RETRY_SEC = 5.0
"""Where a backend that has too much to do doesn't say when to come back."""
_CHANCE = random.SystemRandom()


class _VectorsComing(Exception):
    """The encoder in use has not given its vectors of all news yet."""


def _why_not(why: BudgetSpent | _VectorsComing) -> str:
    """Why no report was drawn, in words with room for what is done instead."""
    if isinstance(why, _VectorsComing):
        return VECTORS_COMING
    if isinstance(why, CodebooksSpent):
        return CODEBOOKS_SPENT
    return SPENT_FOR_GOOD if why.lifetime else SPENT_TODAY


@dataclass(frozen=True)
class Found:
    """Candidates beyond the default list (perhaps none), and what the feed should say about it."""

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
        releases: InstalledReleases,
        settings: PerformanceSettings,
        clock: Callable[[], datetime],
        drawn: DrawnReports,
        broadcast: Broadcast,
        generation: Callable[[str], str | None],
        searched: Callable[[str], NDArray[np.float32] | None] = lambda _: None,
    ) -> None:
        """generation names an encoder's vectors on this device, None while they are not complete; searched gives the
        second view's vector by an encoder, or None."""
        self.ledger = ledger
        self.memo = memo
        self.broadcast = broadcast
        self._drawn = drawn
        self._generation = generation
        self._searched = searched
        self._uplink = uplink
        self._bodies = bodies
        self._noise = noise
        self._clicks = clicks
        self._releases = releases
        self._settings = settings
        self._clock = clock
        self._columns = CardColumns()
        self._kept: _Kept | None = None
        self._busy: BackendRefused | None = None
        self._busy_until_sec = 0.0
        self._joined: tuple[Candidates, Candidates, Candidates] | None = None
        self._unfetched: tuple[RecallAnswer, NDArray[np.float32]] | None = None

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
        settings = self.ledger.settings
        mode = MODES[settings.mode]
        if mode.finds == "nobody":
            return Found(empty, "front", SILENT)
        needs_vectors = mode.finds == "here" or mode.made_from == "decomposition"
        if not self._clicks.count() or (needs_vectors and not len(labels)):
            return Found(empty, "cold")
        if mode.finds == "here":
            why = NO_POOL if models.manifest.recall.pool_codes else NO_POOL_OFFERED
            return self._here(models, clicks, watch) or Found(empty, "front", why)
        notice = None
        report = self._in_use(models)
        if report is None:
            reporter = self._reporter(models)
            if reporter is None:
                words = NO_CODEBOOK.replace("{limit:g}", f"{settings.epsilon_per_report:g}")
                return self._without_report(models, clicks, words, watch)
            # Of how many of the clicked news the server has given vectors must not show in whether something is sent.
            if self._clicks.count() < settings.clicks_before_report:
                return Found(empty, "cold")
            try:
                report = self._fresh(reporter, models, clicks, contexts, labels, watch)
            except (BudgetSpent, _VectorsComing) as why_not:
                words = _why_not(why_not)
                report, notice = self._left_over(models), words.format(how=KEPT)
                if report is None or self.broadcast.ready(models.encoder):
                    return self._without_report(models, clicks, words, watch)
        kept = self._young(report, models)
        if kept is not None:
            return Found(kept, "personal", notice)
        try:
            if self._busy is not None and time.monotonic() < self._busy_until_sec:
                raise self._busy
            return self._asked(report, models, notice, watch)
        except BackendRefused as refused:
            if refused.problem.status in BUSY:
                return self._meanwhile(report, models, refused)
            if report.message.release != short_release(models.release):
                self.memo.clear()  # the backend no longer knows the release it was made under
            return Found(empty, "front", f"The backend refused the report ({refused}); this is the default list.")
        except AnswerMalformed as malformed:
            return Found(empty, "front", f"{malformed} This feed was ranked from the default list.")

    def fetch_texts(self) -> None:
        """Have the texts of the last answer's whole list fetched in the background.

        Called once its feed is built: until then the fetching would compete with the feed for the processor.
        """
        if self._unfetched is not None:
            self._bodies.want(*self._unfetched)
            self._unfetched = None

    def known(self, default_list: Candidates) -> Candidates:
        """The kept answer and the default list together."""
        return default_list if self._kept is None else self.joined(self._kept.found, default_list)

    def joined(self, found: Candidates, default_list: Candidates) -> Candidates:
        """`together`, remembered: both live longer than a feed."""
        last = self._joined
        if last is None or last[0] is not found or last[1] is not default_list:
            whole = (
                default_list
                if len(default_list) and found.encoder != default_list.encoder
                else together(found, default_list)
            )
            last = self._joined = (found, default_list, whole)
        return last[2]

    def found_here(self, news_id: str) -> bool:
        """Whether this news was found by this device alone, so that no returned list brings its text."""
        return MODES[self.ledger.settings.mode].finds == "here" or self.broadcast.found(news_id)

    def forget(self) -> None:
        """Drop the kept answer."""
        self._kept = self._joined = self._unfetched = self._busy = None
        self.broadcast.forget()
        self._columns.forget()
        self._uplink.forget()

    def _in_use(self, models: ServingModels) -> Sealed[RecallRequest] | None:
        """The memoised report, also of an earlier release where it says the same: sending it again costs nothing."""
        memo = self.memo.latest()
        found = self._answering(memo, models)
        if memo is None or found is None:
            return None
        under, carried = found
        return memoised(
            self.memo,
            release=memo.release,
            limit=self._settings.recall_limit,
            clicks=self._clicks.latest_id(),
            settings=self.ledger.settings,
            now=self._clock(),
            under=under,
            carried=carried,
        )

    def _left_over(self, models: ServingModels) -> Sealed[RecallRequest] | None:
        memo = self.memo.latest()
        found = self._answering(memo, models)
        if memo is None or found is None:
            return None
        limit, settings = self._settings.recall_limit, self.ledger.settings
        return last_report(self.memo, release=memo.release, limit=limit, settings=settings, under=found[0])

    def _answering(self, memo: Memo | None, models: ServingModels) -> tuple[ReleaseId, bool] | None:
        """Under which release the report in use can be sent, and whether its codebook was carried over to it: the one
        in use where it means the same there, else its own while the server answers that and the encoder is the same."""
        if memo is None or memo.release == models.release:
            return None if memo is None else (memo.release, False)
        reporter, kept = self._reporter(models), meaning_of(memo)
        offered = None if reporter is None else reporter.meaning
        if offered is not None and kept.name == offered.name:
            return models.release, False
        found = self._releases.installed(memo.release)
        if found is not None and found[1] < models.manifest.releases_answered and found[0].encoder == models.encoder:
            return memo.release, False
        return (models.release, True) if offered is not None and kept.carried_to(offered) else None

    def _reporter(self, models: ServingModels) -> Reporter | None:
        generation = self._generation(models.encoder) or ""
        under = Under(models.release, models.encoder, generation)
        return reporter_of(self.ledger.settings, models.manifest.recall, models.spaces, under)

    def _fresh(
        self,
        reporter: Reporter,
        models: ServingModels,
        clicks: NDArray[np.float32],
        contexts: NDArray[np.float32],
        labels: NDArray[np.int64],
        watch: Stopwatch,
    ) -> Sealed[RecallRequest]:
        """Draw a report of what the reader is now (or find the one drawn before), and pay. Raises BudgetSpent, or
        _VectorsComing: vectors that still come would change the reader's value without the reader."""
        if self._generation(models.encoder) is None:
            raise _VectorsComing
        latest = self._clicks.latest_id()
        reader = self._reader(models, clicks)
        if MODES[reporter.name].made_from == "decomposition":
            with watch.stage("decompose"):
                interests = models.recall.decompose(contexts, labels)
            reader = replace(reader, scores=interests.scores, counts=interests.counts)
        with watch.stage("noise"):
            return seal_report(
                reporter,
                reader,
                release=models.release,
                limit=self._settings.recall_limit,
                ledger=self.ledger,
                noise=self._noise,
                memo=self.memo,
                drawn=self._drawn,
                clicks=latest,
            )

    def _reader(self, models: ServingModels, clicks: NDArray[np.float32]) -> ReportInput:
        """Both views meet here, and only as one vector each."""
        wanted = self.ledger.settings.searches_in_reports
        return ReportInput(clicks, searched=self._searched(models.encoder) if wanted else None)

    def _without_report(
        self, models: ServingModels, clicks: NDArray[np.float32], words: str, watch: Stopwatch
    ) -> Found:
        """What is left where nothing may be reported: recall here, else the default list. words has room for which."""
        found = self._here(models, clicks, watch, words.replace("{how}", HERE))
        empty = nothing(models.encoder, models.dimensions)
        return found or Found(empty, "front", words.replace("{how}", COMMON))

    def _here(
        self, models: ServingModels, clicks: NDArray[np.float32], watch: Stopwatch, notice: str | None = None
    ) -> Found | None:
        """Recall on this device; None where it keeps no pool by this encoder."""
        if not self.broadcast.ready(models.encoder):
            return None
        try:
            with watch.stage("search"):
                vector = self._reader(models, clicks).vector
                found = self.broadcast.find(vector, self._settings.recall_limit, models.encoder)
        except PoolBroken:
            self.broadcast.discard()
            return None
        return Found(found, "personal", notice)

    def _meanwhile(self, report: Sealed[RecallRequest], models: ServingModels, busy: BackendRefused) -> Found:
        """What there is while the backend can't answer: the last answer to this report, however old. Nothing is wrong
        with the report, so it stays in use. Raises BackendRefused where no answer is kept: the last feed serves then.
        """
        if busy is not self._busy:
            # Devices that were refused together don't come back together.
            wait_sec = (busy.retry_after_sec or BUSY_RETRY_SEC) * (1 + _CHANCE.random())
            self._busy, self._busy_until_sec = busy, time.monotonic() + wait_sec
        kept = self._kept
        if kept is None or kept.payload_sha256 != report.sha256 or kept.encoder != models.encoder:
            raise busy
        return Found(kept.found, "personal", f"{busy} This feed was ranked from the last answer.")

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
            words = "The backend has moved on to a newer release; this feed was ranked from the default list meanwhile."
            return Found(nothing(models.encoder, models.dimensions), "front", words, server_ms)
        with watch.stage("decode"):
            found = self._candidates(answer, models.dimensions)
        self._busy = None
        self._kept = _Kept(report.sha256, models.encoder, time.monotonic(), answer, found)
        self._unfetched = (answer, found.vectors)
        return Found(found, "personal", notice, server_ms)
