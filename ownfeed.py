"""The command `ownfeed`. Each subcommand imports what it needs when it runs.

A subcommand is its options and one call. Those for rounds, keys and sources are in `backend/terminal`, those for
experiments in `experiments/commands`.

Exit codes: 0 done; 1 refused or failed, with one line on standard error; 2 wrong usage; 130 interrupted.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from backend.news.sources import SOURCES
from backend.terminal.backup_commands import backup_app
from backend.terminal.feed_commands import feeds_app
from backend.terminal.keys import keys_app
from backend.terminal.options import BackendDir, BackendUrl, Pictures, Workers, chosen, says
from backend.terminal.round_commands import round_, rounds_app
from backend.terminal.source_commands import add_source_commands
from experiments.commands.bench import bench
from experiments.commands.evaluate import evaluate_app

if TYPE_CHECKING:
    from backend.server.local_processes import LocalPlan, LocalProcesses
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


DEVICE_CONNECTIONS = 2_000
"""Most simultaneous connections to the reader's own pages, if the process may open enough files."""
LAN_PASSWORD_CHARS = 8
"""Enough, since guesses are limited to 60 an hour."""
OURS = ("backend", "device_app", "models", "exporters", "experiments", "newsroom")
EXTRAS = {
    **dict.fromkeys(("torch", "transformers", "onnx", "onnxscript"), "train"),
    **dict.fromkeys(("fsspec", "s3fs"), "storage"),
    "gmpy2": "he",
    "ray": "ray",
    "flwr": "flower",
}
"""The extra of pyproject.toml that has a library."""
DeviceDir = Annotated[
    Path | None, typer.Option("--data-dir", help="Folder of the profiles; by default from the settings.")
]


@app.command()
def demo(
    data_dir: Annotated[Path | None, typer.Option(help="Folder for all data of the demo.")] = None,
    devices: Annotated[int, typer.Option(min=0, max=1_000, help="Simulated readers beside you.")] = 60,
    articles: Annotated[int, typer.Option(min=500, max=100_000, help="Articles of the generated newspaper.")] = 6_000,
    backend_port: Annotated[int, typer.Option(min=1, max=65_535)] = 8400,
    device_port: Annotated[int, typer.Option(min=1, max=65_535)] = 8401,
    pace: Annotated[
        float, typer.Option(min=0.1, max=1_000, help="Speed of the newspaper, as a multiple of real time.")
    ] = 1.0,
    index: Annotated[
        str | None,
        typer.Option(help="Index for reports of scores: auto (by default), basis, exact, ivf, fastscan."),
    ] = None,
    as_published: Annotated[
        str | None,
        typer.Option(
            help="Run a paper's own system, with its privacy cost: uni_fedrec. Uses its own folder by default."
        ),
    ] = None,
) -> None:
    """Set up what a first feed needs, then run the backend, your own device and a fleet of simulated readers.

    Older stories and the papers' models are prepared in the background.
    """
    import platformdirs

    from backend.demo import DemoPlan, folder_name, print_progress, start_demo
    from backend.server.progress import TerminalSteps

    folder = data_dir or platformdirs.user_data_path("ownfeed", appauthor=False) / folder_name(as_published)
    plan = DemoPlan(
        folder.absolute(),
        backend_port,
        device_port,
        devices,
        articles,
        pace=pace,
        index=index,
        as_published=as_published,
    )
    began = datetime.now(UTC)
    with ExitStack() as publishing, until_stopped(plan) as processes:
        running = start_demo(plan, processes, TerminalSteps())
        publishing.enter_context(running.newspaper.publishing())
        places = {"Your feed": running.feed_url, "In a browser": running.browser_url, "Console": running.console_url}
        print_links(places | {"Logs": processes.log_dir})
        says.print(
            f"{devices} simulated readers are running. Start a training round in the console, or with\n\n"
            f"  ownfeed round --watch --data-dir {plan.backend_settings().data_dir}\n\n"
            "They take part in every round, even with the papers' noise, which is too weak to guarantee privacy.\n"
            f"{plan.own_device}\n{plan.left_out}",
            markup=False,
            soft_wrap=True,
        )
        print_progress(plan, processes, partial(says.print, markup=False, highlight=False, soft_wrap=True), began)


