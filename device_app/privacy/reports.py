"""The report of interests: drawn, paid for once, then sent again bit for bit until it's out of date.

Formal guarantees, against a server that chooses releases, codebooks, projections, encoders and vectors as it likes, in
the light of all it has heard: take two readers who have clicked and set their settings at the same times and don't do
so any more. The chances of any sequence of reports differ between them by at most the factor exp(sum of the ledger's
charges on the channel `reports`). Proof. A number is drawn anew only under a meaning (`ReportMeaning`:
mechanism, prototypes, and the generation of vectors on this device) under which this value was never drawn, and then it
is charged. Under one meaning the value can't change unless the reader does: the prototypes are named by their hash, and
a clicked piece of news keeps the vector that it has in a generation (`NewsStore.put_vectors`), whatever the server
sends later; no number is drawn before a generation is complete. So there is one draw a meaning, and by its mechanism it
has a likelihood ratio of at most exp(epsilon) given everything before it. Everything else in a request follows from the
numbers drawn and from what does not depend on either reader: the release in use, the clock, how many clicks there are,
the settings and the charges so far. An old number under a codebook that was carried over is the old number whatever
that codebook is: the comparison of inner products decides whether it still says something, and never makes a new one
free. Releases compose adaptively, as pure epsilon allows.

Readers who do change: each value that one comes to under a meaning is charged once, and the bound holds for two
readers whose values change at the same times; *when* they do is not covered, nor by which news that match a saved
search.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
from pydantic import TypeAdapter

from device_app.errors import CodebooksSpent, ModeChanged
from device_app.privacy.ledger import Ledger
from device_app.privacy.modes import MODES
from device_app.privacy.modes.mode import PublicVectors, Reporter, ReportInput, ReportRelease, ReportTerms
from device_app.privacy.noise_sources import NoiseSource
from device_app.privacy.report_meaning import ReportMeaning
from device_app.privacy.sealed import JSON, Charge, Sealed, close, digest, json_payload
from device_app.privacy.settings import PrivacySettings
from device_app.prose import Prose
from device_app.store.drawn_reports import DrawnReports
from device_app.store.report_memo import Memo, ReportMemo
from device_app.wire.ids import ReleaseId, short_release
from device_app.wire.recall import RecallRequest, Report
from device_app.wire.releases import RecallProtocol

WORDS = Prose("device_app.privacy", "words.toml")
BOTH_VIEWS = WORDS("both_views")
_REPORT: TypeAdapter[Report] = TypeAdapter(Report)


def reporter_of(
    settings: PrivacySettings, protocol: RecallProtocol, spaces: PublicVectors, under: ReportRelease | None = None
) -> Reporter | None:
    """What makes the reader's reports under a release; None where its mode makes none or the release can't serve it.

    The release proposes codebooks and their epsilons; only those within `epsilon_per_report` are used.
    """
    make = MODES[settings.mode].reporter
    return (
        None
        if make is None
        else make(ReportTerms(settings.epsilon_per_report, protocol, spaces, under or ReportRelease()))
    )


def seal_report(
    reporter: Reporter,
    reader: ReportInput,
    *,
    release: ReleaseId,
    limit: int,
    ledger: Ledger,
    noise: NoiseSource,
    memo: ReportMemo,
    drawn: DrawnReports,
    clicks: int,
) -> Sealed[RecallRequest]:
    """Make the report for what the reader is now, charge it unless it was drawn before, and put it in use.

    clicks is Clicks.latest_id() at the time the vectors were read. Ask `memoised` first: a fresh report may cost.
    Raises BudgetSpent (nothing is drawn up to be sent, the memo stays), its CodebooksSpent where the server has brought
    `codebooks_per_day` new codebooks or projections today already, ModeChanged where the settings are of another mode
    by now, and ValueError for vectors that are not finite or of another shape than the release says.

    Formal guarantees: those of the reporter's mechanism for one drawing; of many, the module's. Where it tells one of a
    few values (`code`, `subset`), a value's drawing is kept for good and sent whenever it is that value again under the
    same meaning, so that a life costs the mechanism's epsilon times the distinct values of each codebook, whatever the
    number of reports; *when* the value changes is not covered.
    Charge, drawing and memo are kept in one transaction, on the disk before this returns: after a kill either all
    exist or none, and the bytes have not left. Where another process of this profile has put a report in use since this
    one looked, that one is sent.
    """
    if ledger.settings.mode != reporter.name:
        raise ModeChanged(ledger.settings.mode)
    value, meaning = reporter.value(reader), reporter.meaning
    made_from = MODES[reporter.name].made_from
    views = 1 + (reader.searched is not None and made_from == "vector")
    with ledger.repository.transaction():
        other = memo.by_another_process()
        if other is not None and other.release == release:
            sealed = _again(other, limit, ledger.settings, None)
            if sealed is not None:
                return sealed
        before = None if value is None else drawn.get(reporter.name, meaning.name, value)
        if before is not None and value is not None:
            request = RecallRequest(release=short_release(release), limit=limit, report=_REPORT.validate_json(before))
            payload = json_payload(request)
            memo.keep(_memo(release, payload, ((float(value),),), clicks, ledger.now(), meaning))
            words = WORDS("report_before") + (BOTH_VIEWS if views > 1 else "")
            return close(request, payload, JSON, Charge("none", reporter.name, subject=release), words)
        if made_from != "decomposition":
            _require_new_codebook_allowed(meaning, ledger, drawn)
        report, clear = reporter.make(reader, noise)
        request = RecallRequest(release=short_release(release), limit=limit, report=report)
        payload = json_payload(request)
        charge = Charge(
            channel="reports",
            mechanism=reporter.name,
            parameters=reporter.mechanism.parameters() | ({"views": float(views)} if views > 1 else {}),
            epsilon=reporter.mechanism.epsilon_per_report,
            payload_sha256=digest(payload),
            subject=release,
        )
        paid = ledger.spend(charge)
        drawn.begin(meaning.name, paid.at)
        if value is not None:
            drawn.keep(reporter.name, meaning.name, value, report.model_dump_json(), paid.at)
        memo.keep(_memo(release, payload, clear, clicks, paid.at, meaning))
    return close(
        request,
        payload,
        JSON,
        charge,
        WORDS("report_fresh", sent=reporter.mechanism.words()) + (BOTH_VIEWS if views > 1 else ""),
    )


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
    """The report in use, ready to be sent again, or None if another one is due.

    Due: no report of the reader's mode under this release, enough new clicks since (`clicks_until_due`), the window
    over. A limit other than the first time's changes that field alone, never the noise; `under` names another release
    under which the report says the same (`ReportMeaning.carried_to`). carried: by a codebook carried over to another
    encoder; the end of the window has no report drawn by it then, since that would cost where nothing was read.

    Formal guarantees: sending the same noisy values again is post-processing: epsilon 0.
    """
    kept = memo.current(release)
    if kept is None or (not carried and now - kept.made_at >= timedelta(hours=settings.report_window_hours)):
        return None
    if clicks - kept.clicks >= clicks_until_due(kept, settings):
        return None
    return _again(kept, limit, settings, under)


def meaning_of(kept: Memo) -> ReportMeaning:
    """What the report in use means."""
    flat = np.frombuffer(kept.gram, dtype="<f4")
    width = round(flat.size**0.5)
    return ReportMeaning(kept.meaning, kept.mechanism, kept.encoder, kept.directions, flat.reshape(width, width))


def clicks_until_due(kept: Memo, settings: PrivacySettings) -> int:
    """New clicks after which the report in use is out of date, by the reader's mode."""
    return MODES[settings.mode].outdated_after(kept.clicks, settings.clicks_per_report)


