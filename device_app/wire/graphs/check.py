"""Which graphs a release may bring: those whose course no number can change that they are fed.

Nothing in them loops, branches, calls, reads files, divides whole numbers or makes sizes of data, so what a run
costs is known beforehand: `GraphCosts` says it for any sizes of the free axes. Devices check each graph before ONNX
Runtime sees it; `exporters` check what they write.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from device_app.wire.graphs.costs import AXES_OF_A_RUN, GREATEST_AXIS, FreeAxis, GraphCosts, require_limits
from device_app.wire.graphs.layout import EXACT_FLOAT
from device_app.wire.graphs.message import GraphRefused, ParsedMessage, read_model
from device_app.wire.graphs.operators import ALL, FLAGS, OPERATORS, OperatorForm
from device_app.wire.graphs.sizes import Polynomial, Size, total_of
from device_app.wire.graphs.values import (
    CONTENT_LIMIT,
    FLOAT,
    INT32,
    INT64,
    RANK_LIMIT,
    SHOWN,
    WIDTHS_BYTES,
    KnownTensor,
    Node,
    Shape,
    within,
)

OPSET, OLDEST_IR, NEWEST_IR = 18, 8, 10
FILE_LIMIT_BYTES = 1024 * 1024
"""Our largest has 31 KB; parameters are fed and stand in no graph."""
NODES_LIMIT = 4_000
"""Our largest has 871."""
MASKS = ("click_mask", "membership", "word_mask", "abstract_mask")
DEFAULT_DOMAINS = ("", "ai.onnx")


def check_graph(content: bytes) -> GraphCosts:
    """What a run costs. Raises GraphRefused, naming node, operator and limit, for what no release may bring."""
    if len(content) > FILE_LIMIT_BYTES:
        raise GraphRefused(f"it has {len(content)} bytes, the limit is {FILE_LIMIT_BYTES}")
    model = read_model(content)
    if not OLDEST_IR <= model.get("ir_version", 0) <= NEWEST_IR:
        raise GraphRefused(f"its ir_version is {model.get('ir_version')}, allowed are {OLDEST_IR} to {NEWEST_IR}")
    sets = [(each.get("domain", ""), each.get("version")) for each in model["operator_sets"]]
    if len(sets) != 1 or sets[0][0] not in DEFAULT_DOMAINS or sets[0][1] != OPSET:
        raise GraphRefused(f"its operator sets are {sets}, allowed is ONNX's own of version {OPSET}")
    if "graph" not in model:
        raise GraphRefused("it has no graph")
    return _Course(model["graph"]).costs()


class _Course:
    """A graph walked through once, node by node."""

    def __init__(self, graph: ParsedMessage) -> None:
        self._graph = graph
        self._values: dict[str, KnownTensor] = {}
        self._axes = {axis: (1, size) for axis, size in AXES_OF_A_RUN.items()}
        self._made: dict[str, Size] = {}
        self._sound: set[Size] = set()
        self._memory: Counter[Size] = Counter()
        self._work: Counter[Size] = Counter()

    def costs(self) -> GraphCosts:
        nodes = self._graph["nodes"]
        if len(nodes) > NODES_LIMIT:
            raise GraphRefused(f"it has {len(nodes)} nodes, the limit is {NODES_LIMIT}")
        free: list[FreeAxis] = []
        for each in self._graph["inputs"]:
            name, element, shape = _declared(each, "input")
            axes = [(name, place, axis) for place, axis in enumerate(shape) if isinstance(axis, str)]
            if axes and name.startswith("p."):
                raise GraphRefused(f"input {name} is a parameter, and has the free axis {axes[0][2]}")
            free += axes
            self._define(name, KnownTensor(element, _sizes(shape), of_mask=name in MASKS), f"input {name}")
        for each in self._graph["initializers"]:
            self._define(each.get("name", ""), _initializer(each), f"initializer {each.get('name')}")
        for place, each in enumerate(nodes):
            self._step(each, f"node {place} ({each.get('operator')})")
        for each in self._graph["outputs"]:
            self._output(*_declared(each, "output"))
        used = {axis for _, _, axis in free}
        costs = GraphCosts(tuple(free), total_of(self._memory), total_of(self._work), dict(self._made))
        at_most = {axis: size for axis, size in AXES_OF_A_RUN.items() if axis in used}
        require_limits(*costs.of(at_most), at_most)
        return costs

    def _define(self, name: str, value: KnownTensor, where: str) -> None:
        if not name or name in self._values:
            raise GraphRefused(f"{where}: its name is empty, or that of something else")
        if len(value.shape) > RANK_LIMIT:
            raise GraphRefused(f"{where}: it has {len(value.shape)} axes, the limit is {RANK_LIMIT}")
        self._values[name] = value
        self._memory[value.count] += WIDTHS_BYTES[value.element]

    def _step(self, given: ParsedMessage, where: str) -> None:
        try:
            self._run(given, where)
        except GraphRefused as refused:
            raise GraphRefused(f"{where}: {refused}") from refused

    def _run(self, given: ParsedMessage, where: str) -> None:
        operator = OPERATORS.get(given.get("operator", ""))
        if operator is None or given.get("domain", "") not in DEFAULT_DOMAINS:
            raise GraphRefused(f"no operator that a graph of a release may have (domain {given.get('domain', '')!r})")
        missing = [name for name in given["inputs"] if name and name not in self._values]
        if missing:
            raise GraphRefused(f"its input {missing[0]} comes from nothing before it")
        inputs = [self._values[name] if name else None for name in given["inputs"]]
        node = Node(
            given["operator"], inputs, len(given["outputs"]), _attributes(given, operator), self._axes, self._made
        )
        _require_form(node, operator)
        results = operator.rule(node)
        of_mask = given["operator"] == "Shape" or node.of_mask()
        for name, value in zip(given["outputs"], results, strict=True):
            self._require_sound(node, value.shape)
            if name:
                content = value.content if value.content and len(value.content) <= CONTENT_LIMIT else None
                self._define(name, KnownTensor(value.element, value.shape, content, of_mask, value.some), where)
        for each in (*inputs, *results):
            if each is not None:
                self._work[each.count] += operator.cost
        self._work[node.multiply_adds] += 1
        self._memory[node.scratch_bytes] += 1

    def _require_sound(self, node: Node, shape: Shape) -> None:
        for size in shape:
            if size not in self._sound:
                within(node, size, 0)
                self._sound.add(size)

    def _output(self, name: str, element: int, shape: Sequence[int | str]) -> None:
        value = self._values.get(name)
        if value is None:
            raise GraphRefused(f"output {name} comes from no node")
        if value.element != element or value.shape != _sizes(shape):
            raise GraphRefused(
                f"output {name} is declared {SHOWN[element]} {list(shape)}, it is {SHOWN[value.element]} "
                f"{list(value.shape)}"
            )


def _require_form(node: Node, operator: OperatorForm) -> None:
    least, most = operator.inputs
    if not least <= len(node.inputs) <= most:
        node.refuse(f"it has {len(node.inputs)} inputs, allowed are {least} to {most}")
    least, most = operator.outputs
    if not least <= node.outputs <= most:
        node.refuse(f"it has {node.outputs} outputs, allowed are {least} to {most}")
    if node.given(0).element not in operator.elements:
        node.refuse(f"it works on {SHOWN[node.given(0).element]}, which no graph of a release does")


def _attributes(given: ParsedMessage, operator: OperatorForm) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for each in given["attributes"]:
        name, kind = each.get("name", ""), each.get("type")
        held = {1: "f", 2: "i", 3: "s", 7: "ints"}.get(kind, "")
        if operator.attributes.get(name) != kind or name in found:
            raise GraphRefused(f"its attribute {name!r} of type {kind} is not allowed")
        values = {part for part in ("f", "i", "s", "ints") if each.get(part) not in (None, [])}
        if values - {held}:
            raise GraphRefused(f"its attribute {name!r} has values of other types")
        found[name] = each.get(held, {"f": bytes(4), "i": 0, "s": ""}.get(held))
        if name in FLAGS and found[name] not in (0, 1):
            raise GraphRefused(f"its attribute {name!r} is {found[name]}, allowed are 0 and 1")
    return found


def _declared(given: ParsedMessage, what: str) -> tuple[str, int, list[int | str]]:
    name = given.get("name", "")
    tensor = given.get("type", {}).get("tensor", {})
    element = tensor.get("element")
    if element not in ALL or "shape" not in tensor:
        raise GraphRefused(f"{what} {name}: it has no shape, or numbers of type {element}")
    shape: list[int | str] = []
    for axis in tensor["shape"]["axes"]:
        size, free = axis.get("size"), axis.get("name")
        if (size is None) == (free is None):
            raise GraphRefused(f"{what} {name}: an axis has neither a size nor a name, or both")
        if free is not None and free not in AXES_OF_A_RUN:
            raise GraphRefused(f"{what} {name}: its axis {free} is none of {', '.join(AXES_OF_A_RUN)}")
        if size is not None and not 0 < size <= GREATEST_AXIS:
            raise GraphRefused(f"{what} {name}: an axis has size {size}, allowed are 1 to {GREATEST_AXIS}")
        shape.append(free if free is not None else size)
    return name, element, shape


def _sizes(shape: Sequence[int | str]) -> Shape:
    return tuple(Polynomial.of(axis) if isinstance(axis, str) else axis for axis in shape)


def _initializer(given: ParsedMessage) -> KnownTensor:
    element, shape, raw = given.get("element"), tuple(given["dims"]), given.get("raw", b"")
    if element not in ALL or len(shape) > RANK_LIMIT or any(size < 0 for size in shape):
        raise GraphRefused(f"initializer {given.get('name')}: type {element}, shape {list(shape)}")
    count = math.prod(shape)
    if count * WIDTHS_BYTES[element] != len(raw):
        raise GraphRefused(
            f"initializer {given.get('name')}: {len(raw)} bytes, its shape {list(shape)} says "
            f"{count * WIDTHS_BYTES[element]}"
        )
    content: tuple[Size, ...] | None = None
    if len(shape) < 2 and count <= CONTENT_LIMIT and element in (INT32, INT64, FLOAT):
        numbers = np.frombuffer(raw, {INT32: "<i4", INT64: "<i8", FLOAT: "<f4"}[element])
        whole = element != FLOAT or bool((np.abs(numbers) < EXACT_FLOAT).all() and (np.trunc(numbers) == numbers).all())
        content = tuple(int(each) for each in numbers) if whole else None
    some = element == INT64 and bool(np.frombuffer(raw, "<i8").any())
    return KnownTensor(element, shape, content, of_mask=True, some=some)
