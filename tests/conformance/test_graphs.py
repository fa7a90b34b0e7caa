"""Both devices accept the same graphs, and refuse the others with the same message before ONNX Runtime sees them.

Oracle: the Python device's check, which its own tests compare with ONNX Runtime and hostile graphs. The attacker signs
releases, and brings the graphs of tests/privacy/test_oblivious_graphs.py.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable

from protocol.graph_check import GraphRefused, check_graph
from tests.conformance.node_end import ask_node
from tests.doubles.graphs import cosine_score_graph
from tests.privacy.test_oblivious_graphs import ATTACKS
from tests.unit.protocol.test_graph_check import HAND_MADE, ODD, SIZES, graphs, mutants

WORDS_LIMIT = 400


def python_says(content: bytes) -> str | list[str]:
    """Return why the Python device refuses a graph, or what a run costs."""
    try:
        return [str(each) for each in check_graph(content).of(SIZES)]
    except GraphRefused as refused:
        return str(refused)


def base64_of(contents: Iterable[bytes]) -> list[str]:
    return [base64.b64encode(each).decode() for each in contents]


def test_hostile_graphs_are_refused_before_onnx_runtime_starts() -> None:
    hostile = {attack: made().SerializeToString() for attack, (made, _) in ATTACKS.items()}
    (said,) = ask_node([("graphs_loaded", base64_of(hostile.values()))])
    for (attack, content), (kind, words) in zip(hostile.items(), said, strict=True):
        expected = python_says(content)
        assert isinstance(expected, str), attack
        assert kind == "GraphMismatch", (attack, words)
        assert words == f"A model of the release can't be used: {expected[:WORDS_LIMIT]}.", attack


def test_both_runtimes_reject_the_same_damaged_graphs() -> None:
    asked = [*graphs(), *(made(HAND_MADE[2]) for made, _ in ODD.values()), *mutants(250)]
    (found,) = ask_node([("graphs_checked", {"graphs": base64_of(asked), "sizes": SIZES})])
    expected = [python_says(each) for each in asked]
    assert found == expected
    assert 20 < sum(isinstance(each, list) for each in expected) < len(expected) - 60


def test_both_runtimes_refuse_the_same_input_sizes_with_the_same_message() -> None:
    content = cosine_score_graph(4)
    costs = check_graph(content)
    shapes: list[dict[str, list[int]]] = [
        {"clicks": [batch, 50, 4], "click_mask": [batch, 50], "candidates": [other, news, 4]}
        for batch, other, news in ((1, 1, 7), (2, 1, 7), (1, 1, 2**20), (1, 1, 0), (2**20, 2**20, 1))
    ]
    expected = []
    for each in shapes:
        try:
            costs.require(each)
            expected.append("")
        except GraphRefused as refused:
            expected.append(str(refused))
    (found,) = ask_node([("graphs_run", {"graph": base64_of([content])[0], "shapes": shapes})])
    assert found == expected
    assert [bool(each) for each in expected] == [False, True, True, True, True]
