"""Runs a coroutine in a thread, and so on an event loop, of its own.

The browser of tests/browser keeps an event loop running in the thread of the test worker for as long as that lives, and
which tests a worker runs after it is chance: there `asyncio.run` refuses.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


def run_on_its_own_loop(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """What the coroutine gives; what it raises is raised."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: asyncio.run(main())).result()
