"""A ServerApp and a ClientApp for Flower users: its message API around our own parts.

The server half is `simulate` with clients that Flower's grid reaches; the client half is a device's task. A message to
a node holds the parameters and names the reader and the round; the answer holds the update. Flower decides where each
reader runs; the computation is ours, so the weights equal those of `OneProcess` to the bit.

Formal guarantees: none. A client's noise (`protect`) is drawn from the run's seed, as in every simulation, so whoever
knows the seed can remove it: it shows what noise costs, and hides nothing from the server. The ledger, signed releases
and secure sums of an Ownfeed device are not part of this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, MessageType, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp

from backend.federation.bounded_mean import gradient_shapes
from backend.federation.optimizers import Optimizer, Weights
from backend.federation.strategies.fedavg import FedAvg
from device_app.training.gradients import Params
from device_app.training.tasks.task import Update
from experiments.simulation.clients import PartialSum, SimulatedDevice, blocks_of, empty_sums, sum_updates
from experiments.simulation.rounds import Rounds, simulate

PARAMETERS, UPDATE, ASKED, METRICS = "parameters", "update", "asked", "metrics"
TRAINED = "trained"
"""The key of a finished run's weights in the ServerApp's context."""


class FlowerFailed(RuntimeError):
    """A node answered with an error, or not at all."""


class GridClients:
    """Computes a cohort's updates on Flower's grid: a `Clients`.

    Node r modulo the number of nodes runs reader r.
    """

    def __init__(self, grid: Grid, *, timeout_sec: float | None = None) -> None:
        self._grid, self._timeout_sec = grid, timeout_sec

    def partial_sums(self, params: Params, readers: Sequence[int], round_number: int) -> Iterator[PartialSum]:
        """Return the sum of each block, in the readers' order whichever answers first. Raises FlowerFailed."""
        updates = self._updates(params, readers, round_number)
        for block in blocks_of(readers):
            sums = empty_sums(gradient_shapes(params))
            yield PartialSum(sums, sum_updates((updates[reader] for reader in block), sums), len(block))

    def _updates(self, params: Params, readers: Sequence[int], round_number: int) -> dict[int, Update]:
        nodes = sorted(self._grid.get_node_ids())
        if not nodes:
            raise FlowerFailed("no node of Flower is connected")
        held = _record(params)
        messages = [
            Message(
                RecordDict({PARAMETERS: held, ASKED: ConfigRecord({"reader": reader, "round": round_number})}),
                dst_node_id=nodes[reader % len(nodes)],
                message_type=MessageType.TRAIN,
                group_id=str(round_number),
            )
            for reader in readers
        ]
        found: dict[int, Update] = {}
        for answer in self._grid.send_and_receive(messages, timeout=self._timeout_sec):
            if answer.has_error():
                raise FlowerFailed(f"node {answer.metadata.src_node_id}: {answer.error.reason}")
            metrics = answer.content.metric_records[METRICS]
            found[int(metrics["reader"])] = Update(
                {name: each.numpy() for name, each in answer.content.array_records[UPDATE].items()},
                loss=float(metrics["loss"]),
                samples=int(metrics["samples"]),
            )
        if missing := [reader for reader in readers if reader not in found]:
            raise FlowerFailed(f"no answer for {len(missing)} of {len(readers)} readers")
        return found


def client_app(make_device: Callable[[], SimulatedDevice]) -> ClientApp:
    """Return a ClientApp that runs our device for the reader named in a message."""
    app = ClientApp()

    @app.train()
    def train(message: Message, context: Context) -> Message:
        params = {name: each.numpy() for name, each in message.content.array_records[PARAMETERS].items()}
        config = message.content.config_records[ASKED]
        reader, round_number = int(config["reader"]), int(config["round"])
        update = make_device().update(params, reader, round_number)
        content = RecordDict(
            {
                UPDATE: ArrayRecord(
                    {name: Array(np.asarray(each, dtype=np.float32)) for name, each in update.tensors.items()}
                ),
                METRICS: MetricRecord({"reader": reader, "loss": float(update.loss), "samples": int(update.samples)}),
            }
        )
        return Message(content, reply_to=message)

    return app


def server_app(weights: Weights, plan: Rounds, strategy: FedAvg, optimizer: Optimizer) -> ServerApp:
    """Return a ServerApp that runs the rounds and stores the weights under TRAINED in its context's state."""
    app = ServerApp()

    @app.main()
    def main(grid: Grid, context: Context) -> None:
        trained = simulate(GridClients(grid), weights, plan, strategy, optimizer)
        context.state[TRAINED] = ArrayRecord(
            {name: Array(np.asarray(each, dtype=np.float32)) for name, each in trained.weights.items()}
        )

    return app


def _record(tensors: Params) -> ArrayRecord:
    return ArrayRecord({name: Array(np.asarray(each, dtype=np.float32)) for name, each in tensors.items()})
