"""Measures how much private counts improve ranking on MIND's dev impressions, by the noise in their sum.

Uses the devices' own task and protection, the ring, and the server's decoder and estimator, with every dev reader as
one device of one count. Only the masks are left out: they cancel exactly in the sum.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from backend.federation.bounded_mean import Aggregate
from backend.federation.protections.secure_sum import secure_sum_of
from backend.federation.strategies.counting import Counting, opened_count
from backend.federation.systems import COMPOSED
from backend.popularity.estimate import NoisyCounts, exposure, posterior_lifts, usual_rates
from backend.popularity.store import OpenedCount
from device_app.privacy.exact_samplers import randomised_response
from device_app.privacy.noise_sources import SeededNoise
from device_app.privacy.private_parameters import shared_part
from device_app.privacy.protections.secure_sum import clip_norm, contribute
from device_app.training.tasks.counting import count_vector
from experiments.datasets.mind import Impressions, Mind
from experiments.ranking.evaluation import metrics
from experiments.ranking.models import live_popularity
from experiments.records import Cell, Table
from models.user.candidate_attention import KNOWN_WEIGHTS
from protocol.concentrated import epsilon_of
from protocol.popularity import CLICKED, DISPLAYED, LIFT_REACH, CountList
from protocol.protections import SecureSum
from protocol.ring import ring_dtype

PRIVATE_COUNTS = COMPOSED["private_counts/secure/huber"]

BAR = 0.67
SHARPNESS = 3.0
COUNT_NOISE_SD = math.sqrt(2) / 0.5
"""Standard deviation of Laplace noise at epsilon .5 on a count, as in the design study."""
LOCAL_EPSILON = 8.0
AT = datetime(2019, 11, 15, tzinfo=UTC)
COLUMNS = ("popularity by", "AUC", "sd", "nDCG@10", "noise sd", "epsilon of a count", "of a reader", "draws")

LiftArray = NDArray[np.float64]


@dataclass(frozen=True)
class CountContributions:
    """What the devices of one count contributed, and the opened sum.

    own: by reader, `displayed` and `clicked` [n] as numbers of displays and clicks.
    """

    own: Sequence[dict[str, NDArray[np.float64]]]
    opened: OpenedCount


def popularity_table(mind: Mind, cosine: NDArray[np.float64], *, draws: int) -> Table:
    """Return the table of ranking by private counts.

    cosine: flat scores of the dev candidates without popularity.
    """
    dev = mind.dev
    rows: list[tuple[Cell, ...]] = [_row(dev, "nothing: softmax(3) cosine alone", [cosine])]
    rate = cosine + 0.1 * live_popularity(dev, len(mind.news), rate=True)
    rows.append(_row(dev, "plain log click rate, no privacy", [rate]))
    for name, protection, repeats in mechanisms(draws, len(dev)):
        found = [cosine + weighed(dev, counted_by(mind, protection, seed)) for seed in range(repeats)]
        rows.append(_row(dev, name, found, protection, len(dev)))
    local = [cosine + weighed(dev, local_count(mind, LOCAL_EPSILON, seed)) for seed in range(draws)]
    named = _row(dev, "local: one click by randomised response", local)
    rows.append((*named[:-2], f"{LOCAL_EPSILON:g}, pure", draws))
    private = next(float(str(row[1])) for row in rows if f"noise sd {COUNT_NOISE_SD:.2f}" in str(row[0]))
    notes = (
        f"{len(dev):,} readers. Noise sd: clicks, on each article; {COUNT_NOISE_SD:.2f} is Laplace noise at epsilon .5 "
        "on a count. Epsilon at delta 1e-6: of a count, for one click more or less; of a reader, for all that a device "
        f"contributes (at most {Counting().displayed_limit} displays and {Counting().clicked_limit} clicks).",
        f"Bar: AUC at noise sd {COUNT_NOISE_SD:.2f} >= {BAR}: {private:.4f}, {'met' if private >= BAR else 'missed'}.",
    )
    return Table("Private counts, MIND subset dev", COLUMNS, rows, notes)


def mechanisms(draws: int, readers: int) -> Iterator[tuple[str, SecureSum, int]]:
    """Yield the protections to compare: name, protection, number of noise draws."""
    live = secure_sum_of(PRIVATE_COUNTS.protection)
    yield "counts, no noise", replace_sigma(live, 0), 1

    def share(sd: float) -> int:
        return max(1, round(sd * 2.0**live.fraction_bits / math.sqrt(readers)))

    yield f"counts, noise sd {COUNT_NOISE_SD:.2f}", replace_sigma(live, share(COUNT_NOISE_SD)), draws
    for sd in (5.0, 8.0, 16.0):
        yield f"counts, noise sd {sd:g}", replace_sigma(live, share(sd)), draws
    yield "counts, shares of `private_counts`", live, draws


def replace_sigma(protection: SecureSum, sigma: int) -> SecureSum:
    """Return the protection with another noise share."""
    return protection.model_copy(update={"sigma": sigma})


def counted_by(mind: Mind, protection: SecureSum, seed: int) -> CountContributions:
    """Run one count over all dev readers.

    It uses every device's task, clip, code and noise share; the ring's sum; the decoder.
    """
    strategy = PRIVATE_COUNTS.strategy
    assert isinstance(strategy, Counting)
    listed = listed_news(mind, strategy)
    shapes = {DISPLAYED: (len(listed.news),), CLICKED: (len(listed.news),)}
    readers = len(mind.dev)
    terms = protection.terms("round-1", cohort=readers, cohort_minimum=readers, coordinates=2 * len(listed.news))
    total = np.zeros(terms.length, dtype=ring_dtype(terms.bits))
    noise, rng = SeededNoise(seed), np.random.default_rng(seed)
    own = []
    for displayed, clicked in readers_of(mind.dev, mind.news.ids):
        tensors = count_vector(listed, displayed, clicked, rng)
        clipped = clip_norm(shared_part(tensors, None), protection.clip)
        total += contribute(clipped, 1, protection, terms, noise).vector
        own.append(
            {
                DISPLAYED: tensors[DISPLAYED].astype(np.float64) / listed.displayed_unit,
                CLICKED: tensors[CLICKED].astype(np.float64),
            }
        )
    aggregate = Aggregate.of_opened(protection.layout(shapes, terms).sums(total))
    return CountContributions(own, opened_count(listed, aggregate, protection, round_number=1, counted_at=AT))


def local_count(mind: Mind, epsilon: float, seed: int) -> CountContributions:
    """Count without a secure sum: each device reports one of its clicks, or none, by k-ary randomised response.

    Counts are made unbiased; displays aren't reported, so every article counts as displayed equally.
    """
    strategy = PRIVATE_COUNTS.strategy
    assert isinstance(strategy, Counting)
    listed = listed_news(mind, strategy)
    place = {news_id: row for row, news_id in enumerate(listed.news)}
    rng, options = np.random.default_rng(seed), len(listed.news) + 1
    true = np.array(
        [
            place[str(rng.choice(sorted(clicked)))] if clicked else options - 1
            for _, clicked in readers_of(mind.dev, mind.news.ids)
        ],
        dtype=np.int64,
    )
    reports = randomised_response(SeededNoise(seed), true, options, epsilon)
    reported = np.bincount(reports, minlength=options)[:-1]
    truth = 1 / (1 + (options - 1) * math.exp(-epsilon))
    lie = (1 - truth) / (options - 1)
    readers = len(mind.dev)
    clicks = (reported - readers * lie) / (truth - lie)
    displays = np.full(options - 1, len(mind.dev.candidates.values) / (options - 1))
    variance = readers * lie * (1 - lie) / (truth - lie) ** 2
    own = [
        {DISPLAYED: np.zeros(options - 1), CLICKED: (np.arange(options - 1) == one) / (truth - lie)} for one in reports
    ]
    opened = OpenedCount(
        1,
        AT,
        readers,
        dict(zip(listed.news, displays.tolist(), strict=True)),
        dict(zip(listed.news, clicks.tolist(), strict=True)),
        0.0,
        variance,
    )
    return CountContributions(own, opened)


def listed_news(mind: Mind, strategy: Counting) -> CountList:
    """Return all articles shown on dev as the list of a count, in place of that day's pool."""
    shown = np.unique(mind.dev.candidates.values)
    return strategy.listed(tuple(mind.news.ids[row] for row in shown))


