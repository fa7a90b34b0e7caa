"""A cache folder of exported graphs, keyed by what they depend on, so that each graph is exported only once.

An entry's name is the SHA-256 of everything its graphs depend on: the model's classes, settings and shapes, the
requested graphs, the source of the exporter, and library versions. An entry therefore never goes stale; entries that no
current source produces stay unused. Weights are inputs of graphs and not part of the name.
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
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import nn

    from exporters.signature import GraphSpec

SOURCES = (("exporters", "**/*.py"), ("models", "**/*.py"), ("protocol", "graph*.*"))
"""Packages, and the files in them that determine a graph."""
LIBRARIES = ("torch", "onnx", "onnxruntime", "transformers")
NAME_CHARS = 32
PLAIN = (bool, int, float, str, bytes, type(None))

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class CachedGraphs:
    """Graphs by purpose, and their measurements as JSON values."""

    graphs: Mapping[str, bytes]
    facts: Mapping[str, Any]


class GraphCache:
    """One folder of entries: `<name>.json` with sizes and digests, and `<name>.<purpose>.onnx` for each graph.

    Several processes may use one folder. Files are written under temporary names and renamed, the entry's JSON last.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def kept(self, name: str, make: Callable[[], CachedGraphs]) -> CachedGraphs:
        """Return the entry of that name; make and store it if it is missing or damaged.

        Logs one line for a damaged entry or a folder that can't be written. Raises what `make` raises.
        """
        found = self.read(name)
        if found is None:
            found = make()
            try:
                self.write(name, found)
            except OSError as failed:
                _log.warning("exported graphs can't be kept in %s: %s", self.folder, failed.strerror)
        return found

    def forget(self, name: str) -> None:
        """Remove an entry whose graphs turned out to be wrong."""
        for path in self.folder.glob(f"{name}.*"):
            path.unlink()

    def path(self, name: str, purpose: str) -> Path:
        """Return the path of an entry's graph."""
        return self.folder / f"{name}.{purpose}.onnx"

    def read(self, name: str) -> CachedGraphs | None:
        """Return the entry of that name, or None; logs one line for a damaged one."""
        try:
            listed = json.loads((self.folder / f"{name}.json").read_text(encoding="utf-8"))
            graphs = {purpose: self.path(name, purpose).read_bytes() for purpose in listed["graphs"]}
            odd = [purpose for purpose, blob in graphs.items() if _digest(blob) != listed["graphs"][purpose]]
            if not odd and _digest(_facts(listed["facts"])) == listed["facts_sha256"]:
                return CachedGraphs(graphs, listed["facts"])
        except FileNotFoundError as missing:
            if missing.filename == str(self.folder / f"{name}.json"):
                return None
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            pass  # reported below like any other damage
        _log.warning("exported graphs in %s are damaged and are exported again: %s", self.folder, name)
        return None

    def write(self, name: str, made: CachedGraphs) -> None:
        """Store an entry in place of the previous one. Raises OSError."""
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
    """Return the name of an entry that depends on the repr of these parts, on the source and on the libraries."""
    return _digest("\n".join(map(repr, (source_digest(), *parts))).encode())[:NAME_CHARS]


def graphs_of(model: nn.Module, specs: Iterable[GraphSpec]) -> list[object]:
    """Return what a model's graphs depend on, except parameter values, together with the requested graphs.

    Raises TypeError for a module with a setting that can't be compared with another module's.
    """
    parts: list[object] = [
        (name, _class(module), _settings(f"{_class(module)}.{name}", vars(module)))
        for name, module in model.named_modules()
    ]
    parts += [(name, tuple(each.shape), str(each.dtype), each.requires_grad) for name, each in model.named_parameters()]
    parts += [
        (spec.purpose, _comparable("method", spec.method), spec.inputs, spec.output, spec.with_gradients, spec.wrt)
        for spec in specs
    ]
    return parts


@cache
def source_digest() -> str:
    """SHA-256 over the source of the exporter and over library versions."""
    digest = hashlib.sha256()
    for package, pattern in SOURCES:
        root = Path(str(files(package)))
        for path in sorted(root.glob(pattern)):
            digest.update(f"{package}/{path.relative_to(root).as_posix()}\n".encode())
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    for library in LIBRARIES:
        digest.update(f"{library} {_version(library)}\n".encode())
    return digest.hexdigest()


def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:  # nothing is exported here
        return "absent"


def _settings(where: str, held: Mapping[str, Any]) -> list[tuple[str, object]]:
    """Return the attributes of a module that torch does not keep for every module."""
    return [
        (name, _comparable(f"{where}.{name}", value))
        for name, value in sorted(held.items())
        if not name.startswith("_") and name != "training"
    ]


def _comparable(where: str, value: Any) -> object:
    if isinstance(value, PLAIN):
        return value
    if isinstance(value, tuple | list):
        return [_comparable(where, each) for each in value]
    if isinstance(value, Mapping):
        return [(_comparable(where, key), _comparable(where, each)) for key, each in value.items()]
    if isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__}"
    if isinstance(value, FunctionType):
        held = [_comparable(where, each.cell_contents) for each in value.__closure__ or ()]
        at = value.__code__.co_firstlineno  # identified by its source, which may contain several lambdas
        return (value.__module__, value.__qualname__, at, held, _comparable(where, value.__defaults__))
    raise TypeError(f"{where} is a {type(value).__name__}, which graphs can't be cached for")


def _class(module: object) -> str:
    return f"{type(module).__module__}.{type(module).__qualname__}"


def _facts(facts: Mapping[str, Any]) -> bytes:
    return json.dumps(facts, sort_keys=True).encode()


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _put(path: Path, content: bytes) -> None:
    """Write the whole file in place of the previous one; it is on the disk when this returns."""
    draft = path.with_name(f"{path.name}.{secrets.token_hex(4)}.part")
    try:
        with draft.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
