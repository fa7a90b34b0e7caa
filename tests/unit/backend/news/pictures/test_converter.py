"""Publishers' pictures are made small. Oracles: Pillow in this process reads the results; the wire's own check."""

from __future__ import annotations

import zlib
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from backend.news.pictures.converter import AIM_BYTES, PIXELS_LIMIT, SCANS_LIMIT, PictureRefused, convert
from protocol.pictures import PICTURE_HEIGHT, PICTURE_WIDTH, check_picture
from tests.doubles.picture_files import declared_pixels, jpeg_of_scans, picture_file, png_with

SIZE = (PICTURE_WIDTH, PICTURE_HEIGHT)


def animated_webp(wide: int, high: int, frames: int = 1) -> bytes:
    """Return an animated WebP with this many frames of 600 x 400 on a canvas (RFC 9649, section 2.7)."""

    def chunk(name: bytes, content: bytes) -> bytes:
        return name + len(content).to_bytes(4, "little") + content + bytes(len(content) % 2)

    def size(wide: int, high: int) -> bytes:
        return (wide - 1).to_bytes(3, "little") + (high - 1).to_bytes(3, "little")

    frame = chunk(b"ANMF", bytes(6) + size(600, 400) + bytes(4) + picture_file("WEBP", (600, 400), quality=1)[12:])
    head = chunk(b"VP8X", bytes([2, 0, 0, 0]) + size(wide, high)) + chunk(b"ANIM", bytes(6))
    return chunk(b"RIFF", b"WEBP" + head + frame * frames)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "GIF"])
def test_picture_of_each_kind_becomes_a_small_webp_of_one_size(kind: str) -> None:
    made = check_picture(convert(picture_file(kind), *SIZE))
    with Image.open(BytesIO(made)) as picture:
        assert (picture.format, picture.size) == ("WEBP", SIZE)
    assert len(made) <= AIM_BYTES


def test_metadata_is_removed_and_rotation_applied() -> None:
    turned, exif = Image.new("RGB", (600, 900), "red"), Image.Exif()
    turned.paste("blue", (0, 0, 600, 450))
    exif[0x0112], exif[0x010E] = 6, "taken at home, 52.1 N"  # orientation: turned a quarter; description
    out = BytesIO()
    turned.save(out, "JPEG", exif=exif, quality=95)
    made = check_picture(convert(out.getvalue(), *SIZE))
    assert b"home" in out.getvalue()
    assert b"home" not in made
    with Image.open(BytesIO(made)) as picture:
        assert not picture.getexif()
        pixels = np.asarray(picture.convert("RGB"))
    left, right = pixels[150, 20], pixels[150, 460]
    assert left[0] > 200 > right[0], "what was below is on the left after a quarter turn"


def test_transparent_areas_become_white() -> None:
    out = BytesIO()
    Image.new("RGBA", (600, 400), (0, 0, 0, 0)).save(out, "PNG")
    with Image.open(BytesIO(convert(out.getvalue(), *SIZE))) as picture:
        assert np.asarray(picture.convert("RGB")).min() > 250


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "not a JPEG"),
        (b"<!doctype html><title>Not found</title>", "not a JPEG"),
        (b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>', "not a JPEG"),
        (picture_file("TIFF"), "not a JPEG"),
        (picture_file("JPEG")[:3_000], "damaged"),
        (picture_file("PNG")[:900], "damaged"),
        (picture_file("PNG", (1, 1)), "the minimum is"),
        (declared_pixels(50_000, 50_000), f"the limit is {PIXELS_LIMIT:,}"),
        (picture_file("AVIF"), "not a JPEG"),
        (b"GIF89aX\2X\2\x80\0\0" + bytes(6) + b",\xe8\xfd\xe8\xfd\n\0\n\0\0\2\2L\1\0;", "pixels; the limit"),
        (animated_webp(16_383, 16_383), "damaged"),
        (png_with(b"zTXt", b"Comment\0\0" + zlib.compress(bytes(100_000_000))), "damaged"),
        (png_with(b"iCCP", b"name\0\0" + zlib.compress(bytes(100_000_000))), "damaged"),
        (jpeg_of_scans(SCANS_LIMIT + 1), f"501 scans; the limit is {SCANS_LIMIT}"),
        (jpeg_of_scans(SCANS_LIMIT + 1)[:300] + b"\xff\xda" * 9_000, "scans; the limit"),
    ],
    ids=[
        "empty", "html", "svg", "tiff", "cut jpeg", "cut png", "counting pixel", "bomb", "avif", "gif beyond its edge",
        "animation on a huge canvas", "packed text", "packed profile", "jpeg of scans", "cut jpeg of scans",
    ],
)  # fmt: skip
def test_invalid_or_wrongly_sized_picture_is_refused_with_the_reason(content: bytes, why: str) -> None:
    with pytest.raises(PictureRefused, match=why):
        convert(content, *SIZE)


def test_animated_picture_gives_only_its_first_frame() -> None:
    """A hundred thousand would take minutes."""
    made = check_picture(convert(animated_webp(600, 400, frames=20_000), *SIZE))
    with Image.open(BytesIO(made)) as picture:
        assert getattr(picture, "n_frames", 1) == 1


def test_polyglot_file_keeps_only_its_picture() -> None:
    """The hidden contents are after a picture's end, and inside it, where browsers and archives look for their own."""
    evil = b"<!doctype html><script>alert(1)</script>"
    polyglot = picture_file("JPEG", comment=evil + b"*/alert(1)/*") + evil + b"PK\x03\x04"
    for given in (polyglot, png_with(b"tEXt", b"Comment\0" + evil) + evil):
        made = check_picture(convert(given, *SIZE))
        assert b"script" not in made
        assert b"PK\x03\x04" not in made
