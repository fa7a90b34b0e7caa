"""Every message survives the wire. Classes are found by introspection: a new one needs an example."""

from __future__ import annotations

import importlib
import json
import pkgutil
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

import protocol
from protocol.broadcast import (
    CodeShard,
    PoolCodes,
)
from protocol.ids import PROTOCOL_VERSION, Message, Problem
from protocol.news import BodiesRequest, NewsCard
from protocol.pictures import PictureList, PictureShard
from protocol.popularity import CountList, Popularity
from protocol.protections import LocalLaplace, SecureSum
from protocol.recall import (
    BasisL1Report,
    BasisLaplaceReport,
    CodeReport,
    RecallRequest,
    SubsetReport,
    TopicsReport,
)
from protocol.releases import (
    BlobRef,
    RecallProtocol,
)
from protocol.rounds import CheckIn, RoundManifest, RoundOffer, SignedOffer
from protocol.secagg import (
    AdvertisedKeys,
    Box,
    RevealedShare,
    SumTerms,
)
from protocol.union import UnionMarks
from tests.doubles.wire_messages import (
    BASIS_L1,
    BLOB,
    BOX,
    CARD,
    CODE,
    CODE_SHARD,
    CODEBOOK,
    COUNT_LIST,
    EXAMPLES,
    HASH,
    KEYS,
    PICTURE_LIST,
    PICTURE_SHARD,
    POOL_CODES,
    POPULARITY,
    PROTOCOL,
    REPORT,
    ROUND,
    SHARE,
    SIGNED_OFFER,
    SUBSET,
    TERMS,
    TOPICS,
)

BROKEN: tuple[tuple[type[BaseModel], BaseModel, dict[str, Any], str], ...] = (
    (NewsCard, CARD, {"title": "x" * 1_001}, "title"),
    (NewsCard, CARD, {"published_at": "2026-11-20T08:00:00"}, "published_at"),
    (NewsCard, CARD, {"id": "../etc"}, "id"),
    (NewsCard, CARD, {"weight": 1.01}, "weight"),
    (BodiesRequest, BodiesRequest(ids=("a",)), {"ids": []}, "ids"),
    (BodiesRequest, BodiesRequest(ids=("a",)), {"ids": ["a"] * 1_001}, "ids"),
    (BasisLaplaceReport, REPORT, {"counts": [1, 51]}, "counts.1"),
    (BasisLaplaceReport, REPORT, {"scores": [[1e4 + 1], [0.0]]}, "scores.0.0"),
    (BasisL1Report, BASIS_L1, {"shares": [0.5]}, ""),
    (CodeReport, CODE, {"code": 16}, ""),
    (CodeReport, CODE, {"codebook": 1}, "codebook"),
    (TopicsReport, TOPICS, {"weights": [0.1, 0.2, 0.3]}, ""),
    (SubsetReport, SUBSET, {"topics": [3, 0]}, ""),
    (SubsetReport, SUBSET, {"topics": [0, 16]}, ""),
    (SubsetReport, SUBSET, {"topics": []}, "topics"),
    (CodeShard, CODE_SHARD, {"count": 5_001}, "count"),
    (CountList, COUNT_LIST, {"news": ["n1", "n1"]}, ""),
    (CountList, COUNT_LIST, {"displayed_unit": 1.5}, "displayed_unit"),
    (Popularity, POPULARITY, {"lifts": [65]}, ""),
    (Popularity, POPULARITY, {"lifts": []}, ""),
    (PoolCodes, POOL_CODES, {"shards": [json.loads(CODE_SHARD.model_dump_json())] * 2}, ""),
    (PictureShard, PICTURE_SHARD, {"count": 65}, "count"),
    (PictureList, PICTURE_LIST, {"shards": [json.loads(PICTURE_SHARD.model_dump_json())] * 2}, ""),
    (RecallProtocol, PROTOCOL, {"codebooks": [json.loads(CODEBOOK.model_dump_json())] * 2}, ""),
    (RecallRequest, RecallRequest(release=1, report=REPORT), {"limit": 1_001}, "limit"),
    (BlobRef, BLOB, {"size_bytes": 256 * 1024 * 1024 + 1}, "size_bytes"),
    (BlobRef, BLOB, {"sha256": HASH.upper()}, "sha256"),
    (CheckIn, CheckIn(protocol=PROTOCOL_VERSION, release=1, tasks=()), {"tasks": ["t"] * 17}, "tasks"),
    (RoundOffer, RoundOffer(manifest=ROUND, pseudonym="a" * 22), {"pseudonym": "a" * 21}, "pseudonym"),
    (SignedOffer, SIGNED_OFFER, {"signature": "AAAA"}, "signature"),
    (RoundManifest, ROUND, {"samples_limit": 1_025}, "samples_limit"),
    (LocalLaplace, LocalLaplace(), {"scale": 0.0}, "scale"),
    (SecureSum, SecureSum(clip=1.0), {"clip": 0.0}, "clip"),
    (SecureSum, SecureSum(clip=1.0), {"sigma": -1}, "sigma"),
    (UnionMarks, UnionMarks(), {"owners_minimum": 0}, "owners_minimum"),
    (SumTerms, TERMS, {"cohort": 10_001}, "cohort"),
    (SumTerms, TERMS, {"length": 2**27 + 1}, "length"),
    (AdvertisedKeys, KEYS, {"mask_key": "AAAA"}, "mask_key"),
    (Box, BOX, {"box": "AAAA"}, "box"),
    (RevealedShare, SHARE, {"share": "AAAA"}, "share"),
)


