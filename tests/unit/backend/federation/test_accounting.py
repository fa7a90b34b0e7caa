"""The account over rounds. Oracle: dp-accounting, which composes the same sums by Renyi and by privacy loss."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import Engine

from backend.db.engine import writing_session
from backend.db.tables import RoundRow
from backend.federation.accounting import spending
from backend.federation.systems import COMPOSED
from device_app.privacy.accounting.composition import composed
from protocol.protections import LocalLaplace, Protection, SecureSum
from protocol.rounds import RoundManifest
from tests.doubles.clock import StillClock
from tests.doubles.opened_sums import NoisyOpening, SumNoise, gaussian_figure, spent_on
from tests.doubles.small_release import migrated_engine, small_store

PROTECTION = COMPOSED["small_ranker/secure/median"].protection
COORDINATES = 262


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    engine = migrated_engine(tmp_path)
    small_store(engine, tmp_path)
    return engine


def ended(engine: Engine, number: int, protection: Protection, survivors: int | None, state: str = "applied") -> None:
    now = StillClock().now
    name = f"round-{number}"
    terms = None
    if isinstance(protection, SecureSum):
        terms = protection.terms(name, cohort=60, cohort_minimum=10, coordinates=COORDINATES)
    manifest = RoundManifest(
        round=name,
        release="r1",
        system="small_ranker/secure/median",
        task="full_gradient",
        shapes={"g.weights": (COORDINATES,)},
        protection=protection,
        closes_at=now + timedelta(minutes=1),
        terms=terms,
    )
    with writing_session(engine) as session:
        session.add(
            RoundRow(
                number=number,
                system=manifest.system,
                state=state,
                release=1,
                manifest=manifest.model_dump_json(),
                cohort=60,
                cohort_minimum=10,
                admission=1.0,
                opened_at=now,
                closes_at=manifest.closes_at,
                survivors=survivors,
            )
        )


def test_fifty_rounds_compose_like_dp_accounting(engine: Engine) -> None:
    assert isinstance(PROTECTION, SecureSum)
    cohorts = [40 + number % 21 for number in range(50)]
    for number, survivors in enumerate(cohorts, start=1):
        ended(engine, number, PROTECTION, survivors)
    found = spending(engine)
    noise = SumNoise(PROTECTION.sigma, 2 * PROTECTION.clip * 2.0**PROTECTION.fraction_bits, COORDINATES)
    openings = [NoisyOpening(noise, survivors) for survivors in cohorts]

    assert found.epsilon == pytest.approx(spent_on(openings, found.delta), rel=0.01)
    loss = gaussian_figure(openings, found.delta)
    assert loss < found.epsilon < 1.15 * loss, "rho is a little above the continuous law's own figure, never below"
    assert found.epsilon < 0.3 * sum(line.epsilon for line in found.rounds), "epsilons would say far too much"
    assert [line.epsilon_so_far for line in found.rounds] == sorted(line.epsilon_so_far for line in found.rounds)
    assert found.rounds[-1].epsilon_so_far == found.epsilon
    assert found.rounds[0].epsilon == pytest.approx(spent_on(openings[:1], found.delta), rel=0.01)


def test_local_noise_exact_sums_and_failed_rounds_are_accounted_separately(engine: Engine) -> None:
    ended(engine, 1, LocalLaplace(clip=0.01, scale=0.1), None)
    ended(engine, 2, SecureSum(clip=1.0), 60)
    ended(engine, 3, PROTECTION, None, state="failed")
    found = spending(engine)

    assert found.local == pytest.approx(0.2 * COORDINATES)
    assert (found.local_rounds, found.exact_rounds, found.rounds, found.epsilon) == (1, 1, (), 0.0)


def test_device_composes_rounds_by_rho_to_at_least_the_servers_figure(engine: Engine) -> None:
    assert isinstance(PROTECTION, SecureSum)
    for number in range(1, 21):
        ended(engine, number, PROTECTION, 60)
    rho, epsilon = PROTECTION.rho(10, COORDINATES), PROTECTION.epsilon(10, COORDINATES)
    mine = composed([("training", "secure_sum", {"rho": rho, "clip": 0.1}, epsilon, PROTECTION.delta, 20)])
    noise = SumNoise(PROTECTION.sigma, 2 * PROTECTION.clip * 2.0**PROTECTION.fraction_bits, COORDINATES)

    assert mine.by_sum == pytest.approx(20 * epsilon)
    assert (
        mine.sums
        == mine.by_loss
        == pytest.approx(spent_on([NoisyOpening(noise, 10)] * 20, 20 * PROTECTION.delta), rel=0.01)
    )
    assert mine.by_loss < 0.5 * mine.by_sum
    assert mine.by_loss > spending(engine, 20 * PROTECTION.delta).epsilon, "it paid for the fewest survivors"
