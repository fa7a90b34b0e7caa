"""A news encoder's graph as a task of batches: what its inputs are made of is the embedder's."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.embedding.batch_executor import ResultRefused, check_array, check_states
from device_app.wire.tensors import pack

EncoderInputs = Mapping[str, NDArray[np.int64]]
"""By name of the graph's: `pieces` and `piece_mask` [b, L], and what it reads besides titles."""
EncoderOutputs = tuple[NDArray[np.float32], list[NDArray[np.float16]] | None]
"""Vectors [b, D]; the token states [L_i, S] of each title, where they are wanted and the graph has them."""


@dataclass(frozen=True, eq=False)
class EncoderTask:
    """An ONNX graph and its parameters.

    Args:
        graph: its file, or its bytes.
        sha256: of these.
        parameters: by name.
        dimensions: D.
        states: whether token states are wanted.
    """

    graph: Path | NDArray[np.uint8]
    sha256: str
    parameters: Mapping[str, NDArray[np.float32]]
    dimensions: int
    states: bool

    @property
    def key(self) -> str:
        """By content."""
        return f"encoder {self.sha256} {hashlib.sha256(pack(self.parameters)).hexdigest()} {self.states}"

    def portable(self) -> EncoderTask:
        """With the graph's bytes."""
        if not isinstance(self.graph, Path):
            return self
        return replace(self, graph=np.fromfile(self.graph, dtype=np.uint8))

    def open(self, threads: int) -> Callable[[EncoderInputs], EncoderOutputs]:
        """A session. Raises what ONNX Runtime does for a graph that it can't read."""
        import onnxruntime  # a server knows the names of these files without it

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        # Spinning threads would take the cores from the requests that are served meanwhile.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        graph: Any = str(self.graph) if isinstance(self.graph, Path) else self.graph.tobytes()
        session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
        given = {f"p.{name}": value for name, value in self.parameters.items()}
        outputs = ["vectors", *(["states"] if self.states and _has_states(session) else [])]

        def run(inputs: EncoderInputs) -> EncoderOutputs:
            found = session.run(outputs, {**inputs, **given})
            if len(found) == 1:
                return found[0], None
            mask = inputs["piece_mask"] > 0
            return found[0], [states[real].astype(np.float16) for states, real in zip(found[1], mask, strict=True)]

        return run

    def check(self, batch: EncoderInputs, result: object) -> None:
        """Raises ResultRefused."""
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
