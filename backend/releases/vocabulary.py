"""The words and categories of a release, from the pool's own news: words that occur twice or more (FINDING, 5.1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from device_app.wire.categories import CategoryVocabulary, Topic
from device_app.wire.vocabulary import FIRST_WORD, WordVocabulary, split_words

LEAST_COUNT = 2
ROWS_LIMIT = 30_000
"""V at most, with padding and the unknown word: what the presets of models.builders.news are made for."""

SECTION_ROWS, TOPIC_ROWS = 32, 512
"""Categories at most, with the unknown one: what the presets are made for."""


def pool_vocabulary(
    texts: Iterable[str], *, least_count: int = LEAST_COUNT, rows_limit: int = ROWS_LIMIT
) -> WordVocabulary:
    """The most frequent words of `texts`, ties in alphabetical order: the order of the texts does not matter."""
    if least_count < 1 or rows_limit < FIRST_WORD:
        raise ValueError(
            f"least_count must be at least 1 and rows_limit at least {FIRST_WORD}, got {least_count} and {rows_limit}"
        )
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(split_words(text))
    frequent = sorted(
        (word for word, count in counts.items() if count >= least_count), key=lambda word: (-counts[word], word)
    )
    return WordVocabulary(tuple(frequent[: rows_limit - FIRST_WORD]))


def pool_categories(
    news: Iterable[Topic], *, section_rows: int = SECTION_ROWS, topic_rows: int = TOPIC_ROWS
) -> CategoryVocabulary:
    """The most frequent sections and topics of `news`, ties in alphabetical order; topics of sections left out too."""
    if section_rows < 1 or topic_rows < 1:
        raise ValueError(f"section_rows and topic_rows must be at least 1, got {section_rows} and {topic_rows}")
    topics = Counter(news)
    sections: Counter[str] = Counter()
    for (section, _), count in topics.items():
        sections[section] += count
    kept = sorted(sections, key=lambda name: (-sections[name], name))[: section_rows - 1]
    frequent = sorted((each for each in topics if each[0] in kept), key=lambda each: (-topics[each], each))
    return CategoryVocabulary(tuple(kept), tuple(frequent[: topic_rows - 1]))
