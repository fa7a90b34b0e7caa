"""A release: graphs, weights and vector shards by hash, signed with Ed25519.

Parameters are graph inputs named `p.<parameter>`: an architecture's graphs stay, a new release brings new weights.
"""

from __future__ import annotations

from typing import Literal, Self

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from pydantic import AwareDatetime, Field, model_validator

from device_app.wire.ids import SHORT_RELEASES, Message, ReleaseId, Sha256, ShardName
from device_app.wire.recall import CODEBOOK_LIMIT

BLOB_LIMIT_BYTES = 256 * 1024 * 1024
GROUPS_LIMIT = 64
USER_TOWER, USER_TOWERS = "user_tower.", "user_towers."
"""Of a ranker of views: what a graph, which is of one view, calls the parameters of its user tower; and what weights
call them that hold a tower for each view, with the view's name after it."""
RELEASES_ANSWERED = 5
"""Of a manifest that doesn't say: so many of the last releases recall answers, the newest counted."""
_LINEAGE = (
    "The blob's hash as it was made first, if it was carried over into the space of another news encoder since: what "
    "is reported by it means the same. None: this is the first."
)
ModelRole = Literal["recall", "ranker"]


class BlobRef(Message):
    """An immutable blob, fetched from /v1/blobs/{sha256} and kept by its hash."""

    sha256: Sha256
    size_bytes: int = Field(ge=0, le=BLOB_LIMIT_BYTES)


class Groups(Message):
    """K personal models of one architecture, and how a device finds its own (FINDING, section 4.2).

    Every device fetches all of them, and tells nobody which is its own. centroids and next_centroids are safetensors
    blobs with `centroids`, float32 [K, D], rows of length 1; a device's group is the row of greatest inner product with
    its unit user vector, the lowest of equals.
    """

    size: int = Field(ge=1, le=GROUPS_LIMIT, description="K")
    weights: BlobRef = Field(description="safetensors: each parameter of the model, float32 [K, *shape]: the groups'.")
    centroids: BlobRef = Field(description="In force.")
    vectors: BlobRef = Field(description="The global weights that user vectors for `centroids` are computed with.")
    next_centroids: BlobRef = Field(description="The draft that the next clustering asks about.")
    next_vectors: BlobRef = Field(description="The global weights for `next_centroids`.")

    @property
    def blobs(self) -> tuple[BlobRef, ...]:
        """Every blob that the groups consist of."""
        return self.weights, self.centroids, self.vectors, self.next_centroids, self.next_vectors


class ModelEntry(Message):
    """One model of a release.

    graphs maps a purpose to an ONNX graph: a ranker has `score`; the recall model has `context` and `decompose`; a
    trainable model has `gradient` besides. weights is a safetensors blob of the parameters, or None if there are none.
    """

    architecture: str = Field(max_length=80)
    role: ModelRole
    graphs: dict[str, BlobRef]
    weights: BlobRef | None = None
    private: tuple[str, ...] = Field(
        default=(),
        max_length=64,
        description="Parameters each device keeps for itself: not in weights, never in an upload, zero at first.",
    )
    features: tuple[str, ...] = Field(
        default=(),
        max_length=64,
        description="What the graphs' input `features` holds, in order; the device computes it. Empty: no such input.",
    )
    groups: Groups | None = Field(default=None, description="Of a ranker with a model for each group of readers.")


class Codebook(Message):
    """K user prototypes; a device's code is the one with the greatest inner product with its unit user vector.

    epsilon is what a report by this codebook costs, whichever mechanism of `privacy.mechanisms` makes it. prototypes is
    a safetensors blob with `prototypes`, float32 [K, D], rows of length 1.
    """

    size: int = Field(ge=2, le=CODEBOOK_LIMIT, description="K")
    epsilon: float = Field(gt=0, le=64)
    prototypes: BlobRef
    lineage: Sha256 | None = Field(default=None, description=_LINEAGE)
    shares: tuple[float, ...] = Field(
        default=(), max_length=CODEBOOK_LIMIT, description="How many of the readers are near each; empty: even shares."
    )

    @model_validator(mode="after")
    def _one_share_each(self) -> Self:
        if self.shares and (len(self.shares) != self.size or min(self.shares) <= 0 or abs(sum(self.shares) - 1) > 1e-6):
            raise ValueError(f"shares: {self.size} numbers above 0 that add up to 1")
        return self

    @property
    def origin(self) -> Sha256:
        """Of two codebooks with one origin, size and epsilon a code means the same."""
        return self.lineage or self.prototypes.sha256


class Projection(Message):
    """For reports of a direction: a safetensors blob with `projection`, float32 [8, D], and what a report costs."""

    epsilon: float = Field(gt=0, le=64)
    matrix: BlobRef
    lineage: Sha256 | None = Field(default=None, description=_LINEAGE)

    @property
    def origin(self) -> Sha256:
        """Of two projections with one origin and epsilon the 8 numbers mean the same."""
        return self.lineage or self.matrix.sha256


