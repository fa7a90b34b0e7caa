"""The command `ownfeed`: the front door. Each command imports what it needs when it runs.

Exit codes: 0 done; 1 refused or failed, with one line on standard error; 2 wrong usage; 130 interrupted.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from backend.news.item import NewsItem
    from backend.news.pool import NewsPool
    from backend.news.report import IngestReport, Rejection
    from backend.operator import Operator
    from backend.progress import Steps
    from device_app.wire.rounds import RoundStatus

app = typer.Typer(
    help="Ownfeed: a news feed that learns from its reader without taking the reader's clicks.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
ingest_app = typer.Typer(help="Bring news into the backend's pool. Repeating it changes nothing.", no_args_is_help=True)
app.add_typer(ingest_app, name="ingest")
evaluate_app = typer.Typer(help="Compare models on research data.", no_args_is_help=True)
app.add_typer(evaluate_app, name="evaluate")

says = Console(stderr=True, highlight=False, soft_wrap=True)

AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON on standard output.")]
BackendDir = Annotated[Path | None, typer.Option("--data-dir", help="The backend's folder [from the settings].")]
DeviceDir = Annotated[Path | None, typer.Option("--data-dir", help="Where profiles live [from the settings].")]
BackendUrl = Annotated[str | None, typer.Option("--backend", help="The backend's address [from the settings].")]


class Bench(StrEnum):
    """What can be measured."""

    embed = "embed"
    search = "index"
    endpoint = "endpoint"
    recall = "recall"
    latency = "latency"
    round = "round"
    secagg = "secagg"
    efficient = "efficient"
    quality = "quality"
    replay = "replay"
    graphs = "graphs"
    paillier = "paillier"
    all = "all"


@app.command()
def demo(
    data_dir: Annotated[Path | None, typer.Option(help="Folder for everything the demo keeps.")] = None,
    devices: Annotated[int, typer.Option(min=0, max=1_000, help="Simulated readers beside you.")] = 60,
    articles: Annotated[int, typer.Option(min=500, max=100_000, help="Articles of the generated newspaper.")] = 6_000,
    backend_port: Annotated[int, typer.Option(min=1, max=65_535)] = 8400,
    device_port: Annotated[int, typer.Option(min=1, max=65_535)] = 8401,
) -> None:
    """Set up what is missing, then run the backend, your own device and a fleet of simulated readers."""
    import platformdirs

    from backend.demo import Crew, DemoPlan, single_demo, start_demo, watch
    from backend.progress import TerminalSteps

    folder = data_dir or platformdirs.user_data_path("ownfeed", appauthor=False) / "demo"
    plan = DemoPlan(folder.absolute(), backend_port, device_port, devices, articles)
    stop_on_sigterm()
    with single_demo(plan):
        crew = Crew(plan.data_dir / "logs")
        try:
            console_url = start_demo(plan, crew, TerminalSteps())
            says.print("\n[bold]Ownfeed runs.[/bold] Ctrl-C stops everything.\n")
            says.print(f"  Your feed   {plan.feed_url}", markup=False)
            says.print(f"  Console     {console_url}", markup=False)
            says.print(f"  Logs        {crew.log_dir}\n", markup=False)
            says.print(
                f"{devices} simulated readers read along. They and you train at the paper's noise, which, honestly\n"
                "counted, costs an epsilon of 4.9 million an upload: no guarantee. Your Training page has the switch."
            )
            watch(crew)
        except KeyboardInterrupt:
            says.print("Stopping ...")
        finally:
            crew.stop()


@app.command()
def serve(
    data_dir: BackendDir = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65_535)] = None,
) -> None:
    """Run the backend: news pool, recall and training rounds."""
    import uvicorn

    from backend.app import create_app
    from backend.prepare import prepare
    from backend.progress import TerminalSteps
    from backend.settings import load_settings

    settings = load_settings(**chosen(data_dir=data_dir, host=host, port=port))
    prepare(settings, TerminalSteps())
    check_port(settings.host, settings.port)
    uvicorn.run(create_app(settings), host=settings.host, port=settings.port, access_log=False, log_level="warning")


@app.command()
def device(
    profile: Annotated[str | None, typer.Option(help="Whose device.")] = None,
    data_dir: DeviceDir = None,
    backend: BackendUrl = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on; keep it on this machine.")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65_535)] = None,
) -> None:
    """Run one reader's own app and open its pages on this machine."""
    from device_app.process import one_thread, settle

    one_thread()

    import uvicorn

    from device_app.app import create_app
    from device_app.settings import DeviceSettings

    settings = DeviceSettings(**chosen(profile=profile, data_dir=data_dir, backend_url=backend, host=host, port=port))
    check_port(settings.host, settings.port)
    says.print(f"The feed of {settings.profile} is at http://{settings.host}:{settings.port}/")
    served = create_app(settings)
    settle()
    uvicorn.run(served, host=settings.host, port=settings.port, access_log=False, log_level="warning")


