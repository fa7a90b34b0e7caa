"""A topic that was read five times gets about two fifths of the next three pages, on both devices.

Oracle: the topics of the synthetic articles; the browser's pages must equal the Python device's. The long form, with 40
topics of the newspaper and 3 seeds, is in tests/qa/test_learning.py.
"""

from __future__ import annotations

import pytest

from device_app.privacy.settings import ModeName
from tests.conformance.node_end import ask_node
from tests.doubles.backend import FakeBackend
from tests.doubles.news import synthetic_pool
from tests.doubles.topic_readers import ReaderPages, TopicReaders

pytestmark = pytest.mark.node

TOPICS = [(f"section{at}", f"section{at} topic{at % 3}") for at in range(6)]
LISTED = 100
REPEATED_MOST = 0.1
"""2 of 20 cards."""
MODES: tuple[ModeName, ...] = ("interest", "broadcast")


@pytest.fixture(scope="module", params=MODES)
def readers_and_pages(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[TopicReaders, list[ReaderPages]]:
    backend = FakeBackend(pool=synthetic_pool(), pool_codes=True)
    readers = TopicReaders(backend, tmp_path_factory.mktemp("topics"), listed=LISTED)
    return readers, [readers.pages_of(*topic, 1, request.param) for topic in TOPICS]


def test_topic_keeps_its_share_on_three_pages_and_no_section_has_more_than_half(
    readers_and_pages: tuple[TopicReaders, list[ReaderPages]],
) -> None:
    for reader in readers_and_pages[1]:
        assert reader.is_steady, (reader.topic, reader.shares, reader.sections)


def test_lead_is_unseen_and_about_an_event_not_yet_read(
    readers_and_pages: tuple[TopicReaders, list[ReaderPages]],
) -> None:
    """Oracle: the pages before, each seen from top to bottom, and the events of what was opened."""
    assert [reader.leads_again for reader in readers_and_pages[1]] == [[]] * len(readers_and_pages[1])


def test_at_most_a_tenth_of_a_page_was_on_an_earlier_one(
    readers_and_pages: tuple[TopicReaders, list[ReaderPages]],
) -> None:
    assert max(max(reader.repeated) for reader in readers_and_pages[1]) <= REPEATED_MOST


def test_both_devices_make_the_same_three_pages(readers_and_pages: tuple[TopicReaders, list[ReaderPages]]) -> None:
    readers, made = readers_and_pages
    _, *answers = ask_node([readers.blobs, *(("feed_pages", reader.asked) for reader in made)])
    for reader, answer in zip(made, answers, strict=True):
        assert answer == [[card.id for _, card in page] for page in reader.pages], reader.topic
