"""Every message and tensor survives the wire. Classes are found by introspection: a new one needs an example here."""

from __future__ import annotations

import importlib
import json
import math
import pkgutil
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from pydantic import BaseModel, ValidationError

import device_app.wire
from device_app.wire.broadcast import (
    CARDS_LIMIT_BYTES,
    CodeShard,
    PoolCodes,
    pack_book,
    pack_cards,
    pack_codes,
    pack_priors,
    unpack_book,
    unpack_cards,
    unpack_codes,
    unpack_priors,
)
from device_app.wire.ids import PROTOCOL_VERSION, Message
from device_app.wire.news import BodiesAnswer, BodiesRequest, NewsBody, NewsCard
from device_app.wire.popularity import CountList, Popularity
from device_app.wire.problems import Problem
from device_app.wire.protections import LocalLaplace, SecureSum
from device_app.wire.recall import (
    BasisL1Report,
    BasisLaplaceReport,
    CodeReport,
    DirectionReport,
    NoReport,
    RecallAnswer,
    RecallRequest,
    SubsetReport,
    TopicsReport,
)
from device_app.wire.releases import (
    BlobRef,
    Codebook,
    Groups,
    ModelEntry,
    Projection,
    RecallProtocol,
    ReleaseManifest,
    ShardList,
    ShardRef,
    SignedManifest,
)
from device_app.wire.rounds import CheckIn, RoundManifest, RoundOffer, RoundStatus, UploadReceipt
from device_app.wire.secagg import (
    AdvertisedKeys,
    Agreement,
    Agreements,
    Box,
    MemberSignature,
    RevealedShare,
    RevealedShares,
    Roster,
    RosterEntry,
    SharedKeys,
    Shares,
    SumTerms,
    Survivors,
)
from device_app.wire.tensors import DTYPES, TensorError, TensorSpec, dequantise, pack, quantise, unpack
from device_app.wire.union import UnionMarks

