"""Translates a traced graph to ONNX: values, shapes, broadcasts and constants.

`GraphWriter` writes nodes and constants with short names, without duplicates or unused ones. exporters/operators
defines the translation of each operator.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import sympy  # type: ignore[import-untyped]
import torch
from numpy.typing import NDArray
from onnx import helper, numpy_helper
from torch import fx

OPSET = 18  # onnxruntime and onnxruntime-web run it natively
IR_VERSION = 10
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


class GraphWriter:
    """Collects nodes; equal nodes and equal constants are written once."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self._constants: dict[tuple[Any, ...], str] = {}
        self._tensors: dict[str, onnx.TensorProto] = {}
        self._written: dict[tuple[Any, ...], list[str]] = {}
        self._names = 0

    def add(self, op: str, inputs: Sequence[str], outputs: int = 1, **attributes: Any) -> list[str]:
        """Add one node; return the names of its outputs."""
        key = (op, tuple(inputs), outputs, tuple(sorted((name, repr(value)) for name, value in attributes.items())))
        if key not in self._written:
            names = [self._name() for _ in range(outputs)]
            self.nodes.append(helper.make_node(op, list(inputs), names, **attributes))
            self._written[key] = names
        return self._written[key]

    def constant(self, value: NDArray[Any]) -> str:
        """Add a constant tensor; return its name."""
        key = (value.dtype.str, value.shape, value.tobytes())
        if key not in self._constants:
            self._constants[key] = name = self._name()
            self._tensors[name] = numpy_helper.from_array(np.ascontiguousarray(value).reshape(value.shape), name)
        return self._constants[key]

    def finish(
        self,
        inputs: Sequence[onnx.ValueInfoProto],
        outputs: Sequence[onnx.ValueInfoProto],
        results: Sequence[str],
        optional: frozenset[str],
    ) -> onnx.ModelProto:
        """Return the model whose `outputs` are the values `results`.

        Unused `optional` inputs are left out.
        """
        self._name_outputs([each.name for each in outputs], results, {each.name for each in inputs})
        names = {each.name for each in outputs}
        nodes = _needed(self.nodes, names)
        read = {name for node in nodes for name in node.input}
        graph = helper.make_graph(
            nodes,
            "main",
            [each for each in inputs if each.name in read or each.name not in optional],
            list(outputs),
            [tensor for name, tensor in self._tensors.items() if name in read],
        )
        opset = helper.make_opsetid("", OPSET)
        return helper.make_model(graph, opset_imports=[opset], ir_version=IR_VERSION)

    def _name(self) -> str:
        self._names += 1
        rest, name = self._names, ""
        while rest:
            rest, digit = divmod(rest, len(DIGITS))
            name = DIGITS[digit] + name
        return "_" + name

    def _name_outputs(self, names: Sequence[str], results: Sequence[str], inputs: set[str]) -> None:
        ours: dict[str, str] = {}
        for name, result in zip(names, results, strict=True):
            if result in ours or result in inputs or result in self._tensors:
                self.nodes.append(helper.make_node("Identity", [result], [name]))
            else:
                ours[result] = name
        for node in self.nodes:
            node.input[:] = [ours.get(each, each) for each in node.input]
            node.output[:] = [ours.get(each, each) for each in node.output]


def _needed(nodes: Sequence[onnx.NodeProto], results: set[str]) -> list[onnx.NodeProto]:
    """Return the nodes that the results depend on, in order."""
    wanted, kept = set(results), []
    for node in reversed(nodes):
        if wanted.intersection(node.output):
            kept.append(node)
            wanted.update(name for name in node.input if name)
    return kept[::-1]


def tensor_type(dtype: Any) -> int:
    """ONNX's number of a numpy dtype."""
    return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


def value_info(name: str, dtype: Any, axes: Sequence[int | str]) -> onnx.ValueInfoProto:
    """Describe an input or output; an axis that is a name is free."""
    return helper.make_tensor_value_info(name, tensor_type(dtype), list(axes))


def bytes_of(model: onnx.ModelProto) -> bytes:
    """Serialise a model; equal models give equal bytes."""
    return bytes(model.SerializeToString(deterministic=True))


Size = Any  # int, or a sympy expression in the symbols of free axes
Shape = tuple[Size, ...]
FxNode = Any  # fx.Node; torch types its arguments so widely that each use would need a cast


@dataclass(frozen=True)
class Value:
    """A tensor in the ONNX graph, with deferred broadcasts.

    `shape` may have fewer or smaller axes than torch's value, as long as broadcasting gives that. `constant` is the
    content if it is known.
    """

    name: str
    shape: Shape
    constant: NDArray[Any] | None = None


