"""Graphs that travel with Ownfeed. Oracle: the same graphs, exported again and compared with torch."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable

import numpy as np
import pytest
from safetensors.numpy import load_file

from backend.embedding.weights import ALL_MINILM_L6_V2, PACKAGED, WEIGHTS_FILE, find_weights
from backend.settings import DIMENSIONS
from backend.setup.shipping import encoder_entry_of, small_entries
from exporters.graph_cache import CachedGraphs
from exporters.shipped import FOLDER, encoder_entry, filled, shipped, shipped_model, without_weights
from protocol.graph_check import check_graph
from tests.doubles.long_form import by_length

pytestmark = [pytest.mark.long_form, pytest.mark.timeout(900)]
SIZES = by_length(DIMENSIONS[:1], long=DIMENSIONS)


@pytest.fixture(scope="module")
def small() -> dict[str, CachedGraphs]:
    return {name: entry for dimensions in SIZES for name, entry in small_entries(dimensions)}


def assert_same(exported: Iterable[tuple[str, CachedGraphs]]) -> None:
    for name, wanted in exported:
        found = shipped(name)
        assert found is not None, f"{name}: run `make graphs`"
        assert found.graphs == wanted.graphs, f"{name}: run `make graphs`"
        assert without_reports(found) == without_reports(wanted), f"{name}: run `make graphs`"


def without_reports(entry: CachedGraphs) -> object:
    """Differences from torch depend on the processor in their last digits."""
    return {name: value for name, value in json.loads(json.dumps(entry.facts)).items() if name != "reports"}


def test_small_graphs_are_byte_for_byte_what_torch_exports(small: dict[str, CachedGraphs]) -> None:
    assert_same(small.items())


@pytest.mark.parametrize("dimensions", by_length([], long=DIMENSIONS))
def test_encoder_is_byte_for_byte_what_torch_exports(dimensions: int) -> None:
    assert_same([encoder_entry_of(dimensions)])


def test_nothing_else_is_shipped(small: dict[str, CachedGraphs]) -> None:
    of_first = small.keys() | {encoder_entry(ALL_MINILM_L6_V2, DIMENSIONS[0])}
    others = {name.replace(f"-{DIMENSIONS[0]}", f"-{DIMENSIONS[1]}", 1) for name in of_first}
    assert {path.stem for path in FOLDER.glob("*.json")} == of_first | others
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 300_000


def test_devices_accept_every_shipped_model(small: dict[str, CachedGraphs]) -> None:
    models = [name for name, entry in small.items() if "kind" in entry.facts]
    assert len(models) == 3 * len(SIZES), "recall and two rankers"
    for name in models:
        model = shipped_model(name)
        assert model is not None
        for graph in model.graphs.values():
            check_graph(graph)
        assert {report.purpose for report in model.reports} == model.graphs.keys()


def test_encoder_with_other_weights_is_refused() -> None:
    (name,) = (path.stem for path in FOLDER.glob("encoder-256-*.json"))
    entry = shipped(name)
    assert entry is not None
    bert = load_file(find_weights(PACKAGED).folder / WEIGHTS_FILE)
    graph = filled(entry.graphs["encoder"], entry.facts["holes"], bert, entry.facts["sha256"])
    assert len(graph) > 90_000_000
    other = bert | {"embeddings.LayerNorm.bias": bert["embeddings.LayerNorm.bias"] + np.float32(1e-6)}
    with pytest.raises(ValueError, match="differs from the one that was exported"):
        filled(entry.graphs["encoder"], entry.facts["holes"], other, entry.facts["sha256"])


def test_weights_are_taken_out_and_put_back_in_either_orientation() -> None:
    rng = np.random.default_rng(3)
    weights = {name: rng.normal(size=(32, 40)).astype(np.float32) for name in ("straight", "turned", "absent")}
    constants = [weights["turned"].T.tobytes(), b"a constant", weights["straight"].tobytes()]
    graph = b"head" + b"between".join(constants) + b"tail"
    left, holes = without_weights(graph, constants, weights)
    assert left == b"headbetween" + b"a constantbetween" + b"tail"
    assert [hole[1:] for hole in holes] == [("turned", True), ("straight", False)]
    assert filled(left, holes, weights, hashlib.sha256(graph).hexdigest()) == graph


def test_unknown_entry_is_none() -> None:
    assert shipped("feature_ranker-384") is None
    assert shipped_model("nrms-256") is None