@app.command()
def read(
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            help="OPML files, and addresses of feeds, sites, channels or profiles to follow in addition. "
            "Without any, continue with the feeds followed so far."
        ),
    ] = None,
    data_dir: Annotated[Path | None, typer.Option(help="Folder for all data.")] = None,
    every: Annotated[
        float | None,
        typer.Option(
            min=2,
            max=24 * 60,
            help="Minutes between checks of each feed. By default a feed is checked as often as it publishes, "
            "from every 15 minutes to once a day.",
        ),
    ] = None,
    allow_network: Annotated[
        list[str] | None,
        typer.Option(help="A private network that feeds may be fetched from, such as 127.0.0.0/8."),
    ] = None,
    pictures: Pictures = None,
    backend_port: Annotated[int, typer.Option(min=1, max=65_535)] = 8400,
    device_port: Annotated[int, typer.Option("--port", "--device-port", min=1, max=65_535)] = 8401,
    lan: Annotated[
        bool,
        typer.Option("--lan", help="Also serve the pages on the home network, over TLS and with a password."),
    ] = False,
    lan_address: Annotated[
        str | None, typer.Option(help="This machine's address on the home network; detected by default.")
    ] = None,
    lan_port: Annotated[int, typer.Option(min=1, max=65_535)] = 8443,
    new_password: Annotated[
        bool, typer.Option("--new-password", help="With --lan: set a new password, which signs out all browsers.")
    ] = False,
) -> None:
    """Read your own feeds: a backend and a device for you alone, on this machine.

    Nothing is reported to anyone.
    """
    from backend.news.public_addresses import networks
    from backend.server.home_network import home_address
    from backend.server.progress import TerminalSteps
    from backend.settings import load_settings
    from backend.setup.own_feeds import ReaderPlan, reader_folder, start_reading
    from backend.terminal.feed_sources import named_feeds, print_refused

    folder = data_dir or reader_folder()
    plan = ReaderPlan(folder.absolute(), backend_port, device_port, every, tuple(allow_network or ()), pictures)
    named = named_feeds(sources or [], allowed=networks((*load_settings().feed_networks, *plan.networks)))
    print_refused(named)
    if lan:
        plan = replace(plan, lan=f"{home_address(lan_address)}:{lan_port}")
        choose_lan_password(plan.profile_dir, change=new_password)
    with until_stopped(plan) as processes:
        started = start_reading(plan, named.feeds, processes, TerminalSteps())
        print_links({"Your feed": started.feed_url, "Your feeds": started.console_url, "Logs": processes.log_dir})
        if plan.lan is not None:
            print_lan_access(plan.lan, plan.profile_dir)
        says.print(
            f"You follow {len(started.feeds)} feeds, {started.added} of them new. Requests go only to their "
            "publishers and to the hosts of allowed pictures, at times that don't depend on what you read.",
            markup=False,
            soft_wrap=True,
        )


def choose_lan_password(folder: Path, *, change: bool) -> None:
    """Ask for the home network's password if there is none or `change` is set. Raises BadParameter."""
    from device_app.pages.lan import PASSWORD_FILE
    from device_app.pages.passwords import PasswordFile

    kept = PasswordFile(folder / PASSWORD_FILE)
    if kept.is_set() and not change:
        return
    password = typer.prompt("Password for your pages on the home network", hide_input=True, confirmation_prompt=True)
    if len(password) < LAN_PASSWORD_CHARS:
        raise typer.BadParameter(f"the password must have at least {LAN_PASSWORD_CHARS} characters", param_hint="--lan")
    kept.set(password)


def print_lan_access(address: str, folder: Path) -> None:
    """Print how to open the pages on the home network: address, QR code, the certificate's fingerprint."""
    import segno

    from backend.server.home_network import own_certificate

    url = f"https://{address}/"
    says.print(f"  On your phone {url}\n", markup=False)
    segno.make(url, error="m").terminal(compact=True)
    fingerprint = own_certificate(folder, address.rpartition(":")[0]).fingerprint
    says.print(
        f"\nYour phone warns about the certificate, which this device made itself. Compare the SHA-256 fingerprint:\n"
        f"  {fingerprint}\n"
        f"To install the page as an app, first install {url}ownfeed.crt on the phone. It is valid for this address "
        "only.\n",
        markup=False,
        emoji=False,  # ":CD:" in a fingerprint is not one
        soft_wrap=True,
    )


