"""Publishers' pictures, downloaded and shown by a whole device. Oracle: the fake backend's answers and requests.

The malicious server sends a list and shards of its own making.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator
from pathlib import Path
from struct import pack

import pytest

from device_app.composition import build_device
from device_app.device import Device
from device_app.privacy.noise_sources import SeededNoise
from device_app.settings import DeviceSettings, PrivacySettings
from protocol.pictures import (
    HEAD_LIMIT_BYTES,
    PICTURE_LIMIT_BYTES,
    PICTURES_LIMIT_BYTES,
    Pictured,
    PictureList,
    PictureShard,
    pack_pictures,
)
from protocol.releases import BlobRef
from tests.doubles.backend import FakeBackend
from tests.doubles.clock import StillClock
from tests.doubles.news import NOW
from tests.doubles.picture_files import bare_picture, picture_file, small_picture

PATH = "/v1/pictures"


@pytest.fixture
def backend() -> FakeBackend:
    made = FakeBackend()
    made.pictures = {card.id: small_picture(("teal", "navy")[n % 2]) for n, card in enumerate(made.pool.cards[:10])}
    return made


@pytest.fixture
def device(tmp_path: Path, backend: FakeBackend) -> Iterator[Device]:
    device = build_device(
        DeviceSettings(data_dir=tmp_path, privacy=PrivacySettings(mode="none")),
        transport=backend.transport(),
        noise=SeededNoise("pictures"),
        chance=random.Random(5),
        clock=StillClock(NOW),
    )
    yield device
    device.close()


def picture_requests(backend: FakeBackend, since: int = 0) -> list[str]:
    """Return the requests for the list and its shards, in order; a shard by its place in the list."""
    places = {shard.pictures.sha256: str(at) for at, shard in enumerate(backend.picture_list().shards)}
    named = (path.rsplit("/", 1)[-1] for path in backend.paths()[since:])
    return [places.get(name, name) for name in named if name == "pictures" or name in places]


def test_every_shard_is_pulled_once_in_list_order(device: Device, backend: FakeBackend) -> None:
    device.sync()
    assert picture_requests(backend) == ["pictures", "0", "1", "2"]
    pictures = device.parts.stores.pictures
    assert {card.id: pictures.content(card.id) for card in backend.pool.cards[:10]} == backend.pictures
    assert pictures.content(backend.pool.cards[10].id) is None
    since = len(backend.requests)
    device.sync()
    assert picture_requests(backend, since) == ["pictures"], "304"


def test_removed_pictures_are_deleted_and_only_new_ones_pulled(device: Device, backend: FakeBackend) -> None:
    device.sync()
    gone = backend.pool.cards[9].id
    backend.pictures.pop(gone)
    backend.pictures[backend.pool.cards[20].id] = small_picture("olive")
    since = len(backend.requests)
    device.sync()
    assert picture_requests(backend, since) == ["pictures", "2"]
    pictures = device.parts.stores.pictures
    assert pictures.content(gone) is None
    assert pictures.path(gone) == ""
    assert device.parts.stores.database.row("SELECT count(*) FROM picture")[0] == 10  # type: ignore[index]


def test_switched_off_pictures_are_deleted_and_not_requested(device: Device, backend: FakeBackend) -> None:
    device.sync()
    pictures, first = device.parts.stores.pictures, backend.pool.cards[0].id
    pictures.show(False)
    since = len(backend.requests)
    device.sync()
    assert picture_requests(backend, since) == []
    assert (pictures.path(first), pictures.content(first)) == ("", None)
    pictures.show(True)
    device.sync()
    assert picture_requests(backend, since) == ["pictures", "0", "1", "2"]
    assert pictures.path(first) == f"/pictures/{first}.webp?of={backend.picture_list().shards[0].pictures.sha256[:12]}"


def test_missing_shard_keeps_the_old_pictures_until_the_next_poll(device: Device, backend: FakeBackend) -> None:
    device.sync()
    first = backend.pool.cards[0].id
    before = dict(backend.pictures)
    backend.pictures |= {card.id: small_picture("maroon") for card in backend.pool.cards[30:40]}
    listing, made = backend.picture_list(), backend.picture_list
    backend.picture_list = lambda: listing  # type: ignore[method-assign]
    backend.blobs.pop(listing.shards[-1].pictures.sha256)
    device.sync()
    pictures = device.parts.stores.pictures
    assert pictures.content(first) == before[first]
    assert pictures.path(backend.pool.cards[35].id) == "", "of a list that isn't here whole"
    backend.picture_list = made  # type: ignore[method-assign]
    device.sync()
    assert pictures.content(backend.pool.cards[39].id) == small_picture("maroon")


def shard_of(head: bytes, pictures: bytes) -> bytes:
    return pack("<I", len(head)) + head + pictures


FINE = small_picture()
WIDE = bare_picture(b"", (801, 10))
HOSTILE = {
    "another size": (pack_pictures([Pictured("n:1", 0, FINE)]) + b"\0", 1, "add up"),
    "a count that lies": (pack_pictures([Pictured("n:1", 0, FINE)]), 2, "1 pictures instead of the declared 2"),
    "no head": (b"\1", 1, "head"),
    "a long head": (shard_of(b" " * (HEAD_LIMIT_BYTES + 1), b""), 1, f"the limit is {HEAD_LIMIT_BYTES}"),
    "no list": (shard_of(b'{"n:1":1}', b"\0"), 1, "not a list of ids, places and sizes"),
    "an id that is none": (shard_of(b'[["<script>",0,1]]', b"\0"), 1, "not a list of ids, places and sizes"),
    "a story twice": (shard_of(b'[["a",0,1],["a",0,1]]', b"\0\0"), 2, "each picture once"),
    "a large picture": (
        shard_of(b'[["a",0,%d]]' % (PICTURE_LIMIT_BYTES + 1), b"\0" * (PICTURE_LIMIT_BYTES + 1)), 1, "limit is 16384",
    ),
    "a larger one in a text": (shard_of(b'[["a",1,98305]]', b"\0" * 98_305), 1, "from 1 to 98304"),
    "a fifth one in a text": (shard_of(b'[["a",5,1]]', b"\0"), 1, "a place must be from 0 to 4"),
    "a wide one in a text": (
        shard_of(b'[["a",1,%d]]' % len(WIDE), WIDE), 1, "801 x 10 pixels, at most 800 x 2400 are allowed",
    ),
    "svg": (shard_of(b'[["a",0,40]]', b'<svg xmlns="http://www.w3.org/2000/svg"/>'[:40]), 1, "not a WebP"),
    "png": (
        shard_of(b'[["a",0,%d]]' % len(picture_file("PNG", (60, 40))), picture_file("PNG", (60, 40))), 1, "not a WebP",
    ),
    "another picture's size": (
        shard_of(b'[["a",0,%d]]' % len(picture_file("WEBP", (48, 30))), picture_file("WEBP", (48, 30))), 1,
        "48 x 30 pixels, it must be 480 x 300",
    ),
    "bytes behind it": (shard_of(b'[["a",0,%d]]' % (len(FINE) + 2), FINE + b"<s"), 1, "declared lengths don't match"),
}  # fmt: skip


@pytest.mark.parametrize("forged", HOSTILE)
def test_invalid_picture_shard_is_named_in_the_error_and_the_feed_stays(
    device: Device, backend: FakeBackend, forged: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "device_app.syncing")
    device.sync()
    before = device.reading.feed()
    blob, count, why = HOSTILE[forged]
    ref = backend._blob(blob)
    backend.picture_list = lambda: PictureList(  # type: ignore[method-assign]
        shards=(PictureShard(count=count, pictures=ref),)
    )
    device.sync()
    (said,) = caplog.messages
    assert said.startswith("pictures: ")
    assert why in said
    assert device.reading.feed() == before
    assert (device.status().online, device.status().alerts) == (True, ()), "no trouble of the pages"
    first = backend.pool.cards[0].id
    assert device.parts.stores.pictures.content(first) == backend.pictures[first], "the earlier ones stay"


def test_picture_list_or_shard_with_the_wrong_hash_is_refused(
    device: Device, backend: FakeBackend, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "device_app.syncing")
    ref = backend._blob(pack_pictures([Pictured("n:1", 0, FINE)]))
    for wrong, why in (
        (ref.model_copy(update={"size_bytes": ref.size_bytes + 1}), "bytes, declared as"),
        (BlobRef(sha256="0" * 64, size_bytes=ref.size_bytes), "its hash differs from the declared one"),
    ):
        backend.blobs[wrong.sha256] = backend.blobs[ref.sha256]
        listing = PictureList(shards=(PictureShard(count=1, pictures=wrong),))
        backend.picture_list = lambda listing=listing: listing  # type: ignore[method-assign, misc]
        device.sync()
        assert why in caplog.messages[-1]
        assert device.parts.stores.pictures.current() is None
    with pytest.raises(ValueError, match=f"the limit is {PICTURES_LIMIT_BYTES}"):
        PictureList(
            shards=tuple(
                PictureShard(count=1, pictures=BlobRef(sha256=f"{n:064}", size_bytes=1_000_000)) for n in range(68)
            )
        )
