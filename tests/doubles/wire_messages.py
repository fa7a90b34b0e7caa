"""An example of every message of the wire protocol, at its limits where there are any."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from pydantic import BaseModel

from protocol.broadcast import (
    CodeShard,
    PoolCodes,
)
from protocol.chain import ChainedRelease, KeyHistory, KeyRotation, ReleaseChain, SignedRotation
from protocol.ids import PROTOCOL_VERSION, Problem
from protocol.news import AlsoIn, BodiesAnswer, BodiesRequest, NewsBody, NewsCard
from protocol.pictures import PictureList, PictureShard
from protocol.popularity import CountList, Popularity
from protocol.protections import LocalLaplace, SecureSum
from protocol.recall import (
    BasisL1Report,
    BasisLaplaceReport,
    CodeReport,
    DefaultListAnswer,
    NoReport,
    RecallAnswer,
    RecallRequest,
    SubsetReport,
    TopicsReport,
)
from protocol.releases import (
    BlobRef,
    Codebook,
    Groups,
    ModelEntry,
    RecallProtocol,
    ReleaseManifest,
    ShardList,
    ShardRef,
    SignedManifest,
)
from protocol.rounds import (
    CheckIn,
    OpenRounds,
    QueuedRound,
    RoundManifest,
    RoundOffer,
    RoundStatus,
    SignedOffer,
    UploadReceipt,
)
from protocol.secagg import (
    AdvertisedKeys,
    Agreement,
    Agreements,
    Box,
    Complaints,
    MemberSignature,
    RevealedShare,
    RevealedShares,
    Roster,
    RosterEntry,
    SharedKeys,
    Sharers,
    Shares,
    SumTerms,
    Survivors,
)
from protocol.union import UnionMarks

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
    dated=False,
    weight=1.0,
    also=(AlsoIn(id="e1", title="The same", url="", publisher="Other", published_at=AT),),
)
REPORT = BasisLaplaceReport(scores=((0.1, -1e4, 1e-300), (1 / 3, 1e4, -0.0)), counts=(1, 50))
BASIS_L1 = BasisL1Report(scores=((0.1, -1e4), (1 / 3, 1e4)), shares=(0.5, -0.25))
CODE = CodeReport(codebook=16, code=15)
TOPICS = TopicsReport(codebook=2, weights=(0.25, -1.5))
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
SIGNED_OFFER = SignedOffer(
    manifest=ROUND.model_dump_json(), signature=bytes(64), public_key=b"\xff" * 32, pseudonym="a-b_" * 6
)
ROTATION = KeyRotation(number=1, old_key=b"o" * 32, new_key=b"n" * 32, rotated_at=AT)
SHARD = ShardRef(name="2026-11-20.0", blob=BLOB, count=0)
CODE_SHARD = CodeShard(name="2026-11-20.0", count=5_000, codes=BLOB, cards=BLOB)
CHAINED = ChainedRelease(release="r12", manifest_sha256="3f" * 32, published_at=datetime(2026, 11, 22, 8, tzinfo=UTC))
CODEBOOK = Codebook(size=16, epsilon=4.0, prototypes=BLOB)
PROTOCOL = RecallProtocol(
    basis_size=30,
    channels_limit=5,
    cluster_distance=0.7,
    score_clip=0.2,
    score_noise=1.2,
    codebooks=(CODEBOOK,),
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
PICTURE_SHARD = PictureShard(count=2, pictures=BlobRef(sha256=HASH, size_bytes=16_432))
PICTURE_LIST = PictureList(shards=(PICTURE_SHARD,))
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
ROUND_STATUS = RoundStatus(
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
)
EXAMPLES: tuple[BaseModel, ...] = (
    TERMS,
    KEYS,
    RosterEntry(member=10_000, keys=KEYS),
    ROSTER,
    BOX,
    SharedKeys(seed_commitment=b"c" * 32, boxes=(BOX,)),
    Shares(boxes=()),
    Complaints(members=()),
    Sharers(members=(2, 5)),
    Survivors(members=(1, 3, 10_000)),
    Agreement(signature=b"\xfb" * 64),
    MemberSignature(member=1, signature=b"s" * 64),
    Agreements(signatures=(MemberSignature(member=1, signature=b"s" * 64),)),
    SHARE,
    RevealedShares(seeds=(SHARE,), keys=(RevealedShare(member=2, share=bytes(33)),)),
    CARD,
    BodiesRequest(ids=("a", "b")),
    NewsBody(id="a", body="<p>First &amp; <em>second</em>.</p>"),
    AlsoIn(id="e2", title="", url="https://example.org/", publisher="", published_at=AT),
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
    SUBSET,
    NoReport(),
    RecallRequest(release=1, report=REPORT),
    *(RecallRequest(release=1, report=report) for report in (BASIS_L1, CODE, TOPICS, SUBSET)),
    CODE_SHARD,
    POOL_CODES,
    PICTURE_SHARD,
    PICTURE_LIST,
    COUNT_LIST,
    POPULARITY,
    CODEBOOK,
    PROTOCOL,
    RecallRequest(release=15, limit=1, report=NoReport()),
    RecallAnswer(release="r1", encoder="e" * 64, candidates=(CARD,), vectors=bytes(range(256))),
    DefaultListAnswer(release="r1", encoder="e" * 64, candidates=(CARD,), vectors=bytes(range(256))),
    DefaultListAnswer(release="r1", encoder="e" * 64, candidates=(CARD,), vectors=bytes(range(256)), order=(2, 0, 1)),
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
    CHAINED,
    ReleaseChain(releases=(CHAINED, CHAINED.model_copy(update={"release": "r13"}))),
    SignedManifest(manifest='{"a": "ö"}', signature=bytes(64), public_key=b"\xff" * 32),
    ShardList(release="r1", encoder="e", shards=(SHARD,)),
    ROTATION,
    SignedRotation(rotation=ROTATION.model_dump_json(), by_old_key=bytes(64), by_new_key=b"\xff" * 64),
    KeyHistory(public_key=b"n" * 32, rotations=()),
    CheckIn(protocol=PROTOCOL_VERSION, release=1, tasks=("recall",)),
    ROUND,
    RoundOffer(manifest=ROUND, pseudonym="a-b_" * 6),
    SIGNED_OFFER,
    UploadReceipt(round="round-1", sha256=HASH, duplicate=True),
    ROUND_STATUS,
    OpenRounds(rounds=(ROUND_STATUS,)),
    QueuedRound(
        number=3,
        system="small_ranker/secure/median",
        cohort=60,
        cohort_minimum=10,
        seconds=60.0,
        queued_at=AT,
        place=1,
        waits_for="round-1",
    ),
)
