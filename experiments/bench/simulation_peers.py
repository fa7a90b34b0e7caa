# mypy: disable-error-code="import-not-found,import-untyped,untyped-decorator,no-untyped-call"
"""Trains NRMS on the readers of `bench simulation` with Apple's pfl or with Flower, and prints JSON.

It runs in a Python that has them (`OWNFEED_FLOWER_PYTHON`) and imports only the model from Ownfeed.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[2]))
from models.builders.rankers import nrms_user

RATE = 0.01


class SavedReaders:
    """The samples of each reader as tensors, from the file that the bench wrote."""

    def __init__(self, path: str) -> None:
        self._held = dict(np.load(path))
        self.count = len(self._held["offsets"]) - 1

    def of(self, reader: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return clicks [n, 50, D], mask [n, 50] and candidates [n, 1 + K, D]."""
        rows = slice(*self._held["offsets"][reader : reader + 2])
        vectors, clicks = self._held["vectors"], self._held["clicks"][rows]
        mask = (clicks != len(vectors) - 1).astype(np.float32)
        found = (vectors[clicks], mask, vectors[self._held["candidates"][rows]])
        clicks_found, mask_found, candidates_found = map(torch.from_numpy, found)
        return clicks_found, mask_found, candidates_found


def pfl(readers: SavedReaders, rounds: int, cohort: int) -> list[float]:
    """Return the time after each round of pfl's simulation; under torchrun it uses several processes."""
    from pfl.aggregate.simulate import SimulatedBackend
    from pfl.algorithm.base import NNAlgorithmParams
    from pfl.algorithm.federated_averaging import FederatedAveraging
    from pfl.callback.base import TrainingProcessCallback
    from pfl.data.dataset import Dataset
    from pfl.data.federated_dataset import FederatedDataset
    from pfl.data.sampling import get_user_sampler
    from pfl.hyperparam.base import NNTrainHyperParams
    from pfl.metrics import Metrics
    from pfl.model.pytorch import PyTorchModel

    times: list[float] = []

    class Watch(TrainingProcessCallback):  # type: ignore[misc]
        def after_central_iteration(self, aggregate_metrics: Any, model: Any, *, central_iteration: int) -> Any:
            times.append(time.perf_counter())
            return False, Metrics()

    model = nrms_user()
    model.metrics = lambda *given: {}  # type: ignore[assignment]
    data = FederatedDataset(
        lambda reader: Dataset(raw_data=readers.of(reader)), get_user_sampler("random", list(range(readers.count)))
    )
    FederatedAveraging().run(
        NNAlgorithmParams(
            central_num_iterations=rounds, evaluation_frequency=rounds + 1, train_cohort_size=cohort,
            val_cohort_size=0,
        ),
        SimulatedBackend(training_data=data, val_data=data),
        PyTorchModel(model, torch.optim.SGD, torch.optim.SGD(model.parameters(), 1.0)),
        NNTrainHyperParams(local_num_epochs=1, local_learning_rate=RATE, local_batch_size=None),
        None,
        [Watch()],
    )  # fmt: skip
    return times


def flower(readers: SavedReaders, rounds: int, cohort: int) -> list[float]:
    """Return the time after each round of Flower's simulation, with one client per core."""
    from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
    from flwr.clientapp import ClientApp
    from flwr.serverapp import Grid, ServerApp
    from flwr.serverapp.strategy import FedAvg
    from flwr.simulation import run_simulation

    times: list[float] = []
    client, server = ClientApp(), ServerApp()

    @client.train()
    def train(message: Message, context: Context) -> Message:
        torch.set_num_threads(1)
        model = nrms_user()
        model.load_state_dict(message.content["arrays"].to_torch_state_dict())
        given = readers.of(int(context.node_config["partition-id"]))
        optimizer = torch.optim.SGD(model.parameters(), RATE)
        model.loss(*given).backward()
        optimizer.step()
        kept = {"arrays": ArrayRecord(model.state_dict()), "metrics": MetricRecord({"num-examples": len(given[0])})}
        return Message(RecordDict(kept), reply_to=message)

    @server.main()
    def main(grid: Grid, context: Context) -> None:
        strategy = FedAvg(fraction_train=cohort / readers.count, fraction_evaluate=0.0)
        strategy.start(
            grid, ArrayRecord(nrms_user().state_dict()), num_rounds=rounds,
            evaluate_fn=lambda number, arrays: times.append(time.perf_counter()),
        )  # fmt: skip

    run_simulation(server, client, readers.count, backend_config={"client_resources": {"num_cpus": 1}})
    return times[1:]


def main(name: str, path: str, rounds: int, cohort: int) -> None:
    """Print the seconds of each round but the first, which starts processes."""
    torch.set_num_threads(1)
    times = {"pfl": pfl, "flower": flower}[name](SavedReaders(path), rounds, cohort)
    sys.stdout.write(json.dumps({"seconds": np.diff(times).tolist()}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
