"""`ownfeed rounds`: the last rounds and the schedule, for a person or as JSON for a script."""

from __future__ import annotations

import json
from typing import Any

import typer
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from backend.operations.admin_client import Operator
from backend.terminal.rounds import waits_words, why_failed
from protocol.rounds import QueuedRound, RoundStatus

NO_WIDTH = 100_000
"""Width in characters: more than any table of rounds has."""


def show_rounds(operator: Operator, as_json: bool, console: Console) -> None:
    """Print the last rounds, newest first, and the schedule. Raises OperatorRefused."""
    rounds, queue, status = operator.rounds(), operator.queue(), operator.round_schedule()
    if as_json:
        shown = [one.model_dump(mode="json") for one in rounds]
        waits = [one.model_dump(mode="json") for one in queue]
        typer.echo(json.dumps({"rounds": shown, "queue": waits, "timetable": status}, indent=2))
        return
    table = Table(box=None, pad_edge=False)
    for column in ("round", "system", "state", "in", "opened", "published", "says"):
        table.add_column(column)
    for one in rounds:
        words = one.reason or one.summary or ""
        opened = f"{one.opened_at:%Y-%m-%d %H:%M}"
        counts = f"{one.uploaded}/{one.cohort}"
        table.add_row(one.round, one.system, one.state, counts, opened, one.published or "", Text(words))
    _print_whole(console, table)
    for each in queue:
        console.print(waits_words(each), markup=False)
    console.print(_in_words(status), markup=False)


def _print_whole(console: Console, table: Table) -> None:
    """Print a complete table: a terminal wraps long cells; a pipe has no width, and gets one line per row."""
    if console.is_terminal:
        console.print(table, soft_wrap=False)
        return
    widest = Measurement.get(console, console.options.update(width=NO_WIDTH), table).maximum
    Console(file=console.file, width=widest, highlight=False).print(table)


def show_schedule(status: dict[str, Any], as_json: bool, console: Console) -> None:
    """Print the current schedule."""
    if as_json:
        typer.echo(json.dumps(status, indent=2))
    else:
        console.print(_in_words(status), markup=False)


def show_cancelled(status: RoundStatus | QueuedRound, as_json: bool, console: Console) -> None:
    """Print how a cancelled round ended, or that it no longer waits."""
    if as_json:
        typer.echo(status.model_dump_json())
    elif isinstance(status, QueuedRound):
        console.print(f"{status.system} is out of the queue: {status.reason}.", markup=False)
    else:
        console.print(f"{status.round} {status.state}: {why_failed(status)}", markup=False)


def _in_words(status: dict[str, Any]) -> str:
    """What happens next, in a sentence or two."""
    plan, words = status["schedule"], []
    if plan is not None:
        if plan["every_minutes"] is not None:
            words.append(f"every {plan['every_minutes']:g} minutes")
        if plan["waiting"] is not None:
            words.append(f"when {plan['waiting']} devices wait")
    opens = f"{plan['order']['system']} {' and '.join(words)}" if plan is not None else "none opens by itself"
    says = f"Rounds are {'paused' if status['paused'] else 'on'}; {opens}."
    return says + (f" The last try: {status['trouble']}" if status["trouble"] else "")
