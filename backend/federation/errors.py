"""Errors of training rounds.

OwnfeedError
├── UnknownRound          404
├── UnknownSystem         422  no system of that name
├── RoundUnderWay         409  a round that changes the same state has not ended
├── RoundQueueFull        409  the maximum number of rounds is waiting
├── UnknownQueuedRound    404
├── NoLongerWaiting       409  the queued round was opened, or taken out of the queue
├── RoundsPaused          409  the operator has paused rounds
├── UnknownPseudonym      403  the pseudonym has no place in this round
├── RoundClosed           409  the round has ended; the message is late
├── UpdateConflict        409  a different update was already received under the same pseudonym
├── UpdateRefused         422  the tensors differ from those that the manifest declares
├── CheckInsTooOften      429  one address checks in too often
├── RoundImpossible       422  the round can't be opened with these settings
└── IllegalTransition     409  a round can't change from its present state to the requested one
"""

from __future__ import annotations

from backend.errors import OwnfeedError


class UnknownRound(OwnfeedError):
    """No round has this id."""

    code, status, title = "unknown-round", 404, "No such round"

    def __init__(self) -> None:
        super().__init__("There is no round with that id.", field="round")


class UnknownSystem(OwnfeedError):
    """No system has this name."""

    code, status, title = "unknown-system", 422, "No such system"


class RoundUnderWay(OwnfeedError):
    """A round that changes the same state is under way or waiting in the queue."""

    code, status, title = "round-under-way", 409, "Another round is under way"

    def __init__(self, round_id: str) -> None:
        super().__init__(f"{round_id} has not ended; cancel it or wait for it.", round=round_id)


class RoundQueueFull(OwnfeedError):
    """The queue already holds the maximum number of waiting rounds."""

    code, status, title = "round-queue-full", 409, "Too many rounds are waiting"

    def __init__(self, limit: int) -> None:
        super().__init__(
            "No further round can wait; take one out of the queue or let one end.", limit=f"{limit} rounds"
        )


class UnknownQueuedRound(OwnfeedError):
    """No round was ever queued under this number, or its entry has been removed."""

    code, status, title = "unknown-queued-round", 404, "No such round in the queue"

    def __init__(self) -> None:
        super().__init__("There is no queued round with that number.", field="number")


class NoLongerWaiting(OwnfeedError):
    """The queued round has been opened, or was taken out of the queue."""

    code, status, title = "no-longer-waiting", 409, "The round is no longer waiting"


class CheckInsTooOften(OwnfeedError):
    """One network address has checked in too often."""

    code, status, title = "check-ins-too-often", 429, "Too many check-ins from this address"

    def __init__(self, per_minute: int, wait_sec: float) -> None:
        super().__init__(
            "This address has asked for a place in a round too often.",
            field="address",
            limit=f"{per_minute} check-ins a minute",
        )
        self.wait_sec = wait_sec


class RoundsPaused(OwnfeedError):
    """The operator has paused rounds."""

    code, status, title = "rounds-paused", 409, "Rounds are paused"

    def __init__(self) -> None:
        super().__init__("Rounds are paused; resume them first.")


class UnknownPseudonym(OwnfeedError):
    """The pseudonym has no place in this round."""

    code, status, title = "unknown-pseudonym", 403, "The round does not know this pseudonym"

    def __init__(self) -> None:
        super().__init__("This pseudonym has no place in the round.", field="pseudonym")


class RoundClosed(OwnfeedError):
    """The round has ended."""

    code, status, title = "round-closed", 409, "The round has ended"


class UpdateConflict(OwnfeedError):
    """A different update was already received under the same pseudonym."""

    code, status, title = "update-conflict", 409, "A different update was already received"

    def __init__(self) -> None:
        super().__init__("A different update was already accepted under this pseudonym.", field="pseudonym")


class UpdateRefused(OwnfeedError):
    """The tensors differ from those that the manifest declares."""

    code, status, title = "update-refused", 422, "The update is not what the round declares"


class RoundImpossible(OwnfeedError):
    """The round can't be opened with these settings."""

    code, status, title = "round-impossible", 422, "The round can't be opened like this"


class IllegalTransition(OwnfeedError):
    """A round can't change from its present state to the requested one."""

    code, status, title = "illegal-transition", 409, "The round can't change in this way"
