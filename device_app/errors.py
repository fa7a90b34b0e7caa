"""What can go wrong on the device, drawn at the top.

DeviceError
├── BackendUnreachable      nothing answered; the last feed still serves
├── BackendRefused          a problem+json came back; carries the Problem
├── AnswerMalformed         the answer is not what the wire declares
├── ReleaseRefused          signature, hash or shape of a release is wrong; the old one stays
│   └── ReleaseForked       ... because the server shows another history of releases than before
├── GraphMismatch           a model of the release can't be run with its weights, or with what it is given
├── NoRelease               nothing has been synced yet
├── OfferRefused            the offer of a round is not signed by the key this device trusts
├── BudgetSpent             the ledger refuses a release of data
│   └── CodebooksSpent      so many new codebooks were reported by today
├── ModeChanged             another way of reporting was chosen while a report was made
├── ProtectionTooWeak       a round asks for less protection than the reader accepts
├── NotEligible             the device can't train now, and why
├── SumAborted              this device leaves a secure sum: a message in it was not as an honest server's
├── RoundTakenOver          another process of this profile has gone on with the round
├── NewsNotHere             no such news on this device
├── ProfileInUse            another process has this profile open
├── ExportRefused           a file can't be taken over; names the field and its limit, and nothing was written
├── NothingDamaged          a copy was to be restored where nothing is lost or damaged
├── SettingsRefused         the file of settings can't be read or trusted, or has an unknown name
└── StoreBroken             the device's database can't be opened or is of a newer version
    └── StoreDamaged        ... because it is lost, empty or damaged; says what can be done
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from device_app.wire.problem import Problem


class DeviceError(Exception):
    """Base of all errors of the device; the message is one plain sentence."""


class BackendUnreachable(DeviceError):
    """The backend did not answer."""

    def __init__(self, url: str, why: str) -> None:
        super().__init__(f"The backend at {url} does not answer ({why}).")


class BackendRefused(DeviceError):
    """The backend answered with a problem.

    retry_after_sec: how long it asks to be left alone, where it says so in seconds.
    """

    def __init__(self, problem: Problem, retry_after_sec: float | None = None) -> None:
        super().__init__(f"{problem.title}: {problem.detail}")
        self.problem, self.retry_after_sec = problem, retry_after_sec


class AnswerMalformed(DeviceError):
    """The backend's answer breaks the wire contract."""

    def __init__(self, what: str, why: str) -> None:
        super().__init__(f"The backend's answer to {what} is malformed: {why}")


class ReleaseRefused(DeviceError):
    """A release failed verification; the current one stays in place."""

    def __init__(self, release: str, why: str) -> None:
        super().__init__(f"Release {release} was refused: {why}")


class OfferRefused(DeviceError):
    """The offer of a round failed verification; nothing in it was looked at."""

    def __init__(self, why: str) -> None:
        super().__init__(f"The offer of a round was refused: {why}.")


class ReleaseForked(ReleaseRefused):
    """The server's releases don't follow from those that this device has used."""


class GraphMismatch(DeviceError):
    """A graph and the weights or inputs given to it do not fit; the message names the tensor."""

    def __init__(self, why: str) -> None:
        super().__init__(f"A model of the release can't be used: {why}.")


class NoRelease(DeviceError):
    """No verified release is on this device yet."""

    def __init__(self) -> None:
        super().__init__("This device has no release yet: it needs to reach the backend once.")


class BudgetSpent(DeviceError):
    """Spending `wanted` would pass the budget of the day, or of the device's life."""

    def __init__(self, channel: str, wanted: float, left: float, *, lifetime: bool = False) -> None:
        span = "in all" if lifetime else "today"
        super().__init__(f"The privacy budget for {channel} has {left:g} left {span}; this would cost {wanted:g}.")
        self.channel, self.wanted, self.left, self.lifetime = channel, wanted, left, lifetime


class CodebooksSpent(BudgetSpent):
    """The server has brought as many new codebooks today as the reader's settings let reports be drawn by."""

    def __init__(self, most: int) -> None:
        DeviceError.__init__(
            self,
            f"The server has changed what reports are made with; a report was drawn under {most} of them today, which "
            "is the most that codebooks_per_day allows.",
        )
        self.channel, self.wanted, self.left, self.lifetime = "reports", 0.0, 0.0, False


class ModeChanged(DeviceError, ValueError):
    """The reader has chosen another way of reporting while a report was made in the way of before."""

    def __init__(self, mode: str) -> None:
        super().__init__(f"The reader's mode is {mode!r} now: no report of interests may be made in another.")


class ProtectionTooWeak(DeviceError):
    """A round's protection is weaker than the reader's settings allow."""

    def __init__(self, why: str) -> None:
        super().__init__(f"The round's protection is weaker than this reader accepts: {why}")


Hindrance = Literal["off", "busy", "spent", "old", "few", "late", "full", "protection", "unreachable", "unfit"]
"""What keeps a device out of a round: switched off or paused; its reader reads; the budget is spent; another release,
or a task that its version doesn't know; too little read; the round was over; no place; a protection weaker than its
reader accepts; no answer; anything else about device or offer."""


class NotEligible(DeviceError):
    """This device can't take part in training now."""

    def __init__(self, why: str, hindrance: Hindrance = "unfit") -> None:
        super().__init__(f"This device does not train now: {why}")
        self.hindrance: Hindrance = hindrance


class SumAborted(DeviceError):
    """This device leaves a secure sum; what it has revealed so far opens nothing."""

    def __init__(self, round_id: str, why: str) -> None:
        super().__init__(f"This device left the secure sum of {round_id}: {why}.")


class RoundTakenOver(DeviceError):
    """Another process of this profile, or an earlier one, has gone on with this round; this one sends nothing."""

    def __init__(self, round_id: str) -> None:
        super().__init__(f"Another process of this profile has gone on with {round_id}; this one sends nothing for it.")


class NewsNotHere(DeviceError):
    """No news of that id is on this device."""

    def __init__(self, news_id: str) -> None:
        super().__init__(
            f"No story {news_id!r} is on this device. Stories go after a while unless you opened, liked or saved them."
        )


class SettingsRefused(DeviceError):
    """The file of settings can't be read or isn't trusted, or a name in it or in the environment is no setting's."""

    def __init__(self, why: str) -> None:
        super().__init__(f"{why}.")


class ProfileInUse(DeviceError):
    """Another process has this profile open."""

    def __init__(self, home: Path, holder: str) -> None:
        super().__init__(
            f"The profile {home.name} is in use: {holder} has it open (in {home}). Stop that one first, or choose "
            "another with --profile."
        )


class ExportRefused(DeviceError):
    """What another device has exported can't be taken over."""

    def __init__(self, why: str) -> None:
        super().__init__(f"Nothing was taken over: {why}.")


class NothingDamaged(DeviceError):
    """A copy was to be put in the place of databases that are whole."""

    def __init__(self, home: Path) -> None:
        super().__init__(
            f"No database in {home} is lost or damaged, so no copy was restored: it would forget what came since."
        )


class StoreBroken(DeviceError):
    """The device's database can't be used."""

    def __init__(self, path: object, why: str) -> None:
        super().__init__(f"The device's store {path} can't be used: {why}")


class StoreDamaged(StoreBroken):
    """A database of the device is lost, empty or damaged. remedy: what its reader can do, in whole sentences."""

    def __init__(self, path: object, why: str, remedy: str = "Keep the file, it may be mended.") -> None:
        DeviceError.__init__(self, f"The device's store {path} can't be used: {why}. {remedy}")
        self.path, self.why = path, why
