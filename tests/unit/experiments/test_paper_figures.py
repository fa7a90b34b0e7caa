"""Figures of the papers' studies. Oracles: formulas written here, parts of the models, whole runs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from experiments.papers.fednewsrec.study import (
    BOTH,
    LONG,
    PARTS,
    SHORT,
    AucByRound,
    FedNewsRecStudy,
    FigurePoint,
    user_model,
)
from experiments.papers.finding.figures import FORMS, WHOLE, FindingFigures, interpolation, moves
from experiments.papers.finding.training import METRICS, FindingSizes, Job, Result
from experiments.papers.fl_mv_dssm.figures import MovieLensFigure
from experiments.papers.fl_mv_dssm.rounds import Choices
from experiments.papers.fl_mv_dssm.training import MovieLensSettings, run_training
from experiments.records import writer
from models.builders.user import fednewsrec
from ownfeed import app
from tests.doubles.long_form import by_length

SMALL = Choices(rounds=2, cohort=5)


def needed(gains: np.ndarray) -> int:
    """The number of impressions at which the mean gain is two standard errors."""
    return round(4 * gains.var(ddof=1) / gains.mean() ** 2)


def result(values: dict[str, float], aucs: list[float]) -> Result:
    metrics = np.tile(np.array(aucs)[:, None], (1, len(METRICS)))
    return Result(Job.of("small", "FINDING", 0, values), metrics, np.ones(len(aucs), dtype=bool), 1.0, 1)


def test_forms_of_lambda_are_compared_on_the_test_impressions_only() -> None:
    gains = np.array([0.02, -0.01, 0.03])
    whole = [0.5, 0.6, 0.7, 0.65]
    chosen = {
        WHOLE: [result({"alpha": 1.03, "beta": 0.5}, whole)],
        "constant 1": [result({"constant": 1.0}, [0.9, *(np.array(whole[1:]) + gains)])],
    }
    table = interpolation(chosen, 1, FindingSizes())
    rows = {row[0]: dict(zip(table.columns, row, strict=True)) for row in table.rows}
    assert rows[WHOLE]["validation AUC"] == "0.5000"
    assert rows["constant 1"]["validation AUC"] == "0.9000"
    assert rows["constant 1"]["AUC"] == f"{np.mean(whole[1:]) + gains.mean():.4f}"
    assert str(rows["constant 1"]["AUC - time and layer"]).startswith(f"{gains.mean():+.5f} +- ")
    assert rows["constant 1"]["impressions needed"] == needed(gains)
    assert rows[WHOLE]["AUC - time and layer"] is None


def test_moves_are_shares_of_the_readers_by_round() -> None:
    table = moves([(10, 4), (20, 4)], every=8, readers=40)
    assert [row[:3] for row in table.rows] == [(8, "37.5", "25.0"), (16, "10.0", "0.0")]


def test_finding_trains_every_value_of_every_form_once_a_seed() -> None:
    study = FindingFigures(Path("nowhere"), {}, trainings=2)
    assert len(set(study.jobs)) == len(study.jobs) == 2 * sum(len(values) for values in FORMS.values())
    assert writer("finding-figures") == "ownfeed evaluate finding --figures"


def clicks() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    mask = torch.ones(3, 50)
    mask[0, :45], mask[2] = 0, 0
    return torch.randn(3, 50, 64, generator=generator) * mask[..., None], mask


def test_user_model_with_one_part_is_that_part_and_with_both_is_fednewsrec() -> None:
    read, mask = clicks()
    model = user_model(BOTH, 4)
    whole = fednewsrec(heads=8, head_dim=8, attention_dim=64)
    whole.load_state_dict(model.state_dict())
    parts = {
        LONG: model.long_term(read, mask),
        SHORT: model.short_term(read, mask),
        BOTH: whole.user_vector(read, mask),
    }
    for kept, expected in parts.items():
        found = user_model(kept, 4).user_vector(read, mask)
        torch.testing.assert_close(found[:2], expected[:2])
        assert not found[2].any(), "a reader without clicks"


def test_fednewsrec_tables_have_the_papers_epsilon_and_paired_differences() -> None:
    study = FedNewsRecStudy(Path("nowhere"), replace(FedNewsRecStudy(Path("nowhere")).sizes, seeds=1))
    gains = np.array([0.1, -0.05, 0.2])
    whole = AucByRound((0, 60), ((0.4, 0.3), (0.5, 0.4)), (0.4, 0.5, 0.6))
    runs = dict.fromkeys(study.jobs, whole)
    runs[FigurePoint(0, noise=0.05)] = replace(whole, aucs=tuple(np.array(whole.aucs) + gains))
    assert study.runs(json.loads(json.dumps([row for each in runs.items() for row in study.rows(*each)]))) == runs
    object.__setattr__(study, "__dict__", {**study.__dict__, "samples": type("Samples", (), {"readers": 3_805})()})
    users, noise, rounds, parts = study.tables(runs)
    assert [row[0] for row in users.rows] == [50, 500, 3_805]
    epsilons = {row[:2]: row[2] for row in noise.rows}
    assert epsilons[0.05, 0.005] == 0.2  # section 3.3: 2 delta / lambda
    assert epsilons[0.0, None] is None, "no noise, no bound"
    changed = next(row for row in noise.rows if row[0] == 0.05)
    assert changed[-1] == needed(gains)
    assert str(changed[-2]).startswith(f"{gains.mean():+.4f}")
    assert rounds.rows[0][1:] == ("0.4000", "0.5000")
    assert [row[0] for row in parts.rows] == list(PARTS.values())


def test_smoke_needs_figures_and_data(tmp_path: Path) -> None:
    for command, words in (
        (["finding", "--smoke"], "smoke: only with --figures"),
        (["fl-mv-dssm", "--smoke"], "smoke: only with --figures"),
        (["finding", "--figures"], "mind-subset does not exist"),
        (["fednewsrec"], "mind-subset"),
        (["fl-mv-dssm", "--figures"], "does not exist"),
    ):
        done = CliRunner().invoke(app, ["evaluate", *command, "--data", str(tmp_path)])
        assert done.exit_code == 1, command
        assert words in done.stderr


def test_last_round_of_the_curve_is_the_tables_figure_and_curves_resume(shared_data: Path) -> None:
    study = MovieLensFigure(shared_data, 1, SMALL, ("FL-DSSM View-1",))
    job = ("FL-DSSM View-1", 0)
    curve = study.run(job)
    (whole,) = run_training(study.bench, *job, MovieLensSettings(SMALL.rounds), SMALL)
    assert set(curve) == {1, 2}
    assert curve[2] == [whole.figures.precision, whole.figures.recall]
    assert study.runs(json.loads(json.dumps(study.rows(job, curve)))) == {job: curve}
    precision, _ = study.tables({job: curve})
    assert precision.rows[0] == (job[0], *(f"{curve[done][0]:.4f}" for done in (1, 2)), "0.2691")


@pytest.mark.long_form
@pytest.mark.parametrize(
    ("command", "title"),
    [
        (["fl-mv-dssm", "--figures"], "Recall at 10 by round (Figure 2)"),
        *by_length(
            [],
            long=[
                (["finding", "--figures"], "Readers who change their group (Figure 6)"),
                (["fednewsrec"], "Long and short term (Figure 7)"),
                (["efficient-fedrec"], "Number of users (Figure 5)"),
                (["uni-fedrec"], "without basic interests (Figure 4)"),
            ],
        ),
    ],
)
def test_smoke_run_ends_with_the_papers_figures(shared_data: Path, command: list[str], title: str) -> None:
    """The short form runs the fastest command. What the others compute is checked above and by each study's tests."""
    ended = CliRunner().invoke(app, ["evaluate", *command, "--smoke", "--data", str(shared_data), "--json"])
    assert ended.exit_code == 0, ended.output
    assert title in ended.output
