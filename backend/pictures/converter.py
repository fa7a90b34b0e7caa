"""A publisher's picture made small, in a process of its own with a limit on its time and its memory.

Decoders of pictures are large programs over bytes that anybody may have written. So they work where they can be
stopped, and where little else is: the process gets the bytes, and of the server neither its environment nor a way to
fill its memory. It runs as the server's user all the same. What it answers is checked by
the wire's own rules, as every device checks it again.

This file is both sides: `convert` runs it as a script, in which nothing of Ownfeed is imported. Pillow decodes and
encodes; what a picture is, its own bytes say and never its address or its server.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL import Image

CPU_SEC, WALL_SEC = 10, 60
MEMORY_BYTES = 1024**3
PIXELS_LIMIT = 40_000_000
"""A decoded picture of so many takes 160 MB, and with the copies by which it is made small up to 670 MiB were measured
(a PNG with transparency); none is decoded before its size is known."""
LEAST_WIDTH, LEAST_HEIGHT = 160, 100
"""Smaller ones are icons and counting pixels, and would be a blur on a card."""
AIM_BYTES = 10_000
QUALITIES = (78, 70, 62, 54, 46, 38, 30, 22, 14)
"""Of WebP: the first that makes a picture of the aim's bytes or fewer is taken, else the last."""
ABOVE_THE_MIDDLE = (0.5, 0.4)
"""Where a picture of another shape is cut: faces are rather in its upper half."""
FORMATS = ("JPEG", "PNG", "WEBP", "GIF")
ANSWER_LIMIT_BYTES = 64 * 1024
"""No picture made here is half as long."""
REFUSED = 3
"""The exit code of a picture that is refused; the answer says why."""


class PictureRefused(ValueError):
    """No picture, or none that can be taken; the message is one sentence."""


def convert(content: bytes, width: int, height: int) -> bytes:
    """The picture as a WebP file of width x height without metadata. Raises PictureRefused."""
    from backend.child_environment import child_environment  # the script has no backend

    command = [sys.executable, "-I", str(Path(__file__)), str(width), str(height)]
    late = threading.Event()

    def end() -> None:
        late.set()
        process.kill()

    with tempfile.TemporaryFile() as given:
        given.write(content)
        given.seek(0)
        with subprocess.Popen(
            command, stdin=given, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=child_environment()
        ) as process:
            clock = threading.Timer(WALL_SEC, end)
            clock.start()
            try:
                assert process.stdout is not None
                said = process.stdout.read(ANSWER_LIMIT_BYTES + 1)
                if len(said) > ANSWER_LIMIT_BYTES:
                    process.kill()
                code = process.wait()
            except BaseException:
                process.kill()
                raise
            finally:
                clock.cancel()
    if late.is_set():
        raise PictureRefused(f"It takes longer than {WALL_SEC} s to decode.")
    if len(said) > ANSWER_LIMIT_BYTES:
        raise PictureRefused(f"What was made of it has more than {ANSWER_LIMIT_BYTES:,} bytes.")
    if code == REFUSED:
        raise PictureRefused(said.decode("utf-8", "replace").strip()[:200])
    if code != 0:
        raise PictureRefused(f"It can't be decoded within {CPU_SEC} s and {MEMORY_BYTES // 1024**2:,} MiB.")
    return said


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
        sys.stdout.buffer.write(str(refused).encode())
        sys.stdout.buffer.flush()
        sys.exit(REFUSED)
    sys.stdout.buffer.write(made)


if __name__ == "__main__":
    _main()
