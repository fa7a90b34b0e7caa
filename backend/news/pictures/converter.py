"""Converts a publisher's picture to a small WebP file, in a separate process with limits on time and memory.

Picture decoders are large programs that process untrusted bytes. So they run in a process that gets the bytes but not
the server's environment, and whose memory and time are limited. It still runs as the server's user. Its output is
checked by the protocol's rules here, and again by every device.

This file is both sides: `convert` runs it as a script. Pillow decodes and encodes; the format is detected from the
bytes, never from the address or the server.
"""

from __future__ import annotations

import sys
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

if __name__ == "__main__":
    sys.path.append(str(Path(__file__).parents[3]))  # where the package is not installed
from backend.server.child_processes import limit_this_process, read_untrusted

if TYPE_CHECKING:
    from PIL import Image

CPU_SEC, WALL_SEC = 10, 60
MEMORY_BYTES = 1024**3
PIXELS_LIMIT = 40_000_000
"""Checked before decoding. A decoded picture of this size takes 160 MB, and up to 670 MiB were measured with the copies
made to shrink it (a PNG with transparency)."""
LEAST_WIDTH, LEAST_HEIGHT = 160, 100
"""Smaller pictures are icons or tracking pixels, and would look blurred on a card."""
LEAST_WHOLE = 64
"""Minimum width and height of a picture in a text."""
AIM_BYTES, WHOLE_AIM_BYTES = 10_000, 40_000
"""Target sizes of a card's picture and of a picture in a text."""
QUALITIES = (78, 70, 62, 54, 46, 38, 30, 22, 14)
"""WebP qualities: the first that meets the target size is used, else the last."""
ABOVE_THE_MIDDLE = (0.5, 0.4)
"""Centre of the crop if the aspect ratio differs: faces are usually in the upper half."""
SCANS_LIMIT = 500
"""Maximum number of scans of a JPEG. Most have 1, progressive ones about 10; each is a pass over the whole picture."""
FORMATS = ("JPEG", "PNG", "WEBP", "GIF")
ANSWER_LIMIT_BYTES = 256 * 1024
"""More than twice the size of any picture made here."""
REFUSED = 3
"""Exit code for a refused picture; the output says why."""


class PictureRefused(ValueError):
    """The bytes aren't a picture that can be used; the message is one sentence."""


def convert(content: bytes, width: int, height: int, *, whole: bool = False) -> bytes:
    """The picture as a WebP file of width x height without metadata. Raises PictureRefused.

    whole: scale it down to fit instead of cropping; never enlarge it.
    """
    arguments = [str(width), str(height), *(["whole"] if whole else [])]
    try:
        code, output = read_untrusted(__file__, arguments, content, wall_sec=WALL_SEC, answer_bytes=ANSWER_LIMIT_BYTES)
    except TimeoutError:
        raise PictureRefused(f"Decoding it takes longer than {WALL_SEC} s.") from None
    if len(output) > ANSWER_LIMIT_BYTES:
        raise PictureRefused(f"The converted picture has more than {ANSWER_LIMIT_BYTES:,} bytes.")
    if code == REFUSED:
        raise PictureRefused(output.decode("utf-8", "replace").strip()[:200])
    if code != 0:
        raise PictureRefused(f"It can't be decoded within {CPU_SEC} s and {MEMORY_BYTES // 1024**2:,} MiB.")
    return output


def _made(content: bytes, size: tuple[int, int], whole: bool) -> bytes:
    from PIL import Image, ImageFile, ImageOps, UnidentifiedImageError

    Image.MAX_IMAGE_PIXELS = None  # it would only warn; the limit is checked below
    ImageFile.LOAD_TRUNCATED_IMAGES = False
    try:
        picture: Image.Image = Image.open(BytesIO(content), formats=FORMATS)
    except UnidentifiedImageError:
        raise PictureRefused("It is not a JPEG, PNG, WebP or GIF.") from None
    except (OSError, ValueError, SyntaxError) as broken:
        raise PictureRefused(f"It is damaged ({broken}).") from broken
    wide, high = picture.size
    if wide * high > PIXELS_LIMIT:
        raise PictureRefused(f"It has {wide * high:,} pixels; the limit is {PIXELS_LIMIT:,}.")
    least = (LEAST_WHOLE, LEAST_WHOLE) if whole else (LEAST_WIDTH, LEAST_HEIGHT)
    if min(wide, high) < min(least) or max(wide, high) < max(least):
        raise PictureRefused(f"It has {wide} x {high} pixels; the minimum is {least[0]} x {least[1]}.")
    scans = content.count(b"\xff\xda") if picture.format in ("JPEG", "MPO") else 0
    if scans > SCANS_LIMIT:
        raise PictureRefused(f"It has {scans:,} scans; the limit is {SCANS_LIMIT}.")
    try:
        picture.draft("RGB", (2 * size[0], 2 * size[1]))  # a JPEG is decoded no larger than needed
        upright = ImageOps.exif_transpose(picture)
        shown = _on_white(upright)
    except (OSError, ValueError, SyntaxError, EOFError) as broken:
        raise PictureRefused(f"It is damaged ({broken}).") from broken
    if whole:
        fitted = shown.copy()
        fitted.thumbnail(size, Image.Resampling.LANCZOS)
    else:
        fitted = ImageOps.fit(shown, size, Image.Resampling.LANCZOS, centering=ABOVE_THE_MIDDLE)
    made = b""
    for quality in QUALITIES:
        out = BytesIO()
        fitted.save(out, "WEBP", quality=quality, method=5, exif=b"", xmp=b"", icc_profile=b"")
        made = out.getvalue()
        if len(made) <= (WHOLE_AIM_BYTES if whole else AIM_BYTES):
            break
    return made


def _on_white(picture: Image.Image) -> Image.Image:
    """Replace transparency by white, the background that most publishers design for."""
    from PIL import Image

    if not picture.has_transparency_data:
        return picture.convert("RGB")
    layer = picture.convert("RGBA")
    sheet = Image.new("RGB", layer.size, "white")
    sheet.paste(layer, mask=layer.getchannel("A"))
    return sheet


def _main() -> None:
    limit_this_process(CPU_SEC, MEMORY_BYTES, file_bytes=0)
    try:
        made = _made(sys.stdin.buffer.read(), (int(sys.argv[1]), int(sys.argv[2])), "whole" in sys.argv[3:])
    except PictureRefused as refused:
        sys.stdout.buffer.write(str(refused).encode())
        sys.stdout.buffer.flush()
        sys.exit(REFUSED)
    sys.stdout.buffer.write(made)


if __name__ == "__main__":
    _main()
