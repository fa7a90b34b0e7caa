"""Processor time of the threads of a browser's renderers. Linux only.

On a busy machine the time of a visit depends on other processes; the processor time doesn't.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import psutil

KINDS: Mapping[str, str] = {
    "DedicatedWorker": "worker",
    "ServiceWorker th": "service worker",
    "ThreadPoolForeg": "compilers",
    "ThreadPoolSingl": "compilers",
}
"""What threads do, by the beginnings of their names in the kernel; a renderer's other threads belong to the page."""
PAGE = "page"


def ran_ms(processes: list[psutil.Process]) -> Counter[str]:
    """Return by kind the milliseconds that these processes' threads have run since their start."""
    found: Counter[str] = Counter()
    for each in processes:
        for thread in Path(f"/proc/{each.pid}/task").glob("*"):
            try:
                name = (thread / "comm").read_text(encoding="utf-8").strip()
                ran_ns = int((thread / "schedstat").read_text(encoding="ascii").split()[0])
            except (OSError, ProcessLookupError):
                continue  # ended meanwhile
            kind = next((kind for begin, kind in KINDS.items() if name.startswith(begin)), PAGE)
            found[kind] += round(ran_ns / 1e6)
    return found


def renderers() -> list[psutil.Process]:
    """Return the renderers of every browser that this process started."""
    found = []
    for each in psutil.Process().children(recursive=True):
        try:
            if "--type=renderer" in each.cmdline():
                found.append(each)
        except (psutil.NoSuchProcess, psutil.ZombieProcess):
            continue
    return found