@app.command()
def fleet(
    devices: Annotated[int, typer.Option(min=1, max=10_000, help="How many readers.")] = 60,
    replay: Annotated[
        Path | None, typer.Option(exists=True, file_okay=False, help="A MIND folder: its readers' real histories.")
    ] = None,
    data_dir: DeviceDir = None,
    backend: BackendUrl = None,
    seed: Annotated[int, typer.Option(help="Of the simulated interests.")] = 7,
    rounds: Annotated[int | None, typer.Option(min=1, help="Stop after so many training rounds.")] = None,
    fault: Annotated[
        list[str] | None,
        typer.Option(help="A fault and its rate a device and round: dropout=0.1, straggler=, crash=, liar=."),
    ] = None,
) -> None:
    """Run many simulated readers, each a real device without a browser."""
    from device_app.process import one_thread

    one_thread()

    from device_app.fleet.faults import FaultRates
    from device_app.fleet.run import run_fleet
    from device_app.settings import DeviceSettings

    try:
        faults = FaultRates.parse(fault) if fault else None
    except ValueError as refused:
        raise typer.BadParameter(str(refused), param_hint="--fault") from None
    settings = DeviceSettings(**chosen(data_dir=data_dir, backend_url=backend))
    stop_on_sigterm()
    run_fleet(settings, devices=devices, replay=replay, seed=seed, rounds=rounds, console=says, faults=faults)


@app.command("round")
def round_(
    system: Annotated[
        str,
        typer.Option(help="What to do, and how: small_ranker_secure, uni_fedrec (recall), efficient_fedrec, ..."),
    ] = "small_ranker_secure",
    cohort: Annotated[int, typer.Option(min=1, help="Updates wanted; the round closes when it has them.")] = 60,
    cohort_minimum: Annotated[int, typer.Option(min=1, help="Below this the round fails and nothing is opened.")] = 10,
    seconds: Annotated[float, typer.Option(min=1, help="Deadline.")] = 60.0,
    watch: Annotated[
        bool, typer.Option("--watch", help="Show stages, survivors, bytes and seconds as they come.")
    ] = False,
    backend: BackendUrl = None,
    data_dir: BackendDir = None,
    as_json: AsJson = False,
) -> None:
    """Open one training round and follow it, and what it orders, until the last has ended."""
    from backend.operator import Operator
    from backend.settings import load_settings

    settings = load_settings(**chosen(data_dir=data_dir))
    operator = Operator(backend or f"http://{settings.host}:{settings.port}", settings.admin_token_file)
    following: RoundStatus | None = operator.open_round(
        system, cohort=cohort, cohort_minimum=min(cohort_minimum, cohort), seconds=seconds
    )
    while following is not None:
        status = _followed(operator, following, watch and not as_json, as_json)
        if as_json:
            typer.echo(status.model_dump_json())
        elif status.state == "applied":
            _tell_applied(status)
        if status.state == "failed":
            says.print(f"ownfeed: {status.round} failed: {status.reason}", markup=False, style="red")
            raise typer.Exit(1)
        following = operator.following(status)


def _followed(operator: Operator, status: RoundStatus, watch: bool, as_json: bool) -> RoundStatus:
    """The round's last status, shown until then."""
    if watch:
        from backend.watching import watched

        return watched(operator.follow(status), says)
    with steps(as_json).step(f"{status.round}: updates") as advance:
        for status in operator.follow(status):  # noqa: B020 - the last status is what counts
            advance(status.uploaded, status.cohort)
    return status


