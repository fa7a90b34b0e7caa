"""The device's errors."""

from pathlib import Path
from typing import Literal

from protocol.ids import Problem


class DeviceError(Exception):
    """Base of all errors of the device; its message is one plain sentence."""


class BackendUnreachable(DeviceError):
    """The server did not answer."""

    def __init__(self, url: str, why: str) -> None:
        super().__init__(f"The server at {url} does not answer ({why}).")


class BackendRefused(DeviceError):
    """The server answered with a problem.

    retry_after_sec: how many seconds it asks to wait, if it says so.
    """

    def __init__(self, problem: Problem, retry_after_sec: float | None = None) -> None:
        super().__init__(f"{problem.title}: {problem.detail}")
        self.problem, self.retry_after_sec = problem, retry_after_sec


class AnswerMalformed(DeviceError):
    """The server's answer violates the protocol."""

    def __init__(self, what: str, why: str) -> None:
        super().__init__(f"The server's answer to {what} is malformed: {why}")


class ReleaseRefused(DeviceError):
    """A release failed verification; the current one stays in use."""

    def __init__(self, release: str, why: str) -> None:
        super().__init__(f"Release {release} was refused: {why}")


class OfferRefused(DeviceError):
    """The offer of a round failed verification; its content wasn't read."""

    def __init__(self, why: str) -> None:
        super().__init__(f"The offer of a round was refused: {why}.")


class ReleaseForked(ReleaseRefused):
    """The server's releases don't follow from those that this device has used."""


class GraphMismatch(DeviceError):
    """A graph doesn't fit its weights or inputs; the message names the tensor."""

    def __init__(self, why: str) -> None:
        super().__init__(f"A model of the release can't be used: {why}.")


class NoRelease(DeviceError):
    """This device has no verified release yet."""

    def __init__(self) -> None:
        super().__init__("This device has no release yet. It needs to reach the server once.")


class BudgetSpent(DeviceError):
    """Spending `wanted` would exceed the daily or lifetime budget."""

    def __init__(self, channel: str, wanted: float, left: float, *, lifetime: bool = False) -> None:
        span = "in all" if lifetime else "today"
        super().__init__(f"The privacy budget for {channel} has {left:g} left {span}; this would cost {wanted:g}.")
        self.channel, self.wanted, self.left, self.lifetime = channel, wanted, left, lifetime


class CodebooksSpent(BudgetSpent):
    """The server has sent as many new codebooks today as the reader's settings allow."""

    def __init__(self, most: int) -> None:
        DeviceError.__init__(
            self,
            f"The server has changed its interest groups too often: reports were drawn for {most} versions of them "
            "today, the most that codebooks_per_day allows.",
        )
        self.channel, self.wanted, self.left, self.lifetime = "reports", 0.0, 0.0, False


class ModeChanged(DeviceError, ValueError):
    """The reader chose another report mode while a report was being made in the previous one."""

    def __init__(self, mode: str) -> None:
        super().__init__(f"The report mode has been changed to {mode!r}, so this report was not made.")


class ProtectionTooWeak(DeviceError):
    """A round's protection is weaker than the reader's settings allow."""

    def __init__(self, why: str) -> None:
        super().__init__(f"The round's protection is weaker than the settings require: {why}")


Hindrance = Literal["off", "spent", "old", "late", "full", "protection", "unreachable", "unfit"]
"""What keeps a device out of a round.

In order: switched off or paused; budget spent; another release, or a task unknown to this version; the round was over;
no place left; protection weaker than the reader accepts; no answer; anything else about device or offer.
"""


class NotEligible(DeviceError):
    """This device can't take part in training now."""

    def __init__(self, why: str, hindrance: Hindrance = "unfit") -> None:
        super().__init__(f"This device is not taking part: {why}")
        self.hindrance: Hindrance = hindrance


class SumAborted(DeviceError):
    """This device leaves a secure aggregation; what it has revealed so far can't unmask anything."""

    def __init__(self, round_id: str, why: str) -> None:
        super().__init__(f"This device left the secure sum of {round_id}: {why}.")


class RoundTakenOver(DeviceError):
    """Another process of this profile continued this round, so this one sends nothing."""

    def __init__(self, round_id: str) -> None:
        super().__init__(
            f"Another process of this profile has taken over {round_id}, so this one sends nothing for it."
        )


class NewsNotHere(DeviceError):
    """No article with that id is on this device."""

    def __init__(self, news_id: str) -> None:
        super().__init__(
            f"Story {news_id!r} is not on this device. Stories are removed after a while unless you opened, liked or "
            "saved them."
        )


class SettingsRefused(DeviceError):
    """The settings file is unreadable or untrusted, or a setting has an unknown name.

    The name may come from the file or the environment.
    """

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
    """An export of another device can't be imported."""

    def __init__(self, why: str) -> None:
        super().__init__(f"Nothing was imported: {why}.")


class NothingDamaged(DeviceError):
    """Restoring a copy was requested, but all databases are intact."""

    def __init__(self, home: Path) -> None:
        super().__init__(
            f"No database in {home} is lost or damaged, so no copy was restored. A copy would lose everything newer "
            "than itself."
        )


class StoreBroken(DeviceError):
    """The device's database can't be used."""

    def __init__(self, path: object, why: str) -> None:
        super().__init__(f"The database {path} can't be used: {why}")


class StoreDamaged(StoreBroken):
    """A database of the device is lost, empty or damaged.

    remedy: what the reader can do, in full sentences.
    """

    def __init__(self, path: object, why: str, remedy: str = "Keep the file: it may be repairable.") -> None:
        DeviceError.__init__(self, f"The database {path} can't be used: {why}. {remedy}")
        self.path, self.why = path, why
