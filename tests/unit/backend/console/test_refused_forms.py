"""Refused forms of the console keep what was typed, and the refusal names the label on the page."""

from __future__ import annotations

import html

import pytest

from backend.federation.strategies.reported_basis import BasisRounds
from backend.federation.strategies.strategy import RoundRequest
from backend.federation.systems import COMPOSED
from tests.doubles.console_client import OURS, client_of
from tests.doubles.console_services import StandInServices

BASIS = COMPOSED["basis/secure/mean"]


@pytest.mark.parametrize(
    ("url", "section"),
    [
        ("https://new.example/rss", "a\u200bb"),
        ("", "sea"),
        ("ftp://new.example/rss", "sea"),
        ("https://new.example/" + "x" * 3_000, "sea"),
        ("https://new.example/rss", "s" * 200),
    ],
    ids=["odd section", "no address", "other scheme", "long address", "long section"],
)
def test_refused_feed_stays_in_the_form(url: str, section: str) -> None:
    services = StandInServices()
    refused = client_of(services).post("/console/pool/feeds", data={"url": url, "section": section}, headers=OURS)
    assert refused.status_code == 422
    assert 'role="alert"' in refused.text
    assert f'value="{url}"' in refused.text
    assert f'value="{section}"' in refused.text
    assert services.feeds.changed == []


@pytest.mark.parametrize("path", ["", "/schedule"])
@pytest.mark.parametrize(
    ("field", "label"),
    [("cohort", "Cohort, devices"), ("cohort_minimum", "Minimum, devices"), ("seconds", "Deadline")],
)
@pytest.mark.parametrize("typed", ["many", "9" * 200 + "x"], ids=["words", "long"])
def test_invalid_number_stays_in_the_form_and_its_label_is_named(path: str, field: str, label: str, typed: str) -> None:
    services = StandInServices()
    services.coordinator.under_way = False
    form = {"system": "fednewsrec_user", "cohort": "31", "cohort_minimum": "11", "seconds": "45", "waiting": "7"}
    refused = client_of(services).post(f"/console/rounds{path}", data=form | {field: typed}, headers=OURS)
    assert refused.status_code == 422
    reported = refused.text.split('role="alert"')[1].split("</p>")[0]
    assert f"“{label}" in reported
    assert f'value="{typed}"' in refused.text
    assert services.coordinator.opened == []
    assert services.coordinator.scheduler.schedule is None


def test_form_refuses_a_round_with_too_much_noise_and_states_the_cohort_needed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    services = StandInServices()

    def refuse(asked: RoundRequest) -> None:
        assert isinstance(BASIS.strategy, BasisRounds)
        BASIS.strategy.check_cohort(BASIS, asked.cohort)

    monkeypatch.setattr(services.coordinator, "open_or_queue", refuse)
    form = {"system": "basis", "cohort": "60", "cohort_minimum": "11", "seconds": "45"}
    refused = client_of(services).post("/console/rounds", data=form, headers=OURS)
    assert refused.status_code == 422
    reported = html.unescape(refused.text.split('role="alert"')[1].split("</p>")[0])
    assert "With 60 devices a round, 98 %" in reported
    assert "about 5,800 devices a round would be enough. No round was opened, and no privacy budget was spent." in (
        reported
    )
    assert 'value="60"' in refused.text
