"""Exported graphs kept in a folder, by what they were made of: another start, or another folder, makes none twice.

An entry's name is the SHA-256 of all that its graphs depend on: the model's classes, settings and shapes, the graphs
asked for, the source of what exports, and the versions of the libraries. So nothing is ever out of date; what no
source makes any more just lies there. Weights are inputs of graphs, so they are no part of it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import nn

    from exporters.signature import GraphSpec

SOURCES = ("exporters", "models", "device_app.wire.graphs")
"""Packages whose source decides what a graph is."""
LIBRARIES = ("torch", "onnx", "onnxruntime", "transformers")
NAME_CHARS = 32
PLAIN = (bool, int, float, str, bytes, type(None))

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class KeptGraphs:
    """Graphs by purpose, and what was measured of them, as JSON holds it."""

    graphs: Mapping[str, bytes]
    facts: Mapping[str, Any]


class GraphCache:
    """One folder of entries: `<name>.json` with sizes and digests, and `<name>.<purpose>.onnx` for each graph.

    Several processes may use one folder. Files are written aside and renamed, the list of an entry last.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def kept(self, name: str, make: Callable[[], KeptGraphs]) -> KeptGraphs:
        """The entry of that name, made and written down if there is none, or if a byte of it is not what was written.

        A damaged one, and a folder that can't be written, are told in one line of the log. Raises what `make` raises.
        """
        found = self._read(name)
        if found is None:
            found = make()
            try:
                self._write(name, found)
            except OSError as failed:
                _log.warning("exported graphs can't be kept in %s: %s", self.folder, failed.strerror)
        return found

    def forget(self, name: str) -> None:
        """Remove an entry, whose graphs turned out to be wrong."""
        for path in self.folder.glob(f"{name}.*"):
            path.unlink()

    def path(self, name: str, purpose: str) -> Path:
        """Where a graph of an entry lies."""
        return self.folder / f"{name}.{purpose}.onnx"

    def _read(self, name: str) -> KeptGraphs | None:
        try:
            listed = json.loads((self.folder / f"{name}.json").read_text(encoding="utf-8"))
            graphs = {purpose: self.path(name, purpose).read_bytes() for purpose in listed["graphs"]}
            odd = [purpose for purpose, blob in graphs.items() if _digest(blob) != listed["graphs"][purpose]]
            if not odd and _digest(_facts(listed["facts"])) == listed["facts_sha256"]:
                return KeptGraphs(graphs, listed["facts"])
        except FileNotFoundError as missing:
            if missing.filename == str(self.folder / f"{name}.json"):
                return None
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            pass  # told below like any other damage
        _log.warning("exported graphs in %s are damaged and are made anew: %s", self.folder, name)
        return None

    def _write(self, name: str, made: KeptGraphs) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        for purpose, blob in made.graphs.items():
            _put(self.path(name, purpose), blob)
        facts = dict(made.facts)
        listed = {
            "graphs": {purpose: _digest(blob) for purpose, blob in made.graphs.items()},
            "facts": facts,
            "facts_sha256": _digest(_facts(facts)),
        }
        _put(self.folder / f"{name}.json", json.dumps(listed, indent=1).encode())


def entry_name(*parts: object) -> str:
    """The name of an entry that depends on these parts, told by their repr, besides source and libraries."""
    return _digest("\n".join(map(repr, (source_digest(), *parts))).encode())[:NAME_CHARS]


def graphs_of(model: nn.Module, specs: Iterable[GraphSpec]) -> list[object]:
    """All of a model on which its graphs depend, its parameters' values apart, and the graphs asked for.

    Raises TypeError for a module with a setting of which it can't be told whether another one's is the same.
    """
    told: list[object] = [
        (name, _class(module), _settings(f"{_class(module)}.{name}", vars(module)))
        for name, module in model.named_modules()
    ]
    told += [(name, tuple(each.shape), str(each.dtype), each.requires_grad) for name, each in model.named_parameters()]
    told += [
        (spec.purpose, _told("method", spec.method), spec.inputs, spec.output, spec.with_gradients, spec.wrt)
        for spec in specs
    ]
    return told


@cache
def source_digest() -> str:
    """SHA-256 over the source of what makes graphs, and over the libraries' versions."""
    whole = hashlib.sha256()
    for package in SOURCES:
        root = Path(str(files(package)))
        for path in sorted(root.rglob("*.py")):
            whole.update(f"{package}/{path.relative_to(root).as_posix()}\n".encode())
            whole.update(hashlib.sha256(path.read_bytes()).digest())
    for library in LIBRARIES:
        whole.update(f"{library} {version(library)}\n".encode())
    return whole.hexdigest()


def _settings(where: str, held: Mapping[str, Any]) -> list[tuple[str, object]]:
    """What a module holds besides what torch keeps of every module."""
    return [
        (name, _told(f"{where}.{name}", value))
        for name, value in sorted(held.items())
        if not name.startswith("_") and name != "training"
    ]


def _told(where: str, value: Any) -> object:
    if isinstance(value, PLAIN):
        return value
    if isinstance(value, tuple | list):
        return [_told(where, each) for each in value]
    if isinstance(value, Mapping):
        return [(_told(where, key), _told(where, each)) for key, each in value.items()]
    if isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__}"
    if isinstance(value, FunctionType):
        held = [_told(where, each.cell_contents) for each in value.__closure__ or ()]
        at = value.__code__.co_firstlineno  # its code is told by the source, of which it may not be the only lambda
        return (value.__module__, value.__qualname__, at, held, _told(where, value.__defaults__))
    raise TypeError(f"{where} is a {type(value).__name__}: graphs of it can't be kept")


def _class(module: object) -> str:
    return f"{type(module).__module__}.{type(module).__qualname__}"


def _facts(facts: Mapping[str, Any]) -> bytes:
    return json.dumps(facts, sort_keys=True).encode()


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _put(path: Path, content: bytes) -> None:
    """The whole file in the place of what was there, on the disk when this returns."""
    draft = path.with_name(f"{path.name}.{secrets.token_hex(4)}.part")
    try:
        with draft.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
