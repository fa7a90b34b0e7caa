"""Which secure sums a device takes part in. Oracle: the protection's own terms and price."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from device_app.errors import BudgetSpent, ProtectionTooWeak
from device_app.privacy.accounting.cost_of_sums import SumsAlone, sum_prices
from device_app.settings import PrivacySettings
from device_app.training.eligibility import Terms, check_offer
from protocol.protections import SecureSum
from protocol.rounds import RoundManifest

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
NOISY = SecureSum(clip=0.1, sigma=4_900)
EXACT = SecureSum(clip=0.1)
DEVICE = Terms(
    privacy=PrivacySettings(training=True, epsilon_per_day_training=8),
    release="r1",
    tasks=("full_gradient",),
    trainable=("ranker.features",),
    shapes={"g.weights": (262,)},
    epsilon_left=8.0,
    now=NOW,
)


def manifest(protection: SecureSum, *, minimum: int = 10, coordinates: int = 262, cohort: int = 60) -> RoundManifest:
    return RoundManifest(
        round="round-1",
        release="r1",
        system="small_ranker/secure/median",
        task="full_gradient",
        model="ranker.features",
        shapes={"g.weights": (coordinates,)},
        protection=protection,
        negatives=4,
        samples_limit=32,
        closes_at=NOW + timedelta(minutes=1),
        terms=protection.terms("round-1", cohort=cohort, cohort_minimum=minimum, coordinates=coordinates),
    )


def test_affordable_noisy_sum_of_enough_devices_is_accepted() -> None:
    check_offer(manifest(NOISY), DEVICE)


def test_exact_sum_is_accepted_only_if_the_reader_allows_it() -> None:
    with pytest.raises(ProtectionTooWeak, match="the sum has no noise"):
        check_offer(manifest(EXACT), DEVICE)
    allows = replace(DEVICE, privacy=PrivacySettings(secure_sum="exact"))
    check_offer(manifest(EXACT), allows)
    check_offer(manifest(NOISY), allows)


@pytest.mark.parametrize("cohort", [60, 101])
def test_exact_sum_without_the_consistency_round_is_always_declined(cohort: int) -> None:
    allows = replace(DEVICE, privacy=PrivacySettings(secure_sum="exact", secure_sum_mode="semi_honest"))
    check_offer(manifest(EXACT, cohort=cohort), allows)
    with pytest.raises(ProtectionTooWeak, match="no consistency round, and without noise it needs one"):
        check_offer(manifest(EXACT.model_copy(update={"mode": "semi_honest"}), cohort=cohort), allows)


@pytest.mark.parametrize("protection", [NOISY, EXACT])
def test_reader_refusing_secure_sums_joins_none(protection: SecureSum) -> None:
    with pytest.raises(ProtectionTooWeak, match="no secure sums"):
        check_offer(manifest(protection), replace(DEVICE, privacy=PrivacySettings(secure_sum="never")))


def test_sum_with_too_few_devices_is_declined() -> None:
    with pytest.raises(ProtectionTooWeak, match="with 9 devices in it; the settings require at least 10"):
        check_offer(manifest(NOISY, minimum=9), DEVICE)


def test_sum_above_the_limit_or_budget_is_declined_by_its_worst_price() -> None:
    price = NOISY.epsilon(10, 262)
    low = replace(DEVICE, privacy=PrivacySettings(epsilon_per_sum=price * 0.99))
    with pytest.raises(ProtectionTooWeak, match=r"costs epsilon 4\.3"):
        check_offer(manifest(NOISY), low)
    check_offer(manifest(NOISY), replace(DEVICE, epsilon_left=price))
    with pytest.raises(BudgetSpent):
        check_offer(manifest(NOISY), replace(DEVICE, epsilon_left=price * 0.99))


@pytest.mark.parametrize(
    "change", [{"length": 264}, {"bound": 0.05}, {"fraction_bits": 20}, {"mode": "semi_honest"}, {"headroom": 0.0}]
)
def test_terms_not_matching_the_protection_are_declined(change: dict[str, object]) -> None:
    good = manifest(NOISY)
    assert good.terms is not None
    other = good.model_copy(update={"terms": good.terms.model_copy(update=change)})
    trusting = replace(DEVICE, privacy=PrivacySettings(secure_sum_mode="semi_honest"))
    with pytest.raises(ProtectionTooWeak, match="don't match"):
        check_offer(other, trusting)


def test_cohort_too_large_for_the_ring_is_declined() -> None:
    large = SecureSum(clip=0.1, sigma=4_900, cohort_limit=2_000)
    good = manifest(large, cohort=1_500)
    with pytest.raises(ProtectionTooWeak, match="at most 1000"):
        check_offer(good.model_copy(update={"protection": NOISY}), DEVICE)


def test_reader_distrusting_the_server_joins_only_active_sums() -> None:
    careful = replace(DEVICE, privacy=PrivacySettings(secure_sum_mode="active"))
    trusting = replace(DEVICE, privacy=PrivacySettings(secure_sum_mode="semi_honest"))
    semi_honest = manifest(NOISY.model_copy(update={"mode": "semi_honest"}))
    sparse = manifest(NOISY, cohort=101)
    assert sparse.terms is not None
    assert (sparse.terms.graph, sparse.terms.mode) == ("sparse", "active")
    trusting_sparse = manifest(NOISY.model_copy(update={"mode": "semi_honest"}), cohort=101)
    for offer, device, taken in (
        (manifest(NOISY), careful, True),
        (semi_honest, careful, False),
        (sparse, careful, True),
        (trusting_sparse, careful, False),
        (manifest(NOISY), DEVICE, True),
        (semi_honest, DEVICE, False),
        (sparse, DEVICE, True),
        (trusting_sparse, DEVICE, False),
        (semi_honest, trusting, True),
        (trusting_sparse, trusting, True),
    ):
        if taken:
            check_offer(offer, device)
        else:
            with pytest.raises(ProtectionTooWeak, match="no consistency round"):
                check_offer(offer, device)


@pytest.mark.parametrize("theirs", [1e-12, 1e-6, 1 - 1e-16])
def test_sum_is_charged_at_the_delta_of_the_device(theirs: float) -> None:
    protection = NOISY.model_copy(update={"delta": theirs})
    price = NOISY.epsilon(10, 262)
    check_offer(manifest(protection), replace(DEVICE, epsilon_left=price))
    with pytest.raises(BudgetSpent):
        check_offer(manifest(protection), replace(DEVICE, epsilon_left=price * 0.99))
    stricter = replace(DEVICE, privacy=PrivacySettings(delta_per_sum=1e-9))
    with pytest.raises(BudgetSpent):
        check_offer(manifest(protection), replace(stricter, epsilon_left=price))


def test_sum_with_noise_but_a_price_of_zero_is_declined() -> None:
    free = SecureSum(clip=1e-9, sigma=2**20, fraction_bits=0)
    with pytest.raises(ProtectionTooWeak, match=r"costs epsilon 0 at delta 1e-06.* costs more than 0"):
        check_offer(manifest(free), DEVICE)


def test_sum_too_expensive_if_all_others_are_fake_is_declined() -> None:
    thin = NOISY.model_copy(update={"sigma": 3_400})
    price = sum_prices(thin, 60, 262, 1e-6)
    assert price.epsilon < PrivacySettings().epsilon_per_sum
    with pytest.raises(ProtectionTooWeak, match=rf"if no other device is real.* epsilon {price.alone:.3g}"):
        check_offer(manifest(thin, minimum=60), DEVICE)
    check_offer(manifest(thin, minimum=60), replace(DEVICE, privacy=PrivacySettings(epsilon_per_sum_alone=price.alone)))


def test_sum_beyond_the_daily_or_lifetime_limit_is_declined_before_joining() -> None:
    one = sum_prices(NOISY, 10, 262, 1e-6).rho_alone
    check_offer(manifest(NOISY), replace(DEVICE, alone=SumsAlone(4 * one, 4 * one)))
    with pytest.raises(BudgetSpent, match=r"no other device is real .* left today"):
        check_offer(manifest(NOISY), replace(DEVICE, alone=SumsAlone(5 * one, 5 * one)))
    lifetime = replace(DEVICE, privacy=PrivacySettings(epsilon_lifetime_alone=30))
    check_offer(manifest(NOISY), replace(lifetime, alone=SumsAlone(0, one)))
    with pytest.raises(BudgetSpent, match="left in all"):
        check_offer(manifest(NOISY), replace(lifetime, alone=SumsAlone(0, 3 * one)))