def readers_of(impressions: Impressions, ids: Sequence[str]) -> Iterator[tuple[set[str], set[str]]]:
    """Return each reader's displays and clicks; each dev impression counts as its own reader."""
    clicked, start = impressions.clicked.astype(bool), 0
    for shown in impressions.candidates:
        stop = start + len(shown)
        yield {ids[row] for row in shown}, {ids[row] for row in shown[clicked[start:stop]]}
        start = stop


def weighed(
    impressions: Impressions, contributions: CountContributions, weight: float = KNOWN_WEIGHTS["popularity"]
) -> LiftArray:
    """Return the popularity term of the score, flat: weight x popularity, from all contributions but the
    reader's own.
    """
    shown = np.unique(impressions.candidates.values)  # the order of the list
    clicks, displays = (
        np.array(list(each.values())) for each in (contributions.opened.clicks, contributions.opened.displays)
    )
    whole = _counted(contributions.opened, clicks, displays)
    places = np.searchsorted(shown, impressions.candidates.values)
    owners = impressions.candidates.owners
    mine = {name: np.stack([own[name] for own in contributions.own])[owners, places] for name in (CLICKED, DISPLAYED)}
    others = _counted(contributions.opened, clicks[places] - mine[CLICKED], displays[places] - mine[DISPLAYED])
    usual = usual_rates(whole, exposure(whole))
    nothing = np.zeros(len(others))
    lifts = posterior_lifts(others, exposure(others, whole), nothing, usual.spread, usual)
    return weight * np.clip(lifts, -LIFT_REACH, LIFT_REACH) / LIFT_REACH


def _counted(opened: OpenedCount, clicks: NDArray[np.float64], displays: NDArray[np.float64]) -> NoisyCounts:
    return NoisyCounts(
        clicks,
        displays,
        np.full(len(clicks), opened.clicks_variance),
        np.full(len(clicks), opened.displays_variance),
    )


def _row(
    dev: Impressions,
    name: str,
    scores: Sequence[NDArray[np.float64]],
    protection: SecureSum | None = None,
    readers: int = 0,
) -> tuple[Cell, ...]:
    found = [metrics(dev, each) for each in scores]
    auc = np.array([each.auc for each in found])
    sd = 0.0 if protection is None else protection.sigma * 2.0**-protection.fraction_bits * math.sqrt(readers)
    private = protection is not None and protection.sigma > 0
    return (
        name,
        f"{auc.mean():.4f}",
        f"{auc.std(ddof=1):.4f}" if len(auc) > 1 else None,
        f"{np.mean([each.ndcg10 for each in found]):.4f}",
        f"{sd:.2f}" if private else None,
        f"{epsilon_of(0.5 / sd**2, protection.delta):.2f}" if private and protection is not None else None,
        f"{protection.epsilon(readers, 2):.2f}" if private and protection is not None else None,
        len(scores),
    )
