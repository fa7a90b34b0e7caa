"""What the processes of a pool do when the server that started them is killed."""

from __future__ import annotations

import os
from multiprocessing import parent_process
from threading import Thread


def end_with_parent() -> None:
    """The initializer of a process pool's processes: they end with whoever started them, however that ended.

    They would wait for work for ever otherwise, with all that they have loaded: each holds the other end of its queue.
    """
    Thread(target=_wait, name="end-with-parent", daemon=True).start()


def _wait() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)  # whatever it is doing: nobody is left to hear of it