Rule = Callable[["Translator", FxNode], "Value | list[Value]"]


class Translator:
    """Writes the nodes of one traced graph."""

    def __init__(self, writer: GraphWriter, axes: Mapping[Any, tuple[str, int]]) -> None:
        """`axes`: for each symbol of a free axis, an input that has it and its position there."""
        self.writer = writer
        self.axes = dict(axes)
        self.values: dict[fx.Node, Value | list[Value]] = {}
        self.reshaped: dict[str, Value] = {}  # a Reshape's result -> its source
        self.permuted: dict[str, tuple[Value, tuple[int, ...]]] = {}  # a Transpose's result -> its source and axes

    # -- what a node holds

    def value(self, node: Any) -> Value:
        """Return the value of a node; its broadcast may be deferred."""
        held = self.values[node]
        if not isinstance(held, Value):
            raise TypeError(f"{node} holds {len(held)} values, expected one")
        return held

    def full(self, node: fx.Node) -> Value:
        """Return the value of a node in its full shape."""
        return self.broadcast(self.value(node), shape_of(node))

    def broadcast(self, value: Value, shape: Shape) -> Value:
        """Return `value` in exactly this shape."""
        if value.shape == shape:
            return value
        if value.shape and value.constant is not None and not any(isinstance(size, sympy.Basic) for size in shape):
            return self.constant(np.broadcast_to(value.constant, shape))
        return self.emit("Expand", [value.name, self.sizes(shape)], shape)

    def operand(self, argument: Any, dtype: torch.dtype) -> Value:
        """Return an argument of an elementwise operator as `dtype`: a tensor, a size, or a number."""
        if not isinstance(argument, fx.Node):
            return self.constant(np.asarray(argument, dtype=numpy_type(dtype)))
        if not isinstance(argument.meta["val"], torch.Tensor):
            size = self.size(size_of(argument))
            scalar = self.emit("Squeeze", [size.name], ())
            return self.cast(scalar, torch.int64, dtype)
        return self.cast(self.value(argument), argument.meta["val"].dtype, dtype)

    def cast(self, value: Value, held: torch.dtype, wanted: torch.dtype) -> Value:
        """Return `value` in another dtype."""
        if held == wanted:
            return value
        if value.constant is not None:
            return self.constant(value.constant.astype(numpy_type(wanted)))
        return self.emit("Cast", [value.name], value.shape, to=tensor_type(numpy_type(wanted)))

    # -- writing nodes

    def emit(self, op: str, inputs: Sequence[str], shape: Shape, **attributes: Any) -> Value:
        """Add a node with one result of this shape."""
        return Value(self.writer.add(op, inputs, **attributes)[0], shape)

    def constant(self, content: NDArray[Any]) -> Value:
        """Add a constant; one repeated number is stored once and broadcast where needed."""
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
        """Reshape a value; two reshapes in sequence become one."""
        if value.constant is not None and not any(isinstance(size, sympy.Basic) for size in shape):
            return self.constant(value.constant.reshape(shape))
        source = self.reshaped.get(value.name, value)
        if source.shape == shape:
            return source
        free = [place for place, size in enumerate(shape) if isinstance(size, sympy.Basic)]
        if len(free) <= 1:
            written = self.integers(*(-1 if place in free else size for place, size in enumerate(shape)))
        elif all(place < len(source.shape) and source.shape[place] == shape[place] for place in free[:-1]):
            # 0 keeps the source's size, -1 is inferred from the others
            written = self.integers(
                *(-1 if place == free[-1] else 0 if place in free else size for place, size in enumerate(shape))
            )
        else:
            written = self.sizes(shape)
        result = self.emit("Reshape", [source.name, written], shape)
        self.reshaped[result.name] = source
        return result

    def permute(self, value: Value, order: tuple[int, ...]) -> Value:
        """Reorder axes. Two transposes in sequence become one; moving axes of size 1 becomes a reshape."""
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
    """Write every node; `inputs` are the names of the placeholders.

    Returns the values of the outputs.
    """
    names = iter(inputs)
    for node in graph.nodes:
        if node.op == "placeholder":
            translator.values[node] = Value(next(names), shape_of(node))
        elif node.op == "output":
            return [translator.full(each) for each in node.args[0]]
        elif node.op != "call_function":
            raise NotImplementedError(f"a model holds a tensor that is not a parameter: {node.target}")
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
    """numpy's name for a torch dtype."""
    return torch.empty(0, dtype=dtype).numpy().dtype


def _exact(size: Any) -> Size:
    return _plain(size.node.expr) if isinstance(size, torch.SymInt) else int(size)


def _plain(size: Any) -> Size:
    return int(size) if isinstance(size, sympy.Integer | int) else size
