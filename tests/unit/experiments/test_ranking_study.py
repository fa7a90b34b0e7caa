"""The ranking study on readers written by hand. Oracle: loops over impressions."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from experiments.datasets.mind import Impressions, Mind, NewsTable, RaggedArray, load_mind
from experiments.datasets.titles import title_vectors, unit_rows
from experiments.ranking.choices import choices, paired_difference, with_history
from experiments.ranking.evaluation import evaluate, evaluate_model, metrics, model_scores
from experiments.ranking.models import STUDY_MODELS, features_of, live_popularity, softmax_cosine, untrained_table
from experiments.ranking.study import RankingStudy, trained_rankers, untrained_scorers
from experiments.ranking.training import SCHEDULES, RankingRun, RankingSettings, Workbench
from experiments.records import DataMissing
from experiments.simulation.readers import Library
from models.builders.rankers import cosine_ranker, nrms_user
from models.metrics import RankingMetrics

NEWS, READERS, DIM = 60, 12, 256
TINY = RankingSettings(steps=2, batch=4, rounds=2, cohort=3)


def made_up_mind() -> Mind:
    """Readers of one topic each, who click its articles; impressions of 2 to 5 candidates."""
    rng = np.random.default_rng(0)
    topics = np.arange(NEWS) % 3
    of_topic = [np.flatnonzero(topics == topic) for topic in range(3)]
    histories = [rng.permutation(of_topic[reader % 3])[:8] for reader in range(READERS)]
    shown = [rng.permutation(NEWS)[: 2 + reader % 4] for reader in range(READERS)]
    for reader, row in enumerate(shown):
        row[:2] = rng.choice(of_topic[reader % 3]), rng.choice(of_topic[(reader + 1) % 3])
    clicked = np.concatenate([np.eye(1, len(row), dtype=np.int64)[0] for row in shown])
    users = tuple(f"u{reader}" for reader in range(READERS))
    split = Impressions(
        users, users, np.zeros(READERS, np.int64), RaggedArray.of(histories), RaggedArray.of(shown), clicked
    )
    names = tuple(f"N{row}" for row in range(NEWS))
    categories = tuple(f"c{topic}" for topic in topics)
    return Mind(NewsTable(names, categories, categories, names, names), split, split)


def made_up_vectors(dim: int) -> NDArray[np.float32]:
    rng = np.random.default_rng(1)
    topic = rng.normal(size=(3, dim))
    return unit_rows((topic[np.arange(NEWS) % 3] + rng.normal(size=(NEWS, dim))).astype(np.float32))


@pytest.fixture
def bench() -> Workbench:
    found = Workbench(made_up_mind())
    found.__dict__["vectors"] = {dim: made_up_vectors(dim) for dim in (384, 256)}
    return found


def test_batched_scores_match_one_impression_at_a_time() -> None:
    mind, library, model = made_up_mind(), Library.of(made_up_vectors(DIM)), cosine_ranker()
    weights = {name: value.detach().numpy() for name, value in model.named_parameters()}
    found = model_scores(mind.dev, model, weights, library)
    for row, (history, candidates) in enumerate(zip(mind.dev.histories, mind.dev.candidates, strict=True)):
        clicks, shown = (torch.from_numpy(library.vectors[rows])[None] for rows in (history, candidates))
        alone = model(clicks, torch.ones(1, len(history)), shown)[0].detach().numpy()
        first, after = mind.dev.candidates.offsets[row : row + 2]
        np.testing.assert_allclose(found[first:after], alone, atol=1e-6)


def test_untrained_cosine_model_scores_like_the_cosine_ranker() -> None:
    mind, vectors, model = made_up_mind(), made_up_vectors(DIM), cosine_ranker()
    weights = {name: value.detach().numpy() for name, value in model.named_parameters()}
    by_model = evaluate_model(mind.dev, model, weights, Library.of(vectors))
    beta = float(weights["beta"])
    assert by_model.auc == pytest.approx(evaluate(mind.dev, softmax_cosine(vectors, beta)).auc, abs=1e-9)


def test_live_popularity_excludes_the_readers_own_click() -> None:
    mind = made_up_mind()
    rates = live_popularity(mind.dev, NEWS, rate=True)
    for place, (owner, news) in enumerate(zip(mind.dev.candidates.owners, mind.dev.candidates.values, strict=True)):
        others = (mind.dev.candidates.values == news) & (mind.dev.candidates.owners != owner)
        expected = np.log((mind.dev.clicked[others].sum() + 1) / (others.sum() + 10))
        assert rates[place] == pytest.approx(expected)


def test_paired_difference_is_the_difference_of_the_aucs() -> None:
    dev, rng = made_up_mind().dev, np.random.default_rng(0)
    first, second = rng.random((2, len(dev.candidates.values)))
    found = paired_difference(dev, first, second)
    assert found.mean == pytest.approx(metrics(dev, first).auc - metrics(dev, second).auc)
    assert paired_difference(dev, first, 2 * first).error == 0


def test_variants_of_the_default_ranker_are_compared_on_both_splits(bench: Workbench) -> None:
    shown = choices(bench.mind, bench.vectors)
    assert shown.columns[2:] == ("train AUC", "train difference", "dev AUC", "dev difference")
    assert all(row[2] == row[4] for row in shown.rows)  # the made-up splits are the same


def test_impressions_without_a_history_are_left_out() -> None:
    mind = made_up_mind()
    empty = replace(mind.dev, histories=RaggedArray.of([[], *list(mind.dev.histories)[1:]]))
    kept = with_history(empty)
    assert kept.users == mind.dev.users[1:]
    assert len(kept.clicked) == len(kept.candidates.values) == len(mind.dev.clicked) - len(mind.dev.candidates[0])


def test_affinities_are_shares_of_the_readers_clicks() -> None:
    columns = features_of(("section_affinity", "recency"), made_up_mind())
    clicks = np.array([[NEWS, 0, 3, 1]])  # padding, two of topic 0, one of topic 1
    found = columns(clicks, np.array([[6, 4, 5, NEWS]]))
    np.testing.assert_allclose(found[0, :, 0], [2 / 3, 1 / 3, 0, 0], atol=1e-6)
    assert not found[..., 1].any()


def test_study_repeats_itself_and_resumes_from_its_file(bench: Workbench, tmp_path: Path) -> None:
    study = study_on(bench)
    runs = {job: study.run(job) for job in study.jobs}
    assert [run.schedule for run in runs.values()] == list(SCHEDULES)
    assert all(
        np.isfinite([run.first_loss, run.last_loss]).all() and run.end.impressions == READERS for run in runs.values()
    )
    assert study.runs([row for each in runs.items() for row in study.rows(*each)]) == runs
    first = study.jobs[0]
    assert replace(study.run(first), seconds=0) == replace(runs[first], seconds=0)


def study_on(bench: Workbench) -> RankingStudy:
    study = RankingStudy(Path("nowhere"), ["feature ranker 256"], TINY)
    study.__dict__["bench"] = bench
    return study


def test_table_shows_the_metrics_of_each_scorer_with_four_digits(bench: Workbench) -> None:
    untrained = untrained_table(bench.mind, bench.vectors, seed=0)
    shown = untrained_scorers(untrained)
    rows = {str(row[0]): row for row in shown.rows}
    assert rows["mean cosine"][1] == f"{untrained['mean cosine'].auc:.4f}"
    assert json.loads(json.dumps(shown.as_json()))["rows"]


def test_table_has_one_row_per_trained_model_with_a_mean_for_each_schedule() -> None:
    """Oracle: mean and deviation by hand, of .60 and .62."""
    start, low, high = (RankingMetrics(auc, 0.3, 0.4, 0.45, 9, 0) for auc in (0.5, 0.60, 0.62))
    name = "NRMS, cosine start"
    runs = [
        RankingRun(name, "federated", 0, start, low, 1.6, 1.5, 20.0),
        RankingRun(name, "federated", 1, start, high, 1.6, 1.5, 30.0),
        RankingRun(name, "central", 0, start, high, 1.6, 1.5, 10.0),
    ]
    shown = trained_rankers(runs, TINY)
    assert dict(zip(shown.columns, shown.rows[0], strict=True)) == {
        "model": name,
        "central": "0.6200",
        "federated": "0.6100 (0.0141)",
        "private": None,
        "step 0": "0.5000",
        "nDCG@10 federated": "0.4500",
        "trainings": 2,
        "s": 20,
    }


@pytest.mark.parametrize("name", [name for name, each in STUDY_MODELS.items() if not each.cosine_start])
def test_same_seed_gives_the_same_random_start(name: str) -> None:
    first, again, other = (
        torch.cat([each.flatten() for each in STUDY_MODELS[name].model(seed).parameters()]) for seed in (1, 1, 2)
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_command_without_its_data_ends_with_one_line(tmp_path: Path) -> None:
    with pytest.raises(DataMissing, match=r"train/news\.tsv does not exist"):
        load_mind(tmp_path / "mind-subset")


def test_simulation_engine_is_not_part_of_the_study_settings() -> None:
    sizes = replace(TINY, engine="ray", cluster="10.0.0.7:6379")
    assert RankingStudy(Path("nowhere"), [], sizes).settings == RankingStudy(Path("nowhere"), [], TINY).settings
    assert RankingStudy(Path("nowhere"), [], replace(TINY, rounds=3)).settings["rounds"] == 3


def test_model_with_unsendable_features_is_refused_before_reading() -> None:
    study = RankingStudy(Path("nowhere"), list(STUDY_MODELS), replace(TINY, engine="ray"))
    with pytest.raises(ValueError, match="engine: features can't be sent to Ray, so leave it out for feature ranker"):
        study.prepare()


def test_error_says_that_ray_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("experiments.ranking.study.find_spec", lambda name: None)
    study = RankingStudy(Path("nowhere"), ["NRMS, cosine start"], replace(TINY, engine="ray"))
    with pytest.raises(ValueError, match="engine: Ray isn't installed: pip install"):
        study.prepare()


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ({"cluster": "10.0.0.7:6379"}, "cluster: only allowed with engine ray"),
        ({"engine": "ray", "processes": 2}, "processes:"),
    ],
)
def test_setting_that_the_engine_ignores_is_refused(sizes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        RankingSettings(**sizes)


@pytest.mark.data
@pytest.mark.timeout(600)
def test_untrained_cosines_reach_the_design_studys_auc(shared_data: Path) -> None:
    """Embeds the 3,502 titles that these readers meet, unless the user's cache has them: half a minute."""
    mind = load_mind(shared_data / "mind-subset")
    met = np.unique(np.concatenate([*mind.dev.histories, *mind.dev.candidates]))
    found = unit_rows(title_vectors([mind.news.titles[row] for row in met]))
    vectors = np.zeros((len(mind.news.titles), found.shape[1]), dtype=np.float32)
    vectors[met] = found
    assert evaluate(mind.dev, softmax_cosine(vectors, 0.0)).auc == pytest.approx(0.618, abs=0.002)
    assert evaluate(mind.dev, softmax_cosine(vectors, 8.0)).auc == pytest.approx(0.608, abs=0.002)


def test_nrms_at_its_cosine_start_ranks_like_the_mean_cosine(bench: Workbench) -> None:
    dev, vectors = bench.mind.dev, bench.vectors[DIM]
    weights = {name: value.detach().numpy() for name, value in nrms_user().named_parameters()}
    found = model_scores(dev, nrms_user(), weights, Library.of(vectors))
    means = [
        (vectors[candidates] @ vectors[history].T).mean(axis=1)
        for history, candidates in zip(dev.histories, dev.candidates, strict=True)
    ]
    assert metrics(dev, found).auc == pytest.approx(metrics(dev, np.concatenate(means)).auc, abs=1e-9)
