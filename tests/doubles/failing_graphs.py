"""Graphs of a release that fail only if a reader has clicked near a vector of the attacker's choice."""

from __future__ import annotations

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, checker, helper, numpy_helper

HONEST, ROOM, FLAG = "trap.honest", "trap.room", "trap.flag"
FAILURES = ("nan", "infinity", "largest", "gather")
"""What happens near the target: NaN, infinity or the largest float32 everywhere; an index out of range."""
REFUSED = ("shape", "wider", "division", "crash", "memory")
"""What devices refuse beforehand (`protocol.graph_check`): outputs of another length or rank, a division of integers by
zero or of the least one by -1, more memory than there is."""


def failing(graph: bytes, output: str, target: NDArray[np.float32], above: float, failure: str) -> bytes:
    """Return the graph with one output changed to fail.

    It fails if a row of its input `clicks` has an inner product above `above` with `target`.
    """
    model = onnx.load_from_string(graph)
    inner = model.graph
    for node in inner.node:
        for names in (node.input, node.output):
            for place, name in enumerate(names):
                if name == output:
                    names[place] = HONEST
    constants: dict[str, NDArray[np.generic]] = {
        "trap.target": target.astype(np.float32)[:, None],
        "trap.above": np.array(above, np.float32),
        "trap.0": np.array(0, np.int64),
        "trap.1": np.array(1, np.int64),
        "trap.least": np.array(-(2**63), np.int64),
        "trap.ones": np.array([1], np.int64),
        "trap.nan": np.array(np.nan, np.float32),
        "trap.inf": np.array(np.inf, np.float32),
        "trap.max": np.array(np.finfo(np.float32).max, np.float32),
        "trap.one_row": np.zeros(1, np.float32),
        "trap.huge": np.array([2**45], np.int64),
        "trap.axis": np.array([0], np.int64),
    }
    inner.initializer.extend(numpy_helper.from_array(value, name) for name, value in constants.items())
    inner.node.extend(
        [
            helper.make_node("MatMul", ["clicks", "trap.target"], ["trap.near"]),
            helper.make_node("ReduceMax", ["trap.near"], ["trap.most"], keepdims=0),
            helper.make_node("Greater", ["trap.most", "trap.above"], ["trap.is"]),
            helper.make_node("Cast", ["trap.is"], [FLAG], to=TensorProto.INT64),  # 1 near the target, else 0
            *_END[failure](output),
        ]
    )
    checker.check_model(model)
    return bytes(model.SerializeToString())


def _instead(value: str) -> list[onnx.NodeProto]:
    return [helper.make_node("Where", ["trap.is", value, HONEST], ["trap.out"])]


def _plus(names: list[onnx.NodeProto], number: str) -> list[onnx.NodeProto]:
    """The honest output plus zero times an integer that is not always defined."""
    return [
        *names,
        helper.make_node("Cast", [number], ["trap.float"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["trap.float", "trap.zero"], ["trap.nothing"]),
        helper.make_node("Add", [HONEST, "trap.nothing"], ["trap.out"]),
    ]


def _named(nodes: list[onnx.NodeProto], output: str) -> list[onnx.NodeProto]:
    zero = helper.make_node("Cast", ["trap.0"], ["trap.zero"], to=TensorProto.FLOAT)
    return [zero, *nodes, helper.make_node("Identity", ["trap.out"], [output])]


def _repeated() -> list[onnx.NodeProto]:
    """The output's first axis is twice as long near the target."""
    return [
        helper.make_node("Shape", [HONEST], ["trap.rank"]),
        helper.make_node("Size", ["trap.rank"], ["trap.axes"]),
        helper.make_node("Reshape", ["trap.axes", "trap.ones"], ["trap.axes1"]),
        helper.make_node("Expand", ["trap.1", "trap.axes1"], ["trap.once"]),
        helper.make_node("Add", ["trap.once", FLAG], ["trap.times"]),
        helper.make_node("Tile", [HONEST, "trap.times"], ["trap.out"]),
    ]


_END = {
    "nan": lambda output: _named(_instead("trap.nan"), output),
    "infinity": lambda output: _named(_instead("trap.inf"), output),
    "largest": lambda output: _named(_instead("trap.max"), output),
    "gather": lambda output: _named(
        _plus([helper.make_node("Gather", ["trap.one_row", FLAG], ["trap.number"])], "trap.number"), output
    ),
    "division": lambda output: _named(
        _plus(
            [
                helper.make_node("Sub", ["trap.1", FLAG], ["trap.divisor"]),
                helper.make_node("Div", ["trap.1", "trap.divisor"], ["trap.number"]),
            ],
            "trap.number",
        ),
        output,
    ),
    "crash": lambda output: _named(
        _plus(
            [
                helper.make_node("Add", [FLAG, FLAG], ["trap.two"]),
                helper.make_node("Sub", ["trap.1", "trap.two"], ["trap.divisor"]),
                helper.make_node("Div", ["trap.least", "trap.divisor"], ["trap.number"]),
            ],
            "trap.number",
        ),
        output,
    ),
    "memory": lambda output: _named(
        _plus(
            [
                helper.make_node("Mul", ["trap.huge", FLAG], ["trap.some"]),
                helper.make_node("Add", ["trap.some", "trap.ones"], ["trap.long"]),
                helper.make_node("Expand", ["trap.one_row", "trap.long"], ["trap.row"]),
                helper.make_node("ReduceMax", ["trap.row", "trap.axis"], ["trap.number"], keepdims=0),
            ],
            "trap.number",
        ),
        output,
    ),
    "shape": lambda output: _named(_repeated(), output),
    "wider": lambda output: _named(
        [
            helper.make_node("Add", ["trap.ones", FLAG], ["trap.twice"]),
            helper.make_node("Expand", ["trap.0", "trap.twice"], ["trap.longer"]),
            helper.make_node("Size", ["trap.longer"], ["trap.length"]),
            helper.make_node("Sub", ["trap.length", "trap.1"], ["trap.axes"]),
            helper.make_node("Reshape", ["trap.axes", "trap.ones"], ["trap.axes1"]),
            helper.make_node("Expand", ["trap.1", "trap.axes1"], ["trap.front"]),
            helper.make_node("Shape", [HONEST], ["trap.behind"]),
            helper.make_node("Concat", ["trap.front", "trap.behind"], ["trap.form"], axis=0),
            helper.make_node("Reshape", [HONEST, "trap.form"], ["trap.out"]),
        ],
        output,
    ),
}
