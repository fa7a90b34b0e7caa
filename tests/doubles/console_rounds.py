"""Stand-ins for the console's services about rounds, which record what was requested."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from backend.federation.accounting import Spending, SpentRound
from backend.federation.errors import RoundImpossible, RoundQueueFull, UnknownRound
from backend.federation.rounds.records import CheckIns
from backend.federation.rounds.scheduling import Schedule, ScheduleStatus
from backend.federation.rounds.selection import AddressRules, ClientAddresses, PollCounter
from backend.federation.strategies.grouped import GroupMoves
from backend.federation.strategies.release_gate import Score
from backend.federation.strategies.strategy import RoundRequest
from backend.setup.backfill import BackfillTask
from protocol.rounds import QueuedRound, RoundStatus

NOW = datetime.now(UTC)


@dataclass
class StandInScheduler:
    """Records what the forms request."""

    paused: bool = False
    schedule: Schedule | None = None

    def status(self) -> ScheduleStatus:
        """Return the current schedule."""
        return ScheduleStatus(self.paused, self.schedule, None, None)

    def pause(self) -> ScheduleStatus:
        """Record the request."""
        self.paused = True
        return self.status()

    def resume(self) -> ScheduleStatus:
        """Record the request."""
        self.paused = False
        return self.status()

    def set(self, schedule: Schedule | None) -> ScheduleStatus:
        """Record the request."""
        self.schedule = schedule
        return self.status()


@dataclass
class StandInQueue:
    """One round waits behind round-8, and one could not open."""

    asked: list[RoundRequest] = field(
        default_factory=lambda: [RoundRequest("fednewsrec_user/local/mean", 60, 10, 60.0)]
    )
    out: list[int] = field(default_factory=list)
    limit: int = 16

    def add(self, order: RoundRequest) -> QueuedRound:
        """Record the request."""
        if len(self.asked) >= self.limit:
            raise RoundQueueFull(self.limit)
        self.asked.append(order)
        return self.get(len(self.asked))

    def get(self, number: int) -> QueuedRound:
        """Return the waiting round."""
        order = self.asked[number - 1]
        return QueuedRound(
            number=number, system=order.system, cohort=order.cohort, cohort_minimum=order.cohort_minimum,
            seconds=order.seconds, queued_at=NOW, place=number, waits_for="round-8",
        )  # fmt: skip

    def waiting(self) -> list[QueuedRound]:
        """Return all requested rounds that were not removed."""
        return [self.get(number) for number in range(1, 1 + len(self.asked)) if number not in self.out]

    def never_opened(self) -> list[QueuedRound]:
        """Return one that could not run when its time came."""
        words = "Release r4 has no trainable model 'ranker.naml' of architecture 'naml'."
        return [
            self.get(1).model_copy(
                update={"system": "naml/local/mean", "place": None, "waits_for": None, "reason": words}
            )
        ]

    def give_up(self, number: int, reason: str) -> QueuedRound:
        """Record the request."""
        self.out.append(number)
        return self.get(number).model_copy(update={"reason": reason})


@dataclass
class StandInCoordinator:
    """One round under way and two that ended."""

    under_way: bool = True
    opened: list[RoundRequest] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)

    polls: PollCounter = field(default_factory=lambda: PollCounter(lambda: NOW))
    scheduler: StandInScheduler = field(default_factory=lambda: StandInScheduler())
    queue: StandInQueue = field(default_factory=lambda: StandInQueue())

    def _status(self, number: int, state: Any, reason: str | None = None) -> RoundStatus:
        opened = NOW - timedelta(minutes=(8 - number) * 30, seconds=8)
        return RoundStatus(
            round=f"round-{number}", system="uni_fedrec", state=state, reason=reason,
            release=f"r{number - 4}", published=f"r{number - 3}" if state == "applied" else None,
            cohort=60, cohort_minimum=40, joined=60, uploaded={"applied": 60, "failed": 11}.get(state, 23),
            received_bytes=22_540_112, opened_at=opened,
            closes_at=opened + timedelta(seconds=60),
            finished_at=opened + timedelta(seconds=11) if state in ("applied", "failed") else None,
        )  # fmt: skip

    addresses: ClientAddresses = field(default_factory=lambda: ClientAddresses(AddressRules(places=3), bytes(32)))

    def check_ins(self, round_id: str) -> CheckIns:
        """Return those of the round under way, and of a failed one."""
        return CheckIns({"release": 2, "full": 1}, 16 if round_id == "round-8" else 0, 20)

    def check_release(self, system: str) -> None:
        """Say that NAML's model is in no release, and that there are no codebooks."""
        name = system.partition("/")[0]
        if name in ("naml", "codebook"):
            raise RoundImpossible(f"Release r3 has nothing for {name}.", field="system")

    def status(self, round_id: str) -> RoundStatus:
        """Return the round under way."""
        if round_id != "round-8":
            raise UnknownRound
        return self._status(8, "updates")

    def current(self) -> RoundStatus | None:
        """Return the round under way."""
        return self._status(8, "updates") if self.under_way else None

    def history(self, limit: int = 100) -> list[RoundStatus]:
        """Return rounds, newest first."""
        ended = [self._status(7, "applied"), self._status(6, "failed", "only 11 of 40 updates came in time")]
        return ([self._status(8, "updates")] if self.under_way else []) + ended[:limit]

    def scores(self) -> list[Score]:
        """Return two releases that the gate has scored, the second reverted; none on a fresh backend."""
        if not self.under_way:
            return []
        return [
            Score("round-5", "r3", "r2", "ranker.features", 0.641, 0.0042, 0.0031, 58, False),
            Score("round-7", "r4", "r3", "ranker.features", 0.629, -0.0121, 0.0029, 57, True),
        ]

    def group_moves(self, limit: int) -> list[GroupMoves]:
        """Return two clusterings of four groups; none on a fresh backend."""
        if not self.under_way:
            return []
        first = ((0, 9, 4, 2), (1, 20, 3, 0), (0, 2, 11, 0), (0, 1, 0, 7))
        second = ((1, 0, 0, 0), (0, 30, 1, 1), (0, 0, 17, 2), (0, 0, 0, 6))
        return [
            GroupMoves("round-4", "prototypes", "r2", first),
            GroupMoves("round-6", "prototypes", "r3", second),
        ][-limit:]

    def open_rounds(self) -> list[RoundStatus]:
        """Return the round under way."""
        return [self._status(8, "updates")] if self.under_way else []

    def open_or_queue(self, order: RoundRequest) -> RoundStatus | QueuedRound:
        """Queue it while another runs, and refuse if the queue is full, as the coordinator does."""
        if not self.under_way:
            self.opened.append(order)
            return self._status(8, "open")
        return self.queue.add(order)

    def spending(self) -> Spending:
        """Return two noisy sums, local noise and an exact sum."""
        lines = tuple(
            SpentRound(f"round-{number}", "small_ranker/secure/median", 58, 0.03, 1.6, 1.6 + 0.7 * number)
            for number in (1, 2)
        )
        return Spending(1e-6, 0.06, 3.0, 52.4, 1, 1, lines)

    def cancel(self, round_id: str) -> RoundStatus:
        """Record the request."""
        self.cancelled.append(round_id)
        return self._status(8, "failed", "cancelled by the operator")


@dataclass
class StandInBackfill:
    """Records which ranker was requested."""

    asked: list[str] = field(default_factory=list)

    def status(self) -> list[BackfillTask]:
        """Say that the first requested ranker is being prepared."""
        return [BackfillTask(ranker, "queued" if place else "working") for place, ranker in enumerate(self.asked)]

    def start(self, ranker: str) -> None:
        """Record the request."""
        self.asked.append(ranker)
