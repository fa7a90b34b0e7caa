"""A malicious server against a device with default settings.

Which clicks can it name, and were they paid for? The device has seen `SHOWN` articles of a list and clicked three. The
server invents all other members of a count, removes all masks from the one real vector, and names the articles with the
highest numbers. Costs are checked against the exact distribution of a Gaussian, and that against dp-accounting.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import timedelta

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from scipy.optimize import brentq
from scipy.stats import binom, norm

from backend.federation.systems import COMPOSED
from device_app.errors import ProtectionTooWeak
from device_app.privacy.accounting.cost_of_sums import (
    EPSILON_ALONE,
    NOTHING_ALONE,
    ONE_CLICK_ALONE,
    RHO_ALONE,
    sum_prices,
)
from device_app.privacy.protections.registry import resolve
from device_app.settings import PrivacySettings
from device_app.training.tasks.counting import one_click
from protocol.popularity import CountList
from protocol.protections import SecureSum
from protocol.rounds import RoundManifest
from protocol.secagg import choose_neighbourhood
from protocol.union import UnionMarks
from tests.doubles.attacked_device import CLICKED, HONEST, LIST, LISTED, NEWS, UNIT, Meets
from tests.doubles.in_process import InProcess
from tests.doubles.malicious_server import MaliciousServer
from tests.doubles.news import NOW
from tests.doubles.round_rig import BackendRig

PRIVATE_COUNTS_LARGE = COMPOSED["private_counts/secure_large/mean"]

SEEDS = 20
assert isinstance(PRIVATE_COUNTS_LARGE.protection, SecureSum)
THIN: SecureSum = PRIVATE_COUNTS_LARGE.protection
FREE = HONEST.model_copy(update={"sigma": 110, "delta": 1 - 1e-16})
"""Noise of .43 of a click, at a delta that made it free."""
MakeServer = Callable[..., MaliciousServer]


@pytest.fixture
def malicious(backend: BackendRig, honest: InProcess) -> MakeServer:
    """Make a malicious server with the operator's own key, unless another is given."""

    def make(protection: SecureSum, **changes: object) -> MaliciousServer:
        given: dict[str, object] = {"key": backend.releases._key, "listed": LIST} | changes
        return MaliciousServer(honest, protection=protection, clock=backend.clock, **given)  # type: ignore[arg-type]

    return make


def gaussian_delta(epsilon: float, shift: float) -> float:
    """Return the exact delta of a Gaussian of deviation 1 moved by `shift` (Balle and Wang 2018, theorem 8)."""
    near, far = norm.cdf(shift / 2 - epsilon / shift), norm.logcdf(-shift / 2 - epsilon / shift)
    return float(near - math.exp(epsilon + far))


def gaussian_epsilon(distance: float, sigma: float, delta: float = 1e-6) -> float:
    """The oracle: return the exact epsilon of one Gaussian, which no correct price is below."""
    return float(brentq(lambda epsilon: gaussian_delta(epsilon, distance / sigma) - delta, 1e-9, 1e4))


def test_offer_not_signed_by_the_trusted_key_is_refused_before_anything_is_sent(
    malicious: MakeServer, meets: Meets
) -> None:
    server = malicious(FREE, key=Ed25519PrivateKey.generate())
    victim = meets(server)
    outcome = victim.step_through()
    assert (outcome.state, server.stages, victim.charges()) == ("declined", [], [])
    assert "not signed by the key that this device trusts" in str(outcome.why)
    assert victim.device.stores.participations.list() == []


def test_offer_altered_in_transit_is_refused(malicious: MakeServer, meets: Meets) -> None:
    class Altering(MaliciousServer):
        def offer_body(self) -> bytes:
            return super().offer_body().replace(b'sigma\\":278', b'sigma\\":279')

    honest_server = malicious(HONEST)
    server = Altering(honest_server.honest, LIST, HONEST, honest_server.clock, key=honest_server.key)
    assert server.offer_body() != MaliciousServer.offer_body(server)
    victim = meets(server)
    outcome = victim.step_through()
    assert (outcome.state, server.stages, victim.charges()) == ("declined", [], [])
    assert "signature does not match" in str(outcome.why)


def test_device_charges_a_sum_at_its_own_delta(malicious: MakeServer, meets: Meets) -> None:
    server = malicious(FREE)
    victim = meets(server)
    outcome = victim.step_through()
    assert (outcome.state, server.stages, victim.charges()) == ("declined", [], [])
    assert "costs epsilon" in str(outcome.why)
    assert "at delta 1e-06" in str(outcome.why)


