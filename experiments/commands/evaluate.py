"""`ownfeed evaluate`: one command for each study that compares models on research data."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Literal

import typer

from experiments.commands.studies import DATA, AnyStudy, Data, Figures, Smoke, only_figures, study_command

Engine = Literal["here", "ray"]

evaluate_app = typer.Typer(help="Compare models on research data.", no_args_is_help=True)


@study_command(evaluate_app, "ranking", "out")
def ranking(
    data: Data = DATA,
    models: Annotated[
        list[str] | None,
        typer.Option("--model", help="Train models named like this; may be repeated. None by default."),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, max=100, help="Trainings of each model, with different seeds.")] = 1,
    steps: Annotated[int, typer.Option(min=1, help="Central training: steps of 64 samples.")] = 400,
    rounds: Annotated[int, typer.Option(min=1, help="Federated training: rounds of 50 readers.")] = 150,
    processes: Annotated[int, typer.Option(min=1, help="Processes that simulate devices.")] = 1,
    engine: Annotated[Engine, typer.Option(help="Simulate devices here or on a Ray cluster.")] = "here",
    cluster: Annotated[str | None, typer.Option(help="host:port of a Ray cluster; without it one starts.")] = None,
) -> AnyStudy:
    """Compare rankers on MIND's dev impressions: untrained, and trained centrally and federated."""
    from experiments.ranking.study import RankingStudy, chosen_models
    from experiments.ranking.training import RankingSettings

    sizes = RankingSettings(steps=steps, rounds=rounds, processes=processes, engine=engine, cluster=cluster)
    return RankingStudy(data, chosen_models(models or []), sizes, seeds)


@study_command(evaluate_app, "popularity", "processes")
def popularity(
    data: Data = DATA,
    draws: Annotated[int, typer.Option(min=1, max=100, help="Draws of the noise.")] = 3,
) -> AnyStudy:
    """Measure how much private counts improve ranking on MIND, by noise and by number of devices."""
    from experiments.ranking.popularity_curve import PopularityStudy

    return PopularityStudy(data, draws)


@study_command(evaluate_app, "real-clicks", "processes", "out")
def real_clicks(
    data: Data = DATA,
    seeds: Annotated[int, typer.Option(min=1, max=100, help="Trainings of each case, with different seeds.")] = 3,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of each training.")] = 60,
    cohort: Annotated[int, typer.Option(min=1, help="Readers a round.")] = 60,
    smoke: Annotated[bool, typer.Option("--smoke", help="Three small rounds on part of the data, as a test.")] = False,
) -> AnyStudy:
    """Train a small ranker on EB-NeRD's clicks: centrally, in rounds, with noise, and with private hourly counts."""
    from experiments.real_clicks.study import SMOKE, RealClicksSizes, RealClicksStudy

    sizes = SMOKE if smoke else RealClicksSizes(rounds, cohort, seeds)
    return RealClicksStudy(data, sizes)


@study_command(evaluate_app, "sections")
def sections(
    data: Data = DATA,
    seed: Annotated[int, typer.Option(help="Seed for drawing headlines.")] = 12,
) -> AnyStudy:
    """Compare sections assigned by vectors with the categories of 2,000 headlines and of MIND."""
    from experiments.bench.sections import SectionStudy

    return SectionStudy(data, seed)


@study_command(evaluate_app, "uni-fedrec", "processes", "out")
def uni_fedrec(
    data: Data = DATA,
    seeds: Annotated[int, typer.Option(min=1, help="Trainings with different seeds.")] = 3,
    smoke: Annotated[bool, typer.Option(help="One training of three rounds, in less than a minute.")] = False,
) -> AnyStudy:
    """Reproduce Uni-FedRec's tables and figures about recall: who finds what, and what a report reveals."""
    from experiments.papers.uni_fedrec.study import UniFedRecStudy

    return UniFedRecStudy(data, seeds, smoke)


