"""Publishers' pictures, for cards and in texts, in shards that are the same for every device.

So no request reveals which article is read.

GET /v1/pictures answers with a `PictureList`: immutable blobs, each at /v1/blobs/{sha256}, all of which a device
downloads, in order. The picture format is so restricted that a device can check a picture without decoding it.
"""

import json
from collections.abc import Sequence
from typing import Annotated, NamedTuple, Self

from pydantic import Field, TypeAdapter, ValidationError, model_validator

from protocol.bodies import TEXT_PICTURES_LIMIT
from protocol.ids import Message, NewsId
from protocol.releases import BlobRef

PICTURE_WIDTH, PICTURE_HEIGHT = 480, 300
PICTURE_LIMIT_BYTES = 16_384
"""Limit for a card's picture, whose width and height are fixed."""
TEXT_PICTURE_WIDTH, TEXT_PICTURE_HEIGHT = 800, 2_400
TEXT_PICTURE_LIMIT_BYTES = 98_304
"""Limit for a picture in a text, which is shown whole."""
SHARD_PICTURES_LIMIT = 64
SHARDS_LIMIT = 4_096
HEAD_LIMIT_BYTES = 128 * SHARD_PICTURES_LIMIT
SHARD_LIMIT_BYTES = 4 + HEAD_LIMIT_BYTES + SHARD_PICTURES_LIMIT * TEXT_PICTURE_LIMIT_BYTES
PICTURES_LIMIT_BYTES = 64 * 1024 * 1024
"""Limit for all shards together."""
_EXACT = 2**53 - 1
"""The largest integer that JavaScript represents exactly."""
_Integer = Annotated[int, Field(ge=-_EXACT, le=_EXACT)]
_HEAD = TypeAdapter(list[tuple[NewsId, _Integer, _Integer]])


class PictureError(ValueError):
    """A picture or a shard is invalid; the message names the field and the limit."""


class Pictured(NamedTuple):
    """A story's picture.

    place: 0 for the card's picture, else the picture's number in the text, from 1.
    """

    news_id: NewsId
    place: int
    content: bytes


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
        return sum(shard.pictures.size_bytes for shard in self.shards)


def pack_pictures(pictures: Sequence[Pictured]) -> bytes:
    """Pack a shard.

    It is the head's length (four bytes, little-endian), the head, and the pictures one after another. The head is JSON
    without blanks: each picture's story, place and size in bytes. Raises PictureError like `unpack_pictures`.
    """
    head = _written([(one.news_id, one.place, len(one.content)) for one in pictures])
    blob = b"".join((len(head).to_bytes(4, "little"), head, *(one.content for one in pictures)))
    unpack_pictures(blob, len(pictures))
    return blob


def unpack_pictures(blob: bytes, count: int) -> list[Pictured]:
    """Return each picture, checked.

    Raises PictureError for an invalid shard, or one with another count.
    """
    if len(blob) > SHARD_LIMIT_BYTES:
        raise PictureError(f"shard: {len(blob)} bytes, the limit is {SHARD_LIMIT_BYTES}")
    length = int.from_bytes(blob[:4], "little")
    if len(blob) < 4 or length > min(HEAD_LIMIT_BYTES, len(blob) - 4):
        raise PictureError(f"head: {length} bytes, the limit is {HEAD_LIMIT_BYTES}, and it must be whole")
    head = _head(blob[4 : 4 + length])
    if len(head) != count:
        raise PictureError(f"head: {len(head)} pictures instead of the declared {count}")
    if len({(news_id, place) for news_id, place, _ in head}) != len(head):
        raise PictureError("head: must list each picture once")
    if any(not 0 <= place <= TEXT_PICTURES_LIMIT for _, place, _ in head):
        raise PictureError(f"head: a place must be from 0 to {TEXT_PICTURES_LIMIT}")
    if any(not 1 <= size <= TEXT_PICTURE_LIMIT_BYTES for _, _, size in head):
        raise PictureError(f"head: a size must be from 1 to {TEXT_PICTURE_LIMIT_BYTES}")
    if 4 + length + sum(size for _, _, size in head) != len(blob):
        raise PictureError("shard: the sizes of its pictures don't add up to its own size")
    found, at = [], 4 + length
    for news_id, place, size in head:
        found.append(Pictured(news_id, place, check_picture(blob[at : at + size], place)))
        at += size
    return found


def _head(text: bytes) -> list[tuple[NewsId, int, int]]:
    """Return the head of a shard; only its canonical form is accepted.

    JavaScript would read a size of 1.0 as a whole number, and Python would not.
    """
    try:
        head = _HEAD.validate_json(text, strict=True)
    except ValidationError:
        head = []
    if _written(head) != text:
        raise PictureError("head: is not a list of ids, places and sizes in its shortest form")
    return head


def _written(head: Sequence[tuple[NewsId, int, int]]) -> bytes:
    return json.dumps(head, separators=(",", ":")).encode()


def check_picture(content: bytes, place: int = 0) -> bytes:
    """Return the content itself, if it is a valid picture for this place (`Pictured`).

    Raises PictureError. It must be a WebP file that holds one lossy still picture and nothing else: no metadata, no
    animation, no transparency (RFC 9649, section 2.5; RFC 6386, section 9.1). A card's picture has a fixed size; a
    text's picture has a maximum size.
    """
    limit = TEXT_PICTURE_LIMIT_BYTES if place else PICTURE_LIMIT_BYTES
    if len(content) > limit:
        raise PictureError(f"picture: {len(content)} bytes, the limit is {limit}")
    if len(content) < 30 or content[:4] != b"RIFF" or content[8:16] != b"WEBPVP8 ":
        raise PictureError("picture: is not a WebP file with one picture and nothing else")
    riff_size, chunk = (int.from_bytes(content[at : at + 4], "little") for at in (4, 16))
    if riff_size != len(content) - 8 or chunk + chunk % 2 != len(content) - 20:
        raise PictureError("picture: its declared lengths don't match its bytes")
    if content[20] & 1 or content[23:26] != b"\x9d\x01\x2a":
        raise PictureError("picture: doesn't begin with a key frame")
    width, height = picture_size(content)
    if place and not (1 <= width <= TEXT_PICTURE_WIDTH and 1 <= height <= TEXT_PICTURE_HEIGHT):
        limits = f"{TEXT_PICTURE_WIDTH} x {TEXT_PICTURE_HEIGHT}"
        raise PictureError(f"picture: {width} x {height} pixels, at most {limits} are allowed")
    if not place and (width, height) != (PICTURE_WIDTH, PICTURE_HEIGHT):
        raise PictureError(f"picture: {width} x {height} pixels, it must be {PICTURE_WIDTH} x {PICTURE_HEIGHT}")
    return content


def picture_size(content: bytes) -> tuple[int, int]:
    """Width and height of a checked picture, in pixels.

    The two upper bits of each number are a hint for scaling.
    """
    width, height = (int.from_bytes(content[at : at + 2], "little") for at in (26, 28))
    return width, height
