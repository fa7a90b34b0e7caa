"""A training round as device and server exchange it, and its signed offer.

The signature covers every term of the round, and nothing specific to one device, so that all devices of a round hold
the same bytes and can compare them. The pseudonym is not signed: it is random and doesn't affect the cost, and
replacing it only sends this device's messages to a place that the server doesn't know. The signature doesn't protect
against the key's holder: a malicious server may sign two manifests for one round.
"""

from typing import Literal, Self

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from pydantic import AwareDatetime, Field, model_validator

from protocol.ids import Message, Pseudonym, ReleaseId, RoundId, Sha256, ShortRelease
from protocol.protections import SUMMED, Protection
from protocol.releases import BlobRef, SignatureRefused
from protocol.secagg import SumTerms

UPLOAD_LIMIT_BYTES = 64 * 1024 * 1024
MATERIALS_LIMIT_BYTES = 128 * 1024 * 1024
"""All materials of one round together: room for the pooled states of 160,000 articles, 768 bytes each."""
MATERIALS_LIMIT = 512
GROUP = "group"
"""The field of a round-closed problem that tells a member, and nobody else, that its group's sum was left out."""
RoundState = Literal["open", "updates", "keys", "shares", "masked", "agree", "unmask", "applied", "failed"]
SumStage = Literal["keys", "shares", "complaints", "masked", "agree", "unmask"]


class CheckIn(Message):
    """POST /v1/rounds/check-in: a device names its release and the tasks it can run.

    It checks in to a round that uses a release only if the round's status names the release it holds. For a count,
    which uses no release, it repeats the release in the status.
    """

    protocol: int = Field(ge=1)
    release: ShortRelease
    tasks: tuple[str, ...] = Field(max_length=16)
    round: RoundId | None = Field(
        default=None,
        description="Of `OpenRounds`. None: the oldest round that fits.",
    )


class RoundManifest(Message):
    """Everything a device needs to decide whether to join, and to compute its update."""

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
        description="Share of the inputs of training that a device leaves out at random, in tasks that have it: "
        "'recall' leaves out numbers of clicked news and candidates. Of a ranker with parameters that a device keeps "
        "to itself it is the chance that all of them are left out of a round (LSTUR's vector of a reader).",
    )
    closes_at: AwareDatetime
    terms: SumTerms | None = Field(default=None, description="Of the secure sum, in a round that is one.")

    @model_validator(mode="after")
    def _terms_of_secure_sums_only(self) -> Self:
        if isinstance(self.protection, SUMMED) != (self.terms is not None):
            raise ValueError("terms: required for a secure sum, and not allowed otherwise")
        if self.terms is not None and self.terms.round != self.round:
            raise ValueError(f"terms: for {self.terms.round}, but the round is {self.round}")
        return self


class RoundOffer(Message):
    """A place in a round, as both ends use it internally; it travels as `SignedOffer`.

    The pseudonym is for this round only.
    """

    manifest: RoundManifest
    pseudonym: Pseudonym


class UploadReceipt(Message):
    """Answer to PUT /v1/rounds/{id}/updates/{pseudonym}.

    A repeated upload of the same bytes gets the same receipt. The messages of a secure sum, PUT
    /v1/rounds/{id}/{stage}/{pseudonym}, are answered likewise.
    """

    round: RoundId
    sha256: Sha256
    duplicate: bool


class RoundStatus(Message):
    """GET /v1/rounds/{id}: progress anyone may see."""

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
    summary: str | None = Field(default=None, description="What came of it, in a sentence, where the system has one.")
    cohort: int = Field(description="Updates wanted.")
    cohort_minimum: int = Field(
        description="Updates needed: the requested minimum, or what the secure sum needs of those who joined, if more."
    )
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
    """GET /v1/rounds/current: all running rounds, oldest first."""

    rounds: tuple[RoundStatus, ...] = Field(max_length=16)


class QueuedRound(Message):
    """GET /v1/admin/queue/{number}: a round that the operator requested, or its outcome."""

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


DOMAIN = b"ownfeed round offer v1\n"
"""Prefix of what is signed, so that nothing else signed by the same key (a release) can pass for an offer."""
MANIFEST_LIMIT = 4 * 1024 * 1024


class SignedOffer(Message):
    """Answer to a check-in that was selected; otherwise the answer is an empty 204.

    manifest: JSON of a RoundManifest. signature: Ed25519 over DOMAIN and the UTF-8 bytes of manifest.
    """

    manifest: str = Field(max_length=MANIFEST_LIMIT)
    signature: bytes = Field(min_length=64, max_length=64)
    public_key: bytes = Field(min_length=32, max_length=32)
    pseudonym: Pseudonym = Field(description="Not signed; lives for this round only.")


def sign_offer(offer: RoundOffer, key: Ed25519PrivateKey) -> SignedOffer:
    """Freeze the manifest's JSON and sign it.

    Ed25519 is deterministic: one manifest and key, one signature.
    """
    text = offer.manifest.model_dump_json()
    return SignedOffer(
        manifest=text,
        signature=key.sign(DOMAIN + text.encode()),
        public_key=key.public_key().public_bytes_raw(),
        pseudonym=offer.pseudonym,
    )


def verify_offer(signed: SignedOffer, trusted_key: bytes) -> RoundOffer:
    """Return the offer, if the trusted key signed its manifest.

    Raises SignatureRefused before the manifest is parsed, and pydantic's ValidationError if what was signed is not a
    valid manifest.
    """
    if signed.public_key != trusted_key:
        raise SignatureRefused("the offer is not signed by the key that this device trusts")
    try:
        Ed25519PublicKey.from_public_bytes(trusted_key).verify(signed.signature, DOMAIN + signed.manifest.encode())
    except InvalidSignature as broken:
        raise SignatureRefused("the offer's signature does not match its bytes") from broken
    return RoundOffer(manifest=RoundManifest.model_validate_json(signed.manifest), pseudonym=signed.pseudonym)
