"""Uploads to rounds: limited in number and bytes, streamed to a file on the event loop, then checked in a thread."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from io import FileIO
from pathlib import Path
from secrets import token_hex
from typing import ParamSpec, TypeVar

from fastapi import Request

from backend.errors import BodyTooLarge, OverCapacity, UploadReplaced
from protocol.ids import Pseudonym, RoundId

BLOCK_BYTES = 256 * 1024
OBJECT_BYTES = 64
"""Memory of a chunk besides its content: in chunks of two bytes, a body would take thirty times its size."""
LEFT_BEHIND_SEC = 3_600.0
P = ParamSpec("P")
T = TypeVar("T")
UploadPlace = tuple[RoundId, Pseudonym]


@dataclass(frozen=True)
class Upload:
    """A body that has arrived completely; its file is removed when the request ends."""

    path: Path
    sha256: str
    size_bytes: int


@dataclass
class _Coming:
    size_bytes: int
    cut: asyncio.Timeout


class Uploads:
    """Receives uploads, and has the threads that process them. For one event loop.

    A place in a round has one upload at a time: a later one replaces it, so that a device whose connection broke
    needn't wait for the server to notice.

    Args:
        folder: holds incomplete files; those left by a killed process are removed after an hour.
        threads: number for checking and storing.
        limit, limit_bytes: most simultaneous uploads, and their greatest total size.
    """

    def __init__(self, folder: Path, *, threads: int, limit: int, limit_bytes: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._limit, self._limit_bytes = folder, limit, limit_bytes
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="rounds")
        self._coming: dict[UploadPlace, _Coming] = {}
        for path in folder.iterdir():
            if time.time() - path.stat().st_mtime > LEFT_BEHIND_SEC:  # younger ones may be another worker's
                path.unlink(missing_ok=True)

    def close(self) -> None:
        """Wait for the work in progress to end."""
        self._threads.shutdown()

    @property
    def under_way(self) -> int:
        """Number of uploads in progress."""
        return len(self._coming)

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run round work in one of the threads."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, partial(work, *args, **kwargs))

    @asynccontextmanager
    async def receive(self, request: Request, place: UploadPlace, limit_bytes: int) -> AsyncIterator[Upload]:
        """Receive the body of a request for this place, which was checked before.

        Raises BodyTooLarge, UploadReplaced if a later upload for the same place arrives, or OverCapacity.
        """
        earlier = self._coming.pop(place, None)
        if earlier is not None:
            earlier.cut.reschedule(asyncio.get_running_loop().time())
        due = sum(each.size_bytes for each in self._coming.values())
        if len(self._coming) >= self._limit or due + limit_bytes > self._limit_bytes:
            raise OverCapacity
        path = self._folder / f"{token_hex(16)}.coming"
        try:
            mine: _Coming | None = None
            try:
                async with asyncio.timeout(None) as cut:
                    mine = self._coming[place] = _Coming(limit_bytes, cut)
                    upload = await self._write(request, path, limit_bytes)
            except TimeoutError:
                raise UploadReplaced from None
            finally:
                if self._coming.get(place) is mine:
                    del self._coming[place]
            yield upload
        finally:
            path.unlink(missing_ok=True)

    async def _write(self, request: Request, path: Path, limit_bytes: int) -> Upload:
        hashed, size, parts, held = sha256(), 0, list[bytes](), 0

        def write() -> None:
            # Opened without O_CREAT: the work of a cancelled request may end after its file is deleted.
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND), "wb", buffering=0) as file:
                for part in parts:
                    hashed.update(part)
                    _write_all(file, part)

        await self.run(path.touch, mode=0o600, exist_ok=False)
        async for part in request.stream():
            size += len(part)
            if size > limit_bytes:
                raise BodyTooLarge(limit_bytes)
            parts.append(part)
            held += len(part) + OBJECT_BYTES
            if held >= BLOCK_BYTES:
                await self.run(write)
                parts.clear()
                held = 0
        await self.run(write)
        return Upload(path, hashed.hexdigest(), size)


def _write_all(file: FileIO, part: bytes) -> None:
    left = memoryview(part)
    while left:
        left = left[file.write(left) :]
