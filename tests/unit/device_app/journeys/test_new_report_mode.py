"""A new report mode: one file like this toy's class and value, and a line in `MODES`. Nothing else is touched.

Its reports have a shape that the wire knows already, so that the server's decoder of that kind takes them.
"""

from __future__ import annotations

import numpy as np
import pytest
from pydantic import ValidationError

from backend.recall.compose import DECODERS
from device_app.privacy.mechanisms.code import RandomisedCode, nearest
from device_app.privacy.modes import MODES
from device_app.privacy.modes.by_codebook import ByCodebook, by_codebook
from device_app.privacy.modes.mode import Clear, ReportInput, ReportMode
from device_app.privacy.noise_sources import NoiseSource
from device_app.settings import PrivacySettings
from device_app.view_models.searches import use_of
from device_app.wire.recall import CodeReport, RecallRequest
from tests.doubles.backend import FakeBackend
from tests.doubles.clock import StillClock
from tests.doubles.journey import TOPIC, Make, click_on


class FarthestReporter(ByCodebook):
    """Reports the prototype that the reader is farthest from, by randomised response."""

    name = "farthest"

    @property
    def mechanism(self) -> RandomisedCode:
        return RandomisedCode(self.codebook.size, self.codebook.epsilon)

    def value(self, reader: ReportInput) -> int:
        return nearest(self.prototypes, -reader.vector)

    def make(self, reader: ReportInput, noise: NoiseSource) -> tuple[CodeReport, Clear]:
        true = self.value(reader)
        return CodeReport(codebook=self.codebook.size, code=self.mechanism.release(true, noise)), ((float(true),),)


FARTHEST = ReportMode(
    name="farthest",
    title="What you are not",
    paragraph=lambda book: f"Of {book.size if book else 16} typical readers, the number of the one least like you.",
    for_comparison=True,
    report=CodeReport,
    reporter=by_codebook(FarthestReporter),
    made_from="vector",
    outdated_after=lambda clicks_behind, clicks_per_report: 1,
    rows=lambda report: ((float(report.code),),),
    in_a_sentence=True,
)


def test_a_toy_mode_is_set_explained_drawn_charged_sent_and_shown_by_its_entry_alone(
    make: Make, backend: FakeBackend, clock: StillClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ValidationError, match="Input should be 'code', 'auto', 'broadcast'"):
        PrivacySettings(mode="farthest")
    monkeypatch.setitem(MODES, "farthest", FARTHEST)
    device = make(mode="farthest")
    device.feed(refresh=True)
    click_on(device, backend, TOPIC, 5, clock)
    assert device.feed(refresh=True).mode == "personal"

    (sent,) = [RecallRequest.model_validate_json(body) for _, path, body in backend.requests if path == "/v1/recall"]
    assert isinstance(sent.report, CodeReport)
    assert FARTHEST.decoder in DECODERS, "so that the server reads it"
    view = device.privacy()
    (facts,) = [each for each in view.modes if each.name == "farthest"]
    assert (facts.title, facts.cost) == ("What you are not", "4 epsilon a fresh report")
    assert facts.paragraph == "Of 16 typical readers, the number of the one least like you."
    assert (facts.for_comparison, facts.unusable, facts.recommended) == (True, None, False)
    assert view.mechanism is not None
    assert (view.mechanism.name, view.budgets[0].lifetime) == ("farthest", 4)
    clicks = device.parts.serving.feed_context.user_preferences.reading(backend.encoder).active
    mean = np.mean([click.vector for click in clicks], axis=0)
    assert view.report is not None
    assert (view.report.kind, view.report.in_a_sentence) == ("farthest", True)
    assert view.report.noisy == ((float(sent.report.code),),)
    assert view.report.clear == ((float(np.argmin(backend.prototypes @ mean)),),)
    assert view.clicks_until_report == 1, "by the toy's own rule"
    assert use_of(device.parts.ledger.settings) == "report"


def test_a_report_is_no_other_modes_though_both_make_one_kind(
    make: Make, backend: FakeBackend, clock: StillClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(MODES, "farthest", FARTHEST)
    device = make(mode="farthest")
    device.feed(refresh=True)
    click_on(device, backend, TOPIC, 5, clock)
    device.feed(refresh=True)
    device.set_privacy(mode="code")
    assert device.privacy().report is None
    assert device.feed(refresh=True).mode == "personal"
    assert device.privacy().budgets[0].lifetime == 8, "drawn and paid for anew"


@pytest.mark.parametrize("mode", MODES.values(), ids=lambda mode: mode.name)
def test_every_mode_goes_by_its_name_and_its_reports_have_a_decoder(mode: ReportMode) -> None:
    assert MODES[mode.name] is mode
    assert PrivacySettings(mode=mode.name).mode == mode.name
    assert (mode.decoder in DECODERS) == (mode.finds == "server")
    with pytest.raises(ValueError, match="needs report and reporter"):
        ReportMode(name="half", title="", paragraph=lambda book: "", finds="here", report=CodeReport)


def test_every_kind_of_report_that_the_server_reads_is_some_modes() -> None:
    assert set(DECODERS) == {mode.decoder for mode in MODES.values() if mode.decoder} | {"none"}
