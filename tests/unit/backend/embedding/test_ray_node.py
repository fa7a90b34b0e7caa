"""What a node compares with the backend, and how it reports a batch, without Ray. Oracle: descriptions by hand."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from backend.embedding import ray_node
from backend.embedding.ray_node import FAILED, REFUSED, RESULT, SAME_SOURCES, NodeDiffers, check_same, compute, same
from tests.doubles.batch_tasks import DivideTask, LacksModule

INTEL = """processor\t: 0
vendor_id\t: GenuineIntel
flags\t\t: fpu sse2 avx avx2 avx512f fma ssbd md_clear

processor\t: 1
vendor_id\t: GenuineIntel
flags\t\t: fpu
"""
ARM = "processor\t: 0\nBogoMIPS\t: 50\nFeatures\t: fp asimd crc32 sve bf16\nCPU implementer\t: 0x41\n"


@pytest.fixture(autouse=True)
def node(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node that has opened no task, and takes a reference for its object."""
    monkeypatch.setattr(ray_node, "_opened", None)
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(get=lambda reference: reference))


def given(task: Any, batch: float, expected: dict[str, str] | None = None) -> tuple[str, Any]:
    return compute(task.key, [task], same() if expected is None else expected, batch)


def test_node_reports_result_failure_or_refusal() -> None:
    assert given(DivideTask(), 4.0) == (RESULT, 0.25)
    assert given(DivideTask(), 0.0) == (FAILED, "float division by zero")
    assert given(LacksModule(), 4.0) == (REFUSED, "No module named 'module_of_another_version'")


@pytest.mark.parametrize("name", ["numpy", "torch", "source", "machine", "processor", "instructions"])
def test_any_difference_of_a_node_is_named_in_the_error(name: str) -> None:
    assert name in same()
    kind, why = given(DivideTask(), 4.0, same() | {name: f"{same()[name]} another"})
    assert kind == REFUSED
    assert why.endswith(f" differs from the backend in {name}: none there, another here")


def test_error_for_a_differing_node_lists_only_the_differing_instructions(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = same() | {"instructions": "avx avx2"}
    monkeypatch.setattr(ray_node, "same", lambda: expected | {"instructions": "avx avx512f"})
    with pytest.raises(NodeDiffers, match="in instructions: avx512f there, avx2 here"):
        check_same(expected)


def test_processor_identity_uses_vendor_and_relevant_instructions() -> None:
    assert ray_node.processor(INTEL) == {"processor": "GenuineIntel", "instructions": "avx avx2 avx512f fma sse2"}
    assert ray_node.processor(ARM) == {"processor": "0x41", "instructions": "asimd bf16 sve"}


def test_source_hash_covers_tasks_and_models(tmp_path: Path) -> None:
    root = Path(ray_node.__file__).parents[2]
    for folder in SAME_SOURCES:
        shutil.copytree(root / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    assert ray_node.sources(tmp_path) == same()["source"]
    for changed in (
        "backend/embedding/encoder_task.py",
        "backend/federation/split/torch_tasks.py",
        "models/news/plm.py",
    ):
        before = ray_node.sources(tmp_path)
        with (tmp_path / changed).open("a") as file:
            file.write("\n")
        assert ray_node.sources(tmp_path) != before
