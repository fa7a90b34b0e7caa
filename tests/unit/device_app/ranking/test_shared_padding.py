"""Padding common to all histories is not computed. Oracle: ONNX Runtime on the padded inputs."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

from device_app.ranking.padding import SharedPadding, left_padded
from device_app.ranking.session import GraphSession, shared_session
from protocol.recall import CLICKS_AXIS
from tests.doubles.graphs import context_graph, cosine_score_graph, decompose_graph

DIM = 4
RNG = np.random.default_rng(5)
CANDIDATES = RNG.normal(size=(3, 7, DIM)).astype(np.float32)


def freed(graph: bytes) -> bytes:
    """Return the same graph with a free axis of clicks instead of fifty."""
    proto = onnx.load_from_string(graph)
    for value in (*proto.graph.input, *proto.graph.output):
        for axis in value.type.tensor_type.shape.dim:
            if axis.dim_value == 50:
                axis.dim_param = CLICKS_AXIS
    return bytes(proto.SerializeToString())


def histories(*lengths: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    padded = [left_padded(RNG.normal(size=(length, DIM)).astype(np.float32)) for length in lengths]
    return np.concatenate([rows for rows, _ in padded]), np.concatenate([mask for _, mask in padded])


@pytest.mark.parametrize("lengths", [(3, 17, 1), (50, 2, 0), (0, 0, 0), (1, 1, 1)])
def test_scores_and_contexts_match_the_padded_batch(lengths: tuple[int, ...]) -> None:
    clicks, mask = histories(*lengths)
    for graph, weights, inputs in (
        (cosine_score_graph(DIM), {"beta": np.array(8, np.float32)}, {"candidates": CANDIDATES}),
        (context_graph(DIM), {}, {}),
    ):
        given = {"clicks": clicks, "click_mask": mask, **inputs}
        wanted = shared_session(graph, threads=1).run(
            None, given | {f"p.{name}": each for name, each in weights.items()}
        )
        (got,) = GraphSession(freed(graph), weights)(**given).values()
        np.testing.assert_allclose(got, wanted[0], atol=1e-6)


def test_graph_runs_only_for_the_longest_history_of_the_batch() -> None:
    clicks, mask = histories(3, 17, 1)
    padding = SharedPadding({"clicks": 1, "click_mask": 1}, {"contexts": 1})
    given = {"clicks": clicks, "click_mask": mask, "candidates": CANDIDATES}
    count = padding.count(given)
    cut = padding.cut(given, count)
    assert {name: each.shape for name, each in cut.items()} == {
        "clicks": (3, 17, DIM),
        "click_mask": (3, 17),
        "candidates": CANDIDATES.shape,
    }
    assert padding.put_back({"contexts": cut["clicks"]}, count)["contexts"].tolist() == clicks.tolist()


def test_batch_without_clicks_keeps_one_column_of_padding() -> None:
    padding = SharedPadding({"click_mask": 1}, {})
    assert padding.count({"click_mask": np.zeros((2, 50), np.float32)}) == 49
    assert padding.count({"click_mask": np.zeros((2, 1), np.float32)}) == 0


def test_membership_marks_padding_when_there_is_no_mask() -> None:
    contexts, mask = histories(9)
    membership = np.zeros((1, 5, 50), np.float32)
    membership[0, 2] = mask[0]
    keys = RNG.normal(size=(3, DIM)).astype(np.float32)
    graph = decompose_graph(DIM, 3)
    given = {"contexts": contexts, "membership": membership}
    got = GraphSession(freed(graph), {"basis_keys": keys})(**given)["scores"]
    np.testing.assert_allclose(got, GraphSession(graph, {"basis_keys": keys})(**given)["scores"], atol=1e-6)
    session = shared_session(freed(graph), threads=1)
    assert SharedPadding.of(session.get_inputs(), session.get_outputs()).count(given) == 41


def test_older_graphs_with_a_fixed_axis_get_the_full_padding() -> None:
    clicks, mask = histories(2)
    session = shared_session(context_graph(DIM), threads=1)
    padding = SharedPadding.of(session.get_inputs(), session.get_outputs())
    assert padding.count({"clicks": clicks, "click_mask": mask}) == 0
    assert GraphSession(context_graph(DIM), {})(clicks=clicks, click_mask=mask)["contexts"].shape == (1, 50, DIM)
