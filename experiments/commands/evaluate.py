"""`ownfeed evaluate`: one command for each study that compares models on research data."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Literal

import typer

from experiments.commands.studies import (
    DATA,
    AsJson,
    Data,
    Figures,
    KeptOption,
    Recorded,
    Smoke,
    Trainings,
    evaluate,
    only_figures,
)

Engine = Literal["here", "ray"]

evaluate_app = typer.Typer(help="Compare models on research data.", no_args_is_help=True)


@evaluate_app.command("ranking")
def evaluate_ranking(
    context: typer.Context,
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
    out: KeptOption = None,
    record: Recorded = False,
    as_json: AsJson = False,
) -> None:
    """Compare rankers on MIND's dev impressions: untrained, and trained centrally and federated."""
    from experiments.ranking.study import RankingStudy, chosen_models
    from experiments.ranking.training import RankingSettings

    def study() -> RankingStudy:
        sizes = RankingSettings(steps=steps, rounds=rounds, processes=processes, engine=engine, cluster=cluster)
        return RankingStudy(data, chosen_models(models or []), sizes, seeds)

    evaluate(context, study, as_json=as_json, record=record, out=out)


@evaluate_app.command("popularity")
def evaluate_popularity(
    context: typer.Context,
    data: Data = DATA,
    draws: Annotated[int, typer.Option(min=1, max=100, help="Draws of the noise.")] = 3,
    processes: Trainings = 1,
    record: Recorded = False,
    as_json: AsJson = False,
) -> None:
    """Measure how much private counts improve ranking on MIND, by noise and by number of devices."""
    from experiments.ranking.popularity_curve import PopularityStudy

    evaluate(context, lambda: PopularityStudy(data, draws), as_json=as_json, record=record, processes=processes)


@evaluate_app.command("real-clicks")
def evaluate_real_clicks(
    context: typer.Context,
    data: Data = DATA,
    seeds: Annotated[int, typer.Option(min=1, max=100, help="Trainings of each case, with different seeds.")] = 3,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of each training.")] = 60,
    cohort: Annotated[int, typer.Option(min=1, help="Readers a round.")] = 60,
    smoke: Annotated[bool, typer.Option("--smoke", help="Three small rounds on part of the data, as a test.")] = False,
    processes: Trainings = 1,
    out: KeptOption = None,
    record: Recorded = False,
    as_json: AsJson = False,
) -> None:
    """Train a small ranker on EB-NeRD's clicks: centrally, in rounds, with noise, and with private hourly counts."""
    from experiments.real_clicks.study import SMOKE, RealClicksSizes, RealClicksStudy

    sizes = SMOKE if smoke else RealClicksSizes(rounds, cohort, seeds)
    study = RealClicksStudy(data, sizes)
    evaluate(context, lambda: study, as_json=as_json, record=record, out=out, processes=processes)


@evaluate_app.command("sections")
def evaluate_sections(
    context: typer.Context,
    data: Data = DATA,
    seed: Annotated[int, typer.Option(help="Seed for drawing headlines.")] = 12,
    record: Recorded = False,
    as_json: AsJson = False,
) -> None:
    """Compare sections assigned by vectors with the categories of 2,000 headlines and of MIND."""
    from experiments.bench.sections import SectionStudy

    evaluate(context, lambda: SectionStudy(data, seed), as_json=as_json, record=record)


@evaluate_app.command("uni-fedrec")
def evaluate_uni_fedrec(
    context: typer.Context,
    data: Data = DATA,
    seeds: Annotated[int, typer.Option(min=1, help="Trainings with different seeds.")] = 3,
    smoke: Annotated[bool, typer.Option(help="One training of three rounds, in less than a minute.")] = False,
    processes: Trainings = 1,
    out: KeptOption = None,
    record: Recorded = False,
    as_json: AsJson = False,
) -> None:
    """Reproduce Uni-FedRec's tables and figures about recall: who finds what, and what a report reveals."""
    from experiments.papers.uni_fedrec.study import UniFedRecStudy

    def study() -> UniFedRecStudy:
        return UniFedRecStudy(data, seeds, smoke)

    evaluate(context, study, as_json=as_json, record=record, out=out, processes=processes)