def _tell_applied(status: RoundStatus) -> None:
    took = (status.finished_at - status.opened_at).total_seconds() if status.finished_at else 0.0
    published = "nothing" if status.published is None else status.published
    says.print(
        f"{status.round} applied: {status.uploaded} updates, {status.received_bytes / 1e6:.1f} MB, {took:.1f} s; "
        f"{published} published."
    )
    if status.survivors is not None:
        says.print(_opened(status))
    if status.says is not None:
        says.print(status.says, markup=False)


def _opened(status: RoundStatus) -> str:
    """What the opened sum of a secure round was, and what it cost a device in it."""
    cost = (
        "no noise inside, so no epsilon bounds what it tells"
        if status.epsilon is None
        else f"epsilon {status.epsilon:.3g} at delta {status.delta:g} for each of them"
    )
    return f"Opened: the sum of {status.survivors} devices and nothing else; {cost}."


@ingest_app.command("newsroom")
def ingest_newsroom(
    articles: Annotated[int, typer.Option(min=1, max=100_000)] = 6_000,
    days: Annotated[int, typer.Option(min=1, max=60, help="Spread over so many days before now.")] = 14,
    seed: Annotated[int, typer.Option(help="The same seed writes the same paper.")] = 7,
    data_dir: BackendDir = None,
    as_json: AsJson = False,
) -> None:
    """Ownfeed's own generated newspaper."""
    from backend.news.sources.newsroom.press import newsroom

    take_in(newsroom(datetime.now(UTC), seed=seed, articles=articles, days=days), "newsroom", data_dir, as_json)


@ingest_app.command("rss")
def ingest_rss(
    sources: Annotated[list[str], typer.Argument(help="URLs or files of RSS or Atom feeds.")],
    data_dir: BackendDir = None,
    as_json: AsJson = False,
) -> None:
    """RSS or Atom, from URLs or files; a feed that has not changed is not read again."""
    from backend.news.errors import SourceError
    from backend.news.feeds import Feeds, follow

    pool, engine = open_pool(data_dir)
    refused = 0
    with steps(as_json).step("Reading feeds") as advance:
        for done, source in enumerate(sources, start=1):
            try:
                tell(follow(pool, Feeds(engine), source, now=datetime.now(UTC)), source, as_json)
            except SourceError as failed:  # the other sources are read all the same
                says.print(f"ownfeed: {failed}", markup=False, style="red")
                refused += 1
            advance(done, len(sources))
    if refused:
        raise typer.Exit(1)


@ingest_app.command("mind")
def ingest_mind(
    file: Annotated[Path, typer.Argument(help="MIND's news.tsv.")], data_dir: BackendDir = None, as_json: AsJson = False
) -> None:
    """The catalogue of Microsoft's MIND dataset."""
    from backend.news.sources.mind import read_mind

    take_in(read_mind(file), f"mind {file.name}", data_dir, as_json)


@ingest_app.command("jsonl")
def ingest_jsonl(
    file: Annotated[Path, typer.Argument(help="One JSON object a line: id, title, section, topic, published_at, ...")],
    data_dir: BackendDir = None,
    as_json: AsJson = False,
) -> None:
    """One news item as JSON a line."""
    from backend.news.sources.jsonl import read_jsonl

    take_in(read_jsonl(file), f"jsonl {file.name}", data_dir, as_json)


def open_pool(data_dir: Path | None) -> tuple[NewsPool, Engine]:
    """The news pool of a folder and its database, made if missing."""
    from backend.db.engine import migrate, open_engine
    from backend.news.pool import NewsPool
    from backend.settings import load_settings

    settings = load_settings(**chosen(data_dir=data_dir))
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    migrate(settings.database_url)
    engine = open_engine(settings.database_url)
    return NewsPool(engine), engine


def steps(as_json: bool) -> Steps:
    """Progress for a person, or none for a script."""
    from backend.progress import SilentSteps, TerminalSteps

    return SilentSteps() if as_json else TerminalSteps()


