"""The command `ownfeed`. Each of its commands imports what it needs when it runs.

A command is its options and one call; those of rounds, keys and sources are in `backend/terminal`, the laboratory's in
`experiments/commands`.

Exit codes: 0 done; 1 refused or failed, with one line on standard error; 2 wrong usage; 130 interrupted.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from backend.news.sources import SOURCES
from backend.terminal.backup_commands import backup_app
from backend.terminal.feed_commands import feeds_app
from backend.terminal.key_commands import keys_app
from backend.terminal.options import BackendDir, BackendUrl, Pictures, Workers, chosen, says
from backend.terminal.round_commands import round_, rounds_app
from backend.terminal.source_commands import add_source_commands
from experiments.commands.bench import bench
from experiments.commands.evaluate import evaluate_app

if TYPE_CHECKING:
    from backend.local_processes import LocalPlan, LocalProcesses
    from device_app.settings import DeviceSettings

app = typer.Typer(
    help="Ownfeed: a news feed that learns from its reader without taking the reader's clicks.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
ingest_app = typer.Typer(help="Bring news into the backend's pool. Repeating it changes nothing.", no_args_is_help=True)
app.add_typer(ingest_app, name="ingest")
app.add_typer(evaluate_app, name="evaluate")
app.add_typer(rounds_app, name="rounds")
app.add_typer(keys_app, name="keys")
app.add_typer(backup_app, name="backup")
app.add_typer(feeds_app, name="feeds")


OURS = ("backend", "device_app", "models", "exporters", "experiments", "newsroom")
DeviceDir = Annotated[
    Path | None, typer.Option("--data-dir", help="Where profiles live; from the settings by default.")
]


@app.command()
def demo(
    data_dir: Annotated[Path | None, typer.Option(help="Folder for everything the demo keeps.")] = None,
    devices: Annotated[int, typer.Option(min=0, max=1_000, help="Simulated readers beside you.")] = 60,
    articles: Annotated[int, typer.Option(min=500, max=100_000, help="Articles of the generated newspaper.")] = 6_000,
    backend_port: Annotated[int, typer.Option(min=1, max=65_535)] = 8400,
    device_port: Annotated[int, typer.Option(min=1, max=65_535)] = 8401,
    pace: Annotated[float, typer.Option(min=0.1, max=1_000, help="The newspaper is so many times faster.")] = 1.0,
    index: Annotated[
        str | None,
        typer.Option(help="How the nearest news are found: auto (by default), basis, exact, ivf, fastscan."),
    ] = None,
    as_printed: Annotated[
        str | None,
        typer.Option(help="Run a paper's own system, at its price: uni_fedrec. It has a folder of its own by default."),
    ] = None,
) -> None:
    """Set up what a first feed needs, then run the backend, your own device and a fleet of simulated readers.

    Older stories and the papers' models are prepared meanwhile.
    """
    import platformdirs

    from backend.demo import DemoPlan, folder_name, start_demo, tell_progress
    from backend.progress import TerminalSteps

    folder = data_dir or platformdirs.user_data_path("ownfeed", appauthor=False) / folder_name(as_printed)
    plan = DemoPlan(
        folder.absolute(), backend_port, device_port, devices, articles, pace=pace, index=index, as_printed=as_printed
    )
    began = datetime.now(UTC)
    with ExitStack() as publishing, until_stopped(plan) as processes:
        running = start_demo(plan, processes, TerminalSteps())
        publishing.enter_context(running.newspaper.publishing())
        places = {"Your feed": running.feed_url, "In a browser": running.browser_url, "Console": running.console_url}
        tell_running(places | {"Logs": processes.log_dir})
        says.print(
            f"{devices} simulated readers read along. A training round opens from the console, or with\n\n"
            f"  ownfeed round --watch --data-dir {plan.backend_settings().data_dir}\n\n"
            "They take part in every round, even at the papers' noise, which counted honestly is no guarantee.\n"
            f"{plan.own_device}\n",
            markup=False,
            soft_wrap=True,
        )
        tell_progress(plan, processes, partial(says.print, markup=False, highlight=False, soft_wrap=True), began)


@app.command()
def read(
    sources: Annotated[
        list[str] | None,
        typer.Argument(help="OPML files and addresses of feeds, followed besides those that are; none: go on reading."),
    ] = None,
    data_dir: Annotated[Path | None, typer.Option(help="Folder for everything that is kept.")] = None,
    every: Annotated[
        float, typer.Option(min=2, max=24 * 60, help="New stories are here within so many minutes.")
    ] = 15.0,
    allow_network: Annotated[
        list[str] | None,
        typer.Option(help="A network that is not public and feeds may be fetched from all the same: 127.0.0.0/8."),
    ] = None,
    pictures: Pictures = None,
    backend_port: Annotated[int, typer.Option(min=1, max=65_535)] = 8400,
    device_port: Annotated[int, typer.Option("--port", "--device-port", min=1, max=65_535)] = 8401,
) -> None:
    """Read your own feeds: a backend and a device for you alone, on this machine. Nothing is reported to anybody."""
    from backend.own_feeds import ReaderPlan, reader_folder, start_reading, subscriptions
    from backend.progress import TerminalSteps

    folder = data_dir or reader_folder()
    plan = ReaderPlan(folder.absolute(), backend_port, device_port, every, tuple(allow_network or ()), pictures)
    wanted = subscriptions(sources or [])
    with until_stopped(plan) as processes:
        started = start_reading(plan, wanted, processes, TerminalSteps())
        for feed in started.feeds:
            if feed.error:
                says.print(f"  can't be read now: {feed.url}\n    {feed.error}", markup=False, soft_wrap=True)
        tell_running({"Your feed": started.feed_url, "Your feeds": started.console_url, "Logs": processes.log_dir})
        says.print(
            f"{len(started.feeds)} feeds are followed, {started.added} of them new. Only their publishers are asked, "
            "and who hosts the pictures of those that may show theirs, at the same pace whatever you read.",
            markup=False,
            soft_wrap=True,
        )


@app.command()
def serve(
    data_dir: BackendDir = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65_535)] = None,
    public: Annotated[
        bool,
        typer.Option("--public", help="For the internet: refuses to start, and says why, until it's fit for that."),
    ] = False,
    workers: Workers = None,
) -> None:
    """Run the backend: news pool, recall, training rounds, and at /reader/ the device for browsers."""
    from backend.progress import TerminalSteps
    from backend.public_face import require_public
    from backend.settings import load_settings
    from backend.worker_processes import serve_backend
    from device_app.private_files import keep_new_files_private, tighten
    from device_app.process import steady_heap

    steady_heap()

    keep_new_files_private()
    settings = load_settings(**chosen(data_dir=data_dir, host=host, port=port))
    if public:
        require_public(settings)
    tell_tightened(tighten(settings.data_dir), settings.data_dir)
    serve_backend(settings, workers, TerminalSteps())


@app.command()
def device(
    profile: Annotated[str | None, typer.Option(help="Whose device.")] = None,
    data_dir: DeviceDir = None,
    backend: BackendUrl = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on; keep it on this machine.")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65_535)] = None,
    restore_copy: Annotated[
        bool,
        typer.Option(
            "--restore-copy",
            help="First put the last copy in the place of a lost or damaged database, which is kept aside. All that "
            "may have been spent since counts as spent.",
        ),
    ] = False,
    anew: Annotated[
        bool,
        typer.Option(
            "--start-anew",
            help="First put an empty database in the place of a lost or damaged one, which is kept aside. What was "
            "read, and what was spent, is forgotten here: the backend may then be told again what it was told before.",
        ),
    ] = False,
) -> None:
    """Run one reader's own app and open its pages on this machine."""
    if restore_copy and anew:
        raise typer.BadParameter("choose one of --restore-copy and --start-anew", param_hint="--start-anew")
    from device_app.private_files import keep_new_files_private, tighten
    from device_app.process import freeze_gc, one_thread, steady_heap

    one_thread()
    steady_heap()
    keep_new_files_private()

    import uvicorn

    from backend.connections import ConnectionLimits, limited_http
    from backend.server import check_port
    from device_app.app import create_app
    from device_app.settings import DeviceSettings

    settings = DeviceSettings(**chosen(profile=profile, data_dir=data_dir, backend_url=backend, host=host, port=port))
    check_port(settings.host, settings.port)
    tell_tightened(tighten(settings.home), settings.home)
    if restore_copy or anew:
        put_right(settings, anew=anew)
    served = create_app(settings)
    link = served.state.page_key.link(settings.host)
    says.print(f"The feed of {settings.profile} opens with {link}", markup=False)
    says.print("Only who has this link can open it; this browser then remembers it.", markup=False)
    freeze_gc()
    # Whoever shares this machine may connect: no more than this stays open, and nothing without a whole request.
    http = limited_http(ConnectionLimits(connections=200, header_sec=10.0, unread_sec=20.0))
    uvicorn.run(
        served, host=settings.host, port=settings.port, http=http, ws="none", access_log=False, log_level="warning"
    )


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
    figures: Annotated[
        Path | None,
        typer.Option(dir_okay=False, help="A file for the console beside it: what simulated readers alone can tell."),
    ] = None,
) -> None:
    """Run many simulated readers, each a real device without a browser."""
    from device_app.private_files import keep_new_files_private, tighten
    from device_app.process import one_thread, steady_heap

    one_thread()
    steady_heap()
    keep_new_files_private()

    from device_app.fleet.faults import FaultRates
    from device_app.fleet.run import run_fleet
    from device_app.settings import DeviceSettings

    try:
        faults = FaultRates.parse(fault) if fault else None
    except ValueError as refused:
        raise typer.BadParameter(str(refused), param_hint="--fault") from None
    settings = DeviceSettings(**chosen(data_dir=data_dir, backend_url=backend))
    folder = settings.home.parent
    tell_tightened(tighten(folder), folder)
    stop_on_sigterm()
    run_fleet(
        settings,
        devices=devices,
        replay=replay,
        seed=seed,
        rounds=rounds,
        console=says,
        faults=faults,
        figures=figures,
    )


