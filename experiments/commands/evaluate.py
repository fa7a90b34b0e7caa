"""`ownfeed evaluate`: a command for each study that compares models on research data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from experiments.commands.studies import DATA, AsJson, Data, Kept, Trainings, refusals, says, show

evaluate_app = typer.Typer(help="Compare models on research data.", no_args_is_help=True)


@evaluate_app.command("ranking")
def evaluate_ranking(
    data: Data = DATA,
    models: Annotated[
        list[str] | None,
        typer.Option("--model", help="Part of a name; may be repeated. Without it nothing is trained."),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, max=100, help="Trainings of each model.")] = 1,
    steps: Annotated[int, typer.Option(min=1, help="Central training: steps of 64 samples.")] = 400,
    rounds: Annotated[int, typer.Option(min=1, help="Federated training: rounds of 50 readers.")] = 150,
    processes: Annotated[int, typer.Option(min=1, help="Processes that simulate devices.")] = 1,
    out: Annotated[Path | None, typer.Option(help="JSON file of results; runs it holds are not repeated.")] = None,
    as_json: AsJson = False,
) -> None:
    """Rankers on MIND's dev impressions, trained centrally and federated, with the published figures beside them."""
    from experiments.ranking.run import run_ranking
    from experiments.ranking.study import RankingSettings

    settings = RankingSettings(steps=steps, rounds=rounds, processes=processes)
    with refusals():
        tables = run_ranking(data=data, models=models or [], seeds=seeds, settings=settings, out=out, console=says)
    show(tables, as_json)


@evaluate_app.command("popularity")
def evaluate_popularity(
    data: Data = DATA,
    draws: Annotated[int, typer.Option(min=1, max=100, help="Draws of the noise.")] = 3,
    as_json: AsJson = False,
) -> None:
    """Private counts of displays and clicks on MIND's dev impressions, by noise in their sum and by devices counted."""
    from experiments.ranking.popularity import popularity_table, study_of
    from experiments.ranking.popularity_curve import curve_table

    with refusals():
        mind, cosine = study_of(data, says)
        tables = [popularity_table(mind, cosine, draws=draws), curve_table(mind, cosine, draws=draws)]
    show(tables, as_json)


@evaluate_app.command("recall")
def evaluate_recall(
    data: Data = DATA,
    steps: Annotated[int, typer.Option(min=1, help="Central training: steps of 64 samples.")] = 150,
    rounds: Annotated[int, typer.Option(min=1, help="Federated trainings: rounds.")] = 60,
    cohort: Annotated[int, typer.Option(min=1, help="Readers a round.")] = 50,
    seed: Annotated[int, typer.Option(help="Of batches, cohorts and negatives.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Uni-FedRec's recall model by its unified score: before and after training, with and without noise."""
    from experiments.recall.evaluate import run_recall
    from experiments.recall.training import RecallSizes

    with refusals():
        tables = run_recall(data=data, sizes=RecallSizes(steps, rounds, cohort), seed=seed, console=says)
    show(tables, as_json)


@evaluate_app.command("poisoning")
def evaluate_poisoning(
    rounds: Annotated[int, typer.Option(min=1, help="Rounds, each followed by its gate.")] = 10,
    seeds: Annotated[int, typer.Option(min=1, max=100, help="Populations of readers.")] = 3,
    as_json: AsJson = False,
) -> None:
    """Liars among sixty devices: the default ranker's AUC beside rounds without, by attack and by form of the sum."""
    from experiments.poisoning.study import PoisoningSizes, run

    show([run(PoisoningSizes(rounds=rounds, seeds=seeds), says)], as_json)


@evaluate_app.command("codebook")
def evaluate_codebook(
    data: Data = DATA,
    seeds: Annotated[int, typer.Option(min=1, max=100, help="Starts and draws of each system.")] = 3,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of each.")] = 30,
    as_json: AsJson = False,
) -> None:
    """Codebooks of reports learned in rounds, exact and under noise, against topics of the pool."""
    from experiments.recall.codebook_rounds import run_codebook

    with refusals():
        tables = run_codebook(data=data, seeds=seeds, rounds=rounds, console=says)
    show(tables, as_json)


@evaluate_app.command("finding")
def evaluate_finding(
    data: Data = DATA,
    models: Annotated[
        list[str] | None, typer.Option("--model", help="The ranker, small or nrms; may be repeated; small by default.")
    ] = None,
    methods: Annotated[
        list[str] | None, typer.Option("--method", help="A method's name; may be repeated; all of them by default.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, max=100, help="Trainings of each method.")] = 3,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of each training.")] = 150,
    cohort: Annotated[int, typer.Option(min=1, help="Readers a round.")] = 50,
    tune: Annotated[
        bool, typer.Option("--tune", help="Search the hyper-parameters on the validation impressions.")
    ] = False,
    processes: Trainings = 1,
    as_json: AsJson = False,
) -> None:
    """FINDING's group models against vanilla federated learning and other baselines, cold readers apart."""
    from experiments.finding.run import run_finding
    from experiments.finding.study import FindingSizes

    with refusals():
        tables = run_finding(
            data=data,
            bases=models or ["small"],
            methods=methods or [],
            seeds=seeds,
            sizes=FindingSizes(rounds=rounds, cohort=cohort),
            tune=tune,
            processes=processes,
            console=says,
        )
    show(tables, as_json)


@evaluate_app.command("movielens")
def evaluate_movielens(
    data: Data = DATA,
    systems: Annotated[
        list[str] | None,
        typer.Option("--system", help="Part of a row's name; may be repeated; the whole table by default."),
    ] = None,
    builds: Annotated[int, typer.Option(min=1, max=100, help="Splits and trainings of each system.")] = 3,
    rounds: Annotated[int, typer.Option(min=1, help="Federated rounds of 100 users.")] = 100,
    validate: Annotated[bool, typer.Option("--validate", help="Ask for a part of train, not for test items.")] = False,
    gamma: Annotated[float | None, typer.Option(help="Sharpness of the softmax.")] = None,
    negatives: Annotated[int | None, typer.Option(help="Unseen films a pass.")] = None,
    server_rate: Annotated[float | None, typer.Option(help="Adam's peak rate at the server.")] = None,
    processes: Trainings = 1,
    out: Kept = None,
    as_json: AsJson = False,
) -> None:
    """FL-MV-DSSM on MovieLens-100K, warm and cold, beside its baselines and the paper's tables."""
    from experiments.movielens.run import run_movielens
    from experiments.movielens.study import MovieLensSettings
    from experiments.movielens.systems import Choices

    given: dict[str, Any] = {"gamma": gamma, "negatives": negatives, "server_rate": server_rate}
    with refusals():
        tables = run_movielens(
            data=data,
            systems=systems or [],
            builds=builds,
            settings=MovieLensSettings(rounds, validate),
            choices=Choices(rounds, **{name: value for name, value in given.items() if value is not None}),
            processes=processes,
            out=out,
            console=says,
        )
    show(tables, as_json)
