"""Private parameters in experiments. Oracle: the model's own declaration."""

from __future__ import annotations

import numpy as np

from experiments.simulation.clients import SharedGradients, ranker_inputs
from exporters.signature import parameters
from models.builders.user import lstur
from models.shapes import private_names
from tests.doubles.engines import TorchEngine

D = 8


def test_private_parameter_gets_no_gradient_and_other_parameters_keep_theirs() -> None:
    model = lstur("ini", dim=D)
    inputs = ranker_inputs(D)
    rng = np.random.default_rng(3)
    batch = {one.name: rng.random(one.shape({"batch": 2}), dtype=np.float32) for one in inputs}
    params = {name: np.asarray(value) for name, value in parameters(model).items()}
    plain = TorchEngine(model, inputs)(params, batch)
    shared = SharedGradients(TorchEngine(model, inputs), private_names(model))(params, batch)
    assert private_names(model) == ("user_embedding",)
    assert np.abs(plain.tensors["g.user_embedding"]).max() > 0
    assert not shared.tensors["g.user_embedding"].any()
    assert shared.loss == plain.loss
    for name in set(plain.tensors) - {"g.user_embedding"}:
        np.testing.assert_array_equal(shared.tensors[name], plain.tensors[name])
