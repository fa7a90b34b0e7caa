"""Seal interest reports, which are drawn and charged once, then sent again unchanged until they expire.

Formal guarantees, against a server that chooses releases, codebooks, encoders and vectors adaptively,
given everything it has received: take two readers who clicked and changed their settings at the same times, and have
stopped doing so. The probabilities of any sequence of reports differ between them by at most the factor exp(sum of the
ledger's charges on the channel `reports`). Proof. A new number is drawn only under a meaning (`ReportMeaning`:
mechanism, prototypes, and the generation of vectors on this device) under which this value was never drawn, and then it
is charged. Under one meaning the value can't change unless the reader does: the prototypes are named by their hash, and
a clicked article keeps the vector that it has in a generation (`NewsStore.put_vectors`), whatever the server sends
later; no number is drawn before a generation is complete. So there is one draw per meaning, and by its mechanism it has
a likelihood ratio of at most exp(epsilon) given everything before it. Everything else in a request follows from the
numbers drawn and from what does not depend on either reader: the release in use, the clock, the number of clicks, the
settings and the charges so far. An old number under a codebook that was carried over is the old number whatever that
codebook is: the comparison of inner products decides whether it is still meaningful, and never makes a new one free.
Releases compose adaptively, as pure epsilon allows.

A reader with fewer than `clicks_before_report` clicks also sends a report, a blank one (`Reporter.make` without a
reader). It is one more value under each meaning, drawn and charged like the others. So whether something is sent
follows from the settings and the release. If the ledger allows no new report, a cover is sent (`seal_cover`), which
does not depend on the reader.

Readers who do change: each value that a reader reaches under a meaning is charged once, and the bound holds for two
readers whose values change at the same times; *when* they change is not covered, and neither are the times at which
articles match a saved search.
"""

from collections.abc import Callable
from datetime import UTC, datetime

import numpy as np
from pydantic import TypeAdapter

from device_app.errors import CodebooksSpent, ModeChanged
from device_app.privacy.accounting.ledger import Ledger
from device_app.privacy.noise_sources import NoiseSource
from device_app.privacy.reporter import Clear, Reporter, ReportInput, ReportMeaning
from device_app.privacy.sealed import JSON, Charge, Sealed, close, digest, json_payload
from device_app.privacy.settings import PrivacySettings
from device_app.store.report_memo import DrawnReports, Memo, ReportMemo
from protocol.ids import ReleaseId, short_release
from protocol.recall import RecallRequest, Report
from protocol.text_catalogue import TextCatalogue

WORDS = TextCatalogue("device_app.privacy", "words.toml")
BOTH_VIEWS = WORDS("both_views")
NOBODYS_CLICKS = -1
"""Stored for a cover report in place of the number of clicks behind it."""
_REPORT: TypeAdapter[Report] = TypeAdapter(Report)


def seal_report(
    reporter: Reporter,
    reader: ReportInput | None,
    *,
    settings: Callable[[], PrivacySettings],
    release: ReleaseId,
    limit: int,
    ledger: Ledger,
    noise: NoiseSource,
    memo: ReportMemo,
    drawn: DrawnReports,
    clicks: int,
    sent: str,
) -> Sealed[RecallRequest]:
    """Make the report for the reader's current state and store it for sending.

    It is charged unless it was drawn before. reader None: a blank report. settings: returns the current settings.
    clicks is Clicks.latest_id() at the time the vectors were read. sent describes a fresh report to the reader. While
    the current report is valid, send it instead (`last_report`): a fresh one may cost budget.

    Raises BudgetSpent (nothing is prepared for sending, the memo stays), its subclass CodebooksSpent if the server has
    already introduced `codebooks_per_day` new codebooks today, ModeChanged if the settings now name another mode, and
    ValueError for vectors that are not finite or whose shape differs from the release's.

    Formal guarantees: those of the reporter's mechanism for one draw; for many draws, those of this module. If it sends
    one of a few values (`code`, `subset`), a value's draw is kept permanently and sent whenever the reader has that
    value again under the same meaning, so that the lifetime cost is the mechanism's epsilon times the number of
    distinct values of each codebook, whatever the number of reports; *when* the value changes is not covered. Charge,
    draw and memo are kept in one transaction, on the disk before this returns: after a crash either all exist or none
    does, and nothing was sent. If another process of this profile has stored a report since this one last checked, that
    report is sent.
    """
    allowed = _still_allowed(reporter, settings)
    value, meaning = reporter.value(reader), reporter.meaning
    views = 1 + (reader is not None and reader.searched is not None and reporter.made_from == "vector")
    with ledger.repository.transaction():
        other = memo.by_another_process()
        if other is not None and other.release == release:
            sealed = _again(other, limit, allowed, None)
            if sealed is not None:
                return sealed
        before = None if value is None else drawn.get(reporter.name, meaning.name, value)
        if before is not None and value is not None:
            request = RecallRequest(release=short_release(release), limit=limit, report=_REPORT.validate_json(before))
            payload = json_payload(request)
            clear: Clear = () if reader is None else reporter.shown(reader)
            memo.keep(_memo(release, payload, clear, clicks, ledger.now(), meaning))
            words = WORDS("report_before") + (BOTH_VIEWS if views > 1 else "")
            return close(request, payload, JSON, Charge("none", reporter.name, subject=release), words)
        if reporter.made_from != "decomposition":
            _require_new_codebook_allowed(meaning, allowed.codebooks_per_day, ledger, drawn)
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
        (WORDS("report_blank") if reader is None else WORDS("report_fresh", sent=sent))
        + (BOTH_VIEWS if views > 1 else ""),
    )


