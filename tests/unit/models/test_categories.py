"""The categories of a release: ids by name, built from the pool in a fixed order, stored in the manifest."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from backend.releases.blobs import ReleaseDraft, blob_refs
from backend.releases.codebooks import pool_categories
from protocol.releases import CategoryVocabulary, ReleaseManifest, Topic
from protocol.vocabulary import WordVocabulary
from tests.doubles.small_release import migrated_engine, small_draft, small_store

POOL: list[Topic] = [
    ("sports", "football"),
    ("politics", "general"),
    ("sports", "general"),
    ("sports", "football"),
    ("food", "baking"),
    ("politics", "general"),
]
KNOWN = CategoryVocabulary(("sports", "politics"), (("sports", "football"), ("politics", "general")))


def test_frequent_names_come_first_independently_of_pool_order() -> None:
    made = pool_categories(POOL)
    assert made.sections == ("sports", "politics", "food")
    assert made.topics == (
        ("politics", "general"),
        ("sports", "football"),
        ("food", "baking"),
        ("sports", "general"),
    )
    assert pool_categories(reversed(POOL)).digest == made.digest


def test_row_limits_count_the_unknown_row_and_drop_topics_of_dropped_sections() -> None:
    small = pool_categories(POOL, section_rows=2, topic_rows=2)
    assert (small.sections, small.topics) == (("sports",), (("sports", "football"),))
    assert (small.section_rows, small.topic_rows) == (2, 2)
    with pytest.raises(ValueError, match="section_rows and topic_rows must be at least 1, got 0 and 5"):
        pool_categories(POOL, section_rows=0, topic_rows=5)


def test_names_become_ids_and_unknown_ones_become_0() -> None:
    news = [("politics", "general"), ("sports", "general"), ("food", "baking"), ("sports", "football")]
    sections, topics = KNOWN.encode(news)
    assert sections.dtype == topics.dtype == np.int64
    assert sections.tolist() == [2, 1, 0, 1]
    assert topics.tolist() == [2, 0, 0, 1], "'general' of sports is not 'general' of politics"
    assert [each.shape for each in KNOWN.encode([])] == [(0,), (0,)]


def test_categories_survive_their_blob_and_the_digest_is_its_hash() -> None:
    again = CategoryVocabulary.unpack(KNOWN.pack())
    assert again == KNOWN
    assert again.digest == hashlib.sha256(KNOWN.pack()).hexdigest()


@pytest.mark.parametrize(
    ("blob", "message"),
    [
        (b"[" * 100_000, "categories must be JSON of format"),
        (b"", "categories must be JSON of format 'ownfeed categories 1', got b''"),
        (WordVocabulary(("rain",)).pack(), "categories must be JSON of format .*, got b'ownfeed words 1"),
        (b'{"format":"ownfeed categories 2","sections":[],"topics":[]}', "categories must be JSON of format"),
        (b'{"format":"ownfeed categories 1","sections":[1],"topics":[]}', "categories must be JSON of format"),
        (b'{"format":"ownfeed categories 1","sections":["a"],"topics":[["a"]]}', "categories must be JSON of format"),
        (b'{"format":"ownfeed categories 1","sections":["a","a"],"topics":[]}', "must be distinct"),
        (b'{"format":"ownfeed categories 1","sections":[""],"topics":[]}', "must have names"),
        (b'{"format":"ownfeed categories 1","sections":["a"],"topics":[["b","c"]]}', "sections given, got one of 'b'"),
    ],
)
def test_invalid_categories_blob_is_refused_with_the_expected_form(blob: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CategoryVocabulary.unpack(blob)


def test_release_carries_its_categories_and_later_releases_keep_them(tmp_path: Path) -> None:
    store = small_store(migrated_engine(tmp_path), tmp_path, publish=False)
    blob = store.add_blob(KNOWN.pack())
    first = store.commit(ReleaseDraft(**{**vars(small_draft(store)), "categories": blob}), note="with categories")
    assert blob in blob_refs(first)
    again = ReleaseManifest.model_validate_json(store.signed(first.release).manifest)
    assert again.categories == blob
    assert CategoryVocabulary.unpack(store.read_blob(blob.sha256)) == KNOWN
    assert store.commit(ReleaseDraft.like(first), note="next").categories == blob
    assert store.sweep(older_than_sec=0) == 0, "the release's categories are kept"


def test_manifest_without_categories_is_readable(tmp_path: Path) -> None:
    store = small_store(migrated_engine(tmp_path), tmp_path)
    manifest = store.require_current()
    assert ReleaseManifest.model_validate_json(manifest.model_dump_json(exclude={"categories"})) == manifest
    assert manifest.categories is None
