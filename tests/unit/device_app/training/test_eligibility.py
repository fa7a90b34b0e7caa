from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from device_app.errors import BudgetSpent, NotEligible, ProtectionTooWeak
from device_app.privacy.protections.registry import resolve
from device_app.settings import PrivacySettings
from device_app.training.eligibility import Readiness, Terms, check_clicks, check_idle, check_offer, check_ready
from device_app.wire.protections import LocalLaplace
from device_app.wire.rounds import RoundManifest

NOW = datetime(2026, 11, 20, 8, tzinfo=UTC)
READY = Readiness(switched_on=True, paused=False, release="r1", clicks=5, epsilon_left=1.0)
COORDINATES = 244_993
SHAPES: dict[str, tuple[int, ...]] = {"g.weights": (COORDINATES,)}
TERMS = Terms(
    privacy=PrivacySettings(training=True, epsilon_per_day_training=5e6),
    release="r1",
    tasks=("recall",),
    trainable=("recall",),
    shapes=SHAPES,
    epsilon_left=5e6,
    now=NOW,
)
MANIFEST = RoundManifest(
    round="round-1",
    release="r1",
    system="uni_fedrec_as_printed",
    task="recall",
    model="recall",
    shapes=SHAPES,
    protection=LocalLaplace(),
    negatives=4,
    samples_limit=32,
    closes_at=NOW + timedelta(minutes=1),
)


def test_a_ready_device_is_ready() -> None:
    check_ready(READY)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"switched_on": False}, "not switched training on"),
        ({"paused": True}, "paused"),
        ({"release": None}, "no release"),
        ({"epsilon_left": 0.0}, "budget"),
    ],
)
def test_a_device_that_may_not_train_says_why(change: dict[str, object], why: str) -> None:
    with pytest.raises(NotEligible, match=why):
        check_ready(replace(READY, **change))  # type: ignore[arg-type]


def test_a_reader_who_reads_comes_first_and_the_look_for_a_round_comes_all_the_same() -> None:
    reading = replace(READY, idle=False)
    check_ready(reading)
    with pytest.raises(NotEligible, match="reading just now"):
        check_idle(reading)


@pytest.mark.parametrize(("clicks", "why"), [(4, "holds 4 clicks; 5 are needed"), (1, "holds 1 click; 5 are needed")])
def test_too_few_clicks_are_no_samples_and_say_so(clicks: int, why: str) -> None:
    few = replace(READY, clicks=clicks)
    check_ready(few)
    with pytest.raises(NotEligible, match=why):
        check_clicks(few)


def test_training_is_off_and_has_no_budget_unless_the_reader_says_otherwise() -> None:
    settings = PrivacySettings()

    assert not settings.training
    assert settings.epsilon_per_day_training == 0


def test_the_papers_offer_is_accepted_by_who_allows_its_honest_price() -> None:
    check_offer(MANIFEST, TERMS)


@pytest.mark.parametrize(
    ("manifest", "terms", "error", "why"),
    [
        ({"task": "split_gradient"}, {}, NotEligible, "does not know the task"),
        ({"release": "r2"}, {}, NotEligible, "for release r2"),
        ({"shapes": {"g.weights": (7,)}}, {}, NotEligible, "other tensors than 'recall' computes"),
        ({"model": "ranker.nrms"}, {}, NotEligible, "no gradient of 'ranker.nrms'"),
        ({}, {"now": NOW + timedelta(minutes=1)}, NotEligible, "has closed"),
        ({"protection": LocalLaplace(clip=0.1, scale=0.009)}, {}, ProtectionTooWeak, "0.09"),
        ({}, {"epsilon_left": 4e6}, BudgetSpent, "4e\\+06 left today"),
    ],
    ids=["task", "release", "shapes", "model", "closed", "weak", "budget"],
)
def test_an_offer_that_does_not_fit_is_declined_with_its_reason(
    manifest: dict[str, object], terms: dict[str, object], error: type[Exception], why: str
) -> None:
    with pytest.raises(error, match=why):
        check_offer(MANIFEST.model_copy(update=manifest), replace(TERMS, **terms))  # type: ignore[arg-type]


def test_the_price_is_the_honest_one_of_a_whole_upload() -> None:
    assert LocalLaplace().epsilon_per_upload(COORDINATES) == pytest.approx(4.9e6, rel=1e-3)
    just_enough = replace(TERMS, epsilon_left=LocalLaplace().epsilon_per_upload(COORDINATES))
    check_offer(MANIFEST, just_enough)


def test_stronger_noise_than_asked_for_is_accepted() -> None:
    resolve(LocalLaplace(clip=0.1, scale=1.0)).check(PrivacySettings())