@evaluate_app.command("efficient-fedrec")
def evaluate_efficient_fedrec(
    context: typer.Context,
    data: Data = DATA,
    groups: Annotated[int, typer.Option(min=1, help="Random groups of each size.")] = 200,
    out: KeptOption = None,
    record: Recorded = False,
    as_json: AsJson = False,
) -> None:
    """Reproduce how many news a group of Efficient-FedRec's readers asks for together, by its size."""
    from experiments.papers.efficient_fedrec.study import UnionStudy

    evaluate(context, lambda: UnionStudy(data, groups), as_json=as_json, record=record, out=out)


@evaluate_app.command("fednewsrec")
def evaluate_fednewsrec(
    context: typer.Context,
    data: Data = DATA,
    seeds: Annotated[int, typer.Option(min=1, max=100, help="Trainings of each point, with different seeds.")] = 2,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of each training.")] = 40,
    smoke: Smoke = False,
    processes: Trainings = 1,
    out: KeptOption = None,
    record: Recorded = False,
    as_json: AsJson = False,
) -> None:
    """Reproduce FedNewsRec's figures: number of users, noise, convergence, and the parts of the user model."""
    from experiments.papers.fednewsrec.study import SMOKE, FedNewsRecSizes, FedNewsRecStudy

    sizes = SMOKE if smoke else FedNewsRecSizes(rounds, seeds)
    evaluate(
        context, lambda: FedNewsRecStudy(data, sizes), as_json=as_json, record=record, out=out, processes=processes
    )


@evaluate_app.command("reports")
def evaluate_reports(
    context: typer.Context,
    data: Data = DATA,
    smoke: Annotated[bool, typer.Option(help="The smaller pool at one epsilon only, in about a minute.")] = False,
    record: Recorded = False,
    as_json: AsJson = False,
) -> None:
    """Compare report mechanisms by epsilon in two pools of real articles, beside lists that need no report."""
    from experiments.recall.report_worth import ReportStudy

    evaluate(context, lambda: ReportStudy(data, smoke), as_json=as_json, record=record)


@evaluate_app.command("recall")
def evaluate_recall(
    context: typer.Context,
    data: Data = DATA,
    steps: Annotated[int, typer.Option(min=1, help="Central training: steps of 64 samples.")] = 150,
    rounds: Annotated[int, typer.Option(min=1, help="Federated trainings: rounds.")] = 60,
    cohort: Annotated[int, typer.Option(min=1, help="Readers a round.")] = 50,
    seed: Annotated[int, typer.Option(help="Seed for batches, cohorts and negatives.")] = 0,
    record: Recorded = False,
    as_json: AsJson = False,
) -> None:
    """Evaluate Uni-FedRec's recall model before and after training, with and without noise."""
    from experiments.recall.evaluate import RecallStudy
    from experiments.recall.training import RecallSizes

    sizes = RecallSizes(steps, rounds, cohort)
    evaluate(context, lambda: RecallStudy(data, sizes, seed), as_json=as_json, record=record)


@evaluate_app.command("poisoning")
def evaluate_poisoning(
    context: typer.Context,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds, each with a vote of the release gate.")] = 10,
    seeds: Annotated[int, typer.Option(min=1, max=100, help="Populations of readers.")] = 3,
    processes: Trainings = 1,
    out: KeptOption = None,
    record: Recorded = False,
    as_json: AsJson = False,
) -> None:
    """Measure what malicious clients among sixty devices cost the default ranker, by attack and kind of sum."""
    from experiments.attacks.study import PoisoningSizes, PoisoningStudy

    sizes = PoisoningSizes(rounds=rounds, seeds=seeds)
    evaluate(context, lambda: PoisoningStudy(sizes), as_json=as_json, record=record, out=out, processes=processes)


