"""Mutations of blobs reach the rules for each tensor. Oracle: the errors of the blobs' reader."""

from __future__ import annotations

from collections import Counter

from protocol.tensors import TensorError, TensorSpec, unpack
from tests.qa.fuzz.targets import SEEDS
from tests.qa.fuzz.tensor_mutator import TensorMutator

ROUNDS, LIMIT_BYTES = 600, 4_096
DECLARED = {"a": TensorSpec("int64", (3,)), "b": TensorSpec("float32", (2, 3))}


def test_tensor_mutations_reach_every_validation_rule() -> None:
    mutate = TensorMutator(lambda data, limit: (data + b"!")[:limit])
    seed = (SEEDS / "tensors" / "two").read_bytes()
    reported: Counter[str] = Counter()
    for number in range(ROUNDS):
        mutated = mutate(seed, LIMIT_BYTES, number)
        assert len(mutated) <= LIMIT_BYTES
        try:
            unpack(mutated, DECLARED, limit_bytes=LIMIT_BYTES)
            reported["read"] += 1
        except TensorError as broken:
            reported[str(broken)] += 1
    for rule in (
        "read",
        "a: missing",
        "not expected here",
        "a: shape",
        "b: shape",
        "a: dtype",
        "b: dtype",
        "not finite",
    ):
        assert any(rule in why for why in reported), reported
