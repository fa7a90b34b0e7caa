"""Shows a running round in the operator's terminal: stages, survivors, bytes, seconds."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from protocol.formatting import size
from protocol.rounds import RoundStatus

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
