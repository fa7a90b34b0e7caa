"""The study on real clicks: features, private hours, ranker and command.

Oracles: loops over all events, finite differences, the exported gradient graph, and a bootstrap of readers.
"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

from device_app.training.gradients import GRADIENT_PREFIX
from experiments.datasets.ebnerd import FOLDER, EbNerd, load_ebnerd
from experiments.real_clicks.features import FEATURES, HOUR, OWN, WINDOWS_HOURS, Log, own_features, plain_counts
from experiments.real_clicks.private_hours import (
    AGES_HOURS,
    HOURS_A_DAY,
    LEAST_USUAL,
    HourlyNoise,
    contributed,
    hourly_counts,
    private_counts,
    usual_clicks,
)
from experiments.real_clicks.ranker import (
    Lists,
    ReaderMetrics,
    central_weights,
    device_of,
    initial_ranker,
    listwise_loss,
)
from experiments.real_clicks.study import CASES, difference
from exporters.signature import parameters
from ownfeed import app
from protocol.concentrated import epsilon_of
from tests.unit.experiments.test_ebnerd_data import write_files

START = 1_684_393_200
USERS, ARTICLES, DAYS = 12, 25, 3


def time_of(seconds: int) -> str:
    return str(np.datetime64(START + seconds, "s"))


def made_up(folder: Path, impressions: int = 150) -> Path:
    """Two weeks of few readers and articles, with many events in the same second."""
    rng, files = np.random.default_rng(5), {}
    for week, split in enumerate(("train", "validation")):
        since = week * DAYS * 24 * HOUR
        moments = np.sort(rng.integers(since, since + DAYS * 24 * HOUR, impressions) // 600 * 600)
        rows = []
        for number, moment in enumerate(moments.tolist()):
            shown = rng.permutation(ARTICLES)[: rng.integers(5, 9)] + 100
            clicked = shown[: 1 + (number % 20 == 0)]
            texts = [" ".join(map(str, rng.permutation(shown).tolist())), " ".join(map(str, clicked.tolist()))]
            rows.append(
                f"{number}\t{rng.integers(USERS) + 3 * week}\t{time_of(moment)}\t1\t\t1\t1\t" + "\t".join(texts)
            )
        files[f"{split}/behaviors.tsv"] = "\n".join(rows) + "\n"
        before = [sorted(rng.integers(since - 20 * HOUR, since, 6).tolist()) for _ in range(USERS)]
        files[f"{split}/history.tsv"] = "".join(
            f"{user + 3 * week}\t{' '.join(map(str, (rng.integers(ARTICLES, size=6) + 100).tolist()))}\t"
            f"{' '.join(map(time_of, times))}\t1\t1\n"
            for user, times in enumerate(before)
        )
    return write_files(folder, files)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> EbNerd:
    return load_ebnerd(made_up(tmp_path_factory.mktemp("ebnerd")))


def features_of(log: Log) -> NDArray[np.float64]:
    return np.concatenate([plain_counts(log), own_features(log)], axis=1)


def features_by_loops(data: EbNerd, impression: int) -> NDArray[np.float64]:
    """Return the features of one impression, by loops over everything that came before it."""
    displays, clicks, own_only = [], [], []
    weeks = (data.train, data.validation)
    known = set(data.train.users.tolist()) | set(data.train.history_users.tolist())
    for week in weeks:
        history = zip(week.history_users, week.history_articles, week.history_times_sec, strict=True)
        for user, news, at in history:
            if week is data.train:
                clicks.append((user, news, at))
            elif user not in known:
                own_only.append((user, news, at))
        for row, shown in enumerate(week.candidates):
            labels = week.clicked[week.candidates.offsets[row] : week.candidates.offsets[row + 1]]
            for news, label in zip(shown, labels, strict=True):
                displays.append((week.users[row], news, week.times_sec[row], label))
                if label:
                    clicks.append((week.users[row], news, week.times_sec[row]))
    week, row = (weeks[0], impression) if impression < len(weeks[0]) else (weeks[1], impression - len(weeks[0]))
    reader, now = week.users[row], week.times_sec[row]
    found = []
    for news in week.candidates[row]:
        counts = [sum(a == news and now - h * HOUR <= at < now for _, a, at in clicks) for h in WINDOWS_HOURS]
        seen = [each[2] for each in (*displays, *clicks, *own_only) if each[1] == news and each[2] < now]
        age = (now - min(seen)) / HOUR if seen else 0.0
        mine = sum(u == reader and a == news and at < now for u, a, at in (*clicks, *own_only))
        skips = sum(u == reader and a == news and at < now and not y for u, a, at, y in displays)
        recent = sum(u == reader and a == news and now - HOUR <= at < now for u, a, at, _ in displays)
        logs = [math.log1p(each) / 5 for each in (*counts, age)]
        found.append([*logs, 0.5 ** (age / 24), *(math.log1p(each) / 5 for each in (mine, skips, recent))])
    return np.array(found)


def test_features_match_a_plain_loop_over_earlier_events(data: EbNerd) -> None:
    log = Log.of(data)
    found = features_of(log)
    assert found.shape == (len(log.clicked), len(FEATURES))
    assert (found.std(axis=0) > 0).all(), "a feature without differences would test nothing"
    for impression in range(0, len(log.users), 7):
        rows = log.owners == impression
        np.testing.assert_allclose(found[rows], features_by_loops(data, impression), rtol=1e-12)


def test_features_ignore_everything_at_or_after_the_impression(data: EbNerd) -> None:
    rng = np.random.default_rng(1)
    log = Log.of(data)
    now = int(np.sort(log.times_sec)[len(log.times_sec) // 2])
    later = log.times_sec[log.owners] >= now
    values, clicked = log.candidates.values.copy(), log.clicked.copy()
    clicked[later] = rng.integers(0, 2, int(later.sum()))
    after = log.times_sec > now  # their candidates may change too; those of this second are compared
    changed = np.isin(log.owners, np.flatnonzero(after))
    values[changed] = rng.integers(0, log.articles, int(changed.sum()))
    other = replace(log, clicked=clicked, candidates=replace(log.candidates, values=values))
    kept = ~changed
    assert (later & kept).any()
    np.testing.assert_array_equal(features_of(log)[kept], features_of(other)[kept])


def test_private_counts_use_complete_earlier_hours_only(data: EbNerd) -> None:
    log = Log.of(data)
    counts = hourly_counts(log, 1.0, 1, np.random.default_rng(3))
    hours = log.times_sec[log.owners] // HOUR - counts.first_hour
    middle = int(np.median(hours))
    other = counts.clicks.copy()
    other[middle:] += 50.0
    first, second = private_counts(log, counts), private_counts(log, replace(counts, clicks=other))
    np.testing.assert_array_equal(first[hours <= middle], second[hours <= middle])
    assert not np.allclose(first[hours > middle], second[hours > middle])


def test_device_contributes_at_most_one_click_an_hour_in_a_few_hours_a_day(data: EbNerd) -> None:
    log = Log.of(data)
    hours, news = contributed(log, np.random.default_rng(0))
    users, articles, times = log.clicks
    possible = {(hour, article) for hour, article in zip((times // HOUR).tolist(), articles.tolist(), strict=True)}
    assert set(zip(hours.tolist(), news.tolist(), strict=True)) <= possible
    active = {(user, hour) for user, hour in zip(users.tolist(), (times // HOUR).tolist(), strict=True)}
    days: dict[tuple[int, int], int] = {}
    for user, hour in active:
        days[user, hour // 24] = days.get((user, hour // 24), 0) + 1
    assert max(days.values()) > HOURS_A_DAY, "otherwise the limit is not tested"
    assert len(hours) == sum(min(each, HOURS_A_DAY) for each in days.values())


def test_usual_clicks_are_running_means_over_articles_of_the_same_age() -> None:
    rng = np.random.default_rng(4)
    clicks = rng.poisson(2.0, size=(30, 8)).astype(np.float64)
    total = np.concatenate([np.zeros((1, 8)), np.cumsum(clicks, axis=0)])
    appeared = rng.integers(0, 20, 8)
    found = usual_clicks(total, appeared, 6)
    for hour in (5, 17, 29):
        for place in (1, 4, 6):
            low, high = AGES_HOURS[place], AGES_HOURS[place + 1]
            seen = [
                clicks[max(past - 6, 0) : past, article].sum()
                for past in range(1, hour + 1)
                for article in range(8)
                if low <= past - appeared[article] < high
            ]
            assert found[hour, place] == pytest.approx(max(np.mean(seen) if seen else 0.0, LEAST_USUAL))


def test_noise_of_several_hours_composes_in_rho() -> None:
    noise = HourlyNoise(2.83, 1_600)
    rho = 2 / (2 * 2.83**2)  # distance sqrt(2), as of a Gaussian
    assert noise.epsilon(6_000) == pytest.approx(epsilon_of(rho, 1e-6), rel=0.01)
    assert noise.epsilon(6_000, 6) == pytest.approx(epsilon_of(6 * rho, 1e-6), rel=0.01)
    assert math.isinf(HourlyNoise(0.0, 10).epsilon(5))
    with pytest.raises(ValueError, match="sd: must not be negative, got -1"):
        HourlyNoise(-1, 10)


def test_gradient_of_the_listwise_loss_matches_finite_differences(data: EbNerd) -> None:
    log = Log.of(data)
    lists = Lists.of(log, features_of(log), test=False)
    weights = np.random.default_rng(2).normal(size=len(FEATURES))
    _, gradient = listwise_loss(weights, lists)
    step = 1e-5
    for place in range(len(weights)):
        moved = np.eye(len(weights))[place] * step
        slope = (listwise_loss(weights + moved, lists)[0] - listwise_loss(weights - moved, lists)[0]) / (2 * step)
        assert gradient[place] == pytest.approx(slope, abs=1e-8)
    best = central_weights(lists)
    assert np.abs(listwise_loss(best, lists)[1]).max() < 1e-3
    assert listwise_loss(best, lists)[0] < listwise_loss(np.zeros(len(FEATURES)), lists)[0]


def test_a_device_computes_the_listwise_gradient_of_its_samples(data: EbNerd) -> None:
    log = Log.of(data)
    lists = Lists.of(log, features_of(log), test=False)
    device = device_of(lists, FEATURES, seed=0)
    params = {name: value.numpy() for name, value in parameters(initial_ranker()).items()}
    params["feature_weights"] = np.linspace(-1, 1, len(FEATURES), dtype=np.float32)
    update = device.update(params, 3, 5)
    task = device.task
    drawn = device.source(3).draw(
        negatives=task.negatives,  # type: ignore[attr-defined]
        limit=task.samples_limit,  # type: ignore[attr-defined]
        rng=np.random.default_rng((0, 5, 3)),
        features=FEATURES,
    )
    assert drawn.features is not None
    count, size, _ = drawn.features.shape
    flat = drawn.features.reshape(count * size, -1).astype(np.float64)
    clicked = np.tile([1] + [0] * (size - 1), count)
    whole = Lists(np.zeros(count, np.int64), np.arange(count + 1) * size, flat, clicked)
    sharpness = float(params["matching.sharpness"])
    loss, gradient = listwise_loss(sharpness * params["feature_weights"].astype(np.float64), whole)
    assert update.loss == pytest.approx(loss, rel=1e-5)
    np.testing.assert_allclose(update.tensors[GRADIENT_PREFIX + "feature_weights"], sharpness * gradient, atol=1e-5)


def test_interval_matches_a_bootstrap_of_readers() -> None:
    rng = np.random.default_rng(8)
    numbers = rng.integers(1, 30, 400)
    auc = numbers * (0.7 + rng.normal(scale=0.1, size=400))
    other = numbers * (0.68 + rng.normal(scale=0.1, size=400))
    first, second = (ReaderMetrics(each, each, numbers) for each in (auc, other))
    mean, half = difference(first, second)
    drawn = rng.integers(0, 400, (4_000, 400))
    gaps = (auc - other)[drawn].sum(axis=1) / numbers[drawn].sum(axis=1)
    assert mean == pytest.approx((auc - other).sum() / numbers.sum())
    assert half == pytest.approx(1.96 * gaps.std(), rel=0.08)


def test_smoke_run_shows_every_case_and_is_resumable(tmp_path: Path) -> None:
    made_up(tmp_path / FOLDER)
    command = ["evaluate", "real-clicks", "--smoke", "--json", "--data", str(tmp_path), "--out", str(tmp_path / "runs")]
    first = CliRunner().invoke(app, command)
    assert first.exit_code == 0, first.output
    trainings, counts = json.loads(first.stdout)
    assert {row[0] for row in (*trainings["rows"], *counts["rows"])} >= set(CASES) - {"federated"}
    runs = json.loads((tmp_path / "runs").read_text())["runs"]
    assert {run["case"] for run in runs} == set(CASES)
    assert all(0 < auc < 1 for run in runs for _, auc, _ in run["curve"])
    again = CliRunner().invoke(app, command)
    assert again.stdout == first.stdout
    assert "AUC" not in again.stderr, "no training was repeated"


def test_missing_data_is_named_in_the_error(tmp_path: Path) -> None:
    found = CliRunner().invoke(app, ["evaluate", "real-clicks", "--data", str(tmp_path)])
    assert found.exit_code == 1
    assert "behaviors.tsv does not exist; name the folder with --data or OWNFEED_DATA" in found.stderr


def test_features_from_own_clicks_do_not_use_counts(data: EbNerd) -> None:
    log = Log.of(data)
    emptied = replace(log, counted=np.zeros_like(log.counted))
    assert own_features(log).shape[1] == len(OWN)
    np.testing.assert_array_equal(own_features(log), own_features(emptied))
    assert not np.array_equal(plain_counts(log), plain_counts(emptied))
