"""A topic that was read five times keeps its share of three pages: 40 topics of the generated newspaper, 3 seeds.

Both devices are whole: real reports under noise, codes made as by a server, the default ranker. The backend is in
memory. The short form is tests/conformance/test_topic_shares.py.
"""

from __future__ import annotations

import numpy as np
import pytest

from device_app.privacy.settings import ModeName
from experiments.bench.feed_laws import TOPICS, Newspaper
from experiments.bench.newspaper_pages import DEFAULT_LIST, NOW, default_ranker, newspaper_pool
from tests.conformance.node_end import ask_node
from tests.doubles.newspaper_backend import NewspaperBackend
from tests.doubles.topic_readers import PAGES, ReaderPages, TopicReaders

SEEDS = (1, 2, 3)
MODES: tuple[ModeName, ...] = ("interest", "broadcast")
REPEATED_MOST = 0.1
"""Share of a page that was on an earlier one, beside the read section: 2 of 20 cards."""
PASS = 0.95
"""Share of readers that must keep the topic on every page."""


@pytest.fixture(scope="module")
def newspaper() -> Newspaper:
    return Newspaper(newspaper_pool(), default_ranker())


@pytest.fixture(scope="module")
def readers(newspaper: Newspaper, tmp_path_factory: pytest.TempPathFactory) -> TopicReaders:
    backend = NewspaperBackend.over(newspaper.pool, NOW)
    return TopicReaders(backend, tmp_path_factory.mktemp("topics"), listed=DEFAULT_LIST, now=NOW)


@pytest.mark.parametrize("mode", MODES)
def test_nearly_every_reader_has_the_topic_on_three_pages_of_both_devices(
    newspaper: Newspaper, readers: TopicReaders, mode: ModeName
) -> None:
    topics = newspaper.topics(TOPICS, SEEDS[0])
    assert len(topics) == TOPICS
    made = [readers.pages_of(*topic, seed, mode) for topic in topics for seed in SEEDS]
    ask_node([readers.blobs])
    answers = [ask_node([("feed_pages", reader.asked)])[0] for reader in made]
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
