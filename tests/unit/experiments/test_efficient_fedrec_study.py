"""Efficient-FedRec's tables and figures. Oracles: FedRec's gradients by autograd, counts of sets, the paper's sums."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from experiments.datasets.mind import Impressions, RaggedArray
from experiments.datasets.samples import TrainingSamples, training_samples
from experiments.papers.efficient_fedrec.costs import SIZES
from experiments.papers.efficient_fedrec.study import (
    EFFICIENT,
    METHODS,
    UNIONS,
    EfficientFedRecStudy,
    EfficientSizes,
    StudyTraining,
    cost_table,
)
from experiments.papers.efficient_fedrec.training import SplitModels, device_gradients, server_gradients, train
from experiments.papers.fednewsrec.study import AucByRound
from experiments.ranking.evaluation import each_impression
from experiments.simulation.rounds import Rounds
from models.metrics import auc, ndcg

NEWS, READERS = 60, 3


@pytest.fixture(scope="module")
def samples() -> TrainingSamples:
    """Three readers with 2, 3 and 5 samples."""
    rng = np.random.default_rng(0)
    histories = [rng.permutation(NEWS)[:length] for length in (6, 9, 20)]
    users, times = ("a", "b", "c"), np.zeros(READERS, np.int64)
    nothing = RaggedArray.of([[] for _ in users])
    return training_samples(
        Impressions(users, users, times, RaggedArray.of(histories), nothing, np.zeros(0, np.int64)), NEWS
    )


@pytest.fixture
def models() -> SplitModels:
    return SplitModels.start(np.random.default_rng(1).normal(size=(NEWS, 384)).astype(np.float32))


def test_split_gradients_equal_those_of_the_whole_model_weighted_by_samples(
    samples: TrainingSamples, models: SplitModels
) -> None:
    drawn = samples.candidates(np.arange(len(samples)), 4, np.random.default_rng(2))
    sizes, whole = [], []
    states = torch.from_numpy(models.states)
    for reader in range(READERS):
        rows = samples.of_reader(reader)
        clicks, shown = (models.head(states[torch.from_numpy(each[rows])]) for each in (samples.clicks, drawn))
        mask = torch.from_numpy((samples.clicks[rows] != NEWS).astype(np.float32))
        named = {
            f"{prefix}{name}": each for prefix, part in models.parts.items() for name, each in part.named_parameters()
        }
        found = torch.autograd.grad(models.user.loss(clicks, mask, shown), list(named.values()))
        whole.append(dict(zip(named, (each.numpy() for each in found), strict=True)))
        sizes.append(len(rows))
    assert sizes == [2, 3, 5]
    of_user, rows, of_news = device_gradients(models, samples.clicks, drawn)
    split = of_user | server_gradients(models, rows, of_news)
    assert split.keys() == whole[0].keys()
    for name, mine in split.items():
        expected = np.average([each[name] for each in whole], axis=0, weights=sizes)
        np.testing.assert_allclose(mine, expected, rtol=0, atol=1e-7, err_msg=name)
    assert all(np.abs(split[name]).max() > 1e-5 for name in ("user.attention.value.weight", "news.head.weight"))


@pytest.mark.parametrize(("news", "moved"), [(True, {"user.", "news."}), (False, {"user."})])
def test_training_moves_the_trained_parts_only(
    samples: TrainingSamples, models: SplitModels, news: bool, moved: set[str]
) -> None:
    before = models.weights()
    seen: list[int] = []
    plan = Rounds(rounds=3, cohort=2, readers=READERS, seed=1)
    train(models, samples, plan, 1e-3, readers=np.arange(READERS), central=False, news=news, after_round=seen.append)
    changed = {name[:5] for name, value in models.weights().items() if not np.array_equal(value, before[name])}
    assert (changed, seen) == (moved, [1, 2, 3])


def test_figures_of_impressions_match_the_formulas() -> None:
    labels, scores = np.array([1, 0, 0, 1, 0]), np.array([0.5, 1.0, -1.0, 2.0, 0.0], dtype=np.float32)
    shown = RaggedArray.of([[0, 1, 2, 3, 4]])
    given = Impressions(("i",), ("u",), np.zeros(1, np.int64), RaggedArray.of([[7]]), shown, labels)
    skipped = np.exp(1.0) + np.exp(-1.0) + np.exp(0.0)
    loss = -np.mean([np.log(np.exp(each) / (np.exp(each) + skipped)) for each in (0.5, 2.0)])
    np.testing.assert_allclose(each_impression(given, scores), [[auc(labels, scores), ndcg(labels, scores, 10), loss]])


def test_union_of_a_group_equals_a_count_of_its_sets(tmp_path: Path) -> None:
    folder = tmp_path / "mind-train"
    folder.mkdir()
    news = [f"N{each}" for each in range(30)]
    (folder / "news.tsv").write_text("".join(f"{each}\tnews\tworld\ttitle {each}\t\t\t\t\n" for each in news))
    rng = np.random.default_rng(1)
    sets: dict[str, set[str]] = {}
    lines = []
    for row in range(40):
        user, history, shown = f"U{row % 12}", rng.choice(news, 3), rng.choice(news, 2, replace=False)
        sets.setdefault(user, set()).update(history, shown)
        clicked = " ".join(f"{each}-{place}" for place, each in enumerate(shown))
        lines.append(f"{row}\t{user}\t11/12/2019 9:00:00 AM\t{' '.join(history)}\t{clicked}\n")
    (folder / "behaviors.tsv").write_text("".join(lines))
    drawn = np.random.default_rng((0, 10))
    expected = [
        len(set.union(*(list(sets.values())[at] for at in drawn.choice(12, 10, replace=False)))) for _ in range(UNIONS)
    ]
    assert EfficientFedRecStudy(tmp_path).unions(10) == expected


def test_costs_at_the_papers_union_are_the_papers_numbers() -> None:
    """Table 3: 2.18 M numbers with 1,320 news, and 10.01 M for the whole model with BERT-Tiny of 4,385,920."""
    row = cost_table({"Tiny": {"numbers": 4.45e6, "title": 0.01, "user": 0.02}}, 50, 1_320, 561_601).rows[0]
    assert row[:3] == ("Tiny", "2.18", SIZES["Tiny"].numbers)
    assert row[7:9] == ("10", SIZES["Tiny"].fedrec_numbers)
    assert (row[3], row[5], row[9]) == ("0.02", "13.2", "0.52")  # 1,320 titles on the server, 50 on the device


def test_convergence_counts_rounds_and_bytes_to_the_loss_all_groups_reach() -> None:
    study = EfficientFedRecStudy(
        Path("nowhere"), EfficientSizes(rounds=20, seeds=1, groups=(10,), users=(2,), costs=())
    )
    slow = AucByRound((0, 10, 20), ((0.5, 0.3, 3.0), (0.5, 0.3, 2.9), (0.6, 0.3, 2.8)), (0.5, 0.6, 0.7))
    fast = AucByRound((0, 10, 20), ((0.5, 0.3, 3.0), (0.6, 0.4, 2.7), (0.7, 0.4, 2.6)), (0.6, 0.7, 0.9))
    runs = {job: slow if job == StudyTraining(0, group=10) else fast for job in study.jobs}
    assert study.runs(json.loads(json.dumps([row for each in runs.items() for row in study.rows(*each)]))) == runs
    world = {
        "samples": type("Samples", (), {"readers": 9}),
        "_judged": (1, 2, 3),
        "_shown": type("Shown", (), {"users": (1,)}),
    }
    object.__setattr__(study, "__dict__", {**study.__dict__, **world, "readers": [np.arange(100)] * 50})
    methods, _, unions, convergence, users = study.tables(runs)
    assert [row[0] for row in methods.rows] == ["untrained", *(name for name, _ in METHODS.values())]
    assert methods.rows[0][1:4] == ("0.5000", "0.3000", "3.0000")
    assert [row[:2] for row in convergence.rows] == [(10, 20), (50, 10)]
    sent = 8 * (100 * 400 + 561_601)  # bytes of a reader and round
    assert unions.rows[-1][5] == f"{sent / 1e6:.2f}"
    assert convergence.rows[1][2:4] == (f"{10 * sent / 1e6:,.0f}", f"{10 * sent * 50 / 1e9:.1f}")
    assert [row[0] for row in users.rows] == [2, 9]
    assert StudyTraining(0).method == EFFICIENT
