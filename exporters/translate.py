"""A traced graph as ONNX: what a value is, and how shapes, broadcasts and constants are written.

exporters/operators says what each operator becomes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy  # type: ignore[import-untyped]
import torch
from numpy.typing import NDArray
from torch import fx

from exporters.graph_writer import GraphWriter, tensor_type

Size = Any  # int, or a sympy expression in the symbols of free axes
Shape = tuple[Size, ...]
FxNode = Any  # fx.Node, whose arguments torch types so widely that each use would need a cast


@dataclass(frozen=True)
class Value:
    """A tensor in the ONNX graph. Broadcasts are put off: `shape` may have fewer or smaller axes than torch's value
    has, as long as broadcasting it gives that. `constant` is the content where it is known."""

    name: str
    shape: Shape
    constant: NDArray[Any] | None = None


Rule = Callable[["Translator", FxNode], "Value | list[Value]"]


class Translator:
    """Writes the nodes of one traced graph."""

    def __init__(self, writer: GraphWriter, axes: Mapping[Any, tuple[str, int]]) -> None:
        """`axes`: for each symbol of a free axis, an input that has it and where."""
        self.writer = writer
        self.axes = dict(axes)
        self.values: dict[fx.Node, Value | list[Value]] = {}
        self.reshaped: dict[str, Value] = {}  # a Reshape's result -> what was reshaped
        self.permuted: dict[str, tuple[Value, tuple[int, ...]]] = {}  # a Transpose's result -> of what, how

    # -- what a node holds

    def value(self, node: Any) -> Value:
        """The value of a node, perhaps still to be broadcast."""
        held = self.values[node]
        if not isinstance(held, Value):
            raise TypeError(f"{node} holds {len(held)} values, one was expected")
        return held

    def full(self, node: fx.Node) -> Value:
        """The value of a node in its own shape."""
        return self.broadcast(self.value(node), shape_of(node))

    def broadcast(self, value: Value, shape: Shape) -> Value:
        """`value` in exactly this shape."""
        if value.shape == shape:
            return value
        if value.shape and value.constant is not None and not any(isinstance(size, sympy.Basic) for size in shape):
            return self.constant(np.broadcast_to(value.constant, shape))
        return self.emit("Expand", [value.name, self.sizes(shape)], shape)

    def operand(self, argument: Any, dtype: torch.dtype) -> Value:
        """An argument of an elementwise operator as `dtype`: a tensor, a size, or a number."""
        if not isinstance(argument, fx.Node):
            return self.constant(np.asarray(argument, dtype=numpy_type(dtype)))
        if not isinstance(argument.meta["val"], torch.Tensor):
            size = self.size(size_of(argument))
            scalar = self.emit("Squeeze", [size.name], ())
            return self.cast(scalar, torch.int64, dtype)
        return self.cast(self.value(argument), argument.meta["val"].dtype, dtype)

    def cast(self, value: Value, held: torch.dtype, wanted: torch.dtype) -> Value:
        """`value` in another dtype."""
        if held == wanted:
            return value
        if value.constant is not None:
            return self.constant(value.constant.astype(numpy_type(wanted)))
        return self.emit("Cast", [value.name], value.shape, to=tensor_type(numpy_type(wanted)))

    # -- what is written

    def emit(self, op: str, inputs: Sequence[str], shape: Shape, **attributes: Any) -> Value:
        """One node with one result of this shape."""
        return Value(self.writer.add(op, inputs, **attributes)[0], shape)

    def constant(self, content: NDArray[Any]) -> Value:
        """A constant; one number repeated is kept as that number and broadcast where needed."""
        if content.size and (content == content.flat[0]).all():
            content = np.asarray(content.flat[0], dtype=content.dtype)
        return Value(self.writer.constant(content), tuple(content.shape), content)

    def integers(self, *numbers: int) -> str:
        """A constant list of int64: axes, starts, fixed shapes."""
        return self.writer.constant(np.asarray(numbers, dtype=np.int64))

    def size(self, size: Size) -> Value:
        """A size as int64 [1]."""
        if not isinstance(size, sympy.Basic):
            return Value(self.integers(size), (1,))
        if isinstance(size, sympy.Symbol):
            name, axis = self.axes[size]
            return self.emit("Shape", [name], (1,), start=axis, end=axis + 1)
        op = {sympy.Add: "Add", sympy.Mul: "Mul"}.get(type(size))
        if op is None:
            raise NotImplementedError(f"a shape depends on {size}: only sums and products of sizes can be exported")
        first, *rest = (self.size(_plain(part)) for part in size.args)
        for each in rest:
            first = self.emit(op, [first.name, each.name], (1,))
        return first

    def sizes(self, shape: Shape) -> str:
        """A shape as int64 [rank]."""
        if not any(isinstance(size, sympy.Basic) for size in shape):
            return self.integers(*shape)
        parts = [self.size(size).name for size in shape]
        return parts[0] if len(parts) == 1 else self.writer.add("Concat", parts, axis=0)[0]

    def reshape(self, value: Value, shape: Shape) -> Value:
        """The same numbers in another shape; a reshape of a reshape is one."""
        if value.constant is not None and not any(isinstance(size, sympy.Basic) for size in shape):
            return self.constant(value.constant.reshape(shape))
        source = self.reshaped.get(value.name, value)
        if source.shape == shape:
            return source
        free = [place for place, size in enumerate(shape) if isinstance(size, sympy.Basic)]
        if len(free) <= 1:
            written = self.integers(*(-1 if place in free else size for place, size in enumerate(shape)))
        elif all(place < len(source.shape) and source.shape[place] == shape[place] for place in free[:-1]):
            # 0 keeps the size of the source, -1 is worked out from the others
            written = self.integers(
                *(-1 if place == free[-1] else 0 if place in free else size for place, size in enumerate(shape))
            )
        else:
            written = self.sizes(shape)
        result = self.emit("Reshape", [source.name, written], shape)
        self.reshaped[result.name] = source
        return result

    def permute(self, value: Value, order: tuple[int, ...]) -> Value:
        """Axes in another order; a transpose of a transpose is one, and moving axes of size 1 is a reshape."""
        if not value.shape:
            return value
        source, before = self.permuted.get(value.name, (value, tuple(range(len(value.shape)))))
        order = tuple(before[place] for place in order)
        if order == tuple(range(len(order))):
            return source
        shape = tuple(source.shape[place] for place in order)
        moved = [place for place in order if source.shape[place] != 1]
        if moved == sorted(moved):
            return self.reshape(source, shape)
        result = self.emit("Transpose", [source.name], shape, perm=list(order))
        self.permuted[result.name] = (source, order)
        return result


def translate(graph: fx.Graph, translator: Translator, inputs: Sequence[str], rules: Mapping[Any, Rule]) -> list[Value]:
    """Write every node; `inputs` are the names of the placeholders. Returns the values of the outputs."""
    names = iter(inputs)
    for node in graph.nodes:
        if node.op == "placeholder":
            translator.values[node] = Value(next(names), shape_of(node))
        elif node.op == "output":
            return [translator.full(each) for each in node.args[0]]
        elif node.op != "call_function":
            raise NotImplementedError(f"a model holds a tensor that is no parameter: {node.target}")
        elif isinstance(node.meta["val"], torch.SymInt | int):
            continue  # sizes are read from shapes
        elif node.target not in rules:
            raise NotImplementedError(f"operator {node.target} has no translation to ONNX (exporters/operators)")
        else:
            translator.values[node] = rules[node.target](translator, node)
    raise ValueError("the graph has no output")


def shape_of(node: fx.Node) -> Shape:
    """torch's shape of a node's value."""
    return sizes_of(node.meta["val"])


def sizes_of(value: torch.Tensor) -> Shape:
    """torch's shape of a traced tensor."""
    return tuple(_exact(size) for size in value.shape)


def size_of(argument: Any) -> Size:
    """An argument that is a size: a number, or a node of a free axis' size."""
    return _exact(argument.meta["val"] if isinstance(argument, fx.Node) else argument)


def joined(*shapes: Shape) -> Shape:
    """The shape that broadcasting gives."""
    rank = max(map(len, shapes))
    result: list[Size] = [1] * rank
    for shape in shapes:
        for place, size in enumerate(shape, start=rank - len(shape)):
            if size != 1:
                result[place] = size
    return tuple(result)


def numpy_type(dtype: torch.dtype) -> Any:
    """numpy's name of a torch dtype."""
    return torch.empty(0, dtype=dtype).numpy().dtype


def _exact(size: Any) -> Size:
    return _plain(size.node.expr) if isinstance(size, torch.SymInt) else int(size)


def _plain(size: Any) -> Size:
    return int(size) if isinstance(size, sympy.Integer | int) else size