@study_command(evaluate_app, "efficient-fedrec", "processes", "out")
def efficient_fedrec(
    data: Data = DATA,
    seeds: Annotated[int, typer.Option(min=1, max=100, help="Trainings of each point, with different seeds.")] = 2,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of each training.")] = 60,
    smoke: Smoke = False,
) -> AnyStudy:
    """Reproduce Efficient-FedRec's tables and figures: accuracy, costs, group size, and number of users."""
    from experiments.papers.efficient_fedrec.study import SMOKE, EfficientFedRecStudy, EfficientSizes

    return EfficientFedRecStudy(data, SMOKE if smoke else EfficientSizes(rounds, seeds))


@study_command(evaluate_app, "news-baselines", "processes", "out")
def news_baselines(
    data: Data = DATA,
    methods: Annotated[
        list[str] | None, typer.Option("--method", help="A method; may be repeated. All by default.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, max=100, help="Trainings of each method, with different seeds.")] = 3,
    steps: Annotated[int, typer.Option(min=1, help="Central training: steps of 64 samples.")] = 400,
    rounds: Annotated[int, typer.Option(min=1, help="Federated training: rounds.")] = 100,
    smoke: Smoke = False,
) -> AnyStudy:
    """Train the baselines of FedNewsRec's and Efficient-FedRec's tables 2 from words, sections and entities."""
    from experiments.papers.news_baselines.study import SMOKE, BaselineSizes, NewsBaselineStudy, chosen

    return NewsBaselineStudy(data, SMOKE if smoke else BaselineSizes(steps, rounds, seeds), chosen(methods or []))


@study_command(evaluate_app, "fednewsrec", "processes", "out")
def fednewsrec(
    data: Data = DATA,
    seeds: Annotated[int, typer.Option(min=1, max=100, help="Trainings of each point, with different seeds.")] = 2,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of each training.")] = 40,
    smoke: Smoke = False,
) -> AnyStudy:
    """Reproduce FedNewsRec's figures: number of users, noise, convergence, and the parts of the user model."""
    from experiments.papers.fednewsrec.study import SMOKE, FedNewsRecSizes, FedNewsRecStudy

    sizes = SMOKE if smoke else FedNewsRecSizes(rounds, seeds)
    return FedNewsRecStudy(data, sizes)


@study_command(evaluate_app, "reports")
def reports(
    data: Data = DATA,
    smoke: Annotated[bool, typer.Option(help="The smaller pool at one epsilon only, in about a minute.")] = False,
) -> AnyStudy:
    """Compare report mechanisms by epsilon in two pools of real articles, with lists that need no report."""
    from experiments.recall.report_worth import ReportStudy

    return ReportStudy(data, smoke)


@study_command(evaluate_app, "recall")
def recall(
    data: Data = DATA,
    steps: Annotated[int, typer.Option(min=1, help="Central training: steps of 64 samples.")] = 150,
    rounds: Annotated[int, typer.Option(min=1, help="Federated trainings: rounds.")] = 60,
    cohort: Annotated[int, typer.Option(min=1, help="Readers a round.")] = 50,
    seed: Annotated[int, typer.Option(help="Seed for batches, cohorts and negatives.")] = 0,
) -> AnyStudy:
    """Evaluate Uni-FedRec's recall model before and after training, with and without noise."""
    from experiments.recall.evaluate import RecallStudy
    from experiments.recall.training import RecallSizes

    sizes = RecallSizes(steps, rounds, cohort)
    return RecallStudy(data, sizes, seed)


@study_command(evaluate_app, "poisoning", "processes", "out")
def poisoning(
    rounds: Annotated[int, typer.Option(min=1, help="Rounds, each with a vote of the release gate.")] = 10,
    seeds: Annotated[int, typer.Option(min=1, max=100, help="Populations of readers.")] = 3,
) -> AnyStudy:
    """Measure what malicious clients among sixty devices cost the default ranker, by attack and kind of sum."""
    from experiments.attacks.study import PoisoningSizes, PoisoningStudy

    sizes = PoisoningSizes(rounds=rounds, seeds=seeds)
    return PoisoningStudy(sizes)


@study_command(evaluate_app, "codebook", "processes")
def codebook(
    data: Data = DATA,
    seeds: Annotated[int, typer.Option(min=1, max=100, help="Runs of each system, with different seeds.")] = 3,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of each.")] = 30,
) -> AnyStudy:
    """Compare report codebooks learned in rounds, exact or with noise, with the topics of the pool."""
    from experiments.recall.codebook_rounds import CodebookStudy

    return CodebookStudy(data, seeds, rounds)


@study_command(evaluate_app, "basis", "processes")
def basis(
    data: Data = DATA,
    seeds: Annotated[int, typer.Option(min=1, max=100, help="Runs of each system, with different seeds.")] = 3,
) -> AnyStudy:
    """Compare a basis for reports, trained in rounds and published by votes, with topics and k-means."""
    from experiments.recall.basis_rounds import BasisStudy

    return BasisStudy(data, seeds)


@study_command(evaluate_app, "finding", "processes", "out")
def finding(
    data: Data = DATA,
    models: Annotated[
        list[str] | None, typer.Option("--model", help="The ranker, small (default) or nrms; may be repeated.")
    ] = None,
    methods: Annotated[
        list[str] | None, typer.Option("--method", help="A method; may be repeated. All by default.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, max=100, help="Trainings of each method.")] = 3,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of each training.")] = 150,
    cohort: Annotated[int, typer.Option(min=1, help="Readers a round.")] = 50,
    tune: Annotated[
        bool, typer.Option("--tune", help="Search the hyper-parameters on the validation impressions.")
    ] = False,
    figures: Figures = False,
    smoke: Smoke = False,
) -> AnyStudy:
    """Compare FINDING's group models with vanilla federated learning and other baselines."""
    from experiments.papers.finding.figures import SMOKE, SMOKE_FORMS, FindingFigures
    from experiments.papers.finding.study import FindingComparison, FindingTuning, methods_by_base
    from experiments.papers.finding.training import FindingSizes

    named, sizes = methods_by_base(models or ["small"], methods or []), FindingSizes(rounds, cohort)
    if only_figures(figures, smoke):
        if smoke:
            return FindingFigures(data, {}, SMOKE, 1, SMOKE_FORMS)
        return FindingFigures(data, {}, sizes, seeds)
    return FindingTuning(data, named, sizes) if tune else FindingComparison(data, named, sizes, seeds)


@study_command(evaluate_app, "fl-mv-dssm", "processes", "out")
def fl_mv_dssm(
    data: Data = DATA,
    systems: Annotated[
        list[str] | None,
        typer.Option("--system", help="Rows whose name contains this; may be repeated. All by default."),
    ] = None,
    builds: Annotated[int, typer.Option(min=1, max=100, help="Trainings of each system, each on its own split.")] = 3,
    rounds: Annotated[int, typer.Option(min=1, help="Federated rounds of 100 users.")] = 100,
    figures: Figures = False,
    smoke: Smoke = False,
    validate: Annotated[bool, typer.Option("--validate", help="Evaluate on part of the training data.")] = False,
    gamma: Annotated[float | None, typer.Option(help="Sharpness of the softmax.")] = None,
    negatives: Annotated[int | None, typer.Option(help="Unseen films in each pass.")] = None,
    server_rate: Annotated[float | None, typer.Option(help="Peak learning rate of the server's Adam.")] = None,
) -> AnyStudy:
    """Compare FL-MV-DSSM with its baselines and the paper's figures on MovieLens-100K, warm and cold."""
    from experiments.papers.fl_mv_dssm.figures import MovieLensFigure
    from experiments.papers.fl_mv_dssm.rounds import Choices
    from experiments.papers.fl_mv_dssm.study import MovieLensStudy, wanted
    from experiments.papers.fl_mv_dssm.training import MovieLensSettings

    options: dict[str, Any] = {"gamma": gamma, "negatives": negatives, "server_rate": server_rate}
    choices = Choices(rounds, **{name: value for name, value in options.items() if value is not None})
    sizes = MovieLensSettings(rounds, validate)

    if only_figures(figures, smoke):
        if smoke:
            return MovieLensFigure(data, 1, replace(choices, rounds=2, cohort=5), ("FL-DSSM View-1",))
        return MovieLensFigure(data, builds, choices)
    return MovieLensStudy(data, wanted(systems or []), builds, sizes, choices)