app.command("round")(round_)
app.command()(bench)


@ingest_app.callback()
def ingest() -> None:
    """Bring news into the backend's pool. Repeating it changes nothing."""
    from device_app.private_files import keep_new_files_private

    keep_new_files_private()


add_source_commands(ingest_app, SOURCES)


@contextmanager
def until_stopped(plan: LocalPlan) -> Iterator[LocalProcesses]:
    """Processes of one start, watched after the block until one of them ends or the user stops them; then all stop.

    Raises StartRefused if the start can't be made, or a process ended by itself.
    """
    from backend.local_processes import LocalProcesses, single_start, watch
    from device_app.private_files import keep_new_files_private, tighten

    keep_new_files_private()
    stop_on_sigterm()
    with single_start(plan):
        tell_tightened(tighten(plan.data_dir), plan.data_dir)
        processes = LocalProcesses(plan.data_dir / "logs")
        try:
            yield processes
            watch(processes)
        except KeyboardInterrupt:
            says.print("Stopping ...")
        finally:
            processes.stop()


def tell_running(places: Mapping[str, object]) -> None:
    """Say that it runs, and where what is to be found, by name."""
    says.print("\n[bold]Ownfeed runs.[/bold] Ctrl-C stops everything.\n")
    for name, place in places.items():
        says.print(f"  {name:<14}{place}", markup=False)
    says.print()


