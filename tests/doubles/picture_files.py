"""Pictures as publishers have them, made by Pillow in the test."""

from __future__ import annotations

import struct
import zlib
from io import BytesIO

from PIL import Image, ImageDraw


def picture_file(
    kind: str = "JPEG", size: tuple[int, int] = (1_200, 800), colour: str = "teal", **options: object
) -> bytes:
    """A landscape of sky, hill and sun, in a format that Pillow writes."""
    picture = Image.new("RGB", size, colour)
    draw, (wide, high) = ImageDraw.Draw(picture), size
    for line in range(high // 2):
        shade = 255 - line * 120 // max(1, high)
        draw.line((0, line, wide, line), fill=(shade // 2, shade * 3 // 4, shade))
    draw.ellipse((wide * 0.7, high * 0.1, wide * 0.8, high * 0.1 + wide * 0.1), fill="gold")
    draw.polygon([(0, high), (wide * 0.4, high * 0.4), (wide, high)], fill=colour)
    out = BytesIO()
    picture.save(out, kind, **options)
    return out.getvalue()


def small_picture(colour: str = "teal") -> bytes:
    """A picture in the devices' format: WebP of 480 x 300."""
    return picture_file("WEBP", (480, 300), colour, quality=30)


def bare_picture(filling: bytes, size: tuple[int, int] = (480, 300)) -> bytes:
    """The header of a picture in the devices' format, with `filling` instead of pixels.

    The bytes don't depend on an encoder's version. Their number is even.
    """
    frame = b"\x10\x00\x00\x9d\x01\x2a" + size[0].to_bytes(2, "little") + size[1].to_bytes(2, "little") + filling
    chunk = b"VP8 " + len(frame).to_bytes(4, "little") + frame
    return b"RIFF" + (4 + len(chunk)).to_bytes(4, "little") + b"WEBP" + chunk


def declared_pixels(wide: int, high: int) -> bytes:
    """A PNG of some hundred bytes that declares this many pixels."""
    head = struct.pack(">IIBBBBB", wide, high, 8, 2, 0, 0, 0)
    pixels = zlib.compress(b"\0" * 100)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", head) + _chunk(b"IDAT", pixels) + _chunk(b"IEND", b"")


def png_with(name: bytes, content: bytes) -> bytes:
    """A PNG with an additional chunk before its pixels."""
    picture = picture_file("PNG")
    return picture[:33] + _chunk(name, content) + picture[33:]


def _chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def jpeg_of_scans(count: int) -> bytes:
    """A grey JPEG with this many scans of 40 bytes, each a pass over 6,300 x 6,300 pixels (ITU-T T.81, annex G)."""
    side = 6_300
    blocks = ((side + 7) // 8) ** 2

    def segment(marker: int, content: bytes) -> bytes:
        return bytes([0xFF, marker]) + (len(content) + 2).to_bytes(2, "big") + content

    def one_code(table: int, symbol: int) -> bytes:
        return segment(0xC4, bytes([table, 1, *[0] * 15, symbol]))

    head = b"\xff\xd8" + segment(0xDB, bytes([0, *[1] * 64]))
    head += segment(0xC2, b"\x08" + side.to_bytes(2, "big") * 2 + b"\x01\x01\x11\x00")
    head += one_code(0x00, 0x00) + one_code(0x10, 0xE0)
    flat = segment(0xDA, b"\x01\x01\x00\x00\x00\x00") + bytes(blocks // 8 + 1)
    # Each code of 15 bits, 0 and fourteen times 1, ends 32,767 blocks.
    bits = ("0" + "1" * 14) * (blocks // 32_767 + 1)
    bits += "1" * (-len(bits) % 8)
    ends = int(bits, 2).to_bytes(len(bits) // 8, "big").replace(b"\xff", b"\xff\x00")
    return head + flat + (segment(0xDA, b"\x01\x01\x00\x01\x3f\x00") + ends) * (count - 1) + b"\xff\xd9"
