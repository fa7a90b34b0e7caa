"""Errors of secure sums.

OwnfeedError
├── UnknownSum            404  no secure sum of that name
├── SumMessageRefused     422  the message is not valid for its stage
├── SumMessageConflict    409  a different message of this stage was already received from this member
├── SumStageClosed        409  the message is early or late: the sum is at another stage
├── SumFailed             409  too few members, or their shares are false; nothing was opened
└── SharesAwaited         409  some shares are false; the sum waits for the shares of other members
"""

from __future__ import annotations

from collections.abc import Sequence

from backend.errors import OwnfeedError


class UnknownSum(OwnfeedError):
    """No secure sum has this name."""

    code, status, title = "unknown-sum", 404, "No such secure sum"

    def __init__(self) -> None:
        super().__init__("There is no secure sum with that name.", field="round")


class SumMessageRefused(OwnfeedError):
    """The message is not valid for its stage."""

    code, status, title = "sum-message-refused", 422, "The message does not fit the secure sum"


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
        liars: members that are known to have shared a false secret.
    """

    code, status, title = "sum-failed", 409, "The secure sum can't be opened"

    def __init__(self, detail: str, *, by_members: bool = False, liars: Sequence[int] = ()) -> None:
        super().__init__(detail)
        self.by_members, self.liars = by_members, tuple(liars)


class SharesAwaited(OwnfeedError):
    """Some shares are false, and members that haven't sent theirs still have time to."""

    code, status, title = "shares-awaited", 409, "The secure sum waits for more shares"

    def __init__(self) -> None:
        super().__init__("Some shares are wrong; the sum is waiting for those of the other members.")
