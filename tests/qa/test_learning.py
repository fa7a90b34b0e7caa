"""A topic that was read five times keeps its share of three pages: 40 topics of the generated newspaper, 3 seeds.

Both devices are whole: real reports under noise, codes made as by a server, the default ranker. The backend is in
memory. The short form is tests/conformance/test_topic_shares.py.
"""

from __future__ import annotations

import httpx
import numpy as np
import pytest
from safetensors.numpy import save

from backend.popularity.estimate import SHARPNESS
from backend.recall.pool_codes import SUBSPACES, encode, train_book
from device_app.privacy.settings import ModeName
from experiments.bench.feed_laws import TOPICS, Newspaper
from experiments.bench.newspaper_pages import DEFAULT_LIST, NOW, NewspaperPool, default_ranker, newspaper_pool
from exporters.package import export_ranker
from models.rankers import DEFAULT, RANKERS
from models.shapes import NEWS_DIM
from models.user.candidate_attention import FeatureRanker
from protocol.broadcast import PoolCodes, pack_book, pack_codes
from tests.conformance.node_end import ask_node
from tests.doubles.backend import FakeBackend
from tests.doubles.news import SyntheticPool
from tests.doubles.topic_readers import PAGES, ReaderPages, TopicReaders

SEEDS = (1, 2, 3)
MODES: tuple[ModeName, ...] = ("interest", "broadcast")
REPEATED_MOST = 0.1
"""Share of a page that was on an earlier one, beside the read section: 2 of 20 cards."""
PASS = 0.95
"""Share of readers that must keep the topic on every page."""


class NewspaperBackend(FakeBackend):
    """Serves the newspaper with its default list, codes as a server makes them, and the default ranker."""

    newspaper: NewspaperPool

    def rank_by_default(self) -> None:
        """Publish a release with the default ranker."""
        model = RANKERS[DEFAULT].build(NEWS_DIM)
        assert isinstance(model, FeatureRanker)
        exported = export_ranker(model)
        entry = self.models["ranker.cosine"]
        graphs = {purpose: self._blob(graph) for purpose, graph in exported.graphs.items()}
        weights = self._blob(save(dict(exported.weights)))
        self.models["ranker.cosine"] = entry.model_copy(
            update={"graphs": graphs, "weights": weights, "features": model.features}
        )
        self.publish()

    def answer(self, request: httpx.Request) -> httpx.Response:
        """Answer one request; the default list is the newspaper's."""
        if request.url.path != "/v1/news/front":
            return super().answer(request)
        self.requests.append((request.method, request.url.path, request.content))
        return httpx.Response(200, content=self._answer(self.releases[-1], self.newspaper.listed).model_dump_json())

    def listing(self) -> PoolCodes:
        """Return the pool with codes of 32 bytes an article."""
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


@pytest.fixture(scope="module")
def newspaper() -> Newspaper:
    return Newspaper(newspaper_pool(), default_ranker())


@pytest.fixture(scope="module")
def readers(newspaper: Newspaper, tmp_path_factory: pytest.TempPathFactory) -> TopicReaders:
    pool = newspaper.pool
    backend = NewspaperBackend(pool=SyntheticPool(pool.cards, pool.vectors), pool_codes=True, created_at=NOW)
    backend.newspaper = pool
    backend.rank_by_default()
    return TopicReaders(backend, tmp_path_factory.mktemp("topics"), listed=DEFAULT_LIST, now=NOW)


@pytest.mark.parametrize("mode", MODES)
def test_nearly_every_reader_has_the_topic_on_three_pages_of_both_devices(
    newspaper: Newspaper, readers: TopicReaders, mode: ModeName
) -> None:
    topics = newspaper.topics(TOPICS, SEEDS[0])
    assert len(topics) == TOPICS
    made = [readers.pages_of(*topic, seed, mode) for topic in topics for seed in SEEDS]
    _, *answers = ask_node([readers.blobs, *(("feed_pages", reader.asked) for reader in made)])
    differ = [
        reader.topic
        for reader, answer in zip(made, answers, strict=True)
        if answer != [[card.id for _, card in page] for page in reader.pages]
    ]
    assert np.mean([reader.is_steady for reader in made]) >= PASS, _figures(made)
    assert [reader.topic for reader in made if reader.leads_again] == []
    assert max(max(reader.repeated) for reader in made) <= REPEATED_MOST
    assert not differ, "the browser's pages"


def _figures(made: list[ReaderPages]) -> str:
    shares = np.array([reader.shares for reader in made])
    pages = [np.percentile(shares[:, page], (0, 5, 25, 50, 75, 95, 100)).round(2).tolist() for page in range(PAGES)]
    sections = max(max(reader.sections) for reader in made)
    steady = float(np.mean([reader.is_steady for reader in made]))
    return f"steady {steady:.3f}; shares by page (0, 5, 25, 50, 75, 95, 100 %) {pages}; greatest section {sections:.2f}"
