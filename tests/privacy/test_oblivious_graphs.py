"""A malicious release whose graphs loop, exhaust memory or crash on some readers' clicks, to silence their devices.

The attacker signs releases. Each graph here either did so before the check existed (dividing the least integer by -1
ended the process by SIGFPE, a Loop never returned, an Expand took 32 GB) or would. Oracle: the check's own message, and
that ONNX Runtime is not reached.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, helper

from device_app.errors import GraphMismatch, ReleaseRefused
from device_app.ranking.session import GraphSession, shared_session
from tests.doubles.backend import FakeBackend
from tests.doubles.clock import StillClock
from tests.doubles.failing_graphs import REFUSED, failing
from tests.doubles.graphs import context_graph, cosine_score_graph
from tests.doubles.hostile_graphs import CLICKS, DIM, NEAR, model, node
from tests.doubles.journey import Make
from tests.doubles.new_page import new_page
from tests.doubles.news import synthetic_pool
from tests.unit.device_app.journeys.conftest import clock, make

__all__ = ["clock", "make"]


@pytest.fixture
def backend() -> FakeBackend:
    return FakeBackend(pool=synthetic_pool(160))


def loop() -> ModelProto:
    body = helper.make_graph(
        [node("Identity", "again", "again2"), node("Identity", "value", "value2")],
        "body",
        [
            helper.make_tensor_value_info("turn", TensorProto.INT64, []),
            helper.make_tensor_value_info("again", TensorProto.BOOL, []),
            helper.make_tensor_value_info("value", TensorProto.FLOAT, []),
        ],
        [
            helper.make_tensor_value_info("again2", TensorProto.BOOL, []),
            helper.make_tensor_value_info("value2", TensorProto.FLOAT, []),
        ],
    )
    return model([*NEAR, helper.make_node("Loop", ["", "is", "most"], ["out"], body=body)], {"out": ()})


def nested_if() -> ModelProto:
    leaf = helper.make_graph(
        [node("Identity", "most", "leaf")], "leaf", [], [helper.make_tensor_value_info("leaf", TensorProto.FLOAT, [])]
    )
    branch = helper.make_graph(
        [helper.make_node("If", ["is"], ["leaf"], then_branch=leaf, else_branch=leaf)],
        "branch",
        [],
        [helper.make_tensor_value_info("leaf", TensorProto.FLOAT, [])],
    )
    return model([*NEAR, helper.make_node("If", ["is"], ["out"], then_branch=branch, else_branch=leaf)], {"out": ()})


def external_values() -> ModelProto:
    stolen = TensorProto(name="stolen", data_type=TensorProto.FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
    stolen.external_data.add(key="location", value="device.sqlite")
    made = model([node("Identity", "stolen", "out")], {"out": (4,)})
    made.graph.initializer.append(stolen)
    return made


def own_function() -> ModelProto:
    made = model([helper.make_node("Twice", ["most"], ["out"], domain="own")], {"out": ()})
    made.opset_import.append(helper.make_opsetid("own", 1))
    twice = helper.make_function("own", "Twice", ["x"], ["y"], [node("Add", "x x", "y")], made.opset_import[:1])
    made.functions.append(twice)
    return made


def declared(shape: list[int], content: bytes) -> ModelProto:
    made = model([node("Identity", "liar", "out")], {"out": tuple(shape)})
    made.graph.initializer.append(TensorProto(name="liar", data_type=1, dims=shape, raw_data=content))
    return made


def of(*nodes: onnx.NodeProto, out: tuple[int | str, ...] = (), near: bool = True) -> Callable[[], ModelProto]:
    return lambda: model([*(NEAR if near else ()), *nodes], {"out": out})


ATTACKS: dict[str, tuple[Callable[[], ModelProto], str]] = {
    "loops for ever": (loop, r"graph.nodes.attributes has field 6, which a release"),
    "branches in branches": (nested_if, r"attributes has field 6, which a release"),
    "divides the least integer by -1": (
        of(node("Div", "least flag", "ratio"), node("Cast", "ratio", "out", to=1)),
        r"node 5 \(Div\): it works on whole numbers",
    ),
    "takes a remainder": (of(node("Mod", "least flag", "out")), r"node 5 \(Mod\): an operator"),
    "raises integers to a power": (of(node("Pow", "scalar flag", "out")), r"node 5 \(Pow\): it works on whole numbers"),
    "expands by what is fed": (
        of(node("Mul", "huge flags", "long"), node("Expand", "one long", "out"), out=("news",)),
        r"node 6 \(Expand\): its input 1, which says a shape or a place, depends on what is fed",
    ),
    "tiles": (of(node("Tile", "one flags", "out"), out=("news",)), r"node 5 \(Tile\): an operator"),
    "fills a shape": (of(node("ConstantOfShape", "flags", "out"), out=("news",)), r"\(ConstantOfShape\): an operator"),
    "reshapes by what is fed": (
        of(node("Add", "flags 1", "form"), node("Reshape", "one form", "out"), out=("news",)),
        r"node 6 \(Reshape\): its input 1, .* depends on what is fed",
    ),
    "slices by what is fed": (
        of(node("Slice", "candidates flags 2 1", "out"), out=("batch", "news", DIM)),
        r"node 5 \(Slice\): its input 1, .* depends on what is fed",
    ),
    "counts up to what is fed": (of(node("Range", "flag flag flag", "out"), out=("news",)), r"\(Range\): its bounds"),
    "asks which clicks are not zero": (
        of(node("Cast", "near", "whole", to=7), node("Reshape", "whole -1", "row"), node("NonZero", "row", "out")),
        r"node 7 \(NonZero\): it may ask only the mask of clicks",
    ),
    "asks a mask that may be empty": (
        of(node("Cast", "click_mask", "w", to=7), node("Reshape", "w -1", "row"), node("NonZero", "row", "out")),
        r"\(NonZero\): it may ask only the mask of clicks, in one row that begins with 1",
    ),
    "chooses by what is fed": (of(node("Compress", "near is", "out")), r"node 5 \(Compress\): an operator"),
    "needs more memory than there is": (
        of(node("Expand", "one huge", "long"), node("ReduceSum", "long", "out", keepdims=0), near=False),
        r"a run with .* needs more than 1073741824 bytes",
    ),
    "multiplies for hours": (
        of(
            node("Expand", "one square", "table"),
            *(node("MatMul", f"table table{i}".replace("table0", "table"), f"table{i + 1}") for i in range(8)),
            node("ReduceSum", "table8", "out", keepdims=0),
            near=False,
        ),
        r"a run with .* needs more than 20000000000 multiply-adds",
    ),
    "reads a file": (external_values, r"initializers has field 13, which a release"),
    "brings a function": (own_function, r"model has field 25, which a release"),
    "names a domain": (
        lambda: model([helper.make_node("Gelu", ["clicks"], ["out"], domain="com.microsoft")], {"out": ()}),
        r"node 0 \(Gelu\): an operator that a release's graph may not contain",
    ),
    "declares much and holds little": (
        lambda: declared([2**31, 2**20], b"1234"),
        r"4 bytes, its shape needs 9007199254740992",
    ),
    "declares little and holds much": (
        lambda: declared([1], bytes(4096)),
        r"4096 bytes, its shape needs 4\.",
    ),
    "declares less than nothing": (lambda: declared([-1, -1], bytes(4)), r"liar: an unsupported type or shape"),
    "names an axis of its own": (
        lambda: model([node("Identity", "x", "out")], {"out": ("n",)}, inputs={"x": ("n",)}),
        r"input x: its axis n is not one of batch, news, clicks",
    ),
    "frees a parameter's axis": (
        lambda: model([node("Identity", "p.x", "out")], {"out": ("news",)}, inputs={"p.x": ("news",)}),
        r"input p.x is a parameter but has the free axis news",
    ),
    "declares another output than it has": (
        of(node("Identity", "candidates", "out"), out=("batch", "clicks", DIM), near=False),
        r"output out is declared with another shape or type than it has",
    ),
    "takes an axis of 1 away where it is 1": (
        of(node("Squeeze", "near", "out"), out=("batch", "clicks")),
        r"\(Squeeze\): which axes it takes away depends on what is fed",
    ),
    "steps by what is fed": (
        lambda: model(
            [
                node("Transpose", "clicks", "x", perm=[1, 0, 2]),
                node("ReduceSum", "near 2", "length", keepdims=0),
                node("ReduceSum", "length 1", "lengths", keepdims=0),
                node("Cast", "lengths", "steps", to=6),
                helper.make_node("GRU", ["x", "p.w", "p.r", "p.b", "steps"], ["", "out"], hidden_size=2),
            ],
            {"out": (1, "batch", 2)},
            inputs={
                **CLICKS,
                "near": ("batch", "clicks", DIM),
                "p.w": (1, 6, DIM),
                "p.r": (1, 6, 2),
                "p.b": (1, 12),
            },
        ),
        r"node 4 \(GRU\): how many steps it takes depends on more than the mask",
    ),
    "squares a size until it wraps": (
        of(
            node("Shape", "candidates", "s0", start=1, end=2),
            *(node("Mul", f"s{i} s{i}", f"s{i + 1}") for i in range(8)),
            node("Expand", "one s8", "out"),
            out=("news",),
            near=False,
        ),
        r"\(Expand\): its input 1, which says a shape or a place, depends on what is fed",
    ),
    "doubles a size for ever": (
        of(
            node("Identity", "one", "d0"),
            *(node("Concat", f"d{i} d{i}", f"d{i + 1}", axis=0) for i in range(3_000)),
            node("Identity", "d3000", "out"),
            near=False,
        ),
        r"node 54 \(Concat\): a size is beyond 2\^53",
    ),
    "has ten thousand nodes": (
        of(*(node("Neg", "most", f"n{i}") for i in range(10_000)), node("Neg", "most", "out")),
        r"it has 10006 nodes, the limit is 4000",
    ),
    "writes on a terminal": (
        lambda: model([node("\x1b[2J", "clicks", "out")], {"out": ()}),
        r"graph.nodes.operator is not a name of at most 200 printable ASCII characters",
    ),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_data_dependent_graph_never_reaches_onnx_runtime(attack: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnxruntime, "InferenceSession", reached)
    made, words = ATTACKS[attack]
    with pytest.raises(GraphMismatch, match=words):
        shared_session(made().SerializeToString(), threads=1)


@pytest.mark.parametrize("failure", REFUSED)
def test_graph_that_would_fail_near_one_click_is_refused_on_every_device(failure: str) -> None:
    trap = failing(cosine_score_graph(DIM), "scores", np.eye(DIM, dtype=np.float32)[0], 0.5, failure)
    with pytest.raises(GraphMismatch, match=r"graph [0-9a-f]{12}: node \d+ \((Tile|Div|Expand|Size)\): "):
        GraphSession(trap, {"beta": np.array(8, np.float32)})


@pytest.mark.parametrize(("opset", "ir"), [(17, 10), (19, 10), (18, 7), (18, 11)])
def test_graph_of_another_version_is_refused(opset: int, ir: int) -> None:
    made = onnx.load_from_string(cosine_score_graph(DIM))
    made.opset_import[0].version, made.ir_version = opset, ir
    with pytest.raises(GraphMismatch, match=r"its operator sets must be|its ir_version is"):
        shared_session(made.SerializeToString(), threads=1)


def test_mismatched_axis_sizes_are_refused_before_running(monkeypatch: pytest.MonkeyPatch) -> None:
    session = GraphSession(cosine_score_graph(DIM), {"beta": np.array(8, np.float32)})
    inputs = {"clicks": (2, 50, DIM), "click_mask": (2, 50), "candidates": (1, 7, DIM)}
    given = {name: np.ones(shape, np.float32) for name, shape in inputs.items()}
    with pytest.raises(GraphMismatch, match="axis batch has size 1, elsewhere 2"):
        session(**given)
    given["candidates"] = np.ones((2, 7, DIM), np.float32)
    assert session(**given)["scores"].shape == (2, 7)


def test_run_needing_too_much_memory_is_refused_before_it_starts() -> None:
    session = GraphSession(cosine_score_graph(DIM), {"beta": np.array(8, np.float32)})
    many = np.broadcast_to(np.float32(1), (1, 2**20, DIM))
    one, mask = np.ones((1, 50, DIM), np.float32), np.ones((1, 50), np.float32)
    with pytest.raises(GraphMismatch, match=r"a run with batch 1, news 1048576 needs more than \d+ bytes"):
        session(clicks=one, click_mask=mask, candidates=many)
    with pytest.raises(GraphMismatch, match="axis news has size 0; must be 1 to 1048576"):
        session(clicks=one, click_mask=mask, candidates=many[:, :0])


SUBNORMAL = np.float32(1e-40)
"""Nonzero, and below what a processor multiplies at its usual speed."""


@pytest.mark.skipif(
    (sys.platform, platform.machine()) != ("linux", "x86_64"), reason="not on this system, and the threat model says so"
)
@pytest.mark.parametrize("threads", [1, 2])
def test_denormal_numbers_are_flushed_in_graph_threads_only(threads: int) -> None:
    """Regression: a graph that made denormal numbers where a click lay near a chosen place took 150 times as long
    there."""
    half = np.float32(0.5)
    given = {"candidates": ("batch", "news", DIM)}
    made = model([node("Mul", "candidates half", "out")], {"out": given["candidates"]}, inputs=given)
    session = GraphSession(made.SerializeToString(), {}, threads=threads)
    small = np.full((1, 2**16, DIM), SUBNORMAL)  # enough for every thread to have a part

    def outputs() -> tuple[float, float, float]:
        before = SUBNORMAL * half
        found = session(candidates=small)["out"], session(candidates=np.ones_like(small))["out"]
        assert SUBNORMAL * half == before, "arithmetic of the device's own stays what it was"
        return float(np.abs(found[0]).max()), float(found[1].min()), float(found[1].max())

    assert SUBNORMAL * half > 0, "the first session of a process leaves this thread as it was, too"
    assert outputs() == (0.0, 0.5, 0.5)
    with ThreadPoolExecutor(1) as another:
        assert another.submit(outputs).result() == (0.0, 0.5, 0.5)


def test_release_with_a_data_dependent_graph_is_refused_with_an_alert(
    make: Make, backend: FakeBackend, clock: StillClock
) -> None:
    device = make()
    device.reading.feed()
    before = device.release()
    assert before is not None
    honest = backend.models["recall"]
    trap = failing(context_graph(backend.pool.vectors.shape[1]), "contexts", backend.pool.vectors[0], 0.95, "crash")
    backend.models = {
        **backend.models,
        "recall": honest.model_copy(update={"graphs": {**honest.graphs, "context": backend._blob(trap)}}),
    }
    backend.publish()
    with pytest.raises(
        ReleaseRefused, match=r"graph 'context' of recall: .* node \d+ \(Div\): it works on whole numbers"
    ):
        device.sync()
    kept = device.release()
    assert kept is not None
    assert kept.id == before.id
    assert new_page(device).items
    status = device.status()
    assert status.shield == "red"
    assert any("node" in alert.words and "(Div)" in alert.words for alert in status.alerts)


def reached(*_: object, **__: object) -> None:
    raise AssertionError("ONNX Runtime was asked to open it")
