"""Graphs run by ONNX Runtime: one session a graph and process, parameters fed per release."""

from __future__ import annotations

import hashlib
import logging
import os
import threading
from collections.abc import Callable, Collection, Mapping
from copy import copy
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from device_app.errors import GraphMismatch
from device_app.logs import kind_of
from device_app.ranking.padding import SharedPadding
from device_app.ranking.subnormals import subnormals_as_zero
from device_app.wire.graphs.check import check_graph
from device_app.wire.graphs.costs import GraphCosts
from device_app.wire.graphs.message import GraphRefused

_log = logging.getLogger(__name__)
PARAMETER_PREFIX = "p."
FILES_OF_VALUES = "session.model_external_initializers_file_folder_path"
"""ONNX Runtime's name for where the values lie that a graph keeps outside itself."""
SUBNORMALS_AS_ZERO = "session.set_denormal_as_zero"
"""ONNX Runtime's name for the setting of the threads of its pools."""

CHECKED_KEPT = 256
WORDS_LIMIT = 400
"""Of why a graph is refused: shapes in it are the attacker's, and may be long."""

_sessions: WeakValueDictionary[tuple[str, int], onnxruntime.InferenceSession] = WeakValueDictionary()
_sessions_lock = threading.Lock()
_checked: dict[str, GraphCosts] = {}


class GraphSession:
    """A graph with one release's parameters; calling it feeds the rest and gives every output by name.

    Graphs take their parameters as inputs `p.<name>`, so all releases of an architecture, and all devices of a fleet,
    share one ONNX Runtime session a graph: sessions are kept by SHA-256 while anybody uses them. Safe for several
    threads at once.
    """

    def __init__(
        self,
        graph: bytes | Path,
        weights: Mapping[str, NDArray[np.float32]],
        *,
        threads: int = 1,
        private: Collection[str] = (),
    ) -> None:
        """Load the graph, or find it loaded.

        weights maps parameter names without the prefix to float32 arrays; more than the graph declares is fine.
        private names parameters that no release brings; one that is not among the weights is zero, as for a reader
        whose device has learnt nothing yet. Raises GraphMismatch if the graph is none that a release may bring, can't
        be loaded, or declares a parameter that is missing or of another shape.
        """
        content = graph.read_bytes() if isinstance(graph, Path) else graph
        self._session, self._costs = shared_session(content, threads=threads), costs_of(content)
        self._parameters: dict[str, NDArray[np.float32]] = {}
        self.private: dict[str, tuple[int, ...]] = {}
        inputs: list[str] = []
        for declared in self._session.get_inputs():
            if not declared.name.startswith(PARAMETER_PREFIX):
                inputs.append(declared.name)
                continue
            name = declared.name.removeprefix(PARAMETER_PREFIX)
            if name not in weights and name in private:
                self._parameters[declared.name] = np.zeros(declared.shape, dtype=np.float32)
                self.private[name] = tuple(declared.shape)
                continue
            if name not in weights:
                raise GraphMismatch(f"parameter {name}: declared by the graph, missing from the weights")
            value = np.asarray(weights[name], dtype=np.float32, order="C")
            fits = len(declared.shape) == value.ndim and all(
                not isinstance(axis, int) or axis == size
                for axis, size in zip(declared.shape, value.shape, strict=True)
            )
            if not fits:
                raise GraphMismatch(
                    f"parameter {name}: shape {value.shape}, the graph declares {tuple(declared.shape)}"
                )
            self._parameters[declared.name] = value
        self.inputs = tuple(inputs)
        self.outputs = tuple(output.name for output in self._session.get_outputs())
        self._padding = SharedPadding.of(self._session.get_inputs(), self._session.get_outputs())

    def with_private(self, values: Mapping[str, NDArray[np.float32]]) -> GraphSession:
        """The same graph for one reader: what its device has learnt in place of zeros. A value of another shape was
        learnt for another form of the model, and is left out."""
        fitting = {name: each for name, each in values.items() if self.private.get(name) == each.shape}
        if not fitting:
            return self
        own = copy(self)
        own._parameters = self._parameters | {PARAMETER_PREFIX + name: each for name, each in fitting.items()}
        return own

    def __call__(self, **inputs: NDArray[np.float32]) -> dict[str, NDArray[Any]]:
        """Run the graph, for as many clicks as the longest history of the batch has where the graph leaves that open.

        Raises GraphMismatch unless exactly the declared inputs are given, their free axes agree, and the run is within
        the limits of `wire.graphs`.
        """
        if inputs.keys() != set(self.inputs):
            odd = sorted(inputs.keys() ^ set(self.inputs))[0]
            raise GraphMismatch(f"input {odd}: {'missing' if odd in self.inputs else 'not declared by the graph'}")
        count = self._padding.count(inputs)
        given = self._padding.cut(inputs, count)
        try:
            self._costs.require({name: each.shape for name, each in given.items()})
        except GraphRefused as refused:
            raise GraphMismatch(str(refused)) from refused
        with subnormals_as_zero():
            values = self._session.run(None, self._parameters | given)
        return self._padding.put_back(dict(zip(self.outputs, values, strict=True)), count)


