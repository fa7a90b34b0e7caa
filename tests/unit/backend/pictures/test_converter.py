"""Publishers' pictures made small. Oracles: Pillow in this process reads what comes out; the wire's own check."""

from __future__ import annotations

from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from backend.pictures.converter import AIM_BYTES, PIXELS_LIMIT, PictureRefused, convert
from device_app.wire.pictures import PICTURE_HEIGHT, PICTURE_WIDTH, check_picture
from tests.doubles.picture_files import declared_pixels, picture_file

SIZE = (PICTURE_WIDTH, PICTURE_HEIGHT)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "GIF"])
def test_a_picture_of_each_kind_becomes_a_small_webp_of_the_one_size(kind: str) -> None:
    made = check_picture(convert(picture_file(kind), *SIZE))
    with Image.open(BytesIO(made)) as picture:
        assert (picture.format, picture.size) == ("WEBP", SIZE)
    assert len(made) <= AIM_BYTES


def test_metadata_goes_and_a_turned_picture_stands_upright() -> None:
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


def test_what_is_transparent_becomes_white() -> None:
    out = BytesIO()
    Image.new("RGBA", (600, 400), (0, 0, 0, 0)).save(out, "PNG")
    with Image.open(BytesIO(convert(out.getvalue(), *SIZE))) as picture:
        assert np.asarray(picture.convert("RGB")).min() > 250


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "no JPEG"),
        (b"<!doctype html><title>Not found</title>", "no JPEG"),
        (b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>', "no JPEG"),
        (picture_file("TIFF"), "no JPEG"),
        (picture_file("JPEG")[:3_000], "damaged"),
        (picture_file("PNG")[:900], "damaged"),
        (picture_file("PNG", (1, 1)), "the least is"),
        (declared_pixels(50_000, 50_000), f"the limit is {PIXELS_LIMIT:,}"),
    ],
    ids=["empty", "html", "svg", "tiff", "cut jpeg", "cut png", "counting pixel", "bomb"],
)
def test_what_is_no_picture_or_too_large_or_too_small_is_refused_with_the_reason(content: bytes, why: str) -> None:
    with pytest.raises(PictureRefused, match=why):
        convert(content, *SIZE)
