"""Publishers' pictures: the same shards for every device, so that no request for one tells of a story.

GET /v1/pictures answers with a `PictureList`: immutable blobs, each at /v1/blobs/{sha256}, all of which a device takes,
in their order. What a picture may be is so narrow that a device checks it without decoding it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Self

from pydantic import Field, TypeAdapter, ValidationError, model_validator

from device_app.wire.ids import Message, NewsId
from device_app.wire.releases import BlobRef

PICTURE_WIDTH, PICTURE_HEIGHT = 480, 300
PICTURE_LIMIT_BYTES = 16_384
SHARD_PICTURES_LIMIT = 64
SHARDS_LIMIT = 4_096
HEAD_LIMIT_BYTES = 128 * SHARD_PICTURES_LIMIT
SHARD_LIMIT_BYTES = 4 + HEAD_LIMIT_BYTES + SHARD_PICTURES_LIMIT * PICTURE_LIMIT_BYTES
PICTURES_LIMIT_BYTES = 32 * 1024 * 1024
"""Of all shards together."""
_EXACT = 2**53 - 1
"""Beyond it JavaScript has no exact whole numbers."""
_HEAD = TypeAdapter(list[tuple[NewsId, Annotated[int, Field(ge=-_EXACT, le=_EXACT)]]])


class PictureError(ValueError):
    """What should be a picture, or a shard of them, isn't; names the field and the limit."""


class PictureShard(Message):
    """Some stories' pictures, as `pack_pictures` writes them."""

    count: int = Field(ge=1, le=SHARD_PICTURES_LIMIT)
    pictures: BlobRef


class PictureList(Message):
    """GET /v1/pictures, with an ETag that is the SHA-256 of these very bytes."""

    shards: tuple[PictureShard, ...] = Field(max_length=SHARDS_LIMIT)

    @model_validator(mode="after")
    def _within_the_limits(self) -> Self:
        refs = [shard.pictures for shard in self.shards]
        if len({ref.sha256 for ref in refs}) != len(refs):
            raise ValueError("shards must have distinct hashes")
        if any(ref.size_bytes > SHARD_LIMIT_BYTES for ref in refs):
            raise ValueError(f"a shard has more than {SHARD_LIMIT_BYTES} bytes")
        if self.size_bytes > PICTURES_LIMIT_BYTES:
            raise ValueError(f"shards have {self.size_bytes} bytes, the limit is {PICTURES_LIMIT_BYTES}")
        return self

    @property
    def size_bytes(self) -> int:
        """Of all shards together."""
        return sum(shard.pictures.size_bytes for shard in self.shards)


def pack_pictures(pictures: Sequence[tuple[NewsId, bytes]]) -> bytes:
    """A shard: the length of its head (four bytes, little-endian), the head (JSON without blanks: each story's id and
    the bytes of its picture), and the pictures one after another. Raises PictureError as `unpack_pictures`."""
    head = _written([(news_id, len(content)) for news_id, content in pictures])
    blob = b"".join((len(head).to_bytes(4, "little"), head, *(content for _, content in pictures)))
    unpack_pictures(blob, len(pictures))
    return blob


def unpack_pictures(blob: bytes, count: int) -> list[tuple[NewsId, bytes]]:
    """Each story's picture, checked. Raises PictureError for a shard that is anything else, or of another count."""
    if len(blob) > SHARD_LIMIT_BYTES:
        raise PictureError(f"shard: {len(blob)} bytes, the limit is {SHARD_LIMIT_BYTES}")
    length = int.from_bytes(blob[:4], "little")
    if len(blob) < 4 or length > min(HEAD_LIMIT_BYTES, len(blob) - 4):
        raise PictureError(f"head: {length} bytes, the limit is {HEAD_LIMIT_BYTES}, and it must be whole")
    head = _head(blob[4 : 4 + length])
    if len(head) != count:
        raise PictureError(f"head: {len(head)} pictures, declared were {count}")
    if len({news_id for news_id, _ in head}) != len(head):
        raise PictureError("head: each story once")
    if any(not 1 <= size <= PICTURE_LIMIT_BYTES for _, size in head):
        raise PictureError(f"head: a size is from 1 to {PICTURE_LIMIT_BYTES}")
    if 4 + length + sum(size for _, size in head) != len(blob):
        raise PictureError("shard: the sizes of its pictures don't add up to its own")
    found, at = [], 4 + length
    for news_id, size in head:
        found.append((news_id, check_picture(blob[at : at + size])))
        at += size
    return found


def _head(text: bytes) -> list[tuple[NewsId, int]]:
    """Written in one way only: a size of 1.0 would be a whole number to JavaScript, and none here."""
    try:
        head = _HEAD.validate_json(text, strict=True)
    except ValidationError:
        head = []
    if _written(head) != text:
        raise PictureError("head: is no list of ids and sizes in its shortest form")
    return head


def _written(head: Sequence[tuple[NewsId, int]]) -> bytes:
    return json.dumps(head, separators=(",", ":")).encode()


def check_picture(content: bytes) -> bytes:
    """The content itself, if it is a WebP file that holds one lossy still picture of the one size and nothing else: no
    metadata, no animation, no transparency (RFC 9649, section 2.5; RFC 6386, section 9.1). Raises PictureError."""
    if len(content) > PICTURE_LIMIT_BYTES:
        raise PictureError(f"picture: {len(content)} bytes, the limit is {PICTURE_LIMIT_BYTES}")
    if len(content) < 30 or content[:4] != b"RIFF" or content[8:16] != b"WEBPVP8 ":
        raise PictureError("picture: is no WebP with one picture and nothing else")
    whole, chunk = (int.from_bytes(content[at : at + 4], "little") for at in (4, 16))
    if whole != len(content) - 8 or chunk + chunk % 2 != len(content) - 20:
        raise PictureError("picture: its lengths don't fit")
    if content[20] & 1 or content[23:26] != b"\x9d\x01\x2a":
        raise PictureError("picture: doesn't begin with a key frame")
    width, height = (int.from_bytes(content[at : at + 2], "little") for at in (26, 28))
    if (width, height) != (PICTURE_WIDTH, PICTURE_HEIGHT):
        raise PictureError(f"picture: {width} x {height} pixels, it must be {PICTURE_WIDTH} x {PICTURE_HEIGHT}")
    return content
