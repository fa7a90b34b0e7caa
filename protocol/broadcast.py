"""The whole pool as product-quantised codes, for finding articles on the device.

Requests for them reveal nothing about the reader. GET /v1/releases/{number}/codes answers with a `PoolCodes`: a list of
immutable blobs (each at /v1/blobs/{sha256}), cut by publishing day, so that a device fetches only days that are new or
changed since its last poll. The codes come with the cards of their articles, because requesting the cards of search
results would reveal the results.
"""

import zlib
from collections.abc import Iterable
from hashlib import sha256
from typing import Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, TypeAdapter, ValidationError, model_validator

from protocol.ids import Message, ReleaseId, ShardName
from protocol.news import NewsCard
from protocol.releases import BLOB_LIMIT_BYTES, BlobRef
from protocol.tensors import TensorError, TensorSpec, pack, unpack

CENTROIDS = 256
SHARD_NEWS_LIMIT = 5_000
POOL_NEWS_LIMIT = 500_000
CARDS_LIMIT_BYTES = 32 * 1024 * 1024
_CARDS = TypeAdapter(tuple[NewsCard, ...])


class CodeShard(Message):
    """One publishing day (or a part of it).

    codes is a blob by `pack_codes`; cards one by `pack_cards`, in the rows' order.
    """

    name: ShardName
    count: int = Field(ge=1, le=SHARD_NEWS_LIMIT)
    codes: BlobRef
    cards: BlobRef


class PoolCodes(Message):
    """GET /v1/releases/{number}/codes, with an ETag that is the SHA-256 of these very bytes.

    Row i of the pool (shards in their order, rows in theirs) is scored sharpness * <u, d_i> + prior_i, where u is the
    reader's unit user vector, d_i the sum of the centroids its code names, and prior_i its log popularity.

    book: safetensors `centroids`, float32 [M, 256, D / M]. priors: safetensors `priors`, float16 [n]; separate from the
    shards, since popularity changes while codes stay the same.
    """

    release: ReleaseId
    version: int = Field(ge=0, description="The pool's version on the server.")
    encoder: str = Field(max_length=80)
    subspaces: int = Field(ge=1, le=256, description="M: bytes of one code")
    sharpness: float = Field(gt=0, le=1_000, description="s")
    book: BlobRef
    priors: BlobRef
    shards: tuple[CodeShard, ...] = Field(max_length=2_000)

    @model_validator(mode="after")
    def _distinct_shards_within_the_limit(self) -> Self:
        if len({shard.name for shard in self.shards}) != len(self.shards):
            raise ValueError("shards must have distinct names")
        if self.count > POOL_NEWS_LIMIT:
            raise ValueError(f"shards contain {self.count} articles, the limit is {POOL_NEWS_LIMIT}")
        return self

    @property
    def count(self) -> int:
        """n: the number of articles in the whole pool."""
        return sum(shard.count for shard in self.shards)


def pack_codes(codes: NDArray[np.uint8]) -> bytes:
    """Codes [n, M] of one shard as a safetensors blob, tensor `codes`."""
    return pack({"codes": codes})


def unpack_codes(blob: bytes, count: int, subspaces: int) -> NDArray[np.uint8]:
    """uint8 [count, subspaces]. Raises TensorError."""
    return unpack(blob, {"codes": TensorSpec("uint8", (count, subspaces))}, limit_bytes=BLOB_LIMIT_BYTES)["codes"]


def pack_book(centroids: NDArray[np.float32]) -> bytes:
    """Centroids [M, 256, D / M] as a safetensors blob."""
    return pack({"centroids": centroids})


def unpack_book(blob: bytes, subspaces: int, dimensions: int) -> NDArray[np.float32]:
    """float32 [M, 256, D / M]. Raises TensorError, also if M does not divide D."""
    if dimensions % subspaces:
        raise TensorError(f"tensor centroids: {subspaces} subspaces do not divide {dimensions} dimensions")
    shape = (subspaces, CENTROIDS, dimensions // subspaces)
    return unpack(blob, {"centroids": TensorSpec("float32", shape)}, limit_bytes=BLOB_LIMIT_BYTES)["centroids"]


def pack_priors(log_popularity: NDArray[np.floating]) -> bytes:
    """Log popularity [n] of the whole pool as a safetensors blob, float16.

    Only differences between them matter.
    """
    return pack({"priors": log_popularity.astype(np.float16)})


def unpack_priors(blob: bytes, count: int) -> NDArray[np.float32]:
    """float32 [count]. Raises TensorError."""
    specs = {"priors": TensorSpec("float16", (count,))}
    return unpack(blob, specs, limit_bytes=BLOB_LIMIT_BYTES)["priors"].astype(np.float32)


def pack_cards(cards: Iterable[bytes]) -> bytes:
    """Return cards, each given as JSON bytes, as one zlib-compressed JSON list."""
    return zlib.compress(b"[" + b",".join(cards) + b"]", level=6)


def unpack_cards(blob: bytes, count: int) -> tuple[NewsCard, ...]:
    """Return the cards of one shard.

    Raises TensorError if the blob is not such a list, is too long, or has another number of cards.
    """
    reader = zlib.decompressobj()
    try:
        text = reader.decompress(blob, CARDS_LIMIT_BYTES)
        if not reader.eof:
            raise TensorError(f"cards: cut off, or more than {CARDS_LIMIT_BYTES} bytes unpacked")
        cards = _CARDS.validate_json(text)
    except zlib.error as broken:
        raise TensorError(f"cards: not compressed JSON: {broken}") from broken
    except ValidationError as broken:
        first = broken.errors(include_url=False, include_input=False)[0]
        raise TensorError(f"cards: {'.'.join(map(str, first['loc']))}: {first['msg']}") from broken
    if len(cards) != count:
        raise TensorError(f"cards: {len(cards)} of them instead of the declared {count}")
    return cards


def etag_of_codes(listing: bytes) -> str:
    """Return the ETag of a listing.

    Both ends compute it, so the server can't use it to mark a device.
    """
    return sha256(listing).hexdigest()
