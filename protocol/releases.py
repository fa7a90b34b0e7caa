"""Releases: graphs, weights and vector shards by hash, signed with Ed25519.

Parameters are graph inputs named `p.<parameter>`: an architecture's graphs stay the same, and a new release contains
new weights. `CategoryVocabulary` gives each section and topic its id, for article encoders that read them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from numpy.typing import NDArray
from pydantic import AwareDatetime, Field, model_validator

from protocol.ids import SHORT_RELEASES, Message, ReleaseId, Sha256, ShardName
from protocol.recall import CODEBOOK_LIMIT
from protocol.vocabulary import VocabularyDiffers

UNKNOWN_CATEGORY = 0
"""The id of a section or topic that the release does not know; encoders mask it."""
CATEGORIES_LIMIT = 20_000
HEADER = "ownfeed categories 1"

Topic = tuple[str, str]
"""A section and a topic in it; 'general' in two sections is two topics."""


@dataclass(frozen=True)
class CategoryVocabulary:
    """Sections (NAML's categories) and topics (its subcategories) in order of their ids, from 1.

    Raises ValueError unless names are distinct and not empty, and each topic's section is one of `sections`.
    """

    sections: tuple[str, ...]
    topics: tuple[Topic, ...]

    def __post_init__(self) -> None:
        if (count := len(self.sections) + len(self.topics)) > CATEGORIES_LIMIT:
            raise ValueError(f"sections and topics must be at most {CATEGORIES_LIMIT:,}, got {count:,}")
        if len(self._sections) != len(self.sections) or len(self._topics) != len(self.topics):
            raise ValueError("sections and topics must be distinct")
        if "" in self._sections or any(topic == "" for _, topic in self.topics):
            raise ValueError("sections and topics must have names")
        if lost := [section for section, _ in self.topics if section not in self._sections]:
            raise ValueError(f"topics must be of the sections given, got one of {lost[0]!r}")

    @cached_property
    def _sections(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.sections, start=UNKNOWN_CATEGORY + 1)}

    @cached_property
    def _topics(self) -> dict[Topic, int]:
        return {name: place for place, name in enumerate(self.topics, start=UNKNOWN_CATEGORY + 1)}

    @property
    def section_rows(self) -> int:
        """Rows of a table of section vectors, including the row for unknown sections."""
        return 1 + len(self.sections)

    @property
    def topic_rows(self) -> int:
        """Rows of a table of topic vectors, including the row for unknown topics."""
        return 1 + len(self.topics)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of `pack`, which is the hash of the release's blob `categories`."""
        return hashlib.sha256(self.pack()).hexdigest()

    def encode(self, news: Sequence[Topic]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return section ids [n] and topic ids [n] of articles, given as (section, topic). 0 if the release doesn't
        know the section or topic.
        """
        sections = [self._sections.get(section, UNKNOWN_CATEGORY) for section, _ in news]
        topics = [self._topics.get(each, UNKNOWN_CATEGORY) for each in news]
        return np.asarray(sections, dtype=np.int64), np.asarray(topics, dtype=np.int64)

    def pack(self) -> bytes:
        """Return the blob: JSON in UTF-8."""
        content = {"format": HEADER, "sections": self.sections, "topics": self.topics}
        return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()

    @classmethod
    def unpack(cls, blob: bytes) -> CategoryVocabulary:
        """Read `pack`.

        Raises VocabularyDiffers for another format, ValueError for invalid names.
        """
        try:
            content: Any = json.loads(blob)
            if content["format"] != HEADER:
                raise ValueError(content["format"])
            sections, topics = content["sections"], [(section, topic) for section, topic in content["topics"]]
            if not all(isinstance(name, str) for name in (*sections, *(name for pair in topics for name in pair))):
                raise TypeError("a name is not text")
        except (ValueError, KeyError, TypeError, RecursionError) as broken:
            raise VocabularyDiffers("categories", f"JSON of format {HEADER!r}", repr(blob[:40])) from broken
        return cls(tuple(sections), tuple(topics))


BLOB_LIMIT_BYTES = 256 * 1024 * 1024
GROUPS_LIMIT = 64
USER_TOWER, USER_TOWERS = "user_tower.", "user_towers."
"""Names of user-tower parameters in a ranker of views. A graph is of one view and uses the first; the weights hold a
tower for each view under the second, followed by the view's name.
"""
RELEASES_ANSWERED = 5
"""Default of a manifest: how many of the last releases recall answers, including the newest."""
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
    """K personal models of one architecture (FINDING, section 4.2).

    A device finds its own group locally, downloads the models of all groups, and reveals its group to nobody. centroids
    and next_centroids are safetensors blobs with `centroids`, float32 [K, D], rows of length 1; a device's group is the
    row with the greatest inner product with its unit user vector; ties go to the lowest row.
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
    trainable model also has `gradient`. weights is a safetensors blob of the parameters, or None if there are none.
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
    """K user prototypes.

    A device's code is the one with the greatest inner product with its unit user vector. epsilon is the cost of a
    report by this codebook, whichever mechanism of `device_app.privacy.mechanisms` makes it. prototypes is a
    safetensors blob with `prototypes`, float32 [K, D], rows of length 1.
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
        """If two codebooks have the same origin, size and epsilon, a code means the same in both."""
        return self.lineage or self.prototypes.sha256


class RecallProtocol(Message):
    """How interests are found and reported under this release.

    Source: Uni-FedRec, section 3; docs/decisions/017.
    """

    basis_size: int = Field(ge=1, le=512, description="B")
    channels_limit: int = Field(ge=1, le=5, description="C_max")
    cluster_distance: float = Field(gt=0, description="d: average-linkage clusters merge up to this distance")
    score_clip: float = Field(gt=0, description="delta")
    score_noise: float = Field(ge=0, description="lambda_I, the Laplace scale")
    codebooks: tuple[Codebook, ...] = Field(default=(), max_length=8, description="Of distinct sizes.")
    pool_codes: bool = Field(default=False, description="Whether GET /v1/releases/{number}/codes serves this release.")

    @model_validator(mode="after")
    def _codebooks_of_distinct_sizes(self) -> Self:
        sizes = [book.size for book in self.codebooks]
        if len(set(sizes)) != len(sizes):
            raise ValueError(f"codebooks must have distinct sizes; got {sizes}")
        return self

    def codebook(self, size: int) -> Codebook | None:
        """Return the codebook of that size."""
        return next((book for book in self.codebooks if book.size == size), None)


class ShardRef(Message):
    """The article vectors of one publishing day or a part of it.

    The blob holds `codes` and `scales` as in RecallAnswer.
    """

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
        description="Words of the pool (vocabulary), for news encoders that read word ids; None: no such encoder.",
    )
    categories: BlobRef | None = Field(
        default=None,
        description="Sections and topics of the pool (protocol.releases), for news encoders that read their ids.",
    )
    chain: Sha256 | None = Field(
        default=None,
        description="Head of the chain of releases before this one (protocol.chain); None: the chain begins with it.",
    )
    releases_answered: int = Field(
        default=RELEASES_ANSWERED,
        ge=1,
        le=SHORT_RELEASES,
        description="Of how many of the last releases recall answers reports while this is the newest, it counted.",
    )
    kinship_floor: float | None = Field(
        default=None,
        ge=-1.0,
        le=1.0,
        description="The cosine above which two news of this release's encoder are called close: random pairs of the "
        "pool hardly ever lie above it (protocol.similarity). None: the device reads it off its default list.",
    )
    news: int | None = Field(
        default=None,
        ge=0,
        description="News of the pool when this release was made, by which a device may choose how much to ask for and "
        "whether to report at all. None: it is not published.",
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
        raise SignatureRefused("the release is not signed by the pinned key")
    try:
        Ed25519PublicKey.from_public_bytes(pinned_public_key).verify(signed.signature, signed.manifest.encode())
    except InvalidSignature as broken:
        raise SignatureRefused("the release's signature does not match its bytes") from broken
    return ReleaseManifest.model_validate_json(signed.manifest)


class ShardList(Message):
    """GET /v1/releases/{number}/vectors: the shards of the pool's vectors.

    Devices use them to refresh the vectors of clicked articles.
    """

    release: ReleaseId
    encoder: str
    shards: tuple[ShardRef, ...]