def mode_of(kept: Memo, request: RecallRequest) -> str:
    """The mode that made the report in use. Two modes may make reports of one kind, so its mechanism is asked first."""
    return kept.mechanism.partition("/")[0] or request.report.kind


def last_report(
    memo: ReportMemo, *, release: ReleaseId, limit: int, settings: PrivacySettings, under: ReleaseId | None = None
) -> Sealed[RecallRequest] | None:
    """The report in use however old it is: what is left to send when the budget is spent. None if there is none.

    Formal guarantees: as `memoised`, epsilon 0.
    """
    kept = memo.current(release)
    return None if kept is None else _again(kept, limit, settings, under)


def _again(kept: Memo, limit: int, settings: PrivacySettings, under: ReleaseId | None) -> Sealed[RecallRequest] | None:
    request = RecallRequest.model_validate_json(kept.payload)
    if mode_of(kept, request) != settings.mode:
        return None
    payload, release = kept.payload, under or kept.release
    if (request.limit, request.release) != (limit, short_release(release)):
        request = request.model_copy(update={"limit": limit, "release": short_release(release)})
        payload = json_payload(request)
    return close(request, payload, JSON, Charge("none", settings.mode, subject=release), WORDS("report_again"))


def _memo(
    release: ReleaseId,
    payload: bytes,
    clear: tuple[tuple[float, ...], ...],
    clicks: int,
    at: datetime,
    meaning: ReportMeaning,
) -> Memo:
    gram = np.ascontiguousarray(meaning.gram, dtype="<f4").tobytes()
    names = (meaning.name, meaning.mechanism, meaning.encoder, meaning.directions)
    return Memo(release, payload, clear, clicks, at, *names, gram)


def _require_new_codebook_allowed(meaning: ReportMeaning, ledger: Ledger, drawn: DrawnReports) -> None:
    """Raise CodebooksSpent if this is a new one, and today's are used up."""
    most = ledger.settings.codebooks_per_day
    midnight = datetime.combine(ledger.day(), datetime.min.time(), tzinfo=UTC)
    if not drawn.begun(meaning.name) and drawn.begun_since(midnight) >= most:
        raise CodebooksSpent(most)