@pytest.mark.parametrize(("claimed", "named", "threshold"), [(10_000, 3, 2), (10_000, 76, 36), (10_000, 77, 35)])
def test_device_does_not_pay_for_a_sparse_roster_that_does_not_match_the_claimed_cohort(
    malicious: MakeServer, meets: Meets, claimed: int, named: int, threshold: int
) -> None:
    protection = HONEST.model_copy(update={"cohort_limit": 10_000})
    server = malicious(protection, cohort=10_000, claimed=claimed, named=named, threshold=threshold)
    victim = meets(server)
    outcome = victim.step_through()
    assert (outcome.state, server.stages, victim.charges()) == ("declined", ["keys"], [])
    assert "left the secure sum" in str(outcome.why)
    assert victim.named(server) == 0


def test_device_does_not_pay_for_a_sparse_roster_below_its_readers_minimum(malicious: MakeServer, meets: Meets) -> None:
    due = choose_neighbourhood(500)
    assert due is not None
    protection = HONEST.model_copy(update={"cohort_limit": 10_000})
    forged = {"claimed": 500, "named": due.degree + 1, "threshold": due.threshold}
    server = malicious(protection, cohort=10_000, cohort_minimum=500, **forged)
    victim = meets(server, smallest_sum=due.degree + 2)
    outcome = victim.step_through()
    assert (outcome.state, server.stages, victim.charges()) == ("declined", ["keys"], [])
    assert f"this device requires at least {due.degree + 2}" in str(outcome.why)


def test_too_small_noise_shares_are_declined_until_the_reader_raises_the_limit(
    malicious: MakeServer, meets: Meets
) -> None:
    due = choose_neighbourhood(1_000)
    assert due is not None
    forged = {"cohort": 1_000, "cohort_minimum": 500, "claimed": 1_000, "named": due.degree + 1}
    server = malicious(THIN, threshold=due.threshold, **forged)
    victim = meets(server)
    outcome = victim.step_through()
    assert (outcome.state, server.stages, victim.charges()) == ("declined", [], [])
    assert "if no other device is real, the opened sum costs epsilon 90.8" in str(outcome.why)

    server = malicious(THIN, threshold=due.threshold, **forged)
    willing = meets(server, epsilon_per_sum_alone=100, epsilon_per_click_alone=100, epsilon_per_day_alone=100)
    willing.step_through()
    assert server.opened is not None
    assert willing.named(server) > 0, "what the ceiling is for"
    assert willing.charges()[0][EPSILON_ALONE] == pytest.approx(90.8, abs=0.1)


@pytest.mark.parametrize("form", ["complete", "sparse"])
def test_server_inventing_all_other_members_learns_no_more_than_the_device_was_charged(
    form: str, malicious: MakeServer, meets: Meets
) -> None:
    """By design: a device can't distinguish a real member from an invented one. Its own share of noise remains."""
    protection = HONEST.model_copy(update={"cohort_limit": 10_000})
    due = choose_neighbourhood(10_000)
    assert due is not None
    forged = {"cohort": 10_000, "claimed": 10_000, "named": due.degree + 1, "threshold": due.threshold}
    named = guessed = 0
    for seed in range(SEEDS if form == "complete" else 4):
        server = malicious(protection, **(forged if form == "sparse" else {}))
        victim = meets(server, seed)
        victim.step_through()
        assert server.opened is not None, "the attack works"
        named += victim.named(server)
        # One click against a displayed news that wasn't clicked: which of the two is it?
        numbers = server.clicks()
        unclicked = victim.shown[CLICKED : 2 * CLICKED]
        guessed += sum(
            numbers[row] > numbers[other] for row, other in zip(sorted(victim.clicked), unclicked, strict=True)
        )
        (charge,) = victim.charges()
        assert charge["delta"] == 1e-6
        assert charge[EPSILON_ALONE] >= gaussian_epsilon(protection.reach_steps, protection.sigma)
        assert charge[EPSILON_ALONE] <= PrivacySettings().epsilon_per_sum_alone
        one = charge[ONE_CLICK_ALONE]
    tries = CLICKED * (SEEDS if form == "complete" else 4)
    # (epsilon, delta): naming 3 of 1,500 goes e^epsilon times better than chance, guessing one of two by its odds.
    assert named <= binom.isf(1e-6, tries, min(1.0, math.exp(one) * CLICKED / LISTED + 1e-6))
    assert guessed <= binom.isf(1e-6, tries, math.exp(one) / (1 + math.exp(one)) + 1e-6)
    # What the noise itself allows is far less than that: a Gaussian's own trade-off.
    distance = math.sqrt(2 * (1 + UNIT**2)) * 2**protection.fraction_bits
    assert guessed <= binom.isf(1e-4, tries, norm.cdf(distance / protection.sigma / 2))
    assert named <= 1, "honest shares: as good as nothing"