def take_in(rows: Iterable[NewsItem | Rejection], source: str, data_dir: Path | None, as_json: bool) -> None:
    """Ingest with a bar, print the report."""
    from backend.news.ingest import ingest

    pool, _ = open_pool(data_dir)
    with steps(as_json).step(f"Ingesting {source}") as advance:
        report = ingest(pool, rows, source=source, progress=lambda done, total: advance(done, total))
    tell(report, source, as_json)


def tell(report: IngestReport | None, source: str, as_json: bool) -> None:
    """Print what became of a source; None: its server says nothing has changed."""
    if as_json:
        typer.echo(json.dumps({"source": source, "report": report.to_json() if report else None}))
    else:
        typer.echo(f"{source}: {report if report else 'not changed since the last time'}")


@app.command()
def bench(
    what: Annotated[Bench, typer.Argument(help="What to measure.")] = Bench.all,
    data: Annotated[
        Path, typer.Option(help="The research data; what needs it says so where it is missing.", envvar="OWNFEED_DATA")
    ] = Path("../shared/data"),
    as_json: AsJson = False,
) -> None:
    """Measure; every figure comes with its reference from the same run."""
    from experiments.bench.run import run_benches

    names = [each.value for each in Bench if each is not Bench.all] if what is Bench.all else [what.value]
    results = run_benches(names, data=data, console=says)
    if as_json:
        typer.echo(json.dumps(results, indent=2))


@evaluate_app.command("ranking")
def evaluate_ranking(
    data: Annotated[Path, typer.Option(help="The research data.", envvar="OWNFEED_DATA")] = Path("../shared/data"),
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
    from experiments.bench.table import DataMissing
    from experiments.ranking.run import run_ranking
    from experiments.ranking.study import Settings

    settings = Settings(steps=steps, rounds=rounds, processes=processes)
    try:
        tables = run_ranking(data=data, models=models or [], seeds=seeds, settings=settings, out=out, console=says)
    except (DataMissing, ValueError) as refused:
        says.print(f"ownfeed: {refused}", markup=False, style="red")
        raise typer.Exit(1) from None
    if as_json:
        typer.echo(json.dumps([table.as_json() for table in tables], indent=2))
    else:
        for table in tables:
            table.show(Console(highlight=False))


@evaluate_app.command("popularity")
def evaluate_popularity(
    data: Annotated[Path, typer.Option(help="The research data.", envvar="OWNFEED_DATA")] = Path("../shared/data"),
    draws: Annotated[int, typer.Option(min=1, max=100, help="Draws of the noise.")] = 3,
    as_json: AsJson = False,
) -> None:
    """Private counts of displays and clicks on MIND's dev impressions, by how much noise is in their sum."""
    from experiments.bench.table import DataMissing
    from experiments.ranking.popularity import run_popularity

    try:
        table = run_popularity(data=data, draws=draws, console=says)
    except (DataMissing, ValueError) as refused:
        says.print(f"ownfeed: {refused}", markup=False, style="red")
        raise typer.Exit(1) from None
    if as_json:
        typer.echo(json.dumps(table.as_json(), indent=2))
    else:
        table.show(Console(highlight=False))


@evaluate_app.command("finding")
def evaluate_finding(
    data: Annotated[Path, typer.Option(help="The research data.", envvar="OWNFEED_DATA")] = Path("../shared/data"),
    models: Annotated[
        list[str] | None, typer.Option("--model", help="The ranker, small or nrms; may be repeated [small].")
    ] = None,
    methods: Annotated[
        list[str] | None, typer.Option("--method", help="A method's name; may be repeated [all of them].")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, max=100, help="Trainings of each method.")] = 3,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of each training.")] = 150,
    cohort: Annotated[int, typer.Option(min=1, help="Readers a round.")] = 50,
    tune: Annotated[
        bool, typer.Option("--tune", help="Search the hyper-parameters on the validation impressions.")
    ] = False,
    processes: Annotated[int, typer.Option(min=1, help="Trainings at the same time.")] = 1,
    as_json: AsJson = False,
) -> None:
    """FINDING's group models against vanilla federated learning and other baselines, cold readers apart."""
    from experiments.bench.table import DataMissing
    from experiments.finding.run import run_finding
    from experiments.finding.study import Sizes

    try:
        tables = run_finding(
            data=data,
            bases=models or ["small"],
            methods=methods or [],
            seeds=seeds,
            sizes=Sizes(rounds=rounds, cohort=cohort),
            tune=tune,
            processes=processes,
            console=says,
        )
    except (DataMissing, ValueError) as refused:
        says.print(f"ownfeed: {refused}", markup=False, style="red")
        raise typer.Exit(1) from None
    if as_json:
        typer.echo(json.dumps([table.as_json() for table in tables], indent=2))
    else:
        for table in tables:
            table.show(Console(highlight=False))


