"""What `ownfeed round` and `ownfeed rounds` print, for a person or as JSON for a script.

The first follows a round, and the rounds it requests, to their end: stages, survivors, bytes, seconds. The second shows
the last rounds and the schedule.
"""

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from backend.operations.admin_client import Operator
from backend.server.progress import steps
from protocol.formatting import size
from protocol.rounds import QueuedRound, RoundStatus

PLAIN_STAGES = (("open", "places offered"), ("updates", "updates coming in"))
SUM_STAGES = (
    ("keys", "keys advertised"),
    ("shares", "shares of keys exchanged"),
    ("masked", "masked vectors added"),
    ("agree", "survivors signed for"),
    ("unmask", "sum opened"),
)
ENDED = ("applied", "failed")
REFRESH_PER_SEC = 5


class RoundProgress:
    """What is shown of one round; `seen` records each status, and when each stage was first seen."""

    def __init__(self) -> None:
        self._entered: dict[str, datetime] = {}
        self._last: RoundStatus | None = None

    def seen(self, status: RoundStatus, now: datetime) -> None:
        """Record a status."""
        state = "keys" if status.state == "open" and status.stages == "sum" else status.state
        self._entered.setdefault(state, now)
        self._last = status

    def shown(self, now: datetime) -> RenderableType:
        """The stages, each with its seconds so far, and the round's figures.

        A stage counts as done once it is followed by any state except failure.
        """
        status = self._last
        if status is None:
            return Text("")
        stages = Table(box=None, pad_edge=False, show_header=False)
        for name, words in SUM_STAGES if status.stages == "sum" else PLAIN_STAGES:
            entered = self._entered.get(name)
            if entered is None:
                if status.state not in ENDED and name != "agree":
                    stages.add_row(Text("·", style="dim"), Text(words, style="dim"), "")
                continue
            later = {state: at for state, at in self._entered.items() if at > entered}
            seconds = (min(later.values(), default=now) - entered).total_seconds()
            if later.keys() - {"failed"}:
                mark = Text("✓", style="green")
            else:
                mark = Text("✗", style="red") if later else Text("›", style="bold")
            stages.add_row(mark, words, f"{seconds:.1f} s")
        return Group(Text(f"{status.round} · {status.system}", style="bold"), stages, self._figures(status, now))

    def _figures(self, status: RoundStatus, now: datetime) -> Text:
        took = ((status.finished_at or now) - status.opened_at).total_seconds()
        if status.survivors is None:
            survivors = ""
        elif status.survivors < status.uploaded:  # of the smallest group, if the cohort is summed in several
            survivors = f", in groups of at least {status.survivors}"
        else:
            survivors = f", {status.survivors} survivors"
        return Text(
            f"{status.joined} joined, {status.uploaded} of {status.cohort} in (at least {status.cohort_minimum})"
            f"{survivors}, {size(status.received_bytes)}, {took:.1f} s, {status.state}"
        )


def watched(statuses: Iterable[RoundStatus], console: Console) -> RoundStatus:
    """Show a round until it ends; return its last status. Raises what the statuses raise."""
    watch, last = RoundProgress(), None

    class _Now:
        def __rich__(self) -> RenderableType:
            return watch.shown(datetime.now(UTC))

    with Live(_Now(), console=console, refresh_per_second=REFRESH_PER_SEC, transient=False):
        for last in statuses:
            watch.seen(last, datetime.now(UTC))
    if not console.is_terminal:
        console.line()  # rich ends the last line on a terminal only
    assert last is not None, "a round that is followed has a status"
    return last


def follow_all(operator: Operator, opened: RoundStatus, *, watch: bool, as_json: bool, console: Console) -> bool:
    """Follow a round and those it requests until the last has ended.

    Return whether that one was applied.

    It requests the next stage of its system, or a retry after its members made it fail. Each end is a line: JSON on
    standard output, or text on `console`. Raises OperatorRefused.
    """
    following: RoundStatus | None = opened
    while following is not None:
        status = _followed(operator, following, watch=watch, as_json=as_json, console=console)
        if as_json:
            typer.echo(status.model_dump_json())
        elif status.state == "applied":
            _tell_applied(status, console)
        if status.state == "failed":
            console.print(f"ownfeed: {status.round} failed: {why_failed(status)}", markup=False, style="red")
        following = operator.following(status)
    return status.state == "applied"


def waits_words(queued: QueuedRound) -> str:
    """A text on a round's place in the queue, and what it waits for."""
    for_whom = f" for {queued.waits_for}, which changes the same" if queued.waits_for else ""
    if queued.devices is not None:
        for_whom = f" for devices, of which about {queued.devices} of {queued.cohort_minimum} have shown up"
    return (
        f"{queued.system} waits{for_whom}: number {queued.place} in the queue. "
        f"`ownfeed rounds cancel {queued.number}` takes it out."
    )


def why_failed(status: RoundStatus) -> str:
    """A text on why a round failed, and what follows, as far as it is known."""
    words = [one for one in (status.reason, status.summary) if one]
    return " ".join(words) or "the server gives no reason"


def _followed(operator: Operator, status: RoundStatus, *, watch: bool, as_json: bool, console: Console) -> RoundStatus:
    """Follow the round, showing it if asked; return its last status."""
    if watch and not as_json:
        return watched(operator.follow(status), console)
    with steps(silent=as_json).step(f"{status.round}: updates") as advance:
        for status in operator.follow(status):  # noqa: B020 - the last status is what counts
            advance(status.uploaded, status.cohort)
    return status


def _tell_applied(status: RoundStatus, console: Console) -> None:
    took = (status.finished_at - status.opened_at).total_seconds() if status.finished_at else 0.0
    published = "nothing" if status.published is None else status.published
    console.print(
        f"{status.round} applied: {status.uploaded} updates, {size(status.received_bytes)}, {took:.1f} s; "
        f"{published} published."
    )
    if status.survivors is not None:
        console.print(_opened(status))
    if status.summary is not None:
        console.print(status.summary, markup=False)


def _opened(status: RoundStatus) -> str:
    """A text on the opened sum of a secure round, and its cost to a device in it."""
    cost = (
        "no noise inside, so no epsilon bounds what it reveals"
        if status.epsilon is None
        else f"epsilon {status.epsilon:.3g} at delta {status.delta:g} for each of them"
    )
    if (status.survivors or 0) < status.uploaded:
        return f"Opened: sums of groups of at least {status.survivors} devices and nothing else; {cost}."
    return f"Opened: the sum of {status.survivors} devices and nothing else; {cost}."


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
    _print_unwrapped(console, table)
    for each in queue:
        console.print(waits_words(each), markup=False)
    console.print(_in_words(status), markup=False)


def _print_unwrapped(console: Console, table: Table) -> None:
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
