"""Graph sessions are shared by hash, bound to a release's weights, and strict about names and shapes."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from device_app.errors import GraphMismatch
from device_app.ranking.groups import ReaderVector, nearest_group
from device_app.ranking.session import GraphSession, shared_session, usable
from tests.doubles.failing_graphs import failing
from tests.doubles.graphs import cosine_score_graph, decompose_graph

KEYS = np.eye(3, 4, dtype=np.float32)


def test_devices_and_releases_share_one_session_of_a_graph(tmp_path: Path) -> None:
    graph = decompose_graph(4, 3)
    file = tmp_path / "graph.onnx"
    file.write_bytes(graph)
    first, second = GraphSession(graph, {"basis_keys": KEYS}), GraphSession(file, {"basis_keys": 2 * KEYS})
    assert first._session is second._session
    inputs = {"contexts": np.ones((1, 50, 4), np.float32), "membership": np.ones((1, 5, 50), np.float32)}
    np.testing.assert_allclose(second(**inputs)["scores"], 2 * first(**inputs)["scores"])


def test_unused_session_is_freed() -> None:
    graph = decompose_graph(5, 2)
    first = id(shared_session(graph, threads=1))
    held = shared_session(graph, threads=1)
    gc.collect()
    assert shared_session(graph, threads=1) is held
    assert isinstance(first, int)


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ({}, "parameter basis_keys: declared by the graph, missing"),
        ({"basis_keys": np.zeros((3, 5), np.float32)}, r"parameter basis_keys: shape \(3, 5\)"),
        ({"basis_keys": np.zeros(12, np.float32)}, r"parameter basis_keys: shape \(12,\)"),
    ],
)
def test_weights_that_do_not_match_the_graph_are_named_in_the_error(weights: dict[str, np.ndarray], words: str) -> None:
    with pytest.raises(GraphMismatch, match=words):
        GraphSession(decompose_graph(4, 3), weights)


def test_private_parameter_missing_from_the_release_is_zero() -> None:
    inputs = {"contexts": np.ones((1, 50, 4), np.float32), "membership": np.ones((1, 5, 50), np.float32)}
    fresh = GraphSession(decompose_graph(4, 3), {}, private=("basis_keys",))
    assert fresh(**inputs)["scores"].tolist() == np.zeros((1, 5, 3)).tolist()
    learnt = GraphSession(decompose_graph(4, 3), {"basis_keys": KEYS}, private=("basis_keys",))
    np.testing.assert_array_equal(
        learnt(**inputs)["scores"], GraphSession(decompose_graph(4, 3), {"basis_keys": KEYS})(**inputs)["scores"]
    )


def test_weights_the_graph_does_not_declare_are_ignored() -> None:
    session = GraphSession(decompose_graph(4, 3), {"basis_keys": KEYS, "basis_values": np.zeros((9, 9), np.float32)})
    assert set(session.inputs) == {"contexts", "membership"}


def test_missing_and_unknown_inputs_are_named_in_the_error() -> None:
    session = GraphSession(decompose_graph(4, 3), {"basis_keys": KEYS})
    with pytest.raises(GraphMismatch, match="input membership: missing"):
        session(contexts=np.ones((1, 50, 4), np.float32))
    with pytest.raises(GraphMismatch, match="input age: not declared"):
        session(
            contexts=np.ones((1, 50, 4), np.float32),
            membership=np.ones((1, 5, 50), np.float32),
            age=np.ones(1, np.float32),
        )


def test_bytes_that_are_not_a_graph_are_refused() -> None:
    with pytest.raises(GraphMismatch, match=r"graph [0-9a-f]{12}: model has field 13"):
        GraphSession(b"not a graph", {})
    assert GraphSession(cosine_score_graph(4), {"beta": np.array(8, np.float32)}).outputs == ("scores",)


@pytest.mark.parametrize(
    "made",
    [
        lambda: np.array([1.0, np.nan], np.float32),
        lambda: np.array([1.0, 1e300]),
        lambda: np.array([1.0], np.float32),
        lambda: np.array(["a", "b"]),
        lambda: [[1.0, 2.0], [3.0]],
        lambda: 1 / 0,
    ],
)
def test_fallback_replaces_an_unusable_graph_output(
    made: Callable[[], object], caplog: pytest.LogCaptureFixture
) -> None:
    otherwise = np.array([7.0, 8.0], np.float32)
    assert usable(made, otherwise, "scores") is otherwise
    assert "scores: the release's model can't be used" in caplog.text


def test_usable_graph_output_is_returned() -> None:
    made = np.array([1.0, -3e38], np.float32)
    assert usable(lambda: made, np.zeros(2, np.float32), "scores").tolist() == made.tolist()


@pytest.mark.parametrize("failure", ["nan", "gather"])
def test_reader_whose_clicks_make_the_graph_fail_gets_the_first_group(failure: str) -> None:
    clicks = np.eye(4, dtype=np.float32)[:2]
    graph = failing(cosine_score_graph(4), "scores", clicks[0], 0.5, failure)
    vector = ReaderVector(graph, {"beta": np.array(8.0, np.float32)}, features=0)
    assert vector(clicks).tolist() == [0.0] * 4
    assert vector(-clicks).any()
    assert nearest_group(np.eye(4, dtype=np.float32), vector(clicks)) == 0
