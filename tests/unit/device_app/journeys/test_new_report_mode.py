"""A new report mode needs one file like this toy's, and a line in `MODES` and `MODE_NAMES`.

Its reports have a shape that the wire already has, so the server's decoder of that kind accepts them.
"""

from __future__ import annotations

import numpy as np
import pytest
from pydantic import ValidationError

from backend.recall.decode import DECODERS
from device_app.privacy.mechanisms.code import RandomisedCode, nearest
from device_app.privacy.noise_sources import NoiseSource
from device_app.privacy.reporter import UNKNOWN, Clear, ReportInput
from device_app.privacy.settings import MODE_NAMES
from device_app.reports.modes import MODES, Label, ReportMode
from device_app.reports.reporters import CodebookReporter
from device_app.settings import PrivacySettings
from device_app.view_models.explore import use_of
from protocol.recall import CodeReport, RecallRequest
from tests.doubles.backend import FakeBackend
from tests.doubles.clock import StillClock
from tests.doubles.journey import TOPIC, Make, click_on
from tests.doubles.new_page import new_page


class FarthestReporter(CodebookReporter[RandomisedCode]):
    """Reports the prototype that the reader is farthest from, by randomised response."""

    name, report, made_from = "farthest", CodeReport, "vector"

    def value(self, reader: ReportInput | None) -> int:
        return UNKNOWN if reader is None else nearest(self.prototypes, -reader.vector)

    def make(self, reader: ReportInput | None, noise: NoiseSource) -> tuple[CodeReport, Clear]:
        true = self.uniform(noise) if reader is None else self.value(reader)
        report = CodeReport(codebook=self.codebook.size, code=self.mechanism.release(true, noise))
        return report, () if reader is None else ((float(true),),)


TEXTS = {
    "title": "What you are not",
    "paragraph": "Of {size} typical readers, the number of the one least like you.",
    "sent": "A number below {size}.",
}
FARTHEST = ReportMode(
    "farthest",
    Label(
        TEXTS,
        usual=RandomisedCode(16, 4.0),
        for_comparison=True,
        rows=lambda report: ((float(report.code),),),
        in_a_sentence=True,
    ),
    RandomisedCode,
    FarthestReporter,
    outdated_after=lambda clicks_behind, clicks_per_report: 1,
)


def test_registering_a_report_mode_is_enough_to_use_it(
    make: Make, backend: FakeBackend, clock: StillClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ValidationError, match="Input should be 'interest', 'auto', 'broadcast'"):
        PrivacySettings(mode="farthest")
    monkeypatch.setitem(MODES, "farthest", FARTHEST)
    monkeypatch.setattr("device_app.privacy.settings.MODE_NAMES", tuple(MODES))
    device = make(mode="farthest")
    device.reading.feed(refresh=True)
    click_on(device, backend, TOPIC, 5, clock)
    assert new_page(device).mode == "personal"

    (sent,) = [RecallRequest.model_validate_json(body) for _, path, body in backend.requests if path == "/v1/recall"]
    assert isinstance(sent.report, CodeReport)
    assert FARTHEST.decoder in DECODERS, "so that the server reads it"
    view = device.privacy.overview()
    (facts,) = [each for each in view.modes if each.name == "farthest"]
    assert (facts.title, facts.cost) == ("What you are not", "4 epsilon for each new report")
    assert facts.paragraph == "Of 16 typical readers, the number of the one least like you."
    assert (facts.for_comparison, facts.unusable, facts.recommended) == (True, None, False)
    assert view.mechanism is not None
    assert view.mechanism.sentence == "A number below 16."
    assert (view.mechanism.name, view.budgets[0].lifetime) == ("farthest", 4)
    clicks = device.parts.serving.feed_context.user_preferences.reading(backend.encoder).active
    mean = np.mean([click.vector for click in clicks], axis=0)
    assert view.report is not None
    assert (view.report.kind, view.report.in_a_sentence) == ("farthest", True)
    assert view.report.noisy == ((float(sent.report.code),),)
    assert view.report.clear == ((float(np.argmin(backend.prototypes @ mean)),),)
    assert view.clicks_until_report == 1, "by the toy's own rule"
    assert use_of(device.parts.policy.settings) == "report"


def test_stored_report_is_not_reused_by_another_mode(
    make: Make, backend: FakeBackend, clock: StillClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(MODES, "farthest", FARTHEST)
    monkeypatch.setattr("device_app.privacy.settings.MODE_NAMES", tuple(MODES))
    device = make(mode="farthest")
    device.reading.feed(refresh=True)
    click_on(device, backend, TOPIC, 5, clock)
    new_page(device)
    device.privacy.change(mode="code")
    assert device.privacy.overview().report is None
    assert new_page(device).mode == "personal"
    assert device.privacy.overview().budgets[0].lifetime == 8, "drawn and charged again"


def test_label_whose_paragraph_has_figures_is_refused_without_a_usual_mechanism() -> None:
    """Otherwise the settings page would fail before the first release."""
    with pytest.raises(ValueError, match="What you are not: its paragraph has the figure 'size', so it needs `usual`"):
        Label(TEXTS)


def test_settings_list_every_mode_in_page_order() -> None:
    assert tuple(MODES) == MODE_NAMES


@pytest.mark.parametrize("mode", MODES.values(), ids=lambda mode: mode.name)
def test_every_mode_has_its_name_and_a_decoder(mode: ReportMode) -> None:
    assert MODES[mode.name] is mode
    assert PrivacySettings(mode=mode.name).mode == mode.name
    assert (mode.decoder in DECODERS) == (mode.finds == "server")
    for half in ({"finds": "here", "reporter": FarthestReporter}, {"mechanism": RandomisedCode}):
        with pytest.raises(ValueError, match="must have a mechanism and a reporter"):
            ReportMode("half", FARTHEST.label, **half)


def test_server_decodes_exactly_the_reports_of_existing_modes() -> None:
    assert set(DECODERS) == {mode.decoder for mode in MODES.values() if mode.decoder} | {"none"}
