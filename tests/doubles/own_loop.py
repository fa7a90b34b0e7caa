"""Runs a coroutine in its own thread, and so on its own event loop.

tests/browser keeps an event loop running in the thread of its test worker for that worker's lifetime, and which tests
the worker runs afterwards is random: `asyncio.run` fails there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


def run_on_its_own_loop(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Return the coroutine's result, or raise its exception."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: asyncio.run(main())).result()
