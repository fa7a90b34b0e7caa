"""Errors of training rounds and their secure sums."""

from __future__ import annotations

from collections.abc import Sequence

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
        super().__init__("The queue is full; remove a round from it or wait until one ends.", limit=f"{limit} rounds")


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
            "This address has checked in for rounds too often.",
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

    code, status, title = "unknown-pseudonym", 403, "No place in this round under this pseudonym"

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

    code, status, title = "update-refused", 422, "The update doesn't match the round"


class RoundImpossible(OwnfeedError):
    """The round can't be opened with these settings."""

    code, status, title = "round-impossible", 422, "The round can't be opened like this"


class IllegalTransition(OwnfeedError):
    """A round can't change from its present state to the requested one."""

    code, status, title = "illegal-transition", 409, "The round can't change in this way"


class UnknownSum(OwnfeedError):
    """No secure sum has this name."""

    code, status, title = "unknown-sum", 404, "No such secure sum"

    def __init__(self) -> None:
        super().__init__("There is no secure sum with that name.", field="round")


class SumMessageRefused(OwnfeedError):
    """The message is not valid for its stage."""

    code, status, title = "sum-message-refused", 422, "Invalid message for the secure sum"


class SumMessageConflict(OwnfeedError):
    """A different message of this stage was already received from the same member."""

    code, status, title = "sum-message-conflict", 409, "A different message was already received"

    def __init__(self, stage: str) -> None:
        super().__init__(
            f"A different message of stage {stage} was already received from this pseudonym.", field="body"
        )


class SumStageClosed(OwnfeedError):
    """The message is early or late: the sum is at another stage."""

    code, status, title = "sum-stage-closed", 409, "The secure sum is at another stage"

    def __init__(self, wanted: str, stage: str) -> None:
        super().__init__(f"The secure sum is at stage {stage}, not {wanted}.", field="stage", limit=stage)
        self.stage = stage


class SumFailed(OwnfeedError):
    """There are too few members, or their shares are false; nothing was opened.

    Args:
        detail: what is wrong.
        by_members: whether members caused the failure (too few remained, or one sent something false) and not, for
            example, the server's disk.
        malicious: members known to have shared a false secret.
    """

    code, status, title = "sum-failed", 409, "The secure sum can't be opened"

    def __init__(self, detail: str, *, by_members: bool = False, malicious: Sequence[int] = ()) -> None:
        super().__init__(detail)
        self.by_members, self.malicious = by_members, tuple(malicious)


class SharesAwaited(OwnfeedError):
    """Some shares are false, and members that haven't sent theirs still have time to do so."""

    code, status, title = "shares-awaited", 409, "The secure sum waits for more shares"

    def __init__(self) -> None:
        super().__init__("Some shares are wrong; the sum is waiting for those of the other members.")