AT = datetime(2026, 11, 20, 8, 30, 0, 123456, tzinfo=UTC)
HASH = "ab" * 32
BLOB = BlobRef(sha256=HASH, size_bytes=256 * 1024 * 1024)
CARD = NewsCard(
    id="mind:N1~a_b.c-d",
    title='𝗔 tïtle 👷‍♀️ مدينة جديدة \u202b"quoted" \\ <b>',
    abstract="",
    url="https://example.org/a?b=c&d",
    publisher="",
    section="sport",
    topic="rowing",
    story=None,
    published_at=AT.astimezone(timezone(timedelta(hours=-11))),
    weight=1.0,
)
REPORT = BasisLaplaceReport(scores=((0.1, -1e4, 1e-300), (1 / 3, 1e4, -0.0)), counts=(1, 50))
BASIS_L1 = BasisL1Report(scores=((0.1, -1e4), (1 / 3, 1e4)), shares=(0.5, -0.25))
CODE = CodeReport(codebook=16, code=15)
TOPICS = TopicsReport(codebook=2, weights=(0.25, -1.5))
DIRECTION = DirectionReport(vector=(1.0, -1.0, 0.0, 0.5, 1 / 3, -0.0, 1e-9, 0.1))
SUBSET = SubsetReport(codebook=16, topics=(0, 3, 15))
ROUND = RoundManifest(
    round="round-1",
    release="r1",
    system="uni_fedrec",
    task="recall",
    model="recall",
    protection=LocalLaplace(clip=0.1, scale=0.01),
    negatives=4,
    samples_limit=64,
    closes_at=AT,
)
SHARD = ShardRef(name="2026-11-20.0", blob=BLOB, count=0)
CODE_SHARD = CodeShard(name="2026-11-20.0", count=5_000, codes=BLOB, cards=BLOB)
CODEBOOK = Codebook(size=16, epsilon=4.0, prototypes=BLOB)
PROJECTION = Projection(epsilon=4.0, matrix=BLOB)
PROTOCOL = RecallProtocol(
    basis_size=30,
    channels_limit=5,
    cluster_distance=0.7,
    score_clip=0.2,
    score_noise=1.2,
    codebooks=(CODEBOOK,),
    projection=PROJECTION,
    pool_codes=True,
)
POOL_CODES = PoolCodes(
    release="r1",
    version=7,
    encoder="e",
    subspaces=16,
    sharpness=8.0,
    book=BLOB,
    priors=BLOB,
    shards=(CODE_SHARD,),
)
COUNT_LIST = CountList(news=("n1", "n2"), displayed_limit=32, clicked_limit=5, displayed_unit=0.1875, window_hours=24.0)
POPULARITY = Popularity(
    release="r1", rounds=2, devices=60, counted_at=AT, news=("n1",), lifts=(-64,), popular=("n2", "n1")
)
GROUPS = Groups(size=4, weights=BLOB, centroids=BLOB, vectors=BLOB, next_centroids=BLOB, next_vectors=BLOB)
ENTRY = ModelEntry(architecture="basis", role="recall", graphs={"context": BLOB}, weights=None)
TERMS = SumTerms(round="round-1", cohort=50, cohort_minimum=34, length=1_089_602, fraction_bits=18, bound=100.0)
KEYS = AdvertisedKeys(
    encryption_key=bytes(range(32)), mask_key=b"\xff" * 32, verify_key=b"v" * 32, signature=bytes(range(64))
)
ROSTER = Roster(
    round="round-1",
    me=2,
    cohort=2,
    threshold=2,
    members=(RosterEntry(member=1, keys=KEYS), RosterEntry(member=2, keys=KEYS)),
)
BOX = Box(member=7, box=bytes(range(90)))
SHARE = RevealedShare(member=1, share=b"\xfe" * 33)
EXAMPLES: tuple[BaseModel, ...] = (
    TERMS,
    KEYS,
    RosterEntry(member=10_000, keys=KEYS),
    ROSTER,
    BOX,
    SharedKeys(seed_commitment=b"c" * 32, boxes=(BOX,)),
    Shares(boxes=()),
    Survivors(members=(1, 3, 10_000)),
    Agreement(signature=b"\xfb" * 64),
    MemberSignature(member=1, signature=b"s" * 64),
    Agreements(signatures=(MemberSignature(member=1, signature=b"s" * 64),)),
    SHARE,
    RevealedShares(seeds=(SHARE,), keys=(RevealedShare(member=2, share=bytes(33)),)),
    CARD,
    BodiesRequest(ids=("a", "b")),
    NewsBody(id="a", body="First.\n\nSecond."),
    BodiesAnswer(bodies=()),
    BodiesAnswer(bodies=(NewsBody(id="a", body=""),)),
    Problem(type="urn:ownfeed:problem:x", title="t", status=409, detail="d", current="r3"),  # type: ignore[call-arg]
    LocalLaplace(),
    SecureSum(clip=0.1, sigma=4_900, mode="active", graph="complete"),
    UnionMarks(owners_minimum=3, sigma=2),
    REPORT,
    BASIS_L1,
    CODE,
    TOPICS,
    DIRECTION,
    SUBSET,
    NoReport(),
    RecallRequest(release="r1", report=REPORT),
    *(RecallRequest(release="r1", report=report) for report in (BASIS_L1, CODE, TOPICS, DIRECTION, SUBSET)),
    CODE_SHARD,
    POOL_CODES,
    COUNT_LIST,
    POPULARITY,
    CODEBOOK,
    PROJECTION,
    PROTOCOL,
    RecallRequest(release="r999999999", limit=1, report=NoReport()),
    RecallAnswer(release="r1", encoder="e" * 64, candidates=(CARD,), vectors=bytes(range(256))),
    BLOB,
    GROUPS,
    ENTRY,
    RecallProtocol(basis_size=30, channels_limit=5, cluster_distance=0.7, score_clip=0.2, score_noise=0.0),
    SHARD,
    ReleaseManifest(
        release="r2",
        previous="r1",
        created_at=AT,
        encoder="e",
        dimensions=256,
        opset=18,
        recall=RecallProtocol(basis_size=30, channels_limit=5, cluster_distance=0.7, score_clip=0.2, score_noise=1.2),
        models={"recall": ENTRY},
        default_ranker="ranker.cosine",
    ),
    SignedManifest(manifest='{"a": "ö"}', signature=bytes(64), public_key=b"\xff" * 32),
    ShardList(release="r1", encoder="e", shards=(SHARD,)),
    CheckIn(protocol=PROTOCOL_VERSION, release="r1", tasks=("recall",)),
    ROUND,
    RoundOffer(manifest=ROUND, pseudonym="a-b_" * 6),
    UploadReceipt(round="round-1", sha256=HASH, duplicate=True),
    RoundStatus(
        round="round-1",
        system="uni_fedrec",
        state="failed",
        reason="too few",
        release="r1",
        cohort=60,
        cohort_minimum=10,
        joined=3,
        uploaded=2,
        received_bytes=2**40,
        opened_at=AT,
        closes_at=AT,
        finished_at=AT,
    ),
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
    (DirectionReport, DIRECTION, {"vector": [0.0] * 7}, "vector"),
    (DirectionReport, DIRECTION, {"vector": [1.01] + [0.0] * 7}, "vector.0"),
    (SubsetReport, SUBSET, {"topics": [3, 0]}, ""),
    (SubsetReport, SUBSET, {"topics": [0, 16]}, ""),
    (SubsetReport, SUBSET, {"topics": []}, "topics"),
    (CodeShard, CODE_SHARD, {"count": 5_001}, "count"),
    (CountList, COUNT_LIST, {"news": ["n1", "n1"]}, ""),
    (CountList, COUNT_LIST, {"displayed_unit": 1.5}, "displayed_unit"),
    (Popularity, POPULARITY, {"lifts": [65]}, ""),
    (Popularity, POPULARITY, {"lifts": []}, ""),
    (PoolCodes, POOL_CODES, {"shards": [json.loads(CODE_SHARD.model_dump_json())] * 2}, ""),
    (RecallProtocol, PROTOCOL, {"codebooks": [json.loads(CODEBOOK.model_dump_json())] * 2}, ""),
    (RecallRequest, RecallRequest(release="r1", report=REPORT), {"limit": 1_001}, "limit"),
    (BlobRef, BLOB, {"size_bytes": 256 * 1024 * 1024 + 1}, "size_bytes"),
    (BlobRef, BLOB, {"sha256": HASH.upper()}, "sha256"),
    (CheckIn, CheckIn(protocol=PROTOCOL_VERSION, release="r1", tasks=()), {"tasks": ["t"] * 17}, "tasks"),
    (RoundOffer, RoundOffer(manifest=ROUND, pseudonym="a" * 22), {"pseudonym": "a" * 21}, "pseudonym"),
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
    for module in pkgutil.walk_packages(device_app.wire.__path__, "device_app.wire."):
        importlib.import_module(module.name)
    found: set[type[BaseModel]] = {Problem}
    queue = Message.__subclasses__()
    while queue:
        one = queue.pop()
        queue += one.__subclasses__()
        if one.__module__.startswith("device_app.wire."):
            found.add(one)
    return found


def places(value: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], object]]:
    """Every leaf of parsed JSON with where it stands."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from places(inner, (*path, key))
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            yield from places(inner, (*path, at))
    else:
        yield path, value


def test_every_message_of_the_wire_has_an_example() -> None:
    assert {type(example) for example in EXAMPLES} == messages()


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda one: type(one).__name__)
def test_a_message_survives_json(example: BaseModel) -> None:
    text = example.model_dump_json()
    again = type(example).model_validate_json(text)
    assert again == example
    assert again.model_dump_json() == text
    assert type(example).model_validate(example.model_dump()) == example


@pytest.mark.parametrize(
    "example", [one for one in EXAMPLES if isinstance(one, Message)], ids=lambda e: type(e).__name__
)
def test_a_message_is_frozen_and_takes_no_unknown_field(example: Message) -> None:
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
def test_no_number_of_any_message_may_be_other_than_finite(example: Message, bad: str) -> None:
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
def test_a_broken_limit_is_refused_by_the_name_of_its_field(
    kind: type[BaseModel], example: BaseModel, change: dict[str, Any], field: str
) -> None:
    with pytest.raises(ValidationError) as refused:
        kind.model_validate_json(json.dumps(json.loads(example.model_dump_json()) | change))
    assert ".".join(map(str, refused.value.errors()[0]["loc"])) == field


finite = st.floats(-1e4, 1e4, allow_nan=False)


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 30).flatmap(lambda width: st.lists(st.tuples(*[finite] * width), min_size=1, max_size=5)))
def test_noisy_scores_arrive_bit_for_bit(scores: list[tuple[float, ...]]) -> None:
    sent = RecallRequest(release="r1", report=BasisLaplaceReport(scores=tuple(scores), counts=(1,) * len(scores)))
    got = RecallRequest.model_validate_json(sent.model_dump_json())
    assert isinstance(got.report, BasisLaplaceReport)
    assert [[value.hex() for value in row] for row in got.report.scores] == [
        [value.hex() for value in row] for row in scores
    ]


@settings(max_examples=60, deadline=None)
@given(st.data(), st.sampled_from(sorted(DTYPES)), array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5))
def test_tensors_of_any_shape_survive_scalars_and_empty_ones_too(
    data: st.DataObject, dtype: str, shape: tuple[int, ...]
) -> None:
    value = data.draw(
        arrays(
            DTYPES[dtype], shape, elements={"allow_nan": False, "allow_infinity": False} if "float" in dtype else None
        )
    )
    got = unpack(pack({"t": value}), {"t": TensorSpec(dtype, shape)}, limit_bytes=10_000)["t"]
    assert got.dtype == value.dtype
    assert got.shape == shape
    assert got.tobytes() == value.tobytes()


def test_pool_codes_books_priors_and_cards_survive_their_blobs() -> None:
    codes = np.arange(32, dtype=np.uint8).reshape(2, 16)
    assert (unpack_codes(pack_codes(codes), 2, 16) == codes).all()
    book = np.arange(16 * 256 * 2, dtype=np.float32).reshape(16, 256, 2)
    assert (unpack_book(pack_book(book), 16, 32) == book).all()
    assert unpack_priors(pack_priors(np.array([0.5, -3.0])), 2).tolist() == [0.5, -3.0]
    assert unpack_cards(pack_cards([CARD.model_dump_json().encode()]), 1) == (CARD,)


@pytest.mark.parametrize(
    ("blob", "words"),
    [
        (b"[]", "not compressed JSON"),
        (pack_cards([])[:-1], "cut off"),
        (pack_cards([b"{}"]), "0.id"),
        (pack_cards([]), "0 of them, declared were 1"),
        (zlib.compress(bytes(CARDS_LIMIT_BYTES + 1)), "more than"),
    ],
)
def test_cards_that_are_not_as_declared_are_refused(blob: bytes, words: str) -> None:
    with pytest.raises(TensorError, match=words):
        unpack_cards(blob, 1)


def test_a_book_whose_subspaces_do_not_divide_the_dimensions_is_refused() -> None:
    with pytest.raises(TensorError, match="16 subspaces do not divide 250 dimensions"):
        unpack_book(b"", 16, 250)


def test_the_same_tensors_in_any_order_of_names_and_memory_give_the_same_bytes() -> None:
    one, two = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones(2, np.int8)
    assert pack({"a": one, "b": two}) == pack({"b": two, "a": np.asfortranarray(one)})


GOOD = pack({"t": np.zeros((2, 3), np.float32)})


@pytest.mark.parametrize(
    ("blob", "spec", "limit_bytes", "words"),
    [
        (GOOD, TensorSpec("float32", (2, 3)), len(GOOD) - 1, f"limit {len(GOOD) - 1}"),
        (GOOD, TensorSpec("float32", (2, 4)), 10_000, "tensor t: shape (2, 3), expected (2, 4)"),
        (GOOD, TensorSpec("float32", (None, 3), axis_limit=1), 10_000, "free axes up to 1"),
        (GOOD, TensorSpec("float16", (2, 3)), 10_000, "tensor t: dtype float32, expected float16"),
        (pack({"u": np.zeros(1, np.int8)}), TensorSpec("int8", (1,)), 10_000, "tensor t: missing"),
        (
            pack({"t": np.zeros(1, np.int8), "u": np.zeros(1, np.int8)}),
            TensorSpec("int8", (1,)),
            10_000,
            "tensor u: not",
        ),
        (pack({"t": np.full(1, math.nan, np.float32)}), TensorSpec("float32", (1,)), 10_000, "not finite"),
        (GOOD[:-1], TensorSpec("float32", (2, 3)), 10_000, "not a safetensors blob"),
        (b"", TensorSpec("float32", (2, 3)), 10_000, "not a safetensors blob"),
        (b"\xff" * 64, TensorSpec("float32", (2, 3)), 10_000, "not a safetensors blob"),
    ],
)
def test_a_blob_that_is_not_as_declared_is_refused_by_tensor_and_limit(
    blob: bytes, spec: TensorSpec, limit_bytes: int, words: str
) -> None:
    with pytest.raises(TensorError) as refused:
        unpack(blob, {"t": spec}, limit_bytes=limit_bytes)
    assert words in str(refused.value)


def test_a_dtype_that_is_not_carried_is_refused_by_name() -> None:
    with pytest.raises(TensorError, match="tensor t: dtype float64"):
        pack({"t": np.zeros(1)})


@settings(max_examples=50, deadline=None)
@given(arrays(np.float32, st.tuples(st.integers(1, 6), st.just(16)), elements=st.floats(-100, 100, width=32)))
def test_quantised_vectors_are_within_half_a_step(vectors: np.ndarray) -> None:
    packed = quantise(vectors)
    error = np.abs(dequantise(packed["codes"], packed["scales"]) - vectors)
    assert (error <= packed["scales"][:, None] * 0.5 + 1e-5).all()
