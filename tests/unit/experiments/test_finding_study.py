"""The FINDING study: its data split, its vectors, and the command. Oracles: synthetic readers, and user models."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from typer.testing import CliRunner

from experiments.datasets.mind import Impressions, Mind, NewsTable, RaggedArray
from experiments.papers.finding import methods
from experiments.papers.finding.methods import BASES, BUILDERS, CENTRAL, CHOSEN, GRIDS, NAMES, Setting, methods_of
from experiments.papers.finding.protocol import Protocol, rows_of, split, vectors_of
from experiments.papers.finding.study import FindingComparison, FindingTuning
from experiments.papers.finding.training import METRICS, Job, Result, best
from experiments.ranking.models import STUDY_MODELS
from experiments.simulation.readers import Library
from experiments.simulation.strategies.method import ModelChoice
from models.builders.rankers import candidate_attention, nrms
from ownfeed import app
from tests.doubles.quadratics import Quadratics

NEWS, DAY = 60, 24 * 3_600


def mind() -> Mind:
    """Twelve train readers, every second one with a long history, over three days; three readers of dev."""
    rng = np.random.default_rng(0)
    names = tuple(f"n{row}" for row in range(NEWS))
    news = NewsTable(names, names, names, names, names)
    start = int(datetime(2019, 11, 12, 9, tzinfo=UTC).timestamp())

    def impressions(users: list[str], days: list[int]) -> Impressions:
        histories = [rng.permutation(NEWS)[: 12 if int(user[1:]) % 2 else 4] for user in users]
        shown = [rng.permutation(NEWS)[:5] for _ in users]
        clicked = np.tile([0, 1, 0, 0, 0], len(users))
        times = np.array([start + DAY * day for day in days], dtype=np.int64)
        return Impressions(tuple(users), tuple(users), times, RaggedArray.of(histories), RaggedArray.of(shown), clicked)

    train = impressions([f"u{reader}" for reader in range(12)], [reader % 3 for reader in range(12)])
    return Mind(news, train, impressions(["d1", "d2", "d3"], [3, 3, 3]))


@pytest.fixture(scope="module")
def parts() -> Protocol:
    return split(mind())


def test_study_trains_on_long_histories_only_and_not_on_impressions(parts: Protocol) -> None:
    assert parts.samples.readers == len(parts.clicks) == 6
    assert len(parts.samples) == 6 * 4  # k = min(5, 12 // 3)
    assert not parts.samples.shown.lengths.any()


def test_validation_ends_before_the_last_day_and_dev_readers_are_cold(parts: Protocol) -> None:
    data = mind()
    last = {
        user
        for user, moment in zip(data.train.users, data.train.times_sec, strict=True)
        if moment == data.train.times_sec.max()
    }
    assert set(parts.validation.impressions.users) == set(data.train.users) - last
    assert set(parts.test.impressions.users) == last | set(data.dev.users)
    known = {user for user, reader in zip(parts.test.impressions.users, parts.test.readers, strict=True) if reader >= 0}
    assert known == {user for user in last if int(user[1:]) % 2}


def test_reader_number_of_a_known_reader_leads_to_its_own_clicks(parts: Protocol) -> None:
    for part in (parts.validation, parts.test):
        for row in np.flatnonzero(part.known):
            history = part.impressions.histories[int(row)]
            clicks = parts.clicks[part.readers[row]]
            assert clicks[clicks != NEWS].tolist() == history.tolist()


def test_impressions_without_a_choice_or_a_history_are_not_evaluated() -> None:
    data = mind()
    empty = Impressions(
        ("a", "b", "c"),
        ("u1", "u1", "u1"),
        data.train.times_sec[:3],
        RaggedArray.of([[1, 2], [], [3]]),
        RaggedArray.of([[1, 2], [3, 4], [5]]),
        np.array([1, 1, 0, 1, 1]),
    )
    assert len(split(Mind(data.news, data.train, empty)).test.readers) == 4  # those of train alone
    chosen = rows_of(empty, np.array([1]))
    assert chosen.clicked.tolist() == [0, 1]


def test_clustering_vector_is_the_user_vector_or_close_to_the_mean_click() -> None:
    rng = np.random.default_rng(1)
    topic = rng.normal(size=256)
    vectors = (rng.normal(size=(NEWS, 256)) + topic).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    library = Library.of(vectors)
    clicks = np.full((5, 50), NEWS)
    clicks[:4, -7:] = rng.integers(0, NEWS, (4, 7))
    torch.manual_seed(0)
    model = nrms(heads=4, head_dim=64, attention_dim=6)
    weights = {name: value.detach().numpy() for name, value in model.named_parameters()}
    mask = torch.from_numpy((clicks != NEWS).astype(np.float32))
    user = model.user_vector(torch.from_numpy(library.vectors[clicks]), mask).detach().numpy()
    np.testing.assert_allclose(vectors_of(model, library, clicks)(weights), user, atol=1e-5)
    small = candidate_attention(256)
    found = vectors_of(small, library, clicks)(
        {name: value.detach().numpy() for name, value in small.named_parameters()}
    )
    mean = library.vectors[clicks[:4, -7:]].mean(axis=1)
    cosines = (found[:4] * mean).sum(axis=1) / np.linalg.norm(found[:4], axis=1) / np.linalg.norm(mean, axis=1)
    assert (cosines > 0.9).all()
    assert not found[4].any()


def test_every_method_can_be_built_with_every_grid_value_and_the_chosen_one() -> None:
    def vectors_at(weights: object) -> NDArray[np.float32]:
        return np.random.default_rng(2).normal(size=(40, 5)).astype(np.float32)

    for name, base in BASES.items():
        model = STUDY_MODELS[base.study_model].model(0)
        weights = {parameter: value.detach().numpy() for parameter, value in model.named_parameters()}
        assert {base.layers.place(parameter) for parameter in weights} == set(range(len(base.layers)))
        news = np.random.default_rng(3).normal(size=(80, 5)).astype(np.float32)
        at = Setting(Quadratics.some(40), weights, 0.01, base.layers, 40, vectors_at, 1, news)
        for method in (each for each in methods_of(name, ()) if each != CENTRAL):
            build = BUILDERS[method]
            grid = GRIDS[name].get(method, ({},))
            for values in (*grid, CHOSEN[name].get(method, {})):
                assert isinstance(build(at, base, values).known(np.array([0, 3])), ModelChoice)
            assert CHOSEN[name].get(method, {}) in grid, "chosen from the grid"
    assert set(NAMES) == {CENTRAL, *BUILDERS} == set(methods_of("small", ()))


def test_encryption_is_for_small_models_and_needs_its_library(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "FINDING-HE" not in methods_of("nrms", ())
    with pytest.raises(ValueError, match=r"'FINDING-HE' is not one of .* for nrms$"):
        methods_of("nrms", ["FINDING-HE"])
    monkeypatch.setattr(methods, "find_spec", lambda name: None)
    assert "FINDING-HE" not in methods_of("small", ())
    with pytest.raises(ValueError, match=r"for small \(pip install 'ownfeed\[he\]'\)"):
        methods_of("small", ["FINDING-HE"])


def result(method: str, seed: int, aucs: list[float], seconds: float = 1.0) -> Result:
    metrics = np.tile(np.array(aucs)[:, None], (1, len(METRICS)))
    return Result(Job.of("small", method, seed, {}), metrics, np.array([True, False, True]), seconds, 1)


def test_table_compares_methods_by_impression_and_separates_readers_without_training_data() -> None:
    results = [result("vanilla", seed, [0.5, 0.6, 0.7]) for seed in range(2)]
    results += [result("FINDING", seed, [0.6 + 0.1 * seed, 0.6, 0.8]) for seed in range(2)]
    table = FindingComparison(Path("nowhere"), {"small": ["FINDING"]}).table("small", results)
    rows = {row[0]: dict(zip(table.columns, row, strict=True)) for row in table.rows}
    assert rows["vanilla"]["AUC"] == "0.6000"
    assert rows["FINDING"]["known AUC"] == f"{(0.65 + 0.8) / 2:.4f}"
    assert rows["FINDING"]["cold AUC"] == "0.6000"
    gains = np.array([0.15, 0.0, 0.1])
    expected = f"{gains.mean():+.4f} +- {gains.std(ddof=1) / np.sqrt(3):.4f}"
    assert rows["FINDING"]["AUC - vanilla"] == expected
    assert str(rows["FINDING"]["known - vanilla"]).startswith("+0.1250")
    assert rows["vanilla"]["AUC - vanilla"] is None


def test_results_are_restored_from_rows_and_include_vanilla_learning() -> None:
    study = FindingComparison(Path("nowhere"), {"small": ["FINDING"]}, trainings=2)
    assert [(job.method, job.seed) for job in study.jobs] == [
        ("vanilla", 0), ("FINDING", 0), ("vanilla", 1), ("FINDING", 1),
    ]  # fmt: skip
    kept = result("FINDING", 1, [0.1, 0.2, 0.3])
    rows = json.loads(json.dumps(study.rows(kept.job, kept)))
    (job, again), *_ = study.runs(rows).items()
    assert job == kept.job
    np.testing.assert_array_equal(again.metrics, kept.metrics)
    np.testing.assert_array_equal(again.known, kept.known)
    assert study.settings != FindingTuning(Path("nowhere"), study.methods).settings


def test_best_values_have_the_greatest_auc() -> None:
    found = best([result("FINDING", 0, [0.1] * 3), result("FINDING", 1, [0.3] * 3), result("vanilla", 2, [0.2] * 3)])
    assert {key: value.job.seed for key, value in found.items()} == {("small", "FINDING"): 1, ("small", "vanilla"): 2}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--model", "huge"], "model: 'huge' is not one of small, nrms"),
        (["--method", "magic"], "method: 'magic' is not one of centralised, vanilla"),
        ([], "mind-subset does not exist"),
    ],
)
def test_invalid_options_are_refused_in_one_line(tmp_path: Path, options: list[str], words: str) -> None:
    done = CliRunner().invoke(app, ["evaluate", "finding", "--data", str(tmp_path), *options])
    assert done.exit_code == 1
    assert words in done.stderr
    assert not done.stdout