def tell_tightened(changed: int, folder: Path) -> None:
    """Say that a folder of an earlier version was open to other users of this machine, and no longer is."""
    if changed:
        says.print(
            f"Other users of this machine could open {changed} files or folders in {folder}; now only you can.",
            markup=False,
        )


def put_right(settings: DeviceSettings, *, anew: bool) -> None:
    """Replace a profile's lost and damaged databases by copies, or by empty ones, and say what was done."""
    from device_app.restoring import restore_copies, start_anew

    now = datetime.now(UTC)
    replaced = start_anew(settings, now) if anew else restore_copies(settings, now)
    if not replaced:
        says.print("No database of this profile is lost or damaged; it starts as it is.", markup=False)
    for one in replaced:
        by = "an empty one" if one.copied_at is None else f"the copy of {one.copied_at:%Y-%m-%d %H:%M} UTC"
        kept = "" if one.aside is None else f" The damaged file is kept as {one.aside.name}."
        says.print(f"{one.database}: {one.why}; now {by} is in its place.{kept}", markup=False)
        if one.copied_at is not None and one.database == settings.database:
            says.print("All that may have been spent since that day counts as spent, today included.", markup=False)


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
    if isinstance(failure, ModuleNotFoundError):
        return (failure.name or "").partition(".")[0] not in OURS
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
    if isinstance(failure, ModuleNotFoundError):
        return f"{failure} here. ownfeed[device] brings what a device needs, ownfeed[server] what every command does."
    return str(failure)


if __name__ == "__main__":
    main()