@app.command()
def serve(
    data_dir: BackendDir = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65_535)] = None,
    public: Annotated[
        bool,
        typer.Option(
            "--public", help="Check that the settings are safe for the internet; otherwise refuse to start and say why."
        ),
    ] = False,
    workers: Workers = None,
) -> None:
    """Run the backend: article pool, recall, training rounds, and the device for browsers at /reader/."""
    from backend.operations.worker_processes import serve_backend
    from backend.server.progress import TerminalSteps
    from backend.server.public_port import require_public
    from backend.settings import load_settings
    from device_app.process import steady_heap
    from protocol.private_files import keep_new_files_private, tighten

    steady_heap()

    keep_new_files_private()
    settings = load_settings(**chosen(data_dir=data_dir, host=host, port=port))
    if public:
        require_public(settings)
    print_tightened(tighten(settings.data_dir), settings.data_dir)
    serve_backend(settings, workers, TerminalSteps())


@app.command()
def device(
    profile: Annotated[str | None, typer.Option(help="Name of the reader's profile.")] = None,
    data_dir: DeviceDir = None,
    backend: BackendUrl = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on; keep it on this machine.")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65_535)] = None,
    restore_copy: Annotated[
        bool,
        typer.Option(
            "--restore-copy",
            help="Before starting, replace a lost or damaged database with its last copy; the damaged file is kept. "
            "Any budget that may have been spent since counts as spent.",
        ),
    ] = False,
    anew: Annotated[
        bool,
        typer.Option(
            "--start-anew",
            help="Before starting, replace a lost or damaged database with an empty one; the damaged file is kept. "
            "The record of what was read and spent is lost: reports may then reveal more than the budgets allow.",
        ),
    ] = False,
) -> None:
    """Run one reader's device and serve its pages on this machine."""
    if restore_copy and anew:
        raise typer.BadParameter("give either --restore-copy or --start-anew", param_hint="--start-anew")
    from device_app.process import freeze_gc, one_thread, steady_heap
    from protocol.private_files import keep_new_files_private, tighten

    one_thread()
    steady_heap()
    keep_new_files_private()

    import uvicorn

    from backend.server.http_server import HEAD_LIMIT_BYTES, check_port, connections_limit, open_files_limit
    from device_app.app import create_app
    from device_app.settings import DeviceSettings

    settings = DeviceSettings(**chosen(profile=profile, data_dir=data_dir, backend_url=backend, host=host, port=port))
    check_port(settings.host, settings.port)
    print_tightened(tighten(settings.home), settings.home)
    if restore_copy or anew:
        repair(settings, with_empty=anew)
    served = create_app(settings)
    link = served.state.page_key.link(settings.host)
    says.print(f"The feed of {settings.profile} opens with {link}", markup=False)
    says.print("Keep this link private: whoever has it can open the feed. Your browser remembers it.", markup=False)
    freeze_gc()
    # Other users of this machine may connect: h11 limits the size of headers, and the limit on connections leaves files
    # for the database.
    limits: dict[str, Any] = {
        "http": "h11",
        "h11_max_incomplete_event_size": HEAD_LIMIT_BYTES,
        "limit_concurrency": connections_limit(DEVICE_CONNECTIONS, open_files_limit()),
        "ws": "none",
        "access_log": False,
        "log_level": "error",
    }
    if settings.lan is not None:
        from backend.server.home_network import own_certificate, serve_beside
        from device_app.pages.lan import LanRequests

        address, _, lan_port = settings.lan.rpartition(":")
        check_port(address, int(lan_port))
        certificate = own_certificate(settings.home, address)
        serve_beside(LanRequests(served), address, int(lan_port), certificate, server_header=False, **limits)
    uvicorn.run(served, host=settings.host, port=settings.port, **limits)


@app.command()
def fleet(
    devices: Annotated[int, typer.Option(min=1, max=10_000, help="Number of readers.")] = 60,
    replay: Annotated[
        Path | None,
        typer.Option(exists=True, file_okay=False, help="A MIND folder, whose readers' histories are replayed."),
    ] = None,
    data_dir: DeviceDir = None,
    backend: BackendUrl = None,
    seed: Annotated[int, typer.Option(help="Seed of the simulated interests.")] = 7,
    rounds: Annotated[int | None, typer.Option(min=1, help="Stop after this many training rounds.")] = None,
    fault: Annotated[
        list[str] | None,
        typer.Option(help="A fault and its rate per device and round: dropout=0.1, straggler=, crash=, malicious=."),
    ] = None,
    figures: Annotated[
        Path | None,
        typer.Option(
            dir_okay=False, help="File of figures that only simulated readers can report; the console shows it."
        ),
    ] = None,
) -> None:
    """Run many simulated readers, each a real device without a browser."""
    from device_app.process import one_thread, steady_heap
    from protocol.private_files import keep_new_files_private, tighten

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
    print_tightened(tighten(folder), folder)
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
    """Add articles to the backend's pool. Repeating a command changes nothing."""
    from protocol.private_files import keep_new_files_private

    keep_new_files_private()