def usable(compute: Callable[[], Any], otherwise: NDArray[np.float32], what: str) -> NDArray[np.float32]:
    """What a release's graph makes of the reader's clicks if that is finite and shaped like `otherwise`; else that.

    A graph, and what it is given, are the server's, and may be made so that it fails for some clicks alone. Where a
    request follows it must follow all the same, so no failure may get out: this device's log says that there was one.
    """
    try:
        with np.errstate(all="ignore"):
            found = np.asarray(compute(), dtype=np.float32)
        if found.shape != otherwise.shape:
            raise ValueError(f"shape {found.shape}, expected {otherwise.shape}")
        if not np.isfinite(found).all():
            raise ValueError("has values that are not finite")
    except Exception as fault:  # whatever it is: ONNX Runtime's own errors share no public base class
        # ONNX Runtime's messages repeat a graph's names, which are the attacker's, and places that follow from clicks.
        _log.warning("%s: the release's model can't be used on what was read: %s", what, kind_of(fault))
        return otherwise
    return found


def costs_of(graph: bytes) -> GraphCosts:
    """What runs of this graph cost, found once a process. Raises GraphMismatch for one that no release may bring."""
    digest = hashlib.sha256(graph).hexdigest()
    costs = _checked.get(digest)
    if costs is None:
        try:
            costs = check_graph(graph)
        except GraphRefused as refused:
            raise GraphMismatch(f"graph {digest[:12]}: {str(refused)[:WORDS_LIMIT]}") from refused
        if len(_checked) >= CHECKED_KEPT:
            _checked.clear()
        _checked[digest] = costs
    return costs


def shared_session(graph: bytes, *, threads: int) -> onnxruntime.InferenceSession:
    """The process's session of this graph: sequential, no spinning threads, no memory arena.

    Raises GraphMismatch for a graph that no release may bring, before ONNX Runtime sees it, or if that refuses it.
    """
    costs_of(graph)
    key = (hashlib.sha256(graph).hexdigest(), threads)
    with _sessions_lock:
        session = _sessions.get(key)
        if session is None:
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = threads
            options.inter_op_num_threads = 1
            options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
            options.enable_cpu_mem_arena = False
            options.enable_mem_pattern = False
            options.log_severity_level = 3
            # A graph may name files of values, and a release could name the reader's own: there are none to be found.
            options.add_session_config_entry(FILES_OF_VALUES, str(Path(os.devnull) / "none"))
            options.add_session_config_entry(SUBNORMALS_AS_ZERO, "1")
            try:
                with subnormals_as_zero():  # puts back what that option does to this thread
                    session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
            except Exception as broken:  # ONNX Runtime's own errors share no public base class
                raise GraphMismatch(f"graph {key[0][:12]}: ONNX Runtime can't load it: {broken}") from broken
            _sessions[key] = session
        return session