def messages() -> set[type[BaseModel]]:
    for module in pkgutil.walk_packages(protocol.__path__, "protocol."):
        importlib.import_module(module.name)
    found: set[type[BaseModel]] = {Problem}
    queue = Message.__subclasses__()
    while queue:
        one = queue.pop()
        queue += one.__subclasses__()
        if one.__module__.startswith("protocol."):
            found.add(one)
    return found


def places(value: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], object]]:
    """Yield every leaf of parsed JSON with its path."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from places(inner, (*path, key))
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            yield from places(inner, (*path, at))
    else:
        yield path, value


def test_every_wire_message_has_an_example() -> None:
    assert {type(example) for example in EXAMPLES} == messages()


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda one: type(one).__name__)
def test_message_survives_json(example: BaseModel) -> None:
    text = example.model_dump_json()
    again = type(example).model_validate_json(text)
    assert again == example
    assert again.model_dump_json() == text
    assert type(example).model_validate(example.model_dump()) == example


@pytest.mark.parametrize(
    "example", [one for one in EXAMPLES if isinstance(one, Message)], ids=lambda e: type(e).__name__
)
def test_message_is_frozen_and_refuses_unknown_fields(example: Message) -> None:
    fields = type(example).model_fields
    if fields:
        with pytest.raises(ValidationError, match="frozen"):
            setattr(example, next(iter(fields)), None)
    with pytest.raises(ValidationError) as refused:
        type(example).model_validate_json(json.dumps(json.loads(example.model_dump_json()) | {"reader": "Ada"}))
    assert refused.value.errors()[0]["loc"] == ("reader",)


@pytest.mark.parametrize(
    "example", [one for one in EXAMPLES if isinstance(one, Message)], ids=lambda e: type(e).__name__
)
@pytest.mark.parametrize("bad", ["NaN", "Infinity", "-Infinity"])
def test_message_numbers_must_be_finite(example: Message, bad: str) -> None:
    content = json.loads(example.model_dump_json())
    for path, value in places(content):
        if isinstance(value, float):
            holder = json.loads(json.dumps(content))
            at = holder
            for step in path[:-1]:
                at = at[step]
            at[path[-1]] = "HERE"
            with pytest.raises(ValidationError):
                type(example).model_validate_json(json.dumps(holder).replace('"HERE"', bad))


@pytest.mark.parametrize(("kind", "example", "change", "field"), BROKEN, ids=lambda value: str(value)[:40])
def test_value_beyond_a_limit_is_refused_and_its_field_named(
    kind: type[BaseModel], example: BaseModel, change: dict[str, Any], field: str
) -> None:
    with pytest.raises(ValidationError) as refused:
        kind.model_validate_json(json.dumps(json.loads(example.model_dump_json()) | change))
    assert ".".join(map(str, refused.value.errors()[0]["loc"])) == field


finite = st.floats(-1e4, 1e4, allow_nan=False)


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 30).flatmap(lambda width: st.lists(st.tuples(*[finite] * width), min_size=1, max_size=5)))
def test_noisy_scores_are_transmitted_bit_for_bit(scores: list[tuple[float, ...]]) -> None:
    sent = RecallRequest(release=1, report=BasisLaplaceReport(scores=tuple(scores), counts=(1,) * len(scores)))
    got = RecallRequest.model_validate_json(sent.model_dump_json())
    assert isinstance(got.report, BasisLaplaceReport)
    assert [[value.hex() for value in row] for row in got.report.scores] == [
        [value.hex() for value in row] for row in scores
    ]
