"""A stand-in for Ray that provides what `backend.embedding.ray_driver` calls, without a cluster.

Its own process computes a result when it is requested. As between machines, everything passes through pickle.
PYTHONPATH makes it found before the real one.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

CPUS = 2


@dataclass(frozen=True)
class Reference:
    """A reference to a result that is computed when requested."""

    make: Callable[[], Any]


def init(**options: Any) -> None:
    """Do nothing, as there is no cluster to join."""


def cluster_resources() -> dict[str, float]:
    return {"CPU": float(CPUS)}


def put(held: Any) -> Reference:
    return Reference(lambda: held)


def get(reference: Reference) -> Any:
    return pickle.loads(pickle.dumps(reference.make()))


def remote(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """The decorator for functions."""

    class Remote:
        def __init__(self, function: Callable[..., Any]) -> None:
            self._function = function

        def remote(self, *given: Any) -> Reference:
            return Reference(lambda: self._function(*given))

    return Remote