add_source_commands(ingest_app, SOURCES)


@contextmanager
def until_stopped(plan: LocalPlan) -> Iterator[LocalProcesses]:
    """Yield the processes of one start; after the block, watch them until one ends or Ctrl-C.

    All processes are stopped at the end. Raises StartRefused if the start fails or a process ends unexpectedly.
    """
    from backend.server.local_processes import LocalProcesses, single_start, watch
    from protocol.private_files import keep_new_files_private, tighten

    keep_new_files_private()
    stop_on_sigterm()
    with single_start(plan):
        print_tightened(tighten(plan.data_dir), plan.data_dir)
        processes = LocalProcesses(plan.data_dir / "logs")
        try:
            yield processes
            watch(processes)
        except KeyboardInterrupt:
            says.print("Stopping ...")
        finally:
            processes.stop()


def print_links(places: Mapping[str, object]) -> None:
    """Print that Ownfeed is running, with its links and folders."""
    says.print("\n[bold]Ownfeed is running.[/bold] Ctrl-C stops everything.\n")
    for name, place in places.items():
        says.print(f"  {name:<14}{place}", markup=False)
    says.print()


def print_tightened(changed: int, folder: Path) -> None:
    """Print that other users could open files or folders here, and that they no longer can."""
    if changed:
        says.print(
            f"Other users of this machine could open {changed} files or folders in {folder}; now only you can.",
            markup=False,
        )


def repair(settings: DeviceSettings, *, with_empty: bool) -> None:
    """Replace a profile's lost and damaged databases, and print what was done."""
    from device_app.restoring import restore_copies, start_anew

    now = datetime.now(UTC)
    replaced = start_anew(settings, now) if with_empty else restore_copies(settings, now)
    if not replaced:
        says.print("No database of this profile is lost or damaged; nothing was replaced.", markup=False)
    for one in replaced:
        by = "an empty one" if one.copied_at is None else f"the copy of {one.copied_at:%Y-%m-%d %H:%M} UTC"
        kept = "" if one.aside is None else f" The damaged file is kept as {one.aside.name}."
        says.print(f"{one.database}: {one.why}; replaced with {by}.{kept}", markup=False)
        if one.copied_at is not None and one.database == settings.database:
            says.print(
                "Any budget that may have been spent from that day up to and including today counts as spent.",
                markup=False,
            )


def stop_on_sigterm() -> None:
    """Treat SIGTERM like Ctrl-C."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)


def expected(failure: BaseException) -> bool:
    """Whether the user can act on a failure; any other failure is a bug and keeps its traceback."""
    from pydantic import ValidationError

    from device_app.errors import DeviceError

    kinds: tuple[type[BaseException], ...] = (DeviceError, OSError, ValidationError)
    if isinstance(failure, ModuleNotFoundError):
        return (failure.name or "").partition(".")[0] not in OURS
    if "backend.errors" in sys.modules:  # an error of a module that was never imported can't have been raised
        kinds = (*kinds, sys.modules["backend.errors"].OwnfeedError)
    return isinstance(failure, kinds)


def main() -> None:
    """Run the command; an expected failure prints one line and exits with code 1."""
    try:
        app()
    except Exception as failure:
        if not expected(failure):
            raise
        says.print(f"ownfeed: {in_one_line(failure)}", markup=False, style="red")
        sys.exit(1)


def in_one_line(failure: Exception) -> str:
    """The failure as one line for the user: a refused setting by name and limit, any other failure by its message."""
    from pydantic import ValidationError

    if isinstance(failure, ValidationError):
        from device_app.settings import DeviceSettings
        from protocol.settings_file import described

        return ": ".join(described(failure, DeviceSettings))
    if isinstance(failure, ModuleNotFoundError):
        extra = EXTRAS.get((failure.name or "").partition(".")[0])
        return f"{failure} here: pip install " + ("ownfeed." if extra is None else f"'ownfeed[{extra}]'.")
    return str(failure)


if __name__ == "__main__":
    main()
