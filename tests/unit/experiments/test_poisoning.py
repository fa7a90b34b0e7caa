"""The study of poisoned sums at its smallest size: what attacks send, and how the bounds respond."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from backend.federation.errors import UpdateRefused
from backend.federation.protections.sum_bounds import check_sum, noise_deviation, too_alike
from experiments.attacks.attacks import ATTACKS, AttackerKnowledge, DrawnGroups, boosted, huge, sign_flip
from experiments.attacks.study import PoisoningOutcome, PoisoningSizes, PoisoningStudy, planted_pool
from protocol.protections import SecureSum
from protocol.ring import WeightedSum

PROTECTION = SecureSum(clip=0.1, sigma=4_900)


def attackers_knowledge(malicious: int = 1) -> AttackerKnowledge:
    rng = np.random.default_rng(0)
    features = np.arange(262) < 4
    return AttackerKnowledge(
        rng.normal(size=262), rng.normal(size=262), features, PROTECTION, survivors=60, malicious=malicious
    )


def passes(forged: np.ndarray, seed: int) -> bool:
    noise = np.random.default_rng(seed).normal(scale=noise_deviation(PROTECTION, 60), size=262)
    try:
        check_sum(PROTECTION, WeightedSum({"g.w": forged + noise}, 60), 60)
    except UpdateRefused:
        return False
    return True


def test_false_updates_at_the_bounds_mostly_pass_and_a_huge_one_never_does() -> None:
    assert np.linalg.norm(sign_flip(attackers_knowledge(3))) == pytest.approx(0.3)
    assert np.linalg.norm(boosted(attackers_knowledge())) > 50 * PROTECTION.clip
    assert all(passes(sign_flip(attackers_knowledge(3)), seed) for seed in range(50))
    assert np.mean([passes(boosted(attackers_knowledge()), seed) for seed in range(50)]) > 0.8
    assert not any(passes(huge(attackers_knowledge()), seed) for seed in range(50))
    assert all(attack(attackers_knowledge()).shape == (262,) for attack in ATTACKS.values())


def test_sparse_and_split_false_updates_pass_the_norm_and_similarity_checks() -> None:
    """Regression: a sign flip was as long as the norm's bound allows, so the bound on its largest number, which the
    attacker did not know of, refused it."""
    direction = np.zeros(262)
    direction[:2] = 1.0, 0.3
    reported = replace(attackers_knowledge(), honest=direction, survivors=12, groups=5, alone=False)
    noise = np.random.default_rng(1).normal(scale=noise_deviation(PROTECTION, 12), size=(100, 2, 262))
    refused = alike = 0
    for pair in noise:
        for each in pair:
            try:
                check_sum(PROTECTION, WeightedSum({"g.w": each + boosted(replace(reported, alone=True))}, 12), 12)
            except UpdateRefused:
                refused += 1
        sums = [WeightedSum({"g.w": each + boosted(reported)}, 12) for each in pair]
        alike += bool(too_alike(sums, PROTECTION.clip, noise_deviation(PROTECTION, 1)))
    assert refused < 40
    assert alike < 40
    assert np.abs(boosted(reported)).max() > 10 * PROTECTION.clip


def test_groups_and_noise_drawn_are_the_same_for_any_number_of_malicious_devices() -> None:
    one, three = (DrawnGroups(60, 5, malicious, (0, 1, 2)) for malicious in (1, 3))
    assert [places for places, _, _ in one] == [places for places, _, _ in three]
    assert [rng.normal() for _, _, rng in one] == [rng.normal() for _, _, rng in three]
    assert one.lying < three.lying
    met = [DrawnGroups(60, 5, 3, (0, number, 2)).lying_groups for number in range(2_000)]
    assert np.bincount(met, minlength=4)[1:] / 2_000 == pytest.approx([0.032, 0.463, 0.505], abs=0.03)


def test_planted_articles_have_newsroom_sections_and_vectors_near_their_topics() -> None:
    pool = planted_pool(PoisoningSizes(news=300), datetime(2026, 11, 22, tzinfo=UTC), np.random.default_rng(0))
    assert len({card.section for card in pool.cards}) == 20
    same = np.array([[one.topic == other.topic for other in pool.cards] for one in pool.cards])
    cosines = pool.vectors @ pool.vectors.T
    assert cosines[same & ~np.eye(300, dtype=bool)].mean() > 0.2 > abs(cosines[~same].mean())


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        (
            {"readers": 80, "judges": 39},
            "judges: at least 40, twice the cohort less the readers: a cohort of half of both votes, got 39",
        ),
        ({"judges": 0}, "judges: at least 1.*, got 0"),
        ({"readers": 59}, "readers: at least 60, the cohort, got 59"),
        ({"cohort": 4}, "cohort: at least 5, got 4"),
        ({"rounds": 0}, "rounds: at least 1, got 0"),
    ],
)
def test_sizes_too_small_for_a_cohort_are_named_in_the_error(sizes: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        PoisoningSizes(**sizes)
    assert PoisoningSizes(readers=80, judges=40).cohort == 60


def test_table_compares_malicious_rounds_with_honest_ones_and_is_restored_from_rows() -> None:
    study = PoisoningStudy(PoisoningSizes(seeds=2))
    outcomes = {job: PoisoningOutcome(0.6, 0.7 + job[0] / 100 - job[3] / 1_000, job[3], 0) for job in study.jobs}
    assert study.runs([row for each in outcomes.items() for row in study.rows(*each)]) == outcomes
    [table] = study.tables(outcomes)
    assert len(table.rows) * 2 == len(study.jobs)
    by_case = {row[:3]: row[3:] for row in table.rows}
    assert by_case["one sum", "none", 0] == ("0.7050", "+0.0000", "+0.0000", "0.0", "0.0", "-")
    assert by_case["one sum", "sign flip at the clip", 3][:3] == ("0.7020", "-0.0030", "-0.0030")
    assert "0.6000 at the start" in table.notes[0]
