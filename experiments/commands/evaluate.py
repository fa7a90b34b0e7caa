"""`ownfeed evaluate`: a command for each study that compares models on research data."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from experiments.commands.studies import DATA, AsJson, Data, KeptOption, Recorded, Trainings, evaluate

Engine = Literal["here", "ray"]

evaluate_app = typer.Typer(help="Compare models on research data.", no_args_is_help=True)


@evaluate_app.command("ranking")
def evaluate_ranking(
    context: typer.Context,
    data: Data = DATA,
    models: Annotated[
        list[str] | None,
        typer.Option("--model", help="Part of a name; may be repeated. Without it nothing is trained."),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, max=100, help="Trainings of each model.")] = 1,
    steps: Annotated[int, typer.Option(min=1, help="Central training: steps of 64 samples.")] = 400,
    rounds: Annotated[int, typer.Option(min=1, help="Federated training: rounds of 50 readers.")] = 150,
    processes: Annotated[int, typer.Option(min=1, help="Processes that simulate devices.")] = 1,
    engine: Annotated[Engine, typer.Option(help="What simulates devices: processes here, or a Ray cluster.")] = "here",
    cluster: Annotated[str | None, typer.Option(help="The Ray cluster's host:port; without, one starts.")] = None,
    out: KeptOption = None,
    record: Recorded = False,
    as_json: AsJson = False,
) -> None:
    """Rankers on MIND's dev impressions, trained centrally and federated, with the published figures beside them."""
    from experiments.ranking.study import RankingStudy, chosen_models
    from experiments.ranking.training import RankingSettings

    def study() -> RankingStudy:
        sizes = RankingSettings(steps=steps, rounds=rounds, processes=processes, engine=engine, cluster=cluster)
        return RankingStudy(data, chosen_models(models or []), sizes, seeds)

    evaluate(
        context,
        study,
        as_json=as_json,
        record=record,
        out=out,
    )


@evaluate_app.command("popularity")
def evaluate_popularity(
    context: typer.Context,
    data: Data = DATA,
    draws: Annotated[int, typer.Option(min=1, max=100, help="Draws of the noise.")] = 3,
    processes: Trainings = 1,
    record: Recorded = False,
    as_json: AsJson = False,
) -> None:
    """Private counts of displays and clicks on MIND's dev impressions, by noise in their sum and by devices counted."""
    from experiments.ranking.popularity_curve import PopularityStudy

    evaluate(context, lambda: PopularityStudy(data, draws), as_json=as_json, record=record, processes=processes)


@evaluate_app.command("sections")
def evaluate_sections(
    context: typer.Context,
    data: Data = DATA,
    seed: Annotated[int, typer.Option(help="Of the headlines drawn.")] = 12,
    record: Recorded = False,
    as_json: AsJson = False,
) -> None:
    """Sections of stories by their vectors, against the categories of 2,000 headlines and of MIND's news."""
    from experiments.quality.sections import SectionStudy

    evaluate(context, lambda: SectionStudy(data, seed), as_json=as_json, record=record)


@evaluate_app.command("recall")
def evaluate_recall(
    context: typer.Context,
    data: Data = DATA,
    steps: Annotated[int, typer.Option(min=1, help="Central training: steps of 64 samples.")] = 150,
    rounds: Annotated[int, typer.Option(min=1, help="Federated trainings: rounds.")] = 60,
    cohort: Annotated[int, typer.Option(min=1, help="Readers a round.")] = 50,
    seed: Annotated[int, typer.Option(help="Of batches, cohorts and negatives.")] = 0,
    record: Recorded = False,
    as_json: AsJson = False,
) -> None:
    """Uni-FedRec's recall model by its unified score: before and after training, with and without noise."""
    from experiments.recall.evaluate import RecallStudy
    from experiments.recall.training import RecallSizes

    sizes = RecallSizes(steps, rounds, cohort)
    evaluate(context, lambda: RecallStudy(data, sizes, seed), as_json=as_json, record=record)


@evaluate_app.command("poisoning")
def evaluate_poisoning(
    context: typer.Context,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds, each followed by its gate.")] = 10,
    seeds: Annotated[int, typer.Option(min=1, max=100, help="Populations of readers.")] = 3,
    processes: Trainings = 1,
    out: KeptOption = None,
    record: Recorded = False,
    as_json: AsJson = False,
) -> None:
    """Liars among sixty devices: the default ranker's AUC beside rounds without, by attack and by form of the sum."""
    from experiments.poisoning.study import PoisoningSizes, PoisoningStudy

    sizes = PoisoningSizes(rounds=rounds, seeds=seeds)
    evaluate(context, lambda: PoisoningStudy(sizes), as_json=as_json, record=record, out=out, processes=processes)


@evaluate_app.command("codebook")
def evaluate_codebook(
    context: typer.Context,
    data: Data = DATA,
    seeds: Annotated[int, typer.Option(min=1, max=100, help="Starts and draws of each system.")] = 3,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of each.")] = 30,
    processes: Trainings = 1,
    record: Recorded = False,
    as_json: AsJson = False,
) -> None:
    """Codebooks of reports learned in rounds, exact and under noise, against topics of the pool."""
    from experiments.recall.codebook_rounds import CodebookStudy

    evaluate(context, lambda: CodebookStudy(data, seeds, rounds), as_json=as_json, record=record, processes=processes)


@evaluate_app.command("basis")
def evaluate_basis(
    context: typer.Context,
    data: Data = DATA,
    seeds: Annotated[int, typer.Option(min=1, max=100, help="Starts and draws of each system.")] = 3,
    processes: Trainings = 1,
    record: Recorded = False,
    as_json: AsJson = False,
) -> None:
    """The basis that reports name, trained in rounds and published by votes, against topics and k-means of readers."""
    from experiments.recall.basis_rounds import BasisStudy

    evaluate(context, lambda: BasisStudy(data, seeds), as_json=as_json, record=record, processes=processes)


@evaluate_app.command("finding")
def evaluate_finding(
    context: typer.Context,
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
    out: KeptOption = None,
    record: Recorded = False,
    as_json: AsJson = False,
) -> None:
    """FINDING's group models against vanilla federated learning and other baselines, cold readers apart."""
    from experiments.finding.study import FindingComparison, FindingStudy, FindingTuning, methods_by_base
    from experiments.finding.training import FindingSizes

    def study() -> FindingStudy:
        named = methods_by_base(models or ["small"], methods or [])
        sizes = FindingSizes(rounds=rounds, cohort=cohort)
        return FindingTuning(data, named, sizes) if tune else FindingComparison(data, named, sizes, seeds)

    evaluate(context, study, as_json=as_json, record=record, out=out, processes=processes)


@evaluate_app.command("movielens")
def evaluate_movielens(
    context: typer.Context,
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
    out: KeptOption = None,
    record: Recorded = False,
    as_json: AsJson = False,
) -> None:
    """FL-MV-DSSM on MovieLens-100K, warm and cold, beside its baselines and the paper's tables."""
    from experiments.movielens.study import MovieLensStudy, wanted
    from experiments.movielens.systems import Choices
    from experiments.movielens.training import MovieLensSettings

    given: dict[str, Any] = {"gamma": gamma, "negatives": negatives, "server_rate": server_rate}
    choices = Choices(rounds, **{name: value for name, value in given.items() if value is not None})
    sizes = MovieLensSettings(rounds, validate)
    evaluate(
        context,
        lambda: MovieLensStudy(data, wanted(systems or []), builds, sizes, choices),
        as_json=as_json,
        record=record,
        out=out,
        processes=processes,
    )
