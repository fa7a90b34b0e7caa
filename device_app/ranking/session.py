"""Runs a release's graphs with ONNX Runtime: one session per graph and process.

The parameters are fed per release. While a graph runs, subnormal numbers count as zero, so that the run time doesn't
depend on what was clicked. A float32 below 1.2e-38 costs an x86 processor a microcode assist in every product: a graph
of products of 2,000 x 2,000 took 0.36 s if no click lay near a chosen point, and 53 s if one did and scaled them down.
The processor has two bits that treat such numbers as 0 (FTZ and DAZ in MXCSR, one register per thread). ONNX Runtime's
own `session.set_denormal_as_zero` sets them in its thread pools, and permanently in the first thread of a process that
creates a session, but not in the thread that runs a graph.
"""

from __future__ import annotations

import ctypes
import hashlib
import logging
import os
import platform
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from functools import lru_cache
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from device_app.errors import GraphMismatch
from device_app.process import kind_of
from device_app.ranking.padding import SharedPadding
from protocol.graph_check import GraphCosts, GraphRefused, check_graph

FLUSH_AND_TAKE_AS_ZERO = 1 << 15 | 1 << 6
"""The bits FTZ and DAZ."""
MXCSR = 7
"""Index of MXCSR among the 32-bit words of fenv_t in glibc and musl.

It follows the 28 bytes of the x87.
"""
WORDS = 16
"""More words than any fenv_t has."""


@contextmanager
def subnormals_as_zero() -> Iterator[None]:
    """Treat subnormals as zero in the calling thread during the block.

    The floating-point environment is restored afterwards. Works only on Linux on x86-64; elsewhere it does nothing.
    """
    library = _environment()
    if library is None:
        yield
        return
    before, within = (ctypes.c_uint32 * WORDS)(), (ctypes.c_uint32 * WORDS)()
    library.fegetenv(before)
    library.fegetenv(within)
    within[MXCSR] |= FLUSH_AND_TAKE_AS_ZERO
    library.fesetenv(within)
    try:
        yield
    finally:
        library.fesetenv(before)


@lru_cache(maxsize=1)
def _environment() -> Any:
    """Return the process's C library with fegetenv and fesetenv; None if its fenv_t is unknown."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return None
    library = ctypes.CDLL(None)
    return library if hasattr(library, "fegetenv") and hasattr(library, "fesetenv") else None


_log = logging.getLogger(__name__)
PARAMETER_PREFIX = "p."
FILES_OF_VALUES = "session.model_external_initializers_file_folder_path"
"""ONNX Runtime's option for the folder of values that a graph stores outside itself."""
SUBNORMALS_AS_ZERO = "session.set_denormal_as_zero"
"""ONNX Runtime's option for its thread pools."""

CHECKED_KEPT = 256
WORDS_LIMIT = 400
"""Maximum length of the reason for refusing a graph.

It contains the attacker's shapes and may be long.
"""

_sessions: WeakValueDictionary[tuple[str, int], onnxruntime.InferenceSession] = WeakValueDictionary()
_sessions_lock = threading.Lock()
_checked: dict[str, GraphCosts] = {}


class GraphSession:
    """A graph with one release's parameters.

    Calling it with the other inputs returns outputs by name. Graphs take their parameters as inputs `p.<name>`, so that
    all releases of an architecture and all devices of a fleet share one ONNX Runtime session per graph, cached by
    SHA-256 while in use. Thread-safe.
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

        weights maps parameter names without the prefix to float32 arrays; extra ones are ignored. private names
        parameters that no release contains; one that is missing from the weights is zero, as for a reader whose device
        has learned nothing yet. Raises GraphMismatch if the graph isn't allowed in a release, can't be loaded, or
        declares a parameter that is missing or has another shape.
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
        """Return the graph for one reader, with learned private parameters instead of zeros.

        A value of another shape belongs to another form of the model and is ignored.
        """
        fitting = {name: each for name, each in values.items() if self.private.get(name) == each.shape}
        if not fitting:
            return self
        own = copy(self)
        own._parameters = self._parameters | {PARAMETER_PREFIX + name: each for name, each in fitting.items()}
        return own

    def __call__(self, **inputs: NDArray[np.float32]) -> dict[str, NDArray[Any]]:
        """Run the graph and return its outputs by name.

        If the graph's axis of clicks is free, it runs only over the longest history of the batch. Raises GraphMismatch
        unless exactly the declared inputs are given, their free axes agree, and the run stays within the limits of
        `protocol.graph_check`.
        """
        if inputs.keys() != set(self.inputs):
            odd = sorted(inputs.keys() ^ set(self.inputs))[0]
            raise GraphMismatch(f"input {odd}: {'missing' if odd in self.inputs else 'not declared by the graph'}")
        count = self._padding.count(inputs)
        unpadded = self._padding.cut(inputs, count)
        try:
            self._costs.require({name: each.shape for name, each in unpadded.items()})
        except GraphRefused as refused:
            raise GraphMismatch(str(refused)) from refused
        with subnormals_as_zero():
            values = self._session.run(None, self._parameters | unpadded)
        return self._padding.put_back(dict(zip(self.outputs, values, strict=True)), count)


def usable(compute: Callable[[], Any], otherwise: NDArray[np.float32], what: str) -> NDArray[np.float32]:
    """Return `compute()` if it is usable, else `otherwise`.

    It is usable if it is finite and has the shape of `otherwise`. Graphs and their parameters come from the server,
    which could make them fail for certain clicks only. Whether a request is sent must not depend on such a failure, so
    no failure may propagate; it is logged on this device.
    """
    try:
        with np.errstate(all="ignore"):
            found = np.asarray(compute(), dtype=np.float32)
        if found.shape != otherwise.shape:
            raise ValueError(f"shape {found.shape}, expected {otherwise.shape}")
        if not np.isfinite(found).all():
            raise ValueError("has values that are not finite")
    except Exception as fault:  # any exception: ONNX Runtime's errors share no public base class
        # ONNX Runtime's messages repeat a graph's names, which an attacker chooses, and positions that depend on
        # clicks.
        _log.warning("%s: the release's model can't be used on what was read: %s", what, kind_of(fault))
        return otherwise
    return found


def costs_of(graph: bytes) -> GraphCosts:
    """Return what runs of this graph cost, computed once per process.

    Raises GraphMismatch for a graph that isn't allowed in a release.
    """
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
    """Return the process's session of this graph: sequential, not spinning, without arena.

    Raises GraphMismatch if ONNX Runtime refuses the graph or, before ONNX Runtime sees it, if it isn't allowed in a
    release.
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
            # A graph may name files of values, and a release could name the reader's own: let none be found.
            options.add_session_config_entry(FILES_OF_VALUES, str(Path(os.devnull) / "none"))
            options.add_session_config_entry(SUBNORMALS_AS_ZERO, "1")
            try:
                with subnormals_as_zero():  # restores what that option changes in this thread
                    session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
            except Exception as broken:  # ONNX Runtime's errors share no public base class
                raise GraphMismatch(f"graph {key[0][:12]}: ONNX Runtime can't load it: {broken}") from broken
            _sessions[key] = session
        return session
