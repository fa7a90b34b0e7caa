"""Results of nodes are checked before use: for each task the real result, and damaged copies of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from backend.embedding.batch_executor import ResultRefused
from backend.embedding.embedder import TitleBatch
from backend.embedding.encoder_task import EncoderTask
from backend.federation.split.torch_tasks import FrozenStates, ModuleGradients, ModuleVectors

B, L, S, D = 3, 4, 6, 2
DRAW = np.random.default_rng(0)
MASK = (np.arange(L) < np.array([[1], [3], [4]])).astype(np.int64)
STATES = [DRAW.normal(size=(length, S)).astype(np.float16) for length in (1, 3, 4)]
VECTORS = DRAW.normal(size=(B, D)).astype(np.float32)
ENCODER = EncoderTask(Path("none"), "0" * 64, {"head.weight": np.zeros((D, S), np.float32)}, D, states=True)
INPUTS = {"pieces": np.zeros((B, L), np.int64), "piece_mask": MASK}
TITLES = TitleBatch(np.arange(B), INPUTS["pieces"], MASK)
MODULE = torch.nn.Linear(S, D)
ROWS = (np.eye(B, S, dtype=np.float32),)


def infinite(array: np.ndarray) -> np.ndarray:
    made = array.copy()
    made.flat[-1] = np.inf
    return made


def test_valid_results_pass() -> None:
    ENCODER.check(INPUTS, (VECTORS, STATES))
    ENCODER.check(INPUTS, (VECTORS, None))
    FrozenStates("packaged", None, 0, S).check(TITLES, STATES)
    FrozenStates("packaged", None, 0).check(TITLES, STATES)
    ModuleVectors(MODULE, D).check(ROWS, ModuleVectors(MODULE, D).open(1)(ROWS))
    ModuleGradients(MODULE).check((ROWS, VECTORS), ModuleGradients(MODULE).open(1)((ROWS, VECTORS)))


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ((VECTORS[:, :1], None), r"vectors: shape \(3, 2\) was expected, not \(3, 1\)"),
        ((VECTORS[:1], None), "vectors: shape"),
        ((VECTORS.astype(np.float64), None), "vectors: float32 was expected, not float64"),
        ((infinite(VECTORS), None), "vectors: not every number is finite"),
        ((VECTORS.tolist(), None), "vectors: an array was expected, not list"),
        ((VECTORS, STATES[:2]), "states: a list of 3"),
        ((VECTORS, STATES[::-1]), "states of row 0: shape"),
        ((VECTORS, [each[:, :1] for each in STATES]), r"states of row 0: shape \(1, 6\) was expected, not \(1, 1\)"),
        ((VECTORS, [*STATES[:2], infinite(STATES[2])]), "states of row 2: not every"),
        (VECTORS, "vectors and states"),
        (None, "vectors and states"),
    ],
)
def test_vectors_of_another_form_are_refused(wrong: Any, why: str) -> None:
    with pytest.raises(ResultRefused, match=why):
        ENCODER.check(INPUTS, wrong)


def test_unrequested_states_are_refused() -> None:
    task = EncoderTask(Path("none"), "0" * 64, {}, D, states=False)
    task.check(INPUTS, (VECTORS, None))
    with pytest.raises(ResultRefused, match="states: none"):
        task.check(INPUTS, (VECTORS, STATES))


@pytest.mark.parametrize("wrong", [None, STATES[:2], [*STATES[:2], STATES[2][:, :5]], [each[:, :5] for each in STATES]])
def test_states_of_another_form_are_refused(wrong: Any) -> None:
    with pytest.raises(ResultRefused, match="states"):
        FrozenStates("packaged", None, 0, S).check(TITLES, wrong)


@pytest.mark.parametrize(
    "damage", [lambda it: it[:, :1], lambda it: it[:1], infinite, lambda it: it.astype(np.float64)]
)
def test_invalid_module_vectors_and_gradients_are_refused(damage: Callable[[np.ndarray], np.ndarray]) -> None:
    with pytest.raises(ResultRefused, match="vectors: "):
        ModuleVectors(MODULE, D).check(ROWS, damage(VECTORS))
    gradients = ModuleGradients(MODULE).open(1)((ROWS, VECTORS))
    with pytest.raises(ResultRefused, match=r"gradient of weight: "):
        ModuleGradients(MODULE).check((ROWS, VECTORS), {**gradients, "weight": damage(gradients["weight"])})


def test_gradients_of_other_parameters_are_refused() -> None:
    gradients = ModuleGradients(MODULE).open(1)((ROWS, VECTORS))
    for wrong in ({"weight": gradients["weight"]}, {**gradients, "other": gradients["bias"]}, None):
        with pytest.raises(ResultRefused, match="the trained parameters"):
            ModuleGradients(MODULE).check((ROWS, VECTORS), wrong)
