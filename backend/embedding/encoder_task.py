"""Runs a news encoder's graph as a task of batches; the embedder prepares its inputs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from backend.embedding.batch_executor import ResultRefused, check_array, check_states
from protocol.tensors import pack

EncoderInputs = Mapping[str, NDArray[np.int64]]
"""By name in the graph: `pieces` and `piece_mask` [b, L], and what it reads besides titles."""
EncoderOutputs = tuple[NDArray[np.float32], list[NDArray[np.float16]] | None]
"""Vectors [b, D]; and the token states [L_i, S] of each title, if they are requested and the graph has them."""


@dataclass(frozen=True, eq=False)
class EncoderTask:
    """An ONNX graph and its parameters.

    Args:
        graph: its file, or its bytes.
        sha256: of these bytes.
        parameters: tensors by name.
        dimensions: D.
        states: whether token states are wanted.
    """

    at_once: ClassVar[bool] = True
    """False would be slower: titles are too short for ONNX Runtime to share a batch between threads well, so computing
    batches in parallel gives a third more titles a second.
    """

    graph: Path | NDArray[np.uint8]
    sha256: str
    parameters: Mapping[str, NDArray[np.float32]]
    dimensions: int
    states: bool

    @property
    def key(self) -> str:
        """A content key."""
        return f"encoder {self.sha256} {hashlib.sha256(pack(self.parameters)).hexdigest()} {self.states}"

    def portable(self) -> EncoderTask:
        """A copy with the graph's bytes instead of its file."""
        if not isinstance(self.graph, Path):
            return self
        return replace(self, graph=np.fromfile(self.graph, dtype=np.uint8))

    def open(self, threads: int) -> Callable[[EncoderInputs], EncoderOutputs]:
        """Open a session. Raises ONNX Runtime's errors for a graph that it can't read."""
        import onnxruntime  # a server uses this module's names without it

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        # Spinning threads would take the cores from requests that are served at the same time.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        # Without these two, the memory of the largest batch is kept: 104 MB after 1,000 stories, at the same speed.
        options.enable_mem_pattern = False
        frees = onnxruntime.RunOptions()
        frees.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
        graph: Any = str(self.graph) if isinstance(self.graph, Path) else self.graph.tobytes()
        session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
        given = {f"p.{name}": value for name, value in self.parameters.items()}
        outputs = ["vectors", *(["states"] if self.states and _has_states(session) else [])]

        def run(inputs: EncoderInputs) -> EncoderOutputs:
            found = session.run(outputs, {**inputs, **given}, frees)
            if len(found) == 1:
                return found[0], None
            mask = inputs["piece_mask"] > 0
            return found[0], [states[real].astype(np.float16) for states, real in zip(found[1], mask, strict=True)]

        return run

    def check(self, batch: EncoderInputs, result: object) -> None:
        """Check the result's form. Raises ResultRefused."""
        if not isinstance(result, tuple) or len(result) != 2:
            raise ResultRefused("vectors and states were expected")
        vectors, states = result
        check_array("vectors", vectors, np.float32, (len(batch["pieces"]), self.dimensions))
        if states is None:
            return  # not every graph has them
        if not self.states:
            raise ResultRefused("states: none were expected")
        head = self.parameters.get("head.weight")  # [D, S]
        check_states(states, (batch["piece_mask"] > 0).sum(axis=1).tolist(), None if head is None else head.shape[1])


def _has_states(session: Any) -> bool:
    return any(each.name == "states" for each in session.get_outputs())
