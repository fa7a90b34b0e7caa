"""What a node of a Ray cluster runs. It is imported there by its name: a node has what the backend's machine has."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import ray

from backend.embedding.batch_executor import BatchTask
from backend.embedding.ray_executor import NODE_THREADS

NODE_ENVIRONMENT = {
    "OMP_NUM_THREADS": str(NODE_THREADS),
    "OPENBLAS_NUM_THREADS": str(NODE_THREADS),
    "TOKENIZERS_PARALLELISM": "false",
}
SAME_VERSIONS = ("ownfeed", "numpy", "onnxruntime", "torch", "transformers")
"""Of what a result to the bit hangs on; Ray itself wants its own and Python's to be the same."""

_opened: tuple[str, Callable[[Any], Any]] | None = None
"""On a node: what computes batches of the task that came last."""


class NodeDiffers(RuntimeError):
    """A node has other versions than the backend."""


def versions() -> dict[str, str]:
    """As they are installed here."""
    found: dict[str, str] = {}
    for name in SAME_VERSIONS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "none"
    return found


def compute(key: str, held: list[Any], expected: dict[str, str], batch: Any) -> Any:
    """On a node: one batch. held: the reference to the task, in a list so that Ray brings it only when it is asked.

    Raises NodeDiffers."""
    global _opened
    if _opened is None or _opened[0] != key:
        for name, found in versions().items():
            if found != expected[name]:
                raise NodeDiffers(f"a node has {name} {found}, and the backend {expected[name]}")
        task: BatchTask[Any, Any] = ray.get(held[0])
        _opened = key, task.open(NODE_THREADS)
    return _opened[1](batch)
