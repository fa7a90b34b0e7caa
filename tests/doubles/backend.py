"""An in-memory backend that speaks the wire protocol.

A synthetic pool, signed releases, exact recall.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from hashlib import sha256

import httpx
import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from safetensors.numpy import save

from protocol.broadcast import CodeShard, PoolCodes, pack_book, pack_cards, pack_codes, pack_priors
from protocol.chain import ChainedRelease, ReleaseChain, next_head
from protocol.ids import PROBLEM_MEDIA_TYPE, Problem, short_release
from protocol.news import BodiesAnswer, BodiesRequest, NewsBody
from protocol.pictures import Pictured, PictureList, PictureShard, pack_pictures
from protocol.popularity import Popularity
from protocol.recall import BasisLaplaceReport, CodeReport, RecallAnswer, RecallRequest
from protocol.releases import (
    RELEASES_ANSWERED,
    BlobRef,
    Codebook,
    ModelEntry,
    ModelRole,
    RecallProtocol,
    ReleaseManifest,
    ShardList,
    sign,
)
from protocol.similarity import similarity_floor
from protocol.tensors import pack, quantise
from tests.doubles.graphs import context_graph, cosine_score_graph, decompose_graph
from tests.doubles.news import NOW, SyntheticPool, synthetic_pool

BASIS = 30
ENCODER = "e" * 64


@dataclass
class FakeBackend:
    """Answers like the real backend; `down` makes it unreachable, `requests` keeps (method, path, body)."""

    pool: SyntheticPool = field(default_factory=synthetic_pool)
    encoder: str = ENCODER
    cluster_distance: float = 1.1
    created_at: datetime = NOW
    down: bool = False
    refuse_recall: Problem | None = None
    pool_codes: bool = False
    releases_answered: int = RELEASES_ANSWERED
    popularity: Popularity | None = None
    pictures: dict[str, bytes] = field(default_factory=dict)
    key: Ed25519PrivateKey | None = None
    blobs: dict[str, bytes] = field(default_factory=dict)
    requests: list[tuple[str, str, bytes]] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.key = self.key or Ed25519PrivateKey.generate()
        dim = self.pool.vectors.shape[1]
        draw = np.random.default_rng(11)
        rows = draw.choice(len(self.pool.cards), BASIS, replace=False)
        basis = self.pool.vectors[rows]
        self.values = basis
        picked = draw.choice(len(self.pool.cards), 16, replace=False)
        self.prototypes = np.ascontiguousarray(self.pool.vectors[picked], dtype=np.float32)
        self.models = {
            "recall": self._model(
                "basis",
                "recall",
                {"context": context_graph(dim), "decompose": decompose_graph(dim, BASIS)},
                {"basis_keys": basis, "basis_values": basis},
            ),
            "ranker.cosine": self._model(
                "cosine", "ranker", {"score": cosine_score_graph(dim)}, {"beta": np.array(8.0, np.float32)}
            ),
        }
        self.releases: list[str] = []
        self.chain: list[ChainedRelease] = []
        self.head: str | None = None
        self.publish()

    def publish(self, *, number: int | None = None, codebooks: tuple[Codebook, ...] | None = None) -> str:
        """Publish a new release with the same models, and with these codebooks if any are given."""
        previous = self.releases[-1] if self.releases else None
        name = f"r{number or len(self.releases) + 1}"
        manifest = ReleaseManifest(
            chain=self.head,
            release=name,
            previous=previous,
            created_at=self.created_at,
            encoder=self.encoder,
            dimensions=self.pool.vectors.shape[1],
            opset=18,
            recall=RecallProtocol(
                basis_size=BASIS,
                channels_limit=5,
                cluster_distance=self.cluster_distance,
                score_clip=0.2,
                score_noise=1.2,
                codebooks=(self.codebook(self.prototypes),) if codebooks is None else codebooks,
                pool_codes=self.pool_codes,
            ),
            models=self.models,
            default_ranker="ranker.cosine",
            releases_answered=self.releases_answered,
            kinship_floor=_floor_of(self.pool.vectors.tobytes(), dim=self.pool.vectors.shape[1]),
        )
        assert self.key is not None
        self.signed = sign(manifest, self.key)
        self.releases.append(name)
        hashed = sha256(self.signed.manifest.encode()).hexdigest()
        self.chain.append(ChainedRelease(release=name, manifest_sha256=hashed, published_at=self.created_at))
        self.head = next_head(self.head, name, hashed)
        return name

    def codebook(self, prototypes: np.ndarray, *, epsilon: float = 4.0, lineage: str | None = None) -> Codebook:
        """Return a codebook of these prototypes [K, D], which may claim to be a later version of another one."""
        blob = self._blob(pack({"prototypes": np.ascontiguousarray(prototypes, dtype=np.float32)}))
        return Codebook(size=len(prototypes), epsilon=epsilon, prototypes=blob, lineage=lineage)

    def transport(self) -> httpx.MockTransport:
        """Return a transport for `build_device(transport=...)`."""
        return httpx.MockTransport(self.answer)

    def paths(self) -> list[str]:
        """Return the requested paths, in order."""
        return [path for _, path, _ in self.requests]

    def answer(self, request: httpx.Request) -> httpx.Response:
        """Answer one request."""
        self.requests.append((request.method, request.url.path, request.content))
        if self.down:
            raise httpx.ConnectError("connection refused", request=request)
        path = request.url.path
        if path == "/v1/releases/current":
            return self._tagged(request, self.signed.model_dump_json(), str(short_release(self.releases[-1])))
        if path == "/v1/releases/chain":
            last = self.chain[-int(request.url.params["last"]) :]
            return httpx.Response(200, content=ReleaseChain(releases=tuple(last)).model_dump_json())
        if path.startswith("/v1/blobs/") and (blob := self.blobs.get(path.rsplit("/", 1)[1])) is not None:
            return httpx.Response(200, content=blob)
        if path == "/v1/news/front":
            limit = int(request.url.params["limit"])
            order = sorted(
                range(len(self.pool.cards)),
                key=lambda row: (self.pool.cards[row].published_at, self.pool.cards[row].weight),
                reverse=True,
            )
            text = self._answer(self.releases[-1], np.array(order[:limit])).model_dump_json()
            return self._tagged(request, text, sha256(text.encode()).hexdigest()[:16])
        if path == "/v1/news/bodies":
            wanted = BodiesRequest.model_validate_json(request.content)
            bodies = tuple(
                NewsBody(id=one, body=self.texts.get(one) or f"First of {one}.\n\nSecond of {one}.")
                for one in wanted.ids
            )
            return httpx.Response(200, content=BodiesAnswer(bodies=bodies).model_dump_json())
        if path == "/v1/recall":
            return self._recall(RecallRequest.model_validate_json(request.content))
        if path == "/v1/pictures":
            text = self.picture_list().model_dump_json()
            return self._tagged(request, text, sha256(text.encode()).hexdigest())
        if path.endswith("/popularity") and self.popularity is not None:
            text = self.popularity.model_dump_json()
            return self._tagged(request, text, sha256(text.encode()).hexdigest())
        if path.endswith("/codes") and self.pool_codes:
            text = self.listing().model_dump_json()
            return self._tagged(request, text, sha256(text.encode()).hexdigest())
        if path == f"/v1/releases/{short_release(self.releases[-1])}/vectors":
            return httpx.Response(
                200, content=ShardList(release=self.releases[-1], encoder=self.encoder, shards=()).model_dump_json()
            )
        if path == "/v1/rounds/current":
            return httpx.Response(204)
        return _refused(Problem(type="urn:ownfeed:problem:not-found", title="Not found", status=404, detail=path))

    def _recall(self, request: RecallRequest) -> httpx.Response:
        if self.refuse_recall is not None:
            return _refused(self.refuse_recall)
        if isinstance(request.report, CodeReport):
            interests = self.prototypes[[request.report.code]]
        else:
            assert isinstance(request.report, BasisLaplaceReport)
            scores = np.array(request.report.scores)
            shares = np.exp(scores - scores.max(axis=1, keepdims=True))
            interests = shares / shares.sum(axis=1, keepdims=True) @ self.values
        best = (interests @ self.pool.vectors.T).max(axis=0)
        rows = np.argsort(-best, kind="stable")[: request.limit]
        timing = {"server-timing": "decode;dur=0.1, aggregate;dur=0.1, search;dur=0.5, merge;dur=0.1, encode;dur=0.2"}
        named = next(one for one in reversed(self.releases) if short_release(one) == request.release)
        content = self._answer(named, rows).model_dump_json()
        return httpx.Response(200, content=content, headers=timing)

    def listing(self) -> PoolCodes:
        """Return the pool by the hundred, each coordinate quantised by itself: 256 steps from -1 to 1."""
        vectors, cards = self.pool.vectors, self.pool.cards
        dimensions = vectors.shape[1]
        steps = np.linspace(-1, 1, 256, dtype=np.float32)
        codes = np.rint((vectors + 1) * 127.5).clip(0, 255).astype(np.uint8)
        rows = [range(at, min(at + 100, len(cards))) for at in range(0, len(cards), 100)]
        return PoolCodes(
            release=self.releases[-1],
            version=1,
            encoder=self.encoder,
            subspaces=dimensions,
            sharpness=6.0,
            book=self._blob(pack_book(np.ascontiguousarray(np.tile(steps, (dimensions, 1))[:, :, None]))),
            priors=self._blob(pack_priors(np.zeros(len(cards)))),
            shards=tuple(
                CodeShard(
                    name=f"2026-11-20.{at}",
                    count=len(some),
                    codes=self._blob(pack_codes(codes[some.start : some.stop])),
                    cards=self._blob(pack_cards(cards[row].model_dump_json().encode() for row in some)),
                )
                for at, some in enumerate(rows)
            ),
        )

    def picture_list(self) -> PictureList:
        """Return the pictures in shards of four, in the given order; 'id 2' names the second of a text."""

        def named(name: str) -> tuple[str, int]:
            news_id, _, place = name.partition(" ")
            return news_id, int(place or 0)

        given = list(self.pictures.items())
        shards = [given[at : at + 4] for at in range(0, len(given), 4)]
        refs = [
            self._blob(pack_pictures([Pictured(*named(name), content) for name, content in shard])) for shard in shards
        ]
        counted = zip(shards, refs, strict=True)
        return PictureList(shards=tuple(PictureShard(count=len(shard), pictures=ref) for shard, ref in counted))

    def _answer(self, release: str, rows: np.ndarray) -> RecallAnswer:
        return RecallAnswer(
            release=release,
            encoder=self.encoder,
            candidates=tuple(self.pool.cards[row] for row in rows),
            vectors=pack(quantise(self.pool.vectors[rows])),
        )

    def _model(
        self,
        architecture: str,
        role: ModelRole,
        graphs: dict[str, bytes],
        weights: dict[str, np.ndarray],
    ) -> ModelEntry:
        return ModelEntry(
            architecture=architecture,
            role=role,
            graphs={purpose: self._blob(graph) for purpose, graph in graphs.items()},
            weights=self._blob(save(weights)),  # safetensors' own: it keeps a scalar's shape
        )

    def _blob(self, content: bytes) -> BlobRef:
        digest = sha256(content).hexdigest()
        self.blobs[digest] = content
        return BlobRef(sha256=digest, size_bytes=len(content))

    @staticmethod
    def _tagged(request: httpx.Request, text: str, etag: str) -> httpx.Response:
        if request.headers.get("if-none-match") == f'"{etag}"':
            return httpx.Response(304, headers={"etag": f'"{etag}"'})
        return httpx.Response(200, content=text, headers={"etag": f'"{etag}"'})


@cache
def _floor_of(vectors: bytes, *, dim: int) -> float | None:
    """Computed as a server does; a device under a release that doesn't state it takes a fifth of a second each."""
    return similarity_floor(np.frombuffer(vectors, np.float32).reshape(-1, dim))


def _refused(problem: Problem) -> httpx.Response:
    return httpx.Response(
        problem.status, content=json.dumps(problem.model_dump()), headers={"content-type": PROBLEM_MEDIA_TYPE}
    )
