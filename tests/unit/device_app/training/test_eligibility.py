from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from device_app.errors import BudgetSpent, NotEligible, ProtectionTooWeak
from device_app.privacy.protections.registry import resolve
from device_app.settings import PrivacySettings
from device_app.training.eligibility import Readiness, Terms, check_offer, check_ready
from protocol.protections import LocalLaplace
from protocol.rounds import RoundManifest

NOW = datetime(2026, 11, 20, 8, tzinfo=UTC)
READY = Readiness(switched_on=True, paused=False, release="r1", epsilon_left=1.0)
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
    system="uni_fedrec",
    task="recall",
    model="recall",
    shapes=SHAPES,
    protection=LocalLaplace(),
    negatives=4,
    samples_limit=32,
    closes_at=NOW + timedelta(minutes=1),
)


def test_device_that_meets_all_conditions_may_train() -> None:
    check_ready(READY)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"switched_on": False}, "training is not switched on"),
        ({"paused": True}, "paused"),
        ({"release": None}, "no release"),
        ({"epsilon_left": 0.0}, "limit"),
    ],
)
def test_device_that_may_not_train_gives_the_reason(change: dict[str, object], why: str) -> None:
    with pytest.raises(NotEligible, match=why):
        check_ready(replace(READY, **change))  # type: ignore[arg-type]


def test_training_is_off_and_has_no_budget_by_default() -> None:
    settings = PrivacySettings()

    assert not settings.training
    assert settings.epsilon_per_day_training == 0


def test_offer_with_the_papers_noise_is_accepted_if_its_true_price_is_allowed() -> None:
    check_offer(MANIFEST, TERMS)


@pytest.mark.parametrize(
    ("manifest", "terms", "error", "why"),
    [
        ({"task": "split_gradient"}, {}, NotEligible, "does not know the task"),
        ({"release": "r2"}, {}, NotEligible, "for release r2"),
        ({"shapes": {"g.weights": (7,)}}, {}, NotEligible, "requests tensors that 'recall' does not compute"),
        ({"model": "ranker.nrms"}, {}, NotEligible, "no gradient of 'ranker.nrms'"),
        ({}, {"now": NOW + timedelta(minutes=1)}, NotEligible, "has closed"),
        ({"protection": LocalLaplace(clip=0.1, scale=0.009)}, {}, ProtectionTooWeak, "0.09"),
        ({}, {"epsilon_left": 4e6}, BudgetSpent, "4e\\+06 left today"),
    ],
    ids=["task", "release", "shapes", "model", "closed", "weak", "budget"],
)
def test_unsuitable_offer_is_declined_with_its_reason(
    manifest: dict[str, object], terms: dict[str, object], error: type[Exception], why: str
) -> None:
    with pytest.raises(error, match=why):
        check_offer(MANIFEST.model_copy(update=manifest), replace(TERMS, **terms))  # type: ignore[arg-type]


def test_cost_of_an_offer_is_that_of_a_whole_upload() -> None:
    assert LocalLaplace().epsilon_per_upload(COORDINATES) == pytest.approx(4.9e6, rel=1e-3)
    just_enough = replace(TERMS, epsilon_left=LocalLaplace().epsilon_per_upload(COORDINATES))
    check_offer(MANIFEST, just_enough)


def test_stronger_noise_than_required_is_accepted() -> None:
    resolve(LocalLaplace(clip=0.1, scale=1.0)).check(PrivacySettings())
