"""Our rounds on Flower. Oracle: one process, bitwise.

Messages go through Flower's own encoding to bytes and back, as between its SuperLink and its nodes; only the transport
is a double. Skipped where Flower isn't installed: it pins other versions than `constraints.txt`, so it has an
environment of its own (docs/commands.md).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray

pytest.importorskip("flwr", reason="Flower is not installed: pip install -c constraints-flower.txt '.[flower]'")

from flwr.app import Context, Error, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.common.serde import message_from_proto, message_to_proto
from flwr.serverapp import Grid
from flwr.supercore.task_identity import TaskIdentity

from backend.federation.optimizers import Sgd
from backend.federation.strategies.fedavg import FedAvg
from device_app.training.tasks.task import Update
from experiments.simulation.clients import OneProcess
from experiments.simulation.flower_apps import TRAINED, FlowerFailed, GridClients, client_app, server_app
from experiments.simulation.rounds import Rounds, simulate
from tests.doubles.synthetic_cohort import READERS, made_up, make_device

PLAN = Rounds(rounds=3, cohort=5, readers=READERS, seed=3)
NODES = 3


@pytest.fixture(autouse=True)
def task() -> None:
    """Set what Flower's runtime tells a process before it starts an app."""
    TaskIdentity.task_id, TaskIdentity.run_id, TaskIdentity.node_id = 1, 1, 1


def over_the_wire(message: Message) -> Message:
    return message_from_proto(type(message_to_proto(message)).FromString(message_to_proto(message).SerializeToString()))


def context(node_id: int) -> Context:
    return Context(run_id=1, node_id=node_id, node_config={}, state=RecordDict(), run_config={})


class LoopbackGrid(Grid):
    """Nodes of one ClientApp, which answers in reverse order."""

    def __init__(self, app: ClientApp, *, nodes: int = NODES, fail: str = "", silent: bool = False) -> None:
        self._app, self._nodes, self._fail, self._silent = app, nodes, fail, silent
        self.asked_nodes: set[int] = set()

    def set_run(self, run: object) -> None:
        raise NotImplementedError

    @property
    def run(self) -> object:
        raise NotImplementedError

    def create_message(self, *args: object, **kwargs: object) -> Message:
        raise NotImplementedError

    def get_node_ids(self) -> Iterable[int]:
        return [7 + node for node in reversed(range(self._nodes))]

    def get_nodes(self) -> Iterable[object]:
        raise NotImplementedError

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        raise NotImplementedError

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        raise NotImplementedError

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> Iterable[Message]:
        answers = [self._answered(over_the_wire(message)) for message in messages]
        return answers[self._silent :][::-1]

    def _answered(self, message: Message) -> Message:
        self.asked_nodes.add(message.metadata.dst_node_id)
        if self._fail:
            return over_the_wire(Message(Error(code=0, reason=self._fail), reply_to=message))
        node = Context(
            run_id=1, node_id=message.metadata.dst_node_id, node_config={}, state=RecordDict(), run_config={}
        )
        return over_the_wire(self._app(message, node))


def test_flower_run_gives_the_weights_of_one_process() -> None:
    make = partial(make_device, *made_up())
    first = {"w": np.zeros(3, np.float32)}
    expected = simulate(OneProcess(make()), first, PLAN, FedAvg(), Sgd(learning_rate=0.3)).weights["w"]
    assert np.abs(expected).max() > 0.01
    grid = LoopbackGrid(client_app(make))
    run = context(0)
    server_app(first, PLAN, FedAvg(), Sgd(learning_rate=0.3))(grid, run)
    np.testing.assert_array_equal(run.state.array_records[TRAINED]["w"].numpy(), expected)
    assert grid.asked_nodes == {7, 8, 9}


def test_update_is_protected_before_it_leaves_the_client() -> None:
    def noisy(update: Update, rng: np.random.Generator) -> dict[str, NDArray[np.float32]]:
        return {name: np.float32(1_000) + 0 * each for name, each in update.tensors.items()}

    device = replace(make_device(*made_up()), protect=noisy)
    grid = LoopbackGrid(client_app(lambda: device))
    (block,) = GridClients(grid).partial_sums({"w": np.zeros(3, np.float32)}, [2], 0)
    assert block.readers == 1
    np.testing.assert_array_equal(block.sums["g.w"], np.full(3, 1_000))


def test_failing_or_silent_node_ends_the_run_with_its_reason() -> None:
    app = client_app(partial(make_device, *made_up()))
    params = {"w": np.zeros(3, np.float32)}
    with pytest.raises(FlowerFailed, match="node 8: the disk is full"):
        list(GridClients(LoopbackGrid(app, fail="the disk is full")).partial_sums(params, [1], 0))
    with pytest.raises(FlowerFailed, match="no answer for 1 of 3 readers"):
        list(GridClients(LoopbackGrid(app, silent=True)).partial_sums(params, [0, 1, 2], 0))
    with pytest.raises(FlowerFailed, match="no node of Flower is connected"):
        list(GridClients(LoopbackGrid(app, nodes=0)).partial_sums(params, [1], 0))
