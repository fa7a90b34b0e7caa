"""A publisher's picture made small, in a process of its own with a limit on its time and its memory.

Decoders of pictures are large programs over bytes that anybody may have written. So they work where they can be
stopped, and where little else is: the process gets the bytes and nothing of the server. What it answers is checked by
the wire's own rules, as every device checks it again.

This file is both sides: `convert` runs it as a script, in which nothing of Ownfeed is imported. Pillow decodes and
encodes; what a picture is, its own bytes say and never its address or its server.
"""

from __future__ import annotations

import subprocess
import sys
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL import Image

CPU_SEC, WALL_SEC = 10, 60
MEMORY_BYTES = 1024**3
PIXELS_LIMIT = 40_000_000
"""A decoded picture of so many takes 160 MB; none is decoded before its size is known."""
LEAST_WIDTH, LEAST_HEIGHT = 160, 100
"""Smaller ones are icons and counting pixels, and would be a blur on a card."""
AIM_BYTES = 10_000
QUALITIES = (78, 70, 62, 54, 46, 38, 30, 22, 14)
"""Of WebP: the first that makes a picture of the aim's bytes or fewer is taken, else the last."""
ABOVE_THE_MIDDLE = (0.5, 0.4)
"""Where a picture of another shape is cut: faces are rather in its upper half."""
FORMATS = ("JPEG", "PNG", "WEBP", "GIF")
REFUSED = 3
"""The exit code of a picture that is refused; why stands on standard error."""


class PictureRefused(ValueError):
    """No picture, or none that can be taken; the message is one sentence."""


def convert(content: bytes, width: int, height: int) -> bytes:
    """The picture as a WebP file of width x height without metadata. Raises PictureRefused."""
    try:
        done = subprocess.run(
            [sys.executable, "-I", str(Path(__file__)), str(width), str(height)],
            input=content,
            capture_output=True,
            timeout=WALL_SEC,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise PictureRefused(f"It takes longer than {WALL_SEC} s to decode.") from None
    if done.returncode == REFUSED:
        raise PictureRefused(done.stderr.decode("utf-8", "replace").strip()[:200])
    if done.returncode != 0:
        raise PictureRefused(f"It can't be decoded within {CPU_SEC} s and {MEMORY_BYTES // 1024**2:,} MiB.")
    return done.stdout


def _made(content: bytes, size: tuple[int, int]) -> bytes:
    from PIL import Image, ImageFile, ImageOps, UnidentifiedImageError

    Image.MAX_IMAGE_PIXELS = None  # it would only warn; the limit is looked at below
    ImageFile.LOAD_TRUNCATED_IMAGES = False
    try:
        picture: Image.Image = Image.open(BytesIO(content), formats=FORMATS)
    except UnidentifiedImageError:
        raise PictureRefused("It is no JPEG, PNG, WebP or GIF.") from None
    except (OSError, ValueError, SyntaxError) as broken:
        raise PictureRefused(f"It is damaged ({broken}).") from broken
    wide, high = picture.size
    if wide * high > PIXELS_LIMIT:
        raise PictureRefused(f"It has {wide * high:,} pixels; the limit is {PIXELS_LIMIT:,}.")
    if min(wide, high) < LEAST_HEIGHT or max(wide, high) < LEAST_WIDTH:
        raise PictureRefused(f"It has {wide} x {high} pixels; the least is {LEAST_WIDTH} x {LEAST_HEIGHT}.")
    try:
        picture.draft("RGB", (2 * size[0], 2 * size[1]))  # a JPEG is decoded no larger than needed
        upright = ImageOps.exif_transpose(picture)
        shown = _on_white(upright)
    except (OSError, ValueError, SyntaxError, EOFError) as broken:
        raise PictureRefused(f"It is damaged ({broken}).") from broken
    fitted = ImageOps.fit(shown, size, Image.Resampling.LANCZOS, centering=ABOVE_THE_MIDDLE)
    made = b""
    for quality in QUALITIES:
        out = BytesIO()
        fitted.save(out, "WEBP", quality=quality, method=5, exif=b"", xmp=b"", icc_profile=b"")
        made = out.getvalue()
        if len(made) <= AIM_BYTES:
            break
    return made


def _on_white(picture: Image.Image) -> Image.Image:
    """Without transparency, which most publishers make for a white page."""
    from PIL import Image

    if not picture.has_transparency_data:
        return picture.convert("RGB")
    layer = picture.convert("RGBA")
    sheet = Image.new("RGB", layer.size, "white")
    sheet.paste(layer, mask=layer.getchannel("A"))
    return sheet


def _limit() -> None:
    try:
        import resource
    except ImportError:  # not on Windows, where the parent's clock is the only limit
        return
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SEC, CPU_SEC))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def _main() -> None:
    _limit()
    try:
        made = _made(sys.stdin.buffer.read(), (int(sys.argv[1]), int(sys.argv[2])))
    except PictureRefused as refused:
        sys.stderr.write(str(refused))
        sys.exit(REFUSED)
    sys.stdout.buffer.write(made)


if __name__ == "__main__":
    _main()
