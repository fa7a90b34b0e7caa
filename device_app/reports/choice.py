"""Chooses the report to send: the one in use, else a fresh one, else a cover report.

Only a fresh report may cost budget.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from device_app.errors import BudgetSpent
from device_app.privacy.accounting.ledger import ROUNDING, Ledger
from device_app.privacy.noise_sources import NoiseSource
from device_app.privacy.reporter import Reporter, ReportInput
from device_app.privacy.sealed import Sealed
from device_app.privacy.sealed_reports import is_blank, is_cover, last_report, meaning_of, seal_cover, seal_report
from device_app.privacy.settings import PrivacySettings
from device_app.reading.decomposition import RecallModel
from device_app.reports.modes import MODES
from device_app.reports.policy import ReportPolicy, reporter_of
from device_app.reports.reporters import PublicVectors, ReportRelease
from device_app.store.report_memo import Memo, ReportMemo
from device_app.stores import DeviceStores
from protocol.ids import ReleaseId
from protocol.recall import RecallRequest
from protocol.releases import ReleaseManifest
from protocol.server_timing import Stopwatch

Ceiling = Literal["day", "life"]


class VectorsIncomplete(Exception):
    """The encoder in use has not computed the vectors of all articles yet."""


@dataclass(frozen=True)
class ChosenReport:
    """The report to send.

    blank: it contains nothing about the reader. why: what prevented a fresh one.
    """

    report: Sealed[RecallRequest]
    blank: bool
    why: BudgetSpent | VectorsIncomplete | None = None


class ReleaseModels(Protocol):
    """The models of the release in use, as far as a report needs them."""

    @property
    def release(self) -> ReleaseId:
        """The release's id."""

    @property
    def encoder(self) -> str:
        """Digest of the encoder."""

    @property
    def manifest(self) -> ReleaseManifest:
        """The release's manifest."""

    @property
    def recall(self) -> RecallModel:
        """The decomposition on the release's basis."""

    @property
    def spaces(self) -> PublicVectors:
        """The prototypes of its codebooks."""


