"""Child processes that end with the server, and the environment of those that read untrusted bytes."""

from __future__ import annotations

import os
from multiprocessing import parent_process
from threading import Thread


def end_with_parent() -> None:
    """Initializer of a process pool's processes: makes them exit when their parent ends, however it ends.

    Otherwise they would wait for work forever, with everything they have loaded: each holds the other end of its queue.
    """
    Thread(target=_wait, name="end-with-parent", daemon=True).start()


def _wait() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)  # whatever it is doing: nobody is left to receive its result


NAMES = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT")
"""Python finds its libraries by these; Windows starts no process without the last."""


def child_environment() -> dict[str, str]:
    """The complete environment of a process that reads untrusted bytes: paths, but no settings or secrets."""
    return {name: os.environ[name] for name in NAMES if name in os.environ}
