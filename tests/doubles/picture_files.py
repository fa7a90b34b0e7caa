"""Pictures as publishers have them, made by Pillow in the test."""

from __future__ import annotations

from io import BytesIO

from PIL import Image, ImageDraw


def picture_file(
    kind: str = "JPEG", size: tuple[int, int] = (1_200, 800), colour: str = "teal", **options: object
) -> bytes:
    """A landscape of a sky, a hill and a sun; of a kind that Pillow writes."""
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
    """A picture as devices take them: WebP of 480 x 300."""
    return picture_file("WEBP", (480, 300), colour, quality=30)


def bare_picture(filling: bytes) -> bytes:
    """The head of a picture as devices take them, and `filling` where its pixels would be: the same in every version of
    every encoder. Of an even number of bytes."""
    frame = b"\x10\x00\x00\x9d\x01\x2a" + (480).to_bytes(2, "little") + (300).to_bytes(2, "little") + filling
    chunk = b"VP8 " + len(frame).to_bytes(4, "little") + frame
    return b"RIFF" + (4 + len(chunk)).to_bytes(4, "little") + b"WEBP" + chunk


def declared_pixels(wide: int, high: int) -> bytes:
    """A PNG of some hundred bytes that says it has so many pixels."""
    import struct
    import zlib

    def chunk(name: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    head = struct.pack(">IIBBBBB", wide, high, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0" * 100)) + chunk(b"IEND", b"")
    )
