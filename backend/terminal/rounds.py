"""`ownfeed round`: follows a round, and the rounds it requests, to their end."""

from __future__ import annotations

import typer
from rich.console import Console

from backend.operations.admin_client import Operator
from backend.server.progress import steps
from backend.terminal.round_progress import watched
from protocol.formatting import size
from protocol.rounds import QueuedRound, RoundStatus


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