def test_price_depends_on_the_members_in_the_roster_not_on_the_claimed_cohort(
    malicious: MakeServer, meets: Meets
) -> None:
    """More than a hundred devices in the terms change nothing: the consistency round stays, and so does the price."""
    prices = []
    for cohort in (12, 150):
        server = malicious(HONEST, cohort=cohort, named=12)
        victim = meets(server)
        victim.step_through()
        assert server.opened is not None
        assert "agree" in server.stages
        (charge,) = victim.charges()
        prices.append((charge["epsilon"], charge[EPSILON_ALONE], charge[ONE_CLICK_ALONE]))
        asks_for_it = meets(malicious(HONEST, cohort=cohort, named=12), secure_sum_mode="active")
        asks_for_it.step_through()
        assert asks_for_it.charges()
    assert prices[0] == prices[1]


def test_attack_finds_every_click_when_the_noise_is_too_small(malicious: MakeServer, meets: Meets) -> None:
    """The attack works: without the noise it reads the vector."""
    protection = HONEST.model_copy(update={"sigma": 1})
    server = malicious(protection)
    open_handed = meets(
        server,
        epsilon_per_sum=1e9,
        epsilon_per_sum_alone=1e9,
        epsilon_per_click_alone=1e9,
        epsilon_per_day_alone=1e9,
        epsilon_per_day_counts=1e9,
    )
    open_handed.step_through()
    assert open_handed.named(server) == CLICKED


ONE_CLICK_LIST = CountList(news=NEWS, displayed_limit=1, clicked_limit=1, displayed_unit=1e-6, window_hours=24)
ONE_CLICK_SHARE = SecureSum(clip=1.0001, sigma=26_018, fraction_bits=16, nonnegative=True)
"""A list of one click a device, under a share of .397 of it: the ceiling of everything is spent on that click."""


def test_list_targeting_one_click_is_declined_by_its_price(malicious: MakeServer, meets: Meets) -> None:
    prices = sum_prices(ONE_CLICK_SHARE, 10, 2 * LISTED, 1e-6)
    usual = PrivacySettings()
    assert prices.epsilon <= min(usual.epsilon_per_sum, usual.epsilon_per_day_counts)
    assert 23.9 < prices.alone <= usual.epsilon_per_sum_alone, "it passes the other ceilings"
    server = malicious(ONE_CLICK_SHARE, listed=ONE_CLICK_LIST)
    victim = meets(server)
    outcome = victim.step_through()
    assert (outcome.state, server.stages, victim.charges()) == ("declined", [], [])
    assert "if no other device is real, one click in the opened sum costs epsilon 23.9" in str(outcome.why)
    assert "at most 8 is allowed" in str(outcome.why)


def test_list_targeting_one_click_works_if_the_reader_allows_it(malicious: MakeServer, meets: Meets) -> None:
    """The attack works: among 1,500 articles it repeatedly points at one that the reader clicked."""
    named = 0
    for seed in range(SEEDS):
        server = malicious(ONE_CLICK_SHARE, listed=ONE_CLICK_LIST)
        willing = meets(server, seed, epsilon_per_click_alone=24)
        willing.step_through()
        assert server.opened is not None
        named += int(np.argmax(server.clicks())) in willing.clicked
        assert willing.charges()[0][ONE_CLICK_ALONE] == pytest.approx(23.93, abs=0.01)
    assert named >= 3, "guessing among 1,500 would have named none"


@pytest.mark.parametrize(("displayed_limit", "clicked_limit", "unit"), [(1, 1, 1.0), (1, 2, 1e-6), (32, 1, 1e-3)])
def test_every_accepted_list_costs_at_least_the_price_of_one_click(
    displayed_limit: int, clicked_limit: int, unit: float, malicious: MakeServer, meets: Meets
) -> None:
    """The limit is per click and not per list: the smallest noise share that a reader accepts costs 8 for a click."""
    listed = CountList(
        news=NEWS, displayed_limit=displayed_limit, clicked_limit=clicked_limit, displayed_unit=unit, window_hours=24
    )
    distance = math.sqrt(2 * (1 + unit**2))
    taken = []
    for share in np.geomspace(0.25, 4, 9):
        protection = SecureSum(clip=listed.norm, sigma=round(share * 2**16), fraction_bits=16, nonnegative=True)
        server = malicious(protection, listed=listed)
        victim = meets(server, epsilon_per_day_counts=100, epsilon_per_sum=100, epsilon_per_sum_alone=100)
        victim.step_through()
        if server.opened is not None:
            taken.append(gaussian_epsilon(distance, share))
    assert taken, "broad shares are taken"
    assert max(taken) <= 8


