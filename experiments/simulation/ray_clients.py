"""Runs clients on the nodes of a Ray cluster, with the same numbers as one process.

Each core of the cluster holds one device, which it builds once. A round's parameters go into the cluster's store once,
and every core takes the next block of readers when it has finished one. The computation does not depend on Ray: a
reader's draws come from the seed, the round and the reader (`SimulatedDevice`). For equality to the bit, nodes must
have the same versions installed, on processors with the same instructions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Any

import ray
from ray.util import ActorPool

from backend.federation.bounded_mean import gradient_shapes
from device_app.training.gradients import Params
from experiments.simulation.clients import PartialSum, SimulatedDevice, block_sum, blocks_of, empty_sums

NODE_THREADS = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
"""Part of every worker's environment: one core each, as with `ManyProcesses`."""


class RayClients:
    """One worker per core of a cluster; use as a context manager.

    Args:
        make_device: a picklable call that builds the device on each core.
        address: address of a running cluster, `host:port`; None starts one on this machine while the block runs.
        workers: number of workers; by default the cluster's cores.

    Raises ConnectionError if no cluster answers at the address.
    """

    def __init__(
        self, make_device: Callable[[], SimulatedDevice], address: str | None = None, workers: int | None = None
    ) -> None:
        own: dict[str, Any] = {} if address else {"include_dashboard": False}
        ray.init(address=address, log_to_driver=False, logging_level="error", **own)
        self._count = workers or int(ray.cluster_resources()["CPU"])
        worker = ray.remote(num_cpus=1, scheduling_strategy="SPREAD", runtime_env={"env_vars": NODE_THREADS})(_Worker)
        self._workers: list[Any] = [worker.remote(make_device) for _ in range(self._count)]

    def partial_sums(self, params: Params, readers: Sequence[int], round_number: int) -> Iterator[PartialSum]:
        held = ray.put(dict(params))
        found: Iterator[PartialSum] = ActorPool(self._workers).map(
            lambda worker, block: worker.block_sum.remote(held, block, round_number), blocks_of(readers)
        )
        return found

    @property
    def nodes(self) -> tuple[str, ...]:
        """Return the node of each worker."""
        return tuple(ray.get([worker.node.remote() for worker in self._workers]))

    def __enter__(self) -> RayClients:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in self._workers:
            ray.kill(worker)
        ray.shutdown()


class _Worker:
    """One core's device."""

    def __init__(self, make_device: Callable[[], SimulatedDevice]) -> None:
        self._device = make_device()

    def block_sum(self, params: Params, block: Sequence[int], round_number: int) -> PartialSum:
        return block_sum(self._device, params, block, round_number, empty_sums(gradient_shapes(params)))

    def node(self) -> str:
        """Return the id of this worker's node."""
        return str(ray.get_runtime_context().get_node_id())
