"""The generated newspaper behind a `FakeBackend`, with its default list, a server's codes and the default ranker."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import datetime

import httpx
import numpy as np
from safetensors.numpy import save

from backend.news.pool_reading import PoolRow
from backend.popularity.estimate import SHARPNESS
from backend.recall.catalogue import NewsColumns
from backend.recall.default_list import default_order
from backend.recall.pool_codes import SUBSPACES, encode, train_book
from device_app.ranking.ranker import Ranker
from device_app.ranking.session import GraphSession
from experiments.bench.newspaper_pages import DEFAULT_LIST, NewspaperPool
from exporters.package import export_ranker
from models.rankers import DEFAULT, RANKERS
from models.shapes import NEWS_DIM
from models.user.candidate_attention import FeatureRanker
from protocol.broadcast import PoolCodes, pack_book, pack_codes
from tests.doubles.backend import FakeBackend
from tests.doubles.graphs import shared_graphs
from tests.doubles.news import SyntheticPool


def kept_default_ranker() -> Ranker:
    """Return `newspaper_pages.default_ranker`, with its graphs from the tests' cache."""
    model = RANKERS[DEFAULT].build(NEWS_DIM)
    assert isinstance(model, FeatureRanker)
    exported = export_ranker(model, shared_graphs())
    return Ranker(GraphSession(exported.graphs["score"], exported.weights), name=DEFAULT, features=model.features)


class NewspaperBackend(FakeBackend):
    """Serves the newspaper; once `go_on` was called, only what was published by then."""

    newspaper: NewspaperPool
    columns: NewsColumns
    codes: PoolCodes | None = None

    @classmethod
    def over(cls, newspaper: NewspaperPool, now: datetime) -> NewspaperBackend:
        """Return a backend with one release, made at `now`, whose default ranker is a first release's."""
        pool = SyntheticPool(newspaper.cards, newspaper.vectors)
        backend = cls(pool=pool, pool_codes=True, created_at=now)
        backend.newspaper = newspaper
        rows = [PoolRow(number=at, duplicate_of=None, **one.model_dump()) for at, one in enumerate(newspaper.cards)]
        backend.columns = NewsColumns.of(rows)
        model = RANKERS[DEFAULT].build(NEWS_DIM)
        assert isinstance(model, FeatureRanker)
        exported = export_ranker(model, shared_graphs())
        entry = backend.models["ranker.cosine"]
        graphs = {purpose: backend._blob(graph) for purpose, graph in exported.graphs.items()}
        weights = backend._blob(save(dict(exported.weights)))
        backend.models["ranker.cosine"] = entry.model_copy(
            update={"graphs": graphs, "weights": weights, "features": model.features}
        )
        backend.publish()
        return backend

    def go_on(self, now: datetime) -> None:
        """Serve what was published by `now`; the pool's codes stay those of the first call."""
        cards = self.newspaper.cards
        upto = sum(card.published_at <= now for card in cards)
        assert all(card.published_at > now for card in cards[upto:]), "the newspaper is in order of time"
        self.pool = SyntheticPool(cards[:upto], self.newspaper.vectors[:upto])
        self.codes = self.codes or self.listing()
        columns = NewsColumns(*(getattr(self.columns, each.name)[:upto] for each in fields(NewsColumns)))
        listed = np.array(default_order(columns, now, DEFAULT_LIST), dtype=np.intp)
        self.newspaper = replace(self.newspaper, listed=listed)

    def answer(self, request: httpx.Request) -> httpx.Response:
        """Answer one request; the default list is the newspaper's."""
        if request.url.path != "/v1/news/front":
            return super().answer(request)
        self.requests.append((request.method, request.url.path, request.content))
        return httpx.Response(200, content=self._answer(self.releases[-1], self.newspaper.listed).model_dump_json())

    def listing(self) -> PoolCodes:
        """Return the pool with codes of 32 bytes an article."""
        if self.codes is not None:
            return self.codes
        exact, vectors = super().listing(), self.pool.vectors
        book = train_book(vectors, SUBSPACES[0])
        codes = encode(vectors, book)
        starts = np.cumsum([0, *(shard.count for shard in exact.shards)])
        shards = tuple(
            shard.model_copy(update={"codes": self._blob(pack_codes(codes[start : start + shard.count]))})
            for start, shard in zip(starts.tolist(), exact.shards, strict=False)
        )
        changes = {"subspaces": SUBSPACES[0], "sharpness": SHARPNESS, "book": self._blob(pack_book(book))}
        return exact.model_copy(update={**changes, "shards": shards})