def test_sums_whose_other_members_may_be_invented_stop_at_the_daily_limit(malicious: MakeServer, meets: Meets) -> None:
    server = malicious(HONEST)
    victim = meets(server, epsilon_per_day_counts=1e9)
    taken = 0
    for _ in range(6):
        outcome = victim.step_through()
        if outcome.state == "declined":
            break
        taken += 1
        server.again()
    assert taken == 3
    assert "sums in which no other device is real has" in str(outcome.why)
    alone = victim.device.ledger.alone()
    assert alone.rho_today == pytest.approx(3 * victim.charges()[0][RHO_ALONE])
    assert alone.today(1e-6) <= 48
    assert alone.today(1e-6) >= gaussian_epsilon(math.sqrt(3) * HONEST.reach_steps, HONEST.sigma)


SHIPPED = [
    ("private_counts/secure/huber", 2 * 8_192, 21.1, 5.34),
    ("small_ranker/secure/median", 262, 16.7, 4.33),
    ("release_gate", 3, 13.7, 3.62),
    ("groups/secure/median", 1_052, 16.7, 4.33),
    ("private_counts/secure_large/mean", 2 * 8_192, 90.8, 18.84),
    ("codebook/secure/mean", 16 * 257, 115.1, 23.0),
]


def accepted(system: str, coordinates: int) -> bool:
    """Return whether a device with default settings accepts the price of this system."""
    spec = COMPOSED[system]
    assert isinstance(spec.protection, SecureSum)
    offer = RoundManifest(
        round="round-1",
        release="r1",
        system=system,
        task=spec.task,
        shapes={"g": (coordinates,)},
        protection=spec.protection,
        closes_at=NOW,
        terms=spec.protection.terms("round-1", cohort=60, cohort_minimum=10, coordinates=coordinates),
    )
    click = one_click(LIST) if spec.task == "count" else None
    try:
        resolve(spec.protection).price(offer, coordinates, PrivacySettings(), NOTHING_ALONE, click)
    except ProtectionTooWeak:
        return False
    return True


def test_default_limits_accept_exactly_four_of_the_shipped_sums() -> None:
    passing = {system for system, coordinates, _, _ in SHIPPED if accepted(system, coordinates)}
    assert passing == {
        "private_counts/secure/huber",
        "small_ranker/secure/median",
        "release_gate",
        "groups/secure/median",
    }


@pytest.mark.parametrize(("system", "coordinates", "alone", "among_ten"), SHIPPED)
def test_shipped_sum_prices_match_the_gaussian_and_the_documentation(
    system: str, coordinates: int, alone: float, among_ten: float
) -> None:
    protection = COMPOSED[system].protection
    assert isinstance(protection, SecureSum)
    prices = sum_prices(protection, 10, coordinates, 1e-6)
    assert prices.alone == pytest.approx(alone, abs=0.06)
    assert prices.epsilon == pytest.approx(among_ten, abs=0.02)
    for mine, shares in ((prices.alone, 1), (prices.epsilon, 10)):
        exact = gaussian_epsilon(protection.reach_steps, protection.sigma * math.sqrt(shares))
        assert exact <= mine <= 1.1 * exact + 0.1, "an upper bound, and not a wild one"


def test_gaussian_epsilon_oracle_matches_dp_accounting() -> None:
    from dp_accounting.pld import privacy_loss_distribution

    loss = privacy_loss_distribution.from_gaussian_mechanism(HONEST.sigma, sensitivity=HONEST.reach_steps)
    exact = gaussian_epsilon(HONEST.reach_steps, HONEST.sigma)
    assert loss.get_epsilon_for_delta(1e-6) == pytest.approx(exact, abs=1e-2)
    assert exact <= sum_prices(HONEST, 10, 2 * LISTED, 1e-6).alone


@pytest.mark.parametrize("sigma", [0, 278])
def test_offer_with_a_mismatched_task_and_protection_is_declined_once(
    backend: BackendRig, honest: InProcess, meets: Meets, sigma: int
) -> None:
    """The offer is a count under the protection of a union, which no count message fits."""
    protection = UnionMarks(owners_minimum=3, sigma=sigma, rows_limit=5)
    key = backend.releases._key
    server = MaliciousServer(honest, LIST, protection, backend.clock, key=key, lasts=timedelta(days=7))  # type: ignore[arg-type]
    every = dict.fromkeys(("epsilon_per_sum", "epsilon_per_sum_alone", "epsilon_per_click_alone"), 1_000)
    victim = meets(server, secure_sum="exact", **every, epsilon_per_day_counts=1_000, epsilon_per_day_alone=1_000)
    first = victim.device.trainer.step()
    assert first.state == "declined"
    assert "shapes: expected news" in str(first.why)
    backend.clock.go_on(3_600)
    assert victim.device.trainer.step().state == "idle"
    assert (server.stages, server.opened, victim.charges()) == ([], None, [])
