"""The operators that a graph of a release may have, and what follows from each: shapes, content, and how much it costs.

An operator is here if `exporters` can write it and if, whatever numbers it is fed, it ends, neither divides whole
numbers nor asks data how large its result is: ONNX Runtime answers an index out of range with an error. What makes
shapes must be constant or made from shapes. One size only is left to what is fed: how many clicks of a history are real
(`NonZero` of the mask, and a GRU's steps).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from device_app.wire.graphs import layout, sums
from device_app.wire.graphs.layout import KnownTensors
from device_app.wire.graphs.values import BOOL, DOUBLE, FLOAT, INT32, INT64, KnownTensor, Node, joined

FLOATS = frozenset({FLOAT, DOUBLE})
NUMBERS = FLOATS | {INT32, INT64}
ALL = NUMBERS | {BOOL}
INTEGER, INTEGERS, NUMBER, TEXT = 2, 7, 1, 3
"""Types of attributes, as ONNX counts them."""
FLAGS = frozenset({"keepdims", "transA", "transB", "linear_before_reset"})
"""Attributes that are 0 or 1: of others ONNX Runtime makes what it likes."""
CHEAP, DEAR = 8, 64
"""Of a number that is moved or added, and of an exponential, in multiply-adds of a matrix product."""

Rule = Callable[[Node], KnownTensors]


@dataclass(frozen=True)
class OperatorForm:
    """elements: what its first input may hold; inputs: how many it takes at least and at most; attributes: by name the
    type; cost: multiply-adds for each number that goes in or out, beside what its rule counts."""

    rule: Rule
    elements: frozenset[int]
    inputs: tuple[int, int]
    attributes: Mapping[str, int] = field(default_factory=dict)
    outputs: tuple[int, int] = (1, 1)
    cost: int = CHEAP


def _elementwise(node: Node) -> KnownTensors:
    first, second = node.given(0), node.given(1)
    if first.element != second.element:
        node.refuse(f"its inputs hold {first.element} and {second.element}")
    shape = joined(node, first.shape, second.shape)
    content = layout.arithmetic(node, first, second) if first.element == INT64 and len(shape) < 2 else None
    return [KnownTensor(first.element, shape, content)]


def _comparison(node: Node) -> KnownTensors:
    return [KnownTensor(BOOL, _elementwise(node)[0].shape)]


def _unary(node: Node) -> KnownTensors:
    value = node.given(0)
    return [KnownTensor(value.element, value.shape)]


def _where(node: Node) -> KnownTensors:
    condition, first, second = (node.given(place) for place in range(3))
    if first.element != second.element:
        node.refuse(f"its inputs hold {first.element} and {second.element}")
    return [KnownTensor(first.element, joined(node, condition.shape, first.shape, second.shape))]


def _table() -> dict[str, OperatorForm]:
    two = (2, 2)
    table = {name: OperatorForm(_elementwise, FLOATS | {INT64}, two) for name in ("Add", "Sub", "Mul")}
    table |= {name: OperatorForm(_elementwise, FLOATS, two) for name in ("Div", "Max", "Min")}
    table["Pow"] = OperatorForm(_elementwise, FLOATS, two, cost=DEAR)
    table |= {
        name: OperatorForm(_comparison, NUMBERS, two)
        for name in ("Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual")
    }
    table |= {name: OperatorForm(_comparison, frozenset({BOOL}), two) for name in ("And", "Or")}
    table["Not"] = OperatorForm(_unary, frozenset({BOOL}), (1, 1))
    table |= {
        name: OperatorForm(_unary, FLOATS, (1, 1)) for name in ("Neg", "Sqrt", "Abs", "Reciprocal", "Sign", "Relu")
    }
    table |= {
        name: OperatorForm(_unary, FLOATS, (1, 1), cost=DEAR) for name in ("Exp", "Log", "Tanh", "Sigmoid", "Erf")
    }
    along = {"axis": INTEGER}
    kept = {"keepdims": INTEGER}
    table |= {name: OperatorForm(sums.softmax, FLOATS, (1, 1), along, cost=DEAR) for name in ("Softmax", "LogSoftmax")}
    table |= {
        name: OperatorForm(sums.reduced, FLOATS, (1, 2), kept)
        for name in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2")
    }
    table |= {
        "Where": OperatorForm(_where, frozenset({BOOL}), (3, 3)),
        "Cast": OperatorForm(layout.cast, ALL, (1, 1), {"to": INTEGER}),
        "Identity": OperatorForm(layout.identity, ALL, (1, 1)),
        "Shape": OperatorForm(layout.shape, ALL, (1, 1), {"start": INTEGER, "end": INTEGER}, cost=0),
        "Reshape": OperatorForm(layout.reshape, ALL, two),
        "Squeeze": OperatorForm(layout.squeeze, ALL, (1, 2)),
        "Unsqueeze": OperatorForm(layout.unsqueeze, ALL, two),
        "Transpose": OperatorForm(layout.transpose, ALL, (1, 1), {"perm": INTEGERS}),
        "Concat": OperatorForm(layout.concat, ALL, (1, 256), along),
        "Split": OperatorForm(layout.split, ALL, two, along, outputs=(1, 256)),
        "Slice": OperatorForm(layout.slices, ALL, (3, 5)),
        "Pad": OperatorForm(layout.pad, ALL, (2, 3)),
        "Expand": OperatorForm(layout.expand, ALL, two),
        "Range": OperatorForm(layout.span, frozenset({FLOAT, INT64}), (3, 3)),
        "Gather": OperatorForm(layout.gather, ALL, two, along),
        "GatherND": OperatorForm(layout.gather_nd, ALL, two),
        "GatherElements": OperatorForm(layout.gather_elements, ALL, two, along),
        "ScatterND": OperatorForm(layout.scatter_nd, NUMBERS, (3, 3), {"reduction": TEXT}),
        "ScatterElements": OperatorForm(layout.scatter_elements, NUMBERS, (3, 3), along | {"reduction": TEXT}),
        "NonZero": OperatorForm(layout.nonzero, frozenset({INT64}), (1, 1)),
        "MatMul": OperatorForm(sums.matmul, FLOATS, two),
        "Gemm": OperatorForm(sums.gemm, FLOATS, (2, 3), {"transA": INTEGER, "transB": INTEGER}),
        "ArgMax": OperatorForm(sums.argmax, FLOATS, (1, 1), along | kept),
        "CumSum": OperatorForm(sums.cumulated, FLOATS | {INT64}, two),
        "LayerNormalization": OperatorForm(
            sums.layer_norm, frozenset({FLOAT}), (2, 3), along | {"epsilon": NUMBER}, outputs=(1, 3)
        ),
        "GRU": OperatorForm(
            sums.gru,
            frozenset({FLOAT}),
            (5, 6),
            {"hidden_size": INTEGER, "linear_before_reset": INTEGER},
            outputs=(1, 2),
            cost=DEAR,
        ),
    }
    return table


OPERATORS = _table()
