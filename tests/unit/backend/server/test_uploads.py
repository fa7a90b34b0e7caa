"""Bodies that arrive in tiny chunks. Oracle: the bytes sent, and the file that they are written to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import Any

from backend.server.uploads import Uploads

CHUNK, CHUNKS = b"ab", 20_000
HELD_BYTES = 16_384
"""Most of a body that may be in memory when it comes by two bytes: each lies in an object of some fifty."""


class TinyChunks:
    """A request that records how much of its received body isn't in the file yet."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.most_held = folder, 0

    async def stream(self) -> AsyncIterator[bytes]:
        for number in range(CHUNKS):
            (file,) = self.folder.glob("*.coming")
            self.most_held = max(self.most_held, number * len(CHUNK) - file.stat().st_size)
            yield CHUNK


def test_body_in_tiny_chunks_is_written_with_little_memory(tmp_path: Path) -> None:
    """Regression: only bytes of the body were counted, so all 20,000 objects were held to the end."""
    request: Any = TinyChunks(tmp_path)
    limit = len(CHUNK) * CHUNKS

    async def received() -> tuple[str, int, bytes]:
        uploads = Uploads(tmp_path, threads=1, limit=1, limit_bytes=limit)
        try:
            async with uploads.receive(request, ("round-1", "p" * 32), limit) as upload:
                return upload.sha256, upload.size_bytes, upload.path.read_bytes()
        finally:
            uploads.close()

    body = CHUNK * CHUNKS
    with ThreadPoolExecutor(1) as apart:  # a browser of another test may have a loop in this thread
        assert apart.submit(lambda: asyncio.run(received())).result() == (sha256(body).hexdigest(), len(body), body)
    assert request.most_held <= HELD_BYTES
