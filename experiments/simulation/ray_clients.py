"""Clients on the nodes of a Ray cluster: the same numbers as one process, from as many cores as the cluster has.

A core of the cluster holds one device, which it builds once. A round's parameters are put into the cluster's store
once, and every core computes its share of the readers. Nothing of Ray is in what is computed: a reader's draws come
from the seed, the round and the reader (`SimulatedDevice`), whoever computes them. What a node runs must be installed
there, at the same versions, on a processor with the same instructions: that is what equality to the bit hangs on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Any

import ray

from device_app.training.gradients import Params
from device_app.training.tasks.task import Update
from experiments.simulation.clients import SimulatedDevice

NODE_THREADS = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
"""Of every worker's environment: a core each, as with `ManyProcesses`."""


class RayClients:
    """A worker a core of a cluster; use as a context manager.

    Args:
        make_device: a picklable call that builds the device on each core.
        address: of a running cluster, `host:port`; None starts one on this machine for as long as the block runs.
        workers: how many; by default the cluster's cores.

    Raises ConnectionError where no cluster answers at the address.
    """

    def __init__(
        self, make_device: Callable[[], SimulatedDevice], address: str | None = None, workers: int | None = None
    ) -> None:
        own: dict[str, Any] = {} if address else {"include_dashboard": False}
        ray.init(address=address, log_to_driver=False, logging_level="error", **own)
        self._count = workers or int(ray.cluster_resources()["CPU"])
        worker = ray.remote(num_cpus=1, scheduling_strategy="SPREAD", runtime_env={"env_vars": NODE_THREADS})(_Worker)
        self._workers: list[Any] = [worker.remote(make_device) for _ in range(self._count)]

    def updates(self, params: Params, readers: Sequence[int], round_number: int) -> Iterator[Update]:
        """One update a reader."""
        held = ray.put(dict(params))
        shares = [list(readers[place :: self._count]) for place in range(self._count)]
        jobs = [
            worker.updates.remote(held, share, round_number)
            for worker, share in zip(self._workers, shares, strict=True)
        ]
        done: list[list[Update]] = ray.get(jobs)
        return (done[place % self._count][place // self._count] for place in range(len(readers)))

    @property
    def nodes(self) -> tuple[str, ...]:
        """The node that each worker runs on."""
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

    def updates(self, params: Params, readers: Sequence[int], round_number: int) -> list[Update]:
        """One update a reader."""
        return [self._device.update(params, reader, round_number) for reader in readers]

    def node(self) -> str:
        """The id of the node that this runs on."""
        return str(ray.get_runtime_context().get_node_id())