@evaluate_app.command("codebook")
def evaluate_codebook(
    context: typer.Context,
    data: Data = DATA,
    seeds: Annotated[int, typer.Option(min=1, max=100, help="Runs of each system, with different seeds.")] = 3,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of each.")] = 30,
    processes: Trainings = 1,
    record: Recorded = False,
    as_json: AsJson = False,
) -> None:
    """Compare report codebooks learned in rounds, exact or with noise, with the topics of the pool."""
    from experiments.recall.codebook_rounds import CodebookStudy

    evaluate(context, lambda: CodebookStudy(data, seeds, rounds), as_json=as_json, record=record, processes=processes)


@evaluate_app.command("basis")
def evaluate_basis(
    context: typer.Context,
    data: Data = DATA,
    seeds: Annotated[int, typer.Option(min=1, max=100, help="Runs of each system, with different seeds.")] = 3,
    processes: Trainings = 1,
    record: Recorded = False,
    as_json: AsJson = False,
) -> None:
    """Compare a basis for reports, trained in rounds and published by votes, with topics and k-means."""
    from experiments.recall.basis_rounds import BasisStudy

    evaluate(context, lambda: BasisStudy(data, seeds), as_json=as_json, record=record, processes=processes)


@evaluate_app.command("finding")
def evaluate_finding(
    context: typer.Context,
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
    processes: Trainings = 1,
    out: KeptOption = None,
    record: Recorded = False,
    as_json: AsJson = False,
) -> None:
    """Compare FINDING's group models with vanilla federated learning and other baselines."""
    from experiments.papers.finding.figures import SMOKE, SMOKE_FORMS, FindingFigures
    from experiments.papers.finding.study import FindingComparison, FindingStudy, FindingTuning, methods_by_base
    from experiments.papers.finding.training import FindingSizes

    def study() -> FindingStudy:
        named = methods_by_base(models or ["small"], methods or [])
        if only_figures(figures, smoke):
            if smoke:
                return FindingFigures(data, {}, SMOKE, 1, SMOKE_FORMS)
            return FindingFigures(data, {}, FindingSizes(rounds, cohort), seeds)
        sizes = FindingSizes(rounds=rounds, cohort=cohort)
        return FindingTuning(data, named, sizes) if tune else FindingComparison(data, named, sizes, seeds)

    evaluate(context, study, as_json=as_json, record=record, out=out, processes=processes)


@evaluate_app.command("fl-mv-dssm")
def evaluate_fl_mv_dssm(
    context: typer.Context,
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
    processes: Trainings = 1,
    out: KeptOption = None,
    record: Recorded = False,
    as_json: AsJson = False,
) -> None:
    """Compare FL-MV-DSSM with its baselines and the paper's figures on MovieLens-100K, warm and cold."""
    from experiments.papers.fl_mv_dssm.figures import MovieLensFigure
    from experiments.papers.fl_mv_dssm.rounds import Choices
    from experiments.papers.fl_mv_dssm.study import MovieLensStudy, wanted
    from experiments.papers.fl_mv_dssm.training import MovieLensSettings

    given: dict[str, Any] = {"gamma": gamma, "negatives": negatives, "server_rate": server_rate}
    choices = Choices(rounds, **{name: value for name, value in given.items() if value is not None})
    sizes = MovieLensSettings(rounds, validate)

    def study() -> MovieLensFigure | MovieLensStudy:
        if only_figures(figures, smoke):
            if smoke:
                return MovieLensFigure(data, 1, replace(choices, rounds=2, cohort=5), ("FL-DSSM View-1",))
            return MovieLensFigure(data, builds, choices)
        return MovieLensStudy(data, wanted(systems or []), builds, sizes, choices)

    evaluate(
        context,
        study,
        as_json=as_json,
        record=record,
        out=out,
        processes=processes,
    )
