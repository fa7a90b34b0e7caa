"""The process that devices run in: told once, by whoever starts it, to leave the machine to others."""

from __future__ import annotations

import gc
import os


def one_thread() -> None:
    """Keep numpy to one thread. Call it before anything imports numpy: OpenBLAS reads its setting only then.

    A device multiplies small matrices, for which starting a second thread costs more than it gives, and the idle ones
    spin on the core that draws the page. Starting commands call this, not a module on import, because the backend
    imports parts of this package too and may use every core. A number set in the environment stays.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def freeze_gc() -> None:
    """Have the garbage collector leave alone what is loaded by now. Call it once, before serving.

    Modules, models and schemas stay until the end; walking through them took some 60 ms, every 80 feeds or so.
    """
    gc.collect()
    gc.freeze()
