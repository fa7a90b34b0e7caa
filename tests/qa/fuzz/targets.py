"""The targets of fuzzing: each reader of outside bytes, its allowed errors, and what must hold of what it reads.

A target is a function of bytes. It returns if the bytes were read, or refused as the reader documents; anything else
that it raises is a defect.
"""

from __future__ import annotations

import importlib
import io
import json
import pkgutil
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ValidationError

import backend.news.plain_text as plain_text
import backend.news.sources.feed_dates as feed_dates
import backend.news.sources.json_feed as json_feed
import backend.news.sources.picture_links as picture_links
import protocol
from backend.news.item import NewsItem, Rejection
from backend.news.opml import OpmlRefused, parse_opml, write_opml
from backend.news.sources import feed_parser, files, rss
from backend.news.sources.download import Document, Validators
from device_app.errors import ExportRefused
from device_app.store.exported import read_export
from device_app.view_models.export import JSON_COLUMNS, plain_value
from protocol.broadcast import unpack_cards
from protocol.graph_check import GraphRefused, check_graph
from protocol.ids import Message, Problem
from protocol.pooled_states import unpack_shard
from protocol.tensors import DTYPES, TensorError, TensorSpec, pack, unpack
from protocol.vocabulary import VocabularyDiffers, WordVocabulary
from tests.qa.fuzz.json_mutator import JsonMutator
from tests.qa.fuzz.tensor_mutator import TensorMutator

SEEDS = Path(__file__).parent / "seeds"
MOMENT = datetime(2026, 11, 26, 8, tzinfo=UTC)
Target = Callable[[bytes], None]


@dataclass(frozen=True)
class FuzzTarget:
    """run: raises for a defect. limit_bytes: of an input that the fuzzer makes up. mutator: makes one input of another,
    given how bytes are changed; None: by bytes alone."""

    run: Target
    limit_bytes: int
    mutator: type[JsonMutator | TensorMutator] | None = None


def tensors(data: bytes) -> None:
    """Read a safetensors blob by three declarations; what is read must survive writing and reading."""
    specs: tuple[Mapping[str, TensorSpec], ...] = (
        {"a": TensorSpec("int64", (3,)), "b": TensorSpec("float32", (2, 3))},
        {"codes": TensorSpec("int8", (None, 4)), "scales": TensorSpec("float32", (None,))},
        {"x": TensorSpec("float16", (None, None), axis_limit=64)},
    )
    for declared in specs:
        with suppress(TensorError):
            found = unpack(data, declared, limit_bytes=1 << 16)
            again = unpack(pack(found), declared, limit_bytes=1 << 17)
            assert all(np.array_equal(found[name], again[name]) for name in declared)
            assert all(found[name].dtype == DTYPES[spec.dtype] for name, spec in declared.items())
    with suppress(TensorError):
        unpack_shard(data, "rows", TensorSpec("float16", (None, 4)))


def messages(data: bytes) -> None:
    """Read a message's name (a line, or bytes that number one), then its JSON; it must survive writing and reading."""
    name, _, content = data.partition(b"\n")
    kinds = message_kinds()
    kind = kinds.get(name) or [*kinds.values()][sum(name) % len(kinds)]
    with suppress(ValidationError):
        found = kind.model_validate_json(content)
        written = found.model_dump_json()
        again = kind.model_validate_json(written)
        assert again == found, kind
        assert again.model_dump_json() == written, kind


@cache
def message_kinds() -> Mapping[bytes, type[BaseModel]]:
    """Return every message of the wire, by name."""
    for module in pkgutil.walk_packages(protocol.__path__, "protocol."):
        importlib.import_module(module.name)
    found: set[type[BaseModel]] = {Problem}
    queue: list[type[BaseModel]] = list(Message.__subclasses__())
    while queue:
        one = queue.pop()
        queue += one.__subclasses__()
        if one.__module__.startswith("protocol."):
            found.add(one)
    return {one.__name__.encode(): one for one in sorted(found, key=lambda one: one.__name__)}


def graphs(data: bytes) -> None:
    """Check an ONNX graph of a release."""
    with suppress(GraphRefused):
        check_graph(data)


def blobs(data: bytes) -> None:
    """Read blobs without tensors: cards of a shard, and a vocabulary, which must be written as it was read."""
    with suppress(TensorError):
        unpack_cards(data, 1)
    with suppress(VocabularyDiffers, ValueError):
        assert WordVocabulary.unpack(data).pack() == data


def feeds(data: bytes) -> None:
    """Read a feed by feedparser and by our reader, in this process instead of a separate one."""
    try:
        helpers = (plain_text, picture_links, feed_dates, json_feed)
        read = feed_parser._read(data, "application/rss+xml", "https://news.example.org/feed", *helpers)
    except feed_parser.FeedUnreadable:
        return
    parsed = feed_parser.ParsedFeed(**json.loads(json.dumps(read)))
    document = Document("a feed", "https://news.example.org/feed", data, "application/rss+xml", Validators())
    feed = rss._Feed.of(document, parsed, "news", "")
    for one in rss._entries(feed, parsed, MOMENT, "a feed", lambda ids: {}):
        _check_item(one)


def opml(data: bytes) -> None:
    """Read a list of feeds; it must survive export and import."""
    with suppress(OpmlRefused):
        found = parse_opml(data, "a list").feeds
        again = parse_opml(write_opml(found, "feeds"), "an export").feeds if found else []
        assert {(one.url, one.folder) for one in again} == {(one.url, one.folder) for one in found}


def mind(data: bytes) -> None:
    """Read rows of MIND's news.tsv."""
    _check_lines(data, lambda line: {**files._mind_fields(line), "published_at": MOMENT})


def jsonl(data: bytes) -> None:
    """Read articles as JSON Lines; an item must survive export and import."""
    _check_lines(data, files._json_fields)


def export(data: bytes) -> None:
    """Export a text and a blob of a device's store; the result must be JSON that others can read."""
    for column, value in (*((one, data.decode("utf-8", "replace")) for one in JSON_COLUMNS), ("bytes", data)):
        json.loads(json.dumps(plain_value(column, value), allow_nan=False))


def exported(data: bytes) -> None:
    """Import another device's export, as when its reader moves here."""
    with suppress(ExportRefused):
        read_export(data, MOMENT)


def _check_lines(data: bytes, fields_of: Callable[[str], dict[str, Any]]) -> None:
    for read in files.read_lines(io.BytesIO(data)):
        _check_item(read if isinstance(read, Rejection) else files._item(*read, fields_of))


def _check_item(one: NewsItem | Rejection) -> None:
    if isinstance(one, Rejection):
        assert one.reason
        return
    assert NewsItem.model_validate_json(one.model_dump_json()) == one
    assert not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f]", one.title), one.title


FUZZED: Mapping[str, FuzzTarget] = {
    "tensors": FuzzTarget(tensors, 4_096, TensorMutator),
    "messages": FuzzTarget(messages, 4_096, JsonMutator),
    "graphs": FuzzTarget(graphs, 4_096),
    "blobs": FuzzTarget(blobs, 4_096),
    "feeds": FuzzTarget(feeds, 2_048),
    "opml": FuzzTarget(opml, 4_096),
    "mind": FuzzTarget(mind, 4_096),
    "jsonl": FuzzTarget(jsonl, 4_096, JsonMutator),
    "export": FuzzTarget(export, 2_048, JsonMutator),
    "exported": FuzzTarget(exported, 8_192, JsonMutator),
}
