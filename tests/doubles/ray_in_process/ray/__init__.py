"""What `backend.embedding.ray_driver` calls of Ray, without a cluster: its own process computes, when it is asked for a
result. As between machines, everything goes through pickle. It is found by PYTHONPATH before the real one."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

CPUS = 2


@dataclass(frozen=True)
class Reference:
    """To what is made when it is asked for."""

    make: Callable[[], Any]


def init(**options: Any) -> None:
    """Nothing is to be joined."""


def cluster_resources() -> dict[str, float]:
    return {"CPU": float(CPUS)}


def put(held: Any) -> Reference:
    return Reference(lambda: held)


def get(reference: Reference) -> Any:
    return pickle.loads(pickle.dumps(reference.make()))


def remote(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """As the decorator of functions."""

    class Remote:
        def __init__(self, function: Callable[..., Any]) -> None:
            self._function = function

        def remote(self, *given: Any) -> Reference:
            return Reference(lambda: self._function(*given))

    return Remote