def seal_cover(
    reporter: Reporter,
    *,
    settings: Callable[[], PrivacySettings],
    release: ReleaseId,
    limit: int,
    ledger: Ledger,
    noise: NoiseSource,
    memo: ReportMemo,
) -> Sealed[RecallRequest]:
    """Seal a cover: a blank report for the time when no report may be drawn and none is left to send.

    It is sent until a report may be drawn again. Raises ModeChanged if the settings now name another mode.

    Formal guarantees: it is drawn without the reader's data, and every reader with these charges, settings, release and
    vectors draws from the same distribution: epsilon 0. It is visible that such a state was reached, just as it is
    visible *when* a report changes.
    """
    _still_allowed(reporter, settings)
    report, clear = reporter.make(None, noise)
    request = RecallRequest(release=short_release(release), limit=limit, report=report)
    payload = json_payload(request)
    memo.keep(_memo(release, payload, clear, NOBODYS_CLICKS, ledger.now(), reporter.meaning))
    return close(request, payload, JSON, Charge("none", reporter.name, subject=release), WORDS("report_cover"))


def meaning_of(kept: Memo) -> ReportMeaning:
    flat = np.frombuffer(kept.gram, dtype="<f4")
    width = round(flat.size**0.5)
    return ReportMeaning(kept.meaning, kept.mechanism, kept.encoder, kept.directions, flat.reshape(width, width))


def is_blank(kept: Memo) -> bool:
    """Return whether the current report says nothing about its reader."""
    return not kept.clear


def is_cover(kept: Memo) -> bool:
    """Return whether the current report is a cover.

    A real report replaces it as soon as one may be drawn.
    """
    return kept.clicks == NOBODYS_CLICKS


def mode_of(kept: Memo, request: RecallRequest) -> str:
    """Return the mode that made the current report.

    The mechanism is compared first, since two modes may share a kind of report.
    """
    return kept.mechanism.partition("/")[0] or request.report.kind


def last_report(
    memo: ReportMemo, *, release: ReleaseId, limit: int, settings: PrivacySettings, under: ReleaseId | None = None
) -> Sealed[RecallRequest] | None:
    """Return the current report, ready to be sent again, however old.

    None if the reader's mode has none under this release. If the limit differs from the first time, only that field
    changes, never the noise; `under` names another release under which the report says the same
    (`ReportMeaning.carried_to`).

    Formal guarantees: sending the same noisy values again is post-processing: epsilon 0.
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


def _still_allowed(reporter: Reporter, settings: Callable[[], PrivacySettings]) -> PrivacySettings:
    """Return the settings in force.

    Raises ModeChanged if they now name another mode than the reporter's.
    """
    found = settings()
    if found.mode != reporter.name:
        raise ModeChanged(found.mode)
    return found


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


def _require_new_codebook_allowed(meaning: ReportMeaning, most: int, ledger: Ledger, drawn: DrawnReports) -> None:
    """Raise CodebooksSpent if this codebook is new and today's limit of new ones is reached."""
    midnight = datetime.combine(ledger.day(), datetime.min.time(), tzinfo=UTC)
    if not drawn.begun(meaning.name) and drawn.begun_since(midnight) >= most:
        raise CodebooksSpent(most)
