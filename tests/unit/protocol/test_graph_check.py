"""Which graphs devices accept, and what the check predicts of a run. Oracles: ONNX Runtime and onnx's schemas."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import defs, numpy_helper

from device_app.ranking.session import GraphSession
from protocol.graph_check import (
    FILE_LIMIT_BYTES,
    ONE,
    OPERATORS,
    RUN_LIMIT_BYTES,
    RUN_LIMIT_MULTIPLY_ADDS,
    GraphRefused,
    Node,
    Size,
    bound,
    check_graph,
    quotient,
    times,
)
from tests.doubles.gradient_graph import ranker_gradient_graph, recall_gradient_graph
from tests.doubles.graphs import context_graph, cosine_score_graph, decompose_graph, feature_score_graph
from tests.doubles.view_graph import view_model

ROOT = Path(__file__).parents[3]
HAND_MADE = [
    context_graph(4),
    decompose_graph(4, 3),
    cosine_score_graph(4),
    feature_score_graph(4, 2),
    recall_gradient_graph(4, 3),
    ranker_gradient_graph(4, 2),
]
SIZES = {"batch": 3, "news": 11, "clicks": 6}
TYPES = {1: np.float32, 7: np.int64}


def graphs() -> list[bytes]:
    """Graphs made by hand, and two that `exporters` wrote, with rows of real clicks and doubles."""
    return [*HAND_MADE, *view_model(4).graphs.values()]


def fed(content: bytes, draw: np.random.Generator) -> dict[str, np.ndarray]:
    """Return inputs and parameters by name; a third of the clicks is padding."""
    given = {}
    for each in onnx.load_from_string(content).graph.input:
        shape = [axis.dim_value or SIZES[axis.dim_param] for axis in each.type.tensor_type.shape.dim]
        given[each.name] = draw.normal(size=shape).astype(TYPES.get(each.type.tensor_type.elem_type, np.float32))
        if each.name in ("click_mask", "membership"):
            given[each.name] = np.ones(shape, np.float32)
            given[each.name][..., : shape[-1] // 3] = 0
    return given


def run(content: bytes, given: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    parameters = {name.removeprefix("p."): each for name, each in given.items() if name.startswith("p.")}
    inputs = {name: each for name, each in given.items() if not name.startswith("p.")}
    return GraphSession(content, parameters)(**inputs)


@pytest.mark.parametrize("place", range(len(HAND_MADE) + 2))
def test_estimated_cost_matches_what_onnx_runtime_allocates(place: int) -> None:
    content = graphs()[place]
    costs = check_graph(content)
    model = onnx.load_from_string(content)
    known = {each.name for each in model.graph.output}
    made = [name for node in model.graph.node for name in node.output if name and name not in known]
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in made)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    given = fed(content, np.random.default_rng(place))
    tensors = [*session.run(None, given), *given.values(), *map(numpy_helper.to_array, model.graph.initializer)]
    total = sum(each.nbytes for each in tensors)
    most = costs.of({axis: SIZES[axis] for _, _, axis in costs.axes})[0]
    assert total <= most <= 3 * total
    assert not costs.made or total < most, "rows of real clicks are counted as if all were real"


def test_allowed_operators_are_exactly_the_exporters() -> None:
    known = {each.name for each in defs.get_all_schemas() if not each.domain}
    sources = [*(ROOT / "exporters" / "operators").glob("*.py"), ROOT / "exporters/translate.py"]
    sources.append(ROOT / "exporters/translate.py")
    written = set(re.findall(r'"([A-Z][A-Za-z0-9]+)"', "".join(each.read_text(encoding="utf-8") for each in sources)))
    assert OPERATORS.keys() - {"Unsqueeze"} == written & known


def test_graph_limits_leave_a_margin_above_measured_runs_and_suit_a_slow_machine() -> None:
    # Measured: 112 MB and 1.9e9 at most for batches of 8 (FedNewsRec), 10 to 26 ps each on a quick core.
    assert 4 * 112e6 < RUN_LIMIT_BYTES <= 2**30
    assert 8 * 1.9e9 < RUN_LIMIT_MULTIPLY_ADDS <= 10e12 / 26 / 10


def varint(number: int) -> bytes:
    found = bytearray()
    while number >= 0x80:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


def part(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def nested(depth: int) -> bytes:
    content = b""
    for _ in range(depth):
        content = part(7, content)
    return content


ODD: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "empty": (lambda _: b"", "its ir_version is not one of 8 to 10"),
    "cut off": (lambda good: good[:-1], "longer than the message around it"),
    "cut off in a number": (lambda good: b"\x08\x80", "cut off"),
    "a number in eleven bytes": (lambda good: b"\x08" + b"\x80" * 10 + b"\x00" + good, "shortest way"),
    "a number of 70 bits": (lambda good: b"\x08" + b"\xff" * 9 + b"\x7f" + good, "shortest way"),
    "a number with a zero byte more": (lambda good: b"\x08\x8a\x00" + good[2:], "shortest way"),
    "a length beyond the end": (
        lambda good: b"\x3a\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
        "longer than the message around it",
    ),
    "the graph twice": (lambda good: good + part(7, b""), "model.graph appears twice"),
    "the version twice": (lambda good: good + b"\x08\x0a", "model.ir_version appears twice"),
    "a field that nobody knows": (lambda good: good + part(99, b"x"), "model has field 99"),
    "field 0": (lambda good: good + b"\x02\x00", "model has field 0"),
    "a group": (lambda good: b"\x3b\x3c", "model.graph is written as wire type 3, not 2"),
    "a wire type that there is not": (lambda good: b"\x3f", "wire type 7"),
    "graphs in graphs": (lambda good: nested(5_000), "has field 7"),
    "text where a graph is": (lambda good: b"\x08\x0a" + part(7, b"\xff" * 64), "cut off|shortest|has field"),
    "fields without end": (lambda good: part(7, part(2, b"") * 1) + part(8, b"") * 200_000, "more than 100000 numbers"),
    "sizes without end": (
        lambda good: b"\x08\x0a" + part(8, b"\x10\x12") + part(7, part(5, part(1, b"\x01" * 500_000))),
        "more than 100000 numbers",
    ),
    "a huge file": (lambda good: good + bytes(FILE_LIMIT_BYTES), "bytes, the limit is 1048576"),
}


@pytest.mark.parametrize("odd", ODD)
def test_graph_file_with_an_ambiguous_structure_is_refused(odd: str) -> None:
    made, words = ODD[odd]
    with pytest.raises(GraphRefused, match=words):
        check_graph(made(HAND_MADE[2]))


def mutants(count: int) -> Iterator[bytes]:
    """Yield our own graphs with a few bytes, operators, inputs, attributes or constants changed."""
    draw = random.Random(5)
    sources, names = graphs(), sorted(OPERATORS)
    numbers = (0, 1, -1, 2, 7, 50, 2**20, 2**40, 2**62, -(2**63), 2**63 - 1)
    for _ in range(count):
        content = draw.choice(sources)
        if draw.random() < 0.3:
            raw = bytearray(content)
            raw[draw.randrange(len(raw))] ^= 1 << draw.randrange(8)
            yield bytes(raw)
            continue
        model = onnx.load_from_string(content)
        node = draw.choice(model.graph.node)
        change = draw.randrange(4)
        if change == 0:
            node.op_type = draw.choice(names)
        elif change == 1:
            node.input[draw.randrange(len(node.input))] = draw.choice(model.graph.node).output[0]
        elif change == 2 and node.attribute:
            draw.choice(node.attribute).i = draw.choice(numbers)
        elif model.graph.initializer:
            constant = draw.choice(model.graph.initializer)
            value = numpy_helper.to_array(constant).copy()
            if value.dtype == np.int64:
                value.flat[0] = draw.choice(numbers)
            constant.CopyFrom(numpy_helper.from_array(value, constant.name))
        yield model.SerializeToString()


def test_mutated_graphs_are_refused_or_run_to_the_end() -> None:
    draw = np.random.default_rng(5)
    taken, faults = 0, list[str]()
    for mutant in mutants(400):
        try:
            check_graph(mutant)
        except GraphRefused:
            continue
        taken += 1
        try:
            run(mutant, fed(mutant, draw))
        except Exception as failed:  # of rows out of range, or other types than `fed` gives
            faults.append(str(failed))
    assert taken > 20
    assert not [each for each in faults if "roadcast" in each or "ShapeInferenceError" in each], (
        "other shapes than said"
    )


BATCH, CLICKS = (1, ("batch",)), (1, ("clicks",))


def test_symbolic_sizes_are_exact_in_sums_products_and_quotients() -> None:
    node = Node([], 0, {}, {})
    rows = times([BATCH, CLICKS])
    assert node.sum_of((node.sum_of((rows,), -1), ONE)) == rows
    assert node.sum_of((rows, rows)) == (2, ("batch", "clicks"))
    assert quotient(times([rows, (6, ())]), times([BATCH, (2, ())])) == (3, ("clicks",))
    assert quotient(rows, (2, ("batch",))) is None
    assert quotient(node.sum_of((BATCH,), 1), CLICKS) is None
    assert bound(rows, {"batch": 8, "clicks": 50}) == 400


def test_number_of_real_clicks_is_treated_only_as_an_upper_bound() -> None:
    """It must not be added like a size: a Reshape by it could make an axis that is longer than it seems."""
    node = Node([], 0, {}, {"real0": {("batch", "clicks"): 1}})
    assert node.sum_of(((1, ("real0",)), ONE), -1) == (1, ("real0",))
    assert quotient(times([BATCH, CLICKS]), (1, ("real0",))) is None


@pytest.mark.parametrize(
    ("sizes", "words"), [([BATCH] * 7, "more than 6 factors"), ([(2**50, ()), (16, ())], r"beyond 2\^53")]
)
def test_unbounded_sizes_are_refused(sizes: list[Size], words: str) -> None:
    with pytest.raises(GraphRefused, match=words):
        times(sizes)
