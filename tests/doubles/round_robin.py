"""A plain proxy: forwards TCP connections to several servers in turn, skipping those that refuse."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

BLOCK_BYTES = 64 * 1024


class RoundRobin:
    """Runs on its own thread's event loop.

    A connection ends with its server's; the client must retry what was under way.
    """

    def __init__(self, ports: Sequence[int]) -> None:
        self._ports, self._turn = tuple(ports), itertools.count()
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self, ready: threading.Event, stop: asyncio.Event, port: list[int]) -> None:
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        port.append(server.sockets[0].getsockname()[1])
        ready.set()
        await stop.wait()
        server.close()
        for task in self._tasks:
            task.cancel()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first = next(self._turn)
        for each in range(len(self._ports)):
            with suppress(OSError):
                port = self._ports[(first + each) % len(self._ports)]
                there_reader, there = await asyncio.open_connection("127.0.0.1", port)
                ways = (self._carry(reader, there), self._carry(there_reader, writer))
                for way in ways:
                    task = asyncio.create_task(way)
                    self._tasks.add(task)
                    task.add_done_callback(self._tasks.discard)
                return
        writer.transport.abort()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while block := await reader.read(BLOCK_BYTES):
                writer.write(block)
                await writer.drain()
            writer.close()
        except OSError:
            writer.transport.abort()  # a server that was killed


@contextmanager
def round_robin(ports: Sequence[int]) -> Iterator[str]:
    """Run the proxy while the block runs; yields its URL."""
    loop, ready, port = asyncio.new_event_loop(), threading.Event(), list[int]()
    stop = asyncio.Event()
    thread = threading.Thread(
        target=lambda: loop.run_until_complete(RoundRobin(ports).serve(ready, stop, port)), daemon=True
    )
    thread.start()
    assert ready.wait(30)
    try:
        yield f"http://127.0.0.1:{port[0]}"
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(30)
        loop.close()
