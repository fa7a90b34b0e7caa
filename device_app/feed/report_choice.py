"""Chooses the report to send: the one in use, else a fresh one, which may cost; or says why there is none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from functools import partial

import numpy as np
from numpy.typing import NDArray

from device_app.errors import BudgetSpent, CodebooksSpent
from device_app.feed.model_cache import ServingModels
from device_app.interests.decomposition import Interests
from device_app.privacy.ledger import Ledger
from device_app.privacy.modes import MODES
from device_app.privacy.modes.mode import Reporter, ReportInput, ReportRelease
from device_app.privacy.noise_sources import NoiseSource
from device_app.privacy.reports import last_report, meaning_of, memoised, reporter_of, seal_report
from device_app.privacy.sealed import Sealed
from device_app.prose import Prose
from device_app.store.clicks import Clicks
from device_app.store.drawn_reports import DrawnReports
from device_app.store.releases import InstalledReleases
from device_app.store.report_memo import Memo, ReportMemo
from device_app.wire.ids import ReleaseId
from device_app.wire.recall import RecallRequest
from device_app.wire.server_timing import Stopwatch

NOTICES = Prose("device_app.feed", "notices.toml")


class VectorsIncomplete(Exception):
    """The encoder in use has not given its vectors of all news yet."""


def why_not(why: BudgetSpent | VectorsIncomplete) -> partial[str]:
    """Why no report was drawn, in words, to be called with `how`: what is done instead."""
    if isinstance(why, VectorsIncomplete):
        return partial(NOTICES, "vectors_coming")
    if isinstance(why, CodebooksSpent):
        return partial(NOTICES, "codebooks_spent")
    return partial(NOTICES, "spent_for_good" if why.lifetime else "spent_today")


class ReportChoice:
    """One report is in use: sending it again costs nothing, and it is drawn anew where it is out of date."""

    def __init__(
        self,
        ledger: Ledger,
        noise: NoiseSource,
        memo: ReportMemo,
        drawn: DrawnReports,
        clicks: Clicks,
        releases: InstalledReleases,
        limit: int,
        clock: Callable[[], datetime],
        generation: Callable[[str], str | None],
        searched: Callable[[str], NDArray[np.float32] | None] = lambda _: None,
    ) -> None:
        """limit: candidates to ask for, where the reader's mode doesn't say. generation names an encoder's vectors on
        this device, None while they are not complete; searched gives the second view's vector by an encoder, or None.
        """
        self.ledger = ledger
        self.memo = memo
        self._limit = limit
        self._noise = noise
        self._drawn = drawn
        self._clicks = clicks
        self._releases = releases
        self._clock = clock
        self._generation = generation
        self._searched = searched

    @property
    def limit(self) -> int:
        """How many candidates to look for: a matter of settings and release, the same for every reader with these."""
        choice = self.ledger.choice()
        return self._limit if choice is None else choice.places

    @property
    def clicks(self) -> int:
        """How many clicks there are: of how many the server has given vectors must not show in what is sent."""
        return self._clicks.count()

    def reporter(self, models: ServingModels) -> Reporter | None:
        """What makes the reader's reports under the release in use; None where nothing can."""
        generation = self._generation(models.encoder) or ""
        under = ReportRelease(models.release, models.encoder, generation)
        return reporter_of(self.ledger.settings, models.manifest.recall, models.spaces, under)

    def reader(self, models: ServingModels, clicks: NDArray[np.float32]) -> ReportInput:
        """Both views meet here, and only as one vector each."""
        wanted = self.ledger.settings.searches_in_reports
        return ReportInput(clicks, searched=self._searched(models.encoder) if wanted else None)

    def in_use(self, models: ServingModels) -> Sealed[RecallRequest] | None:
        """The memoised report, also of an earlier release where it says the same: sending it again costs nothing."""
        memo = self.memo.latest()
        found = self._answering(memo, models)
        if memo is None or found is None:
            return None
        under, carried = found
        return memoised(
            self.memo,
            release=memo.release,
            limit=self.limit,
            clicks=self._clicks.latest_id(),
            settings=self.ledger.settings,
            now=self._clock(),
            under=under,
            carried=carried,
        )

    def left_over(self, models: ServingModels) -> Sealed[RecallRequest] | None:
        """The report in use however old it is, as far as it can still be sent."""
        memo = self.memo.latest()
        found = self._answering(memo, models)
        if memo is None or found is None:
            return None
        limit, settings = self.limit, self.ledger.settings
        return last_report(self.memo, release=memo.release, limit=limit, settings=settings, under=found[0])

    def fresh(
        self,
        reporter: Reporter,
        models: ServingModels,
        clicks: NDArray[np.float32],
        contexts: NDArray[np.float32],
        labels: NDArray[np.int64],
        watch: Stopwatch,
    ) -> Sealed[RecallRequest]:
        """Draw a report of what the reader is now (or find the one drawn before), and pay. Raises BudgetSpent, or
        VectorsIncomplete: vectors that still come would change the reader's value without the reader."""
        if self._generation(models.encoder) is None:
            raise VectorsIncomplete
        latest = self._clicks.latest_id()
        reader = self.reader(models, clicks)
        if MODES[reporter.name].made_from == "decomposition":
            with watch.stage("decompose"):
                # A reader none of whose clicks has a vector reports as one channel without any interest.
                none = np.zeros((1, models.recall.protocol.basis_size), dtype=np.float32)
                interests = models.recall.decompose(contexts, labels) if len(labels) else Interests(none, (1,), labels)
            reader = replace(reader, scores=interests.scores, counts=interests.counts)
        with watch.stage("noise"):
            return seal_report(
                reporter,
                reader,
                release=models.release,
                limit=self.limit,
                ledger=self.ledger,
                noise=self._noise,
                memo=self.memo,
                drawn=self._drawn,
                clicks=latest,
            )

    def _answering(self, memo: Memo | None, models: ServingModels) -> tuple[ReleaseId, bool] | None:
        """Under which release the report in use can be sent, and whether its codebook was carried over to it: the one
        in use where it means the same there, else its own while the server answers that and the encoder is the same."""
        if memo is None or memo.release == models.release:
            return None if memo is None else (memo.release, False)
        reporter, kept = self.reporter(models), meaning_of(memo)
        offered = None if reporter is None else reporter.meaning
        if offered is not None and kept.name == offered.name:
            return models.release, False
        found = self._releases.installed(memo.release)
        if found is not None and found[1] < models.manifest.releases_answered and found[0].encoder == models.encoder:
            return memo.release, False
        return (models.release, True) if offered is not None and kept.carried_to(offered) else None
