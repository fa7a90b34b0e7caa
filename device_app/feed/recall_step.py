"""Polls for candidates in the background at randomly drawn times.

Each poll is one report and one request for texts, whether or not anybody reads.
"""

from collections.abc import Callable
from datetime import datetime

from device_app.errors import AnswerMalformed, BackendRefused, BackendUnreachable, ModeChanged
from device_app.feed.bodies import Bodies
from device_app.feed.candidate_search import BUSY
from device_app.feed.recall_answers import LastRequest, RecallAnswers
from device_app.feed.serving import Serving
from device_app.reports.choice import ChosenReport, ReportChoice
from device_app.store.byte_log import TimingStore
from device_app.uplink.backend_client import Uplink
from protocol.ids import short_release
from protocol.recall import RecallAnswer
from protocol.server_timing import Stopwatch


class RecallStep:
    """Sends reports; the only caller of `/v1/recall`.

    Formal guarantees: whether a step sends a report, and whether it then requests the texts of the answer's whole list,
    depends only on the settings, the release and the server's answers. The reader's actions influence only the report,
    within what the ledger has charged for it (`privacy.sealed_reports`).
    """

    def __init__(
        self,
        serving: Serving,
        uplink: Uplink,
        bodies: Bodies,
        reports: ReportChoice,
        answers: RecallAnswers,
        timings: TimingStore,
        clock: Callable[[], datetime],
    ) -> None:
        self._serving, self._uplink, self._bodies, self._reports = serving, uplink, bodies, reports
        self._answers, self._timings, self._clock = answers, timings, clock

    def step(self) -> float | None:
        """Send the report that is due, or the current one again, and store the answer for the pages.

        Returns how many seconds the server asks to wait, or None. Failures are stored for the pages to show. Raises
        NoRelease or ReleaseRefused.
        """
        if self._reports.policy.mode.finds != "server":
            return None
        watch = Stopwatch()
        with self._serving.still():
            erasures, chosen = self._serving.erasures, self._chosen(watch)
        if chosen is None:
            self._answers.asked = LastRequest()
            return None
        try:
            answer, server_ms = self._uplink.recall(chosen.report, watch)
        except BackendUnreachable as unreachable:
            self._serving.unreachable(unreachable)
            self._answers.asked = LastRequest(chosen.why, unreachable)
            return None
        except BackendRefused as refused:
            self._answers.asked = LastRequest(chosen.why, refused)
            if refused.problem.status in BUSY:
                return refused.retry_after_sec
            if chosen.report.message.release != short_release(self._serving.models().release):
                self._reports.memo.clear()  # the server no longer knows the release this report was made under
            return None
        except AnswerMalformed as malformed:
            self._answers.asked = LastRequest(chosen.why, malformed)
            return None
        self._serving.reached()
        with self._serving.still():
            if self._serving.erasures == erasures:
                self._keep(chosen, answer, server_ms, watch)
        return None

    def _chosen(self, watch: Stopwatch) -> ChosenReport | None:
        """Return the report to send, computed from the reader's current clicks."""
        models = self._serving.models()
        with watch.stage("store"):
            reading = self._serving.feed_context.user_preferences.reading(models.encoder)
            clicks = self._serving.feed_context.user_preferences.user_preferences(
                reading, models.encoder, models.dimensions
            ).click_vectors
        with watch.stage("cluster"):
            contexts = models.recall.contexts(clicks)
            labels = models.recall.clusters(contexts)
        try:
            return self._reports.due(models, clicks, contexts, labels, watch)
        except ModeChanged:  # changed in another tab: the next step uses the new mode
            return None

    def _keep(self, chosen: ChosenReport, answer: RecallAnswer, server_ms: dict[str, float], watch: Stopwatch) -> None:
        models = self._serving.models()
        if answer.encoder != models.encoder:
            self._answers.asked = LastRequest(chosen.why, moved_on=True)
            return
        try:
            with watch.stage("decode"):
                found = self._answers.keep(answer, models.dimensions, blank=chosen.blank)
        except AnswerMalformed as malformed:
            self._answers.asked = LastRequest(chosen.why, malformed)
            return
        self._answers.asked = LastRequest(chosen.why)
        self._bodies.want(answer, found.vectors)
        self._timings.record("recall", watch.stages_ms, server_ms, self._clock())
