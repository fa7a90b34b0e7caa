"""What a secure sum refuses and why.

OwnfeedError
├── UnknownSum            404  no secure sum of that name
├── SumMessageRefused     422  the message is not what its stage takes
├── SumMessageConflict    409  another message of this stage came before from the same place
├── SumStageClosed        409  early or late: the sum is at another stage
├── SumFailed             409  too few members, or their shares are false; nothing was opened
└── SharesAwaited         409  some shares are false; the sum waits for those of other members
"""

from __future__ import annotations

from collections.abc import Sequence

from backend.errors import OwnfeedError


class UnknownSum(OwnfeedError):
    """No secure sum of that name."""

    code, status, title = "unknown-sum", 404, "No such secure sum"

    def __init__(self) -> None:
        super().__init__("There is no secure sum of that name.", field="round")


class SumMessageRefused(OwnfeedError):
    """The message is not what its stage takes."""

    code, status, title = "sum-message-refused", 422, "The message does not fit the secure sum"


class SumMessageConflict(OwnfeedError):
    """Another message of this stage came before from the same place."""

    code, status, title = "sum-message-conflict", 409, "Another message came before in its place"

    def __init__(self, stage: str) -> None:
        super().__init__(f"Another message of stage {stage} came before from this pseudonym.", field="body")


class SumStageClosed(OwnfeedError):
    """Early or late: the sum is at another stage."""

    code, status, title = "sum-stage-closed", 409, "The secure sum is at another stage"

    def __init__(self, wanted: str, stage: str) -> None:
        super().__init__(f"The secure sum is at stage {stage}, not {wanted}.", field="stage", limit=stage)
        self.stage = stage


class SumFailed(OwnfeedError):
    """Too few members, or their shares are false; nothing was opened.

    Args:
        detail: what is wrong.
        by_members: too few of them, or something false from one, and no fault of the server's disk.
        liars: members who are known to have shared a false secret.
    """

    code, status, title = "sum-failed", 409, "The secure sum can't be opened"

    def __init__(self, detail: str, *, by_members: bool = False, liars: Sequence[int] = ()) -> None:
        super().__init__(detail)
        self.by_members, self.liars = by_members, tuple(liars)


class SharesAwaited(OwnfeedError):
    """Some shares are false, and the members who haven't sent theirs have time left to."""

    code, status, title = "shares-awaited", 409, "The secure sum waits for more shares"

    def __init__(self) -> None:
        super().__init__("Some shares are false; the sum waits for those of the other members.")
