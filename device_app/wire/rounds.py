"""A training round as the two ends speak of it."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import AwareDatetime, ConfigDict, Field, model_validator

from device_app.wire.ids import Message, Pseudonym, ReleaseId, RoundId, Sha256, ShortRelease
from device_app.wire.protections import SUMMED, Protection
from device_app.wire.releases import BlobRef
from device_app.wire.secagg import SumTerms

UPLOAD_LIMIT_BYTES = 64 * 1024 * 1024
MATERIALS_LIMIT_BYTES = 128 * 1024 * 1024
"""Of all materials of one round together: room for the pooled states of 160,000 news, 768 bytes each."""
MATERIALS_LIMIT = 512
GROUP = "group"
"""The field of a round-closed problem by which a member, and nobody else, is told that the round goes on without the
sum of its group."""
OPEN_ROUNDS = "application/vnd.ownfeed.open-rounds+json"
"""A device that accepts this media type can look at several rounds; one that doesn't sees the oldest, as ever."""
RoundState = Literal["open", "updates", "keys", "shares", "masked", "agree", "unmask", "applied", "failed"]
SumStage = Literal["keys", "shares", "complaints", "masked", "agree", "unmask"]


class CheckIn(Message):
    """POST /v1/rounds/check-in: a device that may train says which release it holds and which tasks it can do.

    To a round that reads the release it checks in only where the status has named that very one. For a count, which
    reads none, it repeats the one that the status names, whatever it holds. Devices of before say the release in full.
    """

    protocol: int = Field(ge=1)
    release: ShortRelease | ReleaseId
    tasks: tuple[str, ...] = Field(max_length=16)
    round: RoundId | None = Field(
        default=None,
        exclude_if=lambda named: named is None,
        description="Of `OpenRounds`. A message without it is of a device, or for a server, that knows one at a time.",
    )


class RoundManifest(Message):
    """All a device needs to decide whether to join, and to compute its update."""

    round: RoundId
    release: ReleaseId
    system: str = Field(max_length=80)
    task: str = Field(max_length=80, description="Resolved by the device in one explicit dict: 'recall'.")
    model: str | None = Field(
        default=None, max_length=80, description="Key of ReleaseManifest.models that the task is about; None: of none."
    )
    shapes: dict[str, tuple[int, ...]] = Field(
        default={}, max_length=4096, description="Every float32 tensor of an update; gradients are `g.<parameter>`."
    )
    materials: dict[str, BlobRef] = Field(
        default={},
        max_length=MATERIALS_LIMIT,
        description="Blobs the task reads besides the release, the same for every device.",
    )
    follows: RoundId | None = Field(default=None, description="The round whose conclusion asked for this one.")
    protection: Protection
    negatives: int = Field(default=1, ge=1, le=64, description="K")
    samples_limit: int = Field(default=32, ge=1, le=1024, description="Most samples a device may use.")
    held_out: float = Field(
        default=0.0, ge=0, le=0.5, description="Share of a reader's samples that gradients leave to the release gate."
    )
    dropout: float = Field(
        default=0.0,
        ge=0,
        lt=1,
        exclude_if=lambda share: share == 0.0,  # as before there was this field, so that older devices read it too
        description="Share of the inputs of training that a device leaves out at random, in tasks that have it: "
        "'recall' leaves out numbers of clicked news and candidates. Of a ranker with parameters that a device keeps "
        "to itself it is the chance that all of them are left out of a round (LSTUR's vector of a reader).",
    )
    closes_at: AwareDatetime
    terms: SumTerms | None = Field(default=None, description="Of the secure sum, in a round that is one.")

    @model_validator(mode="after")
    def _terms_of_secure_sums_only(self) -> Self:
        if isinstance(self.protection, SUMMED) != (self.terms is not None):
            raise ValueError("terms: a secure sum has them, and nothing else does")
        if self.terms is not None and self.terms.round != self.round:
            raise ValueError(f"terms: of {self.terms.round}, the round is {self.round}")
        return self


class RoundOffer(Message):
    """A place in a round, as either end works with it; it travels as `wire.offers.SignedOffer`.

    The pseudonym lives for this round only.
    """

    manifest: RoundManifest
    pseudonym: Pseudonym


class UploadReceipt(Message):
    """Answer to PUT /v1/rounds/{id}/updates/{pseudonym}; a repeated upload of the same bytes gets the same receipt.

    The messages of a secure sum, PUT /v1/rounds/{id}/{stage}/{pseudonym}, are answered likewise.
    """

    round: RoundId
    sha256: Sha256
    duplicate: bool


class RoundStatus(Message):
    """GET /v1/rounds/{id}: progress anyone may see."""

    model_config = ConfigDict(validate_by_name=True, serialize_by_alias=True)

    round: RoundId
    system: str
    task: str | None = Field(default=None, description="What devices compute.")
    state: RoundState
    stages: Literal["updates", "sum"] = Field(default="updates", description="'sum': those of a secure sum.")
    reason: str | None = Field(default=None, description="Why it failed, or what was left out of an applied one.")
    release: ReleaseId
    published: ReleaseId | None = Field(default=None, description="None in an applied round that published nothing.")
    follows: RoundId | None = None
    orders: str | None = Field(default=None, description="System of the round that its conclusion has ordered.")
    followed_by: RoundId | None = Field(default=None, description="That round, once it's opened.")
    summary: str | None = Field(
        default=None,
        validation_alias="says",
        serialization_alias="says",
        description="What came of it, in a sentence, where the system has one.",
    )
    cohort: int = Field(description="Updates wanted.")
    cohort_minimum: int
    joined: int
    uploaded: int
    received_bytes: int
    opened_at: AwareDatetime
    closes_at: AwareDatetime
    finished_at: AwareDatetime | None = None
    survivors: int | None = Field(
        default=None, description="Devices in the opened secure sum; the smallest, if groups."
    )
    epsilon: float | None = Field(
        default=None,
        description="What the opened sum cost a device in it, at delta, by the survivors' noise; null: no noise in it.",
    )
    delta: float | None = None


class OpenRounds(Message):
    """GET /v1/rounds/current where OPEN_ROUNDS is accepted: all rounds under way, oldest first."""

    rounds: tuple[RoundStatus, ...] = Field(max_length=16)


class QueuedRound(Message):
    """GET /v1/admin/queue/{number}: a round that the operator asked for and that waits, or what became of it."""

    number: int = Field(ge=1, description="Of the queue; the round has a number of its own once it opens.")
    system: str = Field(max_length=80)
    cohort: int
    cohort_minimum: int
    seconds: float
    queued_at: AwareDatetime
    place: int | None = Field(default=None, description="1 for the next of those that change the same.")
    waits_for: RoundId | None = Field(default=None, description="The round under way that changes the same.")
    devices: int | None = Field(
        default=None, description="How many devices seem to wait, where it waits for cohort_minimum of them."
    )
    opened: RoundId | None = None
    reason: str | None = Field(default=None, description="Why it waits no longer and never opened.")