class ReportChoice:
    """Keeps one report in use, and draws a fresh one when it is out of date.

    Resending a report costs nothing.
    """

    def __init__(
        self,
        policy: ReportPolicy,
        ledger: Ledger,
        noise: NoiseSource,
        stores: DeviceStores,
        limit: int,
        clock: Callable[[], datetime],
        searched: Callable[[str], NDArray[np.float32] | None],
    ) -> None:
        """Create the choice.

        limit: number of candidates to request if the reader's mode doesn't set it. searched returns the second view's
        vector by an encoder, or None.
        """
        self.policy, self.ledger, self.memo, self._stores = policy, ledger, stores.report_memo, stores
        self._noise, self._limit, self._clock, self._searched = noise, limit, clock, searched

    @property
    def limit(self) -> int:
        """How many candidates to request.

        It depends on settings and release only, so it is the same for every reader with these.
        """
        choice = self.policy.choice()
        return self._limit if choice is None else choice.places

    @property
    def clicks(self) -> int:
        """The number of clicks, with or without vectors.

        What is sent must not show how many clicks have a vector.
        """
        return self._stores.clicks.count()

    def reporter(self, models: ReleaseModels) -> Reporter | None:
        """Return the reporter that makes the reader's reports under the current release.

        None if there is none.
        """
        generation = self._stores.pulled_shards.generation(models.encoder) or ""
        under = ReportRelease(models.release, models.encoder, generation)
        return reporter_of(self.policy.settings, models.manifest.recall, models.spaces, under)

    def reader(self, models: ReleaseModels, clicks: NDArray[np.float32]) -> ReportInput:
        """Return the input of a report; both views meet only here, as one vector each."""
        wanted = self.policy.settings.searches_in_reports
        return ReportInput(clicks, searched=self._searched(models.encoder) if wanted else None)

    def beyond(self, reporter: Reporter) -> Ceiling | None:
        """Return which of the reader's limits is below the cost of a single report.

        None if neither limit is.
        """
        cost, life = reporter.mechanism.epsilon_per_report, self.ledger.lifetime("reports")
        if life is not None and cost > life * (1 + ROUNDING):
            return "life"
        return "day" if cost > self.ledger.per_day("reports") * (1 + ROUNDING) else None

    def reads_enough(self) -> bool:
        """Return whether there are enough clicks for a report about the reader."""
        return self.clicks >= self.policy.settings.clicks_before_report

    def due(
        self,
        models: ReleaseModels,
        clicks: NDArray[np.float32],
        contexts: NDArray[np.float32],
        labels: NDArray[np.int64],
        watch: Stopwatch,
    ) -> ChosenReport | None:
        """Return the report to send now; None if mode, limits or release allow no report.

        That decision doesn't depend on what was read. Returns the current report if it is still valid, else a fresh
        one, which may be charged; if none may be drawn now, the last one or a cover. Raises ModeChanged.
        """
        reporter = self.reporter(models)
        if reporter is None or self.beyond(reporter) is not None:
            return None
        report, why = self._in_use(models), None
        if report is None:
            try:
                report = self._fresh(reporter, models, clicks, contexts, labels, watch)
            except (BudgetSpent, VectorsIncomplete) as spent:
                report, why = self._left_over(models) or self._cover(reporter, models), spent
        kept = self.memo.latest()
        return ChosenReport(report, blank=kept is None or is_blank(kept), why=why)

    def _in_use(self, models: ReleaseModels) -> Sealed[RecallRequest] | None:
        """Return the memoised report if its meaning still holds under this release.

        Resending it costs nothing.
        """
        memo = self.memo.latest()
        found = self._answering(memo, models)
        if memo is None or found is None or is_cover(memo) or (is_blank(memo) and self.reads_enough()):
            return None
        under, carried = found
        return memoised(
            self.memo,
            release=memo.release,
            limit=self.limit,
            clicks=self._stores.clicks.latest_id(),
            settings=self.policy.settings,
            now=self._clock(),
            under=under,
            carried=carried,
        )

    def _left_over(self, models: ReleaseModels) -> Sealed[RecallRequest] | None:
        """Return the report in use, however old, if it can still be sent."""
        memo = self.memo.latest()
        found = self._answering(memo, models)
        if memo is None or found is None:
            return None
        limit, settings = self.limit, self.policy.settings
        return last_report(self.memo, release=memo.release, limit=limit, settings=settings, under=found[0])

    def _cover(self, reporter: Reporter, models: ReleaseModels) -> Sealed[RecallRequest]:
        return seal_cover(
            reporter,
            settings=lambda: self.policy.settings,
            release=models.release,
            limit=self.limit,
            ledger=self.ledger,
            noise=self._noise,
            memo=self.memo,
        )

    def _fresh(
        self,
        reporter: Reporter,
        models: ReleaseModels,
        clicks: NDArray[np.float32],
        contexts: NDArray[np.float32],
        labels: NDArray[np.int64],
        watch: Stopwatch,
    ) -> Sealed[RecallRequest]:
        """Draw a report of the reader's current value (or find the one drawn before), and charge it.

        Raises BudgetSpent. Raises VectorsIncomplete while vectors are still arriving, because they would change the
        reader's value without any action of the reader.
        """
        if self._stores.pulled_shards.generation(models.encoder) is None:
            raise VectorsIncomplete
        latest = self._stores.clicks.latest_id()
        reader = self.reader(models, clicks) if self.reads_enough() else None
        if reader is not None:
            with watch.stage("decompose"):
                reader = reporter.decomposed(reader, labels, lambda: on_basis(models.recall, contexts, labels))
        with watch.stage("noise"):
            return seal_report(
                reporter,
                reader,
                settings=lambda: self.policy.settings,
                release=models.release,
                limit=self.limit,
                ledger=self.ledger,
                noise=self._noise,
                memo=self.memo,
                drawn=self._stores.drawn_reports,
                clicks=latest,
                sent=MODES[reporter.name].label.sent(reporter.mechanism),
            )

    def _answering(self, memo: Memo | None, models: ReleaseModels) -> tuple[ReleaseId, bool] | None:
        """Return the release to send the report in use under, and if its codebook is carried over.

        This is the release in use if the report means the same under it, else the report's own release while the server
        still answers it and the encoder is the same; else the release in use, if the codebook can be carried over to
        it. None if the report can't be sent.
        """
        if memo is None or memo.release == models.release:
            return None if memo is None else (memo.release, False)
        reporter, kept = self.reporter(models), meaning_of(memo)
        offered = None if reporter is None else reporter.meaning
        if offered is not None and kept.name == offered.name:
            return models.release, False
        found = self._stores.releases.installed(memo.release)
        if found is not None and found[1] < models.manifest.releases_answered and found[0].encoder == models.encoder:
            return memo.release, False
        return (models.release, True) if offered is not None and kept.carried_to(offered) else None


def on_basis(
    recall: RecallModel, contexts: NDArray[np.float32], labels: NDArray[np.int64]
) -> tuple[NDArray[np.floating], tuple[int, ...]]:
    """Scores [C, B] on the release's basis, and the clicks of each channel.

    If all of the reader's clicks lack vectors, there is one channel of zeros.
    """
    if not len(labels):
        return np.zeros((1, recall.protocol.basis_size), dtype=np.float32), (1,)
    interests = recall.decompose(contexts, labels)
    return interests.scores, interests.counts


def memoised(
    memo: ReportMemo,
    *,
    release: ReleaseId,
    limit: int,
    clicks: int,
    settings: PrivacySettings,
    now: datetime,
    under: ReleaseId | None = None,
    carried: bool = False,
) -> Sealed[RecallRequest] | None:
    """Return the current report, ready to be sent again, or None if a new one is due.

    A new one is due if there is no report of the reader's mode under this release, if there were enough new clicks
    since (`clicks_until_due`), or if the window has passed. limit and under: see `last_report`. carried: the report's
    codebook was carried over to another encoder; then a new report is not due at the end of the window, since it would
    cost budget although nothing was read.

    Formal guarantees: those of `last_report`, epsilon 0.
    """
    kept = memo.current(release)
    if kept is None or (not carried and now - kept.made_at >= timedelta(hours=settings.report_window_hours)):
        return None
    if clicks - kept.clicks >= clicks_until_due(kept, settings):
        return None
    return last_report(memo, release=release, limit=limit, settings=settings, under=under)


def clicks_until_due(kept: Memo, settings: PrivacySettings) -> int:
    """Return the number of new clicks after which the current report is out of date, for the reader's mode."""
    return MODES[settings.mode].outdated_after(kept.clicks, settings.clicks_per_report)