@evaluate_app.command("movielens")
def evaluate_movielens(
    data: Annotated[Path, typer.Option(help="The research data.", envvar="OWNFEED_DATA")] = Path("../shared/data"),
    systems: Annotated[
        list[str] | None, typer.Option("--system", help="Part of a row's name; may be repeated [the whole table].")
    ] = None,
    builds: Annotated[int, typer.Option(min=1, max=100, help="Splits and trainings of each system.")] = 3,
    rounds: Annotated[int, typer.Option(min=1, help="Federated rounds of 100 users.")] = 100,
    validate: Annotated[bool, typer.Option("--validate", help="Ask for a part of train, not for test items.")] = False,
    gamma: Annotated[float | None, typer.Option(help="Sharpness of the softmax.")] = None,
    negatives: Annotated[int | None, typer.Option(help="Unseen films a pass.")] = None,
    server_rate: Annotated[float | None, typer.Option(help="Adam's peak rate at the server.")] = None,
    processes: Annotated[int, typer.Option(min=1, help="Trainings at the same time.")] = 1,
    out: Annotated[Path | None, typer.Option(help="JSON file of results; trainings it holds are not repeated.")] = None,
    as_json: AsJson = False,
) -> None:
    """FL-MV-DSSM on MovieLens-100K, warm and cold, beside its baselines and the paper's tables."""
    from experiments.bench.table import DataMissing
    from experiments.movielens.run import run_movielens
    from experiments.movielens.study import Settings
    from experiments.movielens.systems import Choices

    try:
        tables = run_movielens(
            data=data,
            systems=systems or [],
            builds=builds,
            settings=Settings(rounds, validate),
            choices=Choices(rounds, **chosen(gamma=gamma, negatives=negatives, server_rate=server_rate)),
            processes=processes,
            out=out,
            console=says,
        )
    except (DataMissing, ValueError) as refused:
        says.print(f"ownfeed: {refused}", markup=False, style="red")
        raise typer.Exit(1) from None
    if as_json:
        typer.echo(json.dumps([table.as_json() for table in tables], indent=2))
    else:
        for table in tables:
            table.show(Console(highlight=False))


def chosen(**options: Any) -> dict[str, Any]:
    """The options that were given; the rest is left to the settings."""
    return {name: value for name, value in options.items() if value is not None}


def check_port(host: str, port: int) -> None:
    """Raise OSError with one plain line if the port is taken."""
    import socket

    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as taken:
            raise OSError(
                f"{host}:{port} can't be listened on ({taken.strerror}); choose another with --port."
            ) from None


def stop_on_sigterm() -> None:
    """End on SIGTERM as on Ctrl-C."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)


def expected(failure: BaseException) -> bool:
    """Whether a failure is one a user can act on; anything else is a bug and keeps its traceback."""
    from pydantic import ValidationError

    from device_app.errors import DeviceError

    kinds: tuple[type[BaseException], ...] = (DeviceError, OSError, ValidationError)
    if "backend.errors" in sys.modules:  # what was never imported can't have been raised
        kinds = (*kinds, sys.modules["backend.errors"].OwnfeedError)
    return isinstance(failure, kinds)


def main() -> None:
    """Run the command; expected failures are one line and exit code 1."""
    try:
        app()
    except Exception as failure:
        if not expected(failure):
            raise
        says.print(f"ownfeed: {in_one_line(failure)}", markup=False, style="red")
        sys.exit(1)


def in_one_line(failure: Exception) -> str:
    """The failure for a person: a refused setting by name and limit, anything else in its own words."""
    from pydantic import ValidationError

    if isinstance(failure, ValidationError):
        first = failure.errors(include_url=False, include_input=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return str(failure)


if __name__ == "__main__":
    main()
