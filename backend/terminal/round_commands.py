"""The commands `ownfeed round` and `ownfeed rounds`: options and one call each, which imports what it needs."""

from typing import Annotated

import typer

from backend.terminal.options import AsJson, BackendDir, BackendUrl, operator, says

rounds_app = typer.Typer(help="List, cancel, pause and schedule training rounds.", no_args_is_help=True)
CohortMinimum = Annotated[
    int | None,
    typer.Option(
        min=1, help="Below this a round fails, and nothing is opened. By default 10, or all of a smaller cohort."
    ),
]

ProtectionOption = Annotated[
    str | None,
    typer.Option(
        "--protection",
        help="Such as local, secure or exact; the error for another name lists the system's. By default its usual one.",
    ),
]
AggregationOption = Annotated[
    str | None,
    typer.Option("--aggregation", help="mean, median, trimmed or huber. By default the usual one of the protection."),
]


def round_(
    system: Annotated[
        str,
        typer.Argument(help="What to train: small_ranker, nrms, codebook, ...; or a preset, a paper's configuration."),
    ] = "small_ranker",
    protection: ProtectionOption = None,
    aggregation: AggregationOption = None,
    cohort: Annotated[
        int | None,
        typer.Option(min=1, help="Updates wanted; the round closes when it has them. 60, or what the system says."),
    ] = None,
    participation: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="In its place the share of the devices that wait: 0.02, as Uni-FedRec has it."),
    ] = None,
    cohort_minimum: CohortMinimum = None,
    seconds: Annotated[float, typer.Option(min=1, help="Deadline.")] = 60.0,
    watch: Annotated[
        bool, typer.Option("--watch", help="Show stages, survivors, bytes and seconds as they come.")
    ] = False,
    wait: Annotated[
        float,
        typer.Option(min=0, help="Seconds to wait in the queue, where other rounds change the same; then it is left."),
    ] = 600.0,
    backend: BackendUrl = None,
    data_dir: BackendDir = None,
    as_json: AsJson = False,
) -> None:
    """Open one training round and follow it, and the rounds it requests, until the last has ended."""
    from backend.terminal.rounds import follow_all, waits_words

    client = operator(backend, data_dir)
    opened = client.open_round(
        system,
        protection=protection,
        aggregation=aggregation,
        cohort=cohort,
        participation=participation,
        cohort_minimum=cohort_minimum if cohort is None or cohort_minimum is None else min(cohort_minimum, cohort),
        seconds=seconds,
        turn_sec=wait,
        waits=lambda queued: says.print(waits_words(queued), markup=False),
    )
    if not follow_all(client, opened, watch=watch, as_json=as_json, console=says):
        raise typer.Exit(1)


@rounds_app.command("list")
def list_(backend: BackendUrl = None, data_dir: BackendDir = None, as_json: AsJson = False) -> None:
    """List the last hundred rounds, newest first, and the schedule."""
    from backend.terminal.rounds import show_rounds

    show_rounds(operator(backend, data_dir), as_json, says)


@rounds_app.command()
def pause(backend: BackendUrl = None, data_dir: BackendDir = None, as_json: AsJson = False) -> None:
    """Open no round and give no places until `resume`. Devices that have places continue."""
    from backend.terminal.rounds import show_schedule

    show_schedule(operator(backend, data_dir).pause(), as_json, says)


@rounds_app.command()
def resume(backend: BackendUrl = None, data_dir: BackendDir = None, as_json: AsJson = False) -> None:
    """Let rounds open again; waiting ones open at once."""
    from backend.terminal.rounds import show_schedule

    show_schedule(operator(backend, data_dir).resume(), as_json, says)


@rounds_app.command()
def cancel(
    round_id: Annotated[str, typer.Argument(help="Of a round under way, round-12, or its number in the queue, 3.")],
    backend: BackendUrl = None,
    data_dir: BackendDir = None,
    as_json: AsJson = False,
) -> None:
    """Cancel a round in progress: its updates are discarded and nothing is opened. Or remove one from the queue."""
    from backend.terminal.rounds import show_cancelled

    client = operator(backend, data_dir)
    if round_id.isdecimal():
        show_cancelled(client.take_out(int(round_id)), as_json, says)
    else:
        show_cancelled(client.cancel(round_id), as_json, says)


@rounds_app.command()
def schedule(
    every: Annotated[float | None, typer.Option(help="Minutes from one round to the next.")] = None,
    waiting: Annotated[int | None, typer.Option(help="Devices that must be waiting.")] = None,
    system: Annotated[str, typer.Option(help="What to train; as of `ownfeed round`.")] = "small_ranker",
    protection: ProtectionOption = None,
    aggregation: AggregationOption = None,
    cohort: Annotated[int, typer.Option(min=1, help="Updates wanted.")] = 60,
    cohort_minimum: CohortMinimum = None,
    seconds: Annotated[float, typer.Option(min=1, help="Deadline of each round.")] = 60.0,
    backend: BackendUrl = None,
    data_dir: BackendDir = None,
    as_json: AsJson = False,
) -> None:
    """Open rounds at an interval, or when enough devices wait; with both options, when both hold."""
    from backend.terminal.rounds import show_schedule

    status = operator(backend, data_dir).schedule(
        system,
        protection=protection,
        aggregation=aggregation,
        cohort=cohort,
        cohort_minimum=None if cohort_minimum is None else min(cohort_minimum, cohort),
        seconds=seconds,
        every_minutes=every,
        waiting=waiting,
    )
    show_schedule(status, as_json, says)


@rounds_app.command()
def unschedule(backend: BackendUrl = None, data_dir: BackendDir = None, as_json: AsJson = False) -> None:
    """Stop opening rounds automatically."""
    from backend.terminal.rounds import show_schedule

    show_schedule(operator(backend, data_dir).unschedule(), as_json, says)
