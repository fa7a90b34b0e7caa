"""Cached graphs: an entry depends on everything its graph depends on, and damaged entries are not used.

Oracles: a count of exports, and models that differ in one thing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

from exporters import package
from exporters.architectures import architectures
from exporters.graph_cache import CachedGraphs, GraphCache, entry_name, graphs_of
from models.builders.rankers import cosine_ranker, nrms

MADE = CachedGraphs({"score": b"graph", "gradient": b"other"}, {"reports": [{"purpose": "score", "relative": 1e-7}]})


class CountedMaking:
    """Makes MADE and counts."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> CachedGraphs:
        self.times += 1
        return MADE


def name_of(model: nn.Module, architecture: str) -> str:
    return entry_name(architecture, *graphs_of(model, architectures()[architecture].graphs(model)))


def test_cached_entry_is_reused_by_every_later_start(tmp_path: Path) -> None:
    make = CountedMaking()
    for _ in range(3):
        assert GraphCache(tmp_path / "graphs").kept("name", make) == MADE
    assert make.times == 1
    assert GraphCache(tmp_path / "graphs").kept("another", make) == MADE
    assert make.times == 2
    assert not list((tmp_path / "graphs").glob("*.part"))


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: (folder / "name.score.onnx").write_bytes(b"grapf"),
        lambda folder: (folder / "name.gradient.onnx").unlink(),
        lambda folder: (folder / "name.gradient.onnx").write_bytes(b""),
        lambda folder: (folder / "name.json").write_text("{", encoding="utf-8"),
        lambda folder: (folder / "name.json").write_text("[]", encoding="utf-8"),
        lambda folder: (folder / "name.json").write_text(
            (folder / "name.json").read_text(encoding="utf-8").replace("1e-07", "0.0"), encoding="utf-8"
        ),
    ],
    ids=["another byte", "a file is gone", "cut off", "half a list", "another list", "another fact"],
)
def test_damaged_entry_is_rebuilt_and_logged_in_one_line(
    damage: Callable[[Path], object], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    make = CountedMaking()
    cache = GraphCache(tmp_path)
    cache.kept("name", make)
    damage(tmp_path)
    with caplog.at_level(logging.WARNING):
        assert cache.kept("name", make) == MADE
    (reported,) = caplog.messages
    assert "exported again" in reported
    assert make.times == 2
    assert GraphCache(tmp_path).kept("name", make) == MADE
    assert make.times == 2


def test_kill_while_writing_leaves_no_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache, make = GraphCache(tmp_path), CountedMaking()
    replace = Path.replace

    def killed(path: Path, target: Path) -> Path:
        if target.suffix == ".json":
            raise KeyboardInterrupt
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        cache.kept("name", make)
    monkeypatch.undo()
    assert cache.kept("name", make) == MADE
    assert make.times == 2


def test_unwritable_folder_is_logged_and_harmless(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "graphs").write_text("a file is in the way", encoding="utf-8")
    assert GraphCache(tmp_path / "graphs").kept("name", CountedMaking()) == MADE
    assert "can't be kept" in caplog.messages[-1]


def test_cache_name_identifies_an_architecture_independently_of_weights() -> None:
    built = {name: each.build() for name, each in architectures().items()}
    names = {name: name_of(model, name) for name, model in built.items()}
    assert len(set(names.values())) == len(names)
    for model in built.values():
        for each in model.parameters():
            torch.nn.init.uniform_(each)
    assert {name: name_of(model, name) for name, model in built.items()} == names


def test_setting_shape_and_source_change_the_cache_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    def named(heads: int = 16, attention_dim: int = 200) -> str:
        return name_of(nrms(heads=heads, head_dim=256 // heads, attention_dim=attention_dim), "nrms")

    names = {named(), named(heads=8), named(attention_dim=100)}
    monkeypatch.setattr("exporters.graph_cache.source_digest", lambda: "other source")
    names.add(named())
    assert len(names) == 4


def test_unhashable_setting_is_refused() -> None:
    model = cosine_ranker()
    model.given = object()  # type: ignore[assignment]
    with pytest.raises(TypeError, match=r"given is a object, which graphs can't be cached for"):
        name_of(model, "cosine")


def test_exported_ranker_comes_from_the_cache_with_its_own_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, model = GraphCache(tmp_path), cosine_ranker()
    first = package.export_ranker(model, cache)
    monkeypatch.setattr(package, "export_model", lambda *_: pytest.fail("exported twice"))
    with torch.no_grad():
        for each in model.parameters():
            each.add_(0.5)
    again = package.export_ranker(model, cache)
    assert (again.graphs, again.reports, again.architecture) == (first.graphs, first.reports, first.architecture)
    assert {name: (value - first.weights[name]).tolist() for name, value in again.weights.items()} == {
        name: (0 * value + 0.5).tolist() for name, value in again.weights.items()
    }
