"""`ownfeed rounds`: which rounds there were, and when the next ones open. What a person sees is on standard error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from backend.operator import Operator

rounds_app = typer.Typer(help="List, cancel, pause and schedule training rounds.", no_args_is_help=True)

AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON on standard output.")]
BackendUrl = Annotated[str | None, typer.Option("--backend", help="The backend's address [from the settings].")]
DataDir = Annotated[Path | None, typer.Option("--data-dir", help="The backend's folder [from the settings].")]

_says = Console(stderr=True, highlight=False, soft_wrap=True)


@rounds_app.command("list")
def list_(backend: BackendUrl = None, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """The last hundred rounds, newest first, and the timetable."""
    operator = _operator(backend, data_dir)
    rounds, timings = operator.rounds(), operator.timetable()
    if as_json:
        shown = [one.model_dump(mode="json") for one in rounds]
        typer.echo(json.dumps({"rounds": shown, "timetable": timings}, indent=2))
        return
    table = Table(box=None, pad_edge=False)
    for column in ("round", "system", "state", "in", "opened", "published", "says"):
        table.add_column(column)
    for one in rounds:
        says = one.reason or one.says or ""
        opened = f"{one.opened_at:%Y-%m-%d %H:%M}"
        counts = f"{one.uploaded}/{one.cohort}"
        table.add_row(one.round, one.system, one.state, counts, opened, one.published or "", Text(says))
    _says.print(table)
    _says.print(_in_words(timings), markup=False)


@rounds_app.command()
def pause(backend: BackendUrl = None, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Open no round and give no places until `resume`. Devices that have their places go on."""
    _tell(_operator(backend, data_dir).pause(), as_json)


@rounds_app.command()
def resume(backend: BackendUrl = None, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Go on; what waited opens at once."""
    _tell(_operator(backend, data_dir).resume(), as_json)


@rounds_app.command()
def cancel(
    round_id: Annotated[str, typer.Argument(help="Of a round under way: round-12.")],
    backend: BackendUrl = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """End a round under way; its updates are thrown away, and nothing is opened."""
    status = _operator(backend, data_dir).cancel(round_id)
    if as_json:
        typer.echo(status.model_dump_json())
    else:
        _says.print(f"{status.round} {status.state}: {status.reason}", markup=False)


@rounds_app.command()
def schedule(
    every: Annotated[float | None, typer.Option(help="Minutes from one round to the next.")] = None,
    waiting: Annotated[int | None, typer.Option(help="Devices that must be waiting.")] = None,
    system: Annotated[str, typer.Option(help="What to do, and how.")] = "small_ranker_secure",
    cohort: Annotated[int, typer.Option(min=1, help="Updates wanted.")] = 60,
    cohort_minimum: Annotated[int, typer.Option(min=1, help="Below this a round fails.")] = 10,
    seconds: Annotated[float, typer.Option(min=1, help="Deadline of each round.")] = 60.0,
    backend: BackendUrl = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Open rounds every so many minutes, or when so many devices wait; with both, when both are true."""
    timings = _operator(backend, data_dir).schedule(
        system,
        cohort=cohort,
        cohort_minimum=min(cohort_minimum, cohort),
        seconds=seconds,
        every_minutes=every,
        waiting=waiting,
    )
    _tell(timings, as_json)


@rounds_app.command()
def unschedule(backend: BackendUrl = None, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Open no round by itself any more."""
    _tell(_operator(backend, data_dir).unschedule(), as_json)


def _operator(backend: str | None, data_dir: Path | None) -> Operator:
    from backend.operator import Operator
    from backend.settings import load_settings

    settings = load_settings(**({} if data_dir is None else {"data_dir": data_dir}))
    return Operator(backend or f"http://{settings.host}:{settings.port}", settings.admin_token_file)


def _tell(timings: dict[str, Any], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(timings, indent=2))
    else:
        _says.print(_in_words(timings), markup=False)


def _in_words(timings: dict[str, Any]) -> str:
    """What happens next, in a sentence or two."""
    plan, words = timings["schedule"], []
    if plan is not None:
        if plan["every_minutes"] is not None:
            words.append(f"every {plan['every_minutes']:g} minutes")
        if plan["waiting"] is not None:
            words.append(f"when {plan['waiting']} devices wait")
    opens = f"{plan['order']['system']} {' and '.join(words)}" if plan is not None else "none opens by itself"
    says = f"Rounds are {'paused' if timings['paused'] else 'on'}; {opens}."
    return says + (f" The last try: {timings['trouble']}" if timings["trouble"] else "")