class RecallProtocol(Message):
    """How interests are found and reported under this release (Uni-FedRec, section 3; docs/decisions/021)."""

    basis_size: int = Field(ge=1, le=512, description="B")
    channels_limit: int = Field(ge=1, le=5, description="C_max")
    cluster_distance: float = Field(gt=0, description="d: average-linkage clusters merge up to this distance")
    score_clip: float = Field(gt=0, description="delta")
    score_noise: float = Field(ge=0, description="lambda_I, the Laplace scale")
    codebooks: tuple[Codebook, ...] = Field(default=(), max_length=8, description="Of distinct sizes.")
    projection: Projection | None = Field(default=None, description="None: no report of a direction can be made.")
    pool_codes: bool = Field(default=False, description="Whether GET /v1/releases/{number}/codes serves this release.")

    @model_validator(mode="after")
    def _codebooks_of_distinct_sizes(self) -> Self:
        sizes = [book.size for book in self.codebooks]
        if len(set(sizes)) != len(sizes):
            raise ValueError(f"codebooks must have distinct sizes; got {sizes}")
        return self

    def codebook(self, size: int) -> Codebook | None:
        """The codebook of that size."""
        return next((book for book in self.codebooks if book.size == size), None)


class ShardRef(Message):
    """The news vectors of one publishing day (or a part of it): `codes`, `scales` as in RecallAnswer."""

    name: ShardName
    blob: BlobRef
    count: int = Field(ge=0)


class ReleaseManifest(Message):
    """What a device needs to serve and to train under one release."""

    release: ReleaseId
    previous: ReleaseId | None
    created_at: AwareDatetime
    encoder: str = Field(max_length=80, description="Digest of the news encoder that made the vectors.")
    dimensions: int = Field(ge=1, le=4096, description="D")
    opset: int
    recall: RecallProtocol
    models: dict[str, ModelEntry] = Field(
        description="By name: 'recall', 'ranker.features', 'ranker.cosine', and rankers the operator chose to offer."
    )
    default_ranker: str
    vocabulary: BlobRef | None = Field(
        default=None,
        description="Words of the pool (wire.vocabulary), for news encoders that read word ids; None: no such encoder.",
    )
    categories: BlobRef | None = Field(
        default=None,
        description="Sections and topics of the pool (wire.categories), for news encoders that read their ids.",
    )
    chain: Sha256 | None = Field(
        default=None,
        description="Head of the chain of releases before this one (wire.chain); None: the chain begins with it.",
    )
    releases_answered: int = Field(
        default=RELEASES_ANSWERED,
        ge=1,
        le=SHORT_RELEASES,
        exclude_if=RELEASES_ANSWERED.__eq__,  # as before there was this field, so that older devices read it too
        description="Of how many of the last releases recall answers reports while this is the newest, it counted.",
    )
    kinship_floor: float | None = Field(
        default=None,
        ge=-1.0,
        le=1.0,
        exclude_if=lambda floor: floor is None,  # releases from before there was this field keep their very bytes
        description="The cosine above which two news of this release's encoder are called close: random pairs of the "
        "pool hardly ever lie above it (wire.kinship). None: the device reads it off its default list.",
    )
    news: int | None = Field(
        default=None,
        ge=0,
        exclude_if=lambda news: news is None,  # as above
        description="News of the pool when this release was made, by which a device may choose how much to ask for and "
        "whether to report at all. None: it isn't told.",
    )


class SignedManifest(Message):
    """The manifest's exact bytes (UTF-8 JSON) with the server's signature over them."""

    manifest: str
    signature: bytes
    public_key: bytes


class SignatureRefused(ValueError):
    """The manifest was not signed by the pinned key."""


def sign(manifest: ReleaseManifest, key: Ed25519PrivateKey) -> SignedManifest:
    """Freeze the manifest's JSON and sign it."""
    text = manifest.model_dump_json()
    return SignedManifest(
        manifest=text, signature=key.sign(text.encode()), public_key=key.public_key().public_bytes_raw()
    )


def verify(signed: SignedManifest, pinned_public_key: bytes) -> ReleaseManifest:
    """Return the manifest if the pinned key signed it; raise SignatureRefused otherwise."""
    if signed.public_key != pinned_public_key:
        raise SignatureRefused("the release is signed by another key than the pinned one")
    try:
        Ed25519PublicKey.from_public_bytes(pinned_public_key).verify(signed.signature, signed.manifest.encode())
    except InvalidSignature as broken:
        raise SignatureRefused("the release's signature does not fit its bytes") from broken
    return ReleaseManifest.model_validate_json(signed.manifest)


class ShardList(Message):
    """GET /v1/releases/{number}/vectors: the pool's vector shards, for refreshing the vectors of clicked news."""

    release: ReleaseId
    encoder: str
    shards: tuple[ShardRef, ...]
