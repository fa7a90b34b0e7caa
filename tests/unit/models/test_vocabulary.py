"""The words of a release: split alike on both ends, built from the pool in a fixed order, stored in the manifest."""

from __future__ import annotations

import hashlib
import sys
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from backend.releases.blobs import ReleaseDraft, blob_refs
from backend.releases.codebooks import pool_vocabulary
from protocol.releases import ReleaseManifest
from protocol.vocabulary import WORD_LIMIT_CHARS, WordVocabulary, split_words
from tests.doubles.small_release import migrated_engine, small_draft, small_store

NEWS = WordVocabulary(("rain", "sun", "snow"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Storm hits U.S. coast; 3,000 flee", ["storm", "hits", "u", "s", "coast", "3", "000", "flee"]),
        ("Don’t — or do?", ["don", "t", "or", "do"]),
        ("Blåbærsyltetøy STRASSE Straße", ["blåbærsyltetøy", "strasse", "strasse"]),
        ("ﬁne １２ Ⅻ", ["fine", "12", "xii"]),  # form NFKC
        ("e\u0301te\u0301 été", ["été", "été"]),
        ("東京でAI", ["東", "京", "で", "ai"]),
        ("🙂 ok\u0000now\nthen", ["ok", "now", "then"]),
        ("", []),
        ("a" * 50, ["a" * WORD_LIMIT_CHARS]),
    ],
)
def test_words_are_case_folded_runs_of_letters_and_digits(text: str, words: list[str]) -> None:
    assert split_words(text) == words


def test_word_rule_is_fixed_for_every_unicode_character() -> None:
    """The digest was computed with Python 3.11; another Python that splits any one character differently fails here."""
    digest = hashlib.sha256()
    for first in range(0, sys.maxunicode + 1, 4096):
        text = " ".join(f"a{chr(code)}B" for code in range(first, first + 4096))
        digest.update("\n".join(split_words(text)).encode("utf-8", "surrogatepass"))
    assert digest.hexdigest() == "30c8df80cdb687473ca75db12e0531622a99674907f96498913d4e54945e403c"


@settings(max_examples=300, deadline=None)
@given(st.text())
@example("ǰ ᾷ Ⴀ ẞ İ ͅ ﬃ")
@example("ا\u0655")
def test_single_word_is_split_into_itself(text: str) -> None:
    for word in split_words(text):
        assert split_words(word) == [word]


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=20), st.text(max_size=20))
def test_words_of_two_joined_texts_are_the_words_of_each(one: str, other: str) -> None:
    assert split_words(f"{one} {other}") == split_words(one) + split_words(other)


def test_rare_words_are_left_out_and_frequent_words_come_first() -> None:
    texts = ["sun and rain", "Rain, rain and sun", "snow"]
    assert pool_vocabulary(texts).words == ("rain", "and", "sun")
    assert pool_vocabulary(texts, least_count=1).words == ("rain", "and", "sun", "snow")


@settings(max_examples=50, deadline=None)
@given(st.lists(st.text(alphabet="abc ", max_size=12), max_size=12), st.randoms(use_true_random=False))
def test_order_of_the_pool_does_not_matter(texts: list[str], draw: object) -> None:
    shuffled = list(texts)
    draw.shuffle(shuffled)  # type: ignore[attr-defined]
    assert pool_vocabulary(texts).digest == pool_vocabulary(shuffled).digest


def test_limit_includes_padding_and_the_unknown_word() -> None:
    small = pool_vocabulary(["c b a"] * 2, rows_limit=4)
    assert small.words == ("a", "b")
    assert small.size == 4
    assert pool_vocabulary(["c b a"] * 2, rows_limit=2).words == ()
    with pytest.raises(ValueError, match="rows_limit at least 2, got 2 and 1"):
        pool_vocabulary([], rows_limit=1)


def test_ids_are_int64_padded_on_the_right_and_cut_at_the_length() -> None:
    ids = NEWS.encode(["Snow, then RAIN", "", "sun sun sun sun"], 3)
    assert ids.dtype == np.int64
    assert ids.tolist() == [[4, 1, 2], [0, 0, 0], [3, 3, 3]]
    assert NEWS.encode([], 3).shape == (0, 3)
    with pytest.raises(ValueError, match="length must be at least 1, got 0"):
        NEWS.encode(["sun"], 0)


def test_vocabulary_survives_its_blob_and_the_digest_is_its_hash() -> None:
    again = WordVocabulary.unpack(NEWS.pack())
    assert again == NEWS
    assert again.digest == hashlib.sha256(NEWS.pack()).hexdigest()
    empty = WordVocabulary(())
    assert WordVocabulary.unpack(empty.pack()) == empty


@pytest.mark.parametrize(
    ("blob", "message"),
    [
        (b"", "vocabulary must be lines after the header 'ownfeed words 1', got b''"),
        (b"ownfeed words 2\nrain\n", "vocabulary must be lines after the header"),
        (b"ownfeed words 1\nrain", "vocabulary must be lines after the header"),
        (b"\xff\xfe\x00", "vocabulary must be UTF-8 text, got 3 bytes that are not"),
        (b"ownfeed words 1\nrain\nrain\n", "words must be distinct"),
        (b"ownfeed words 1\nRain\n", "words must be single words as texts are split, got 'Rain'"),
        (b"ownfeed words 1\n\n", "words must be single words as texts are split, got ''"),
    ],
)
def test_invalid_vocabulary_blob_is_refused_with_the_expected_form(blob: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        WordVocabulary.unpack(blob)


def test_release_carries_its_vocabulary_and_later_releases_keep_it(tmp_path: Path) -> None:
    store = small_store(migrated_engine(tmp_path), tmp_path, publish=False)
    draft = small_draft(store)
    words = store.add_blob(NEWS.pack())
    first = store.commit(ReleaseDraft(**{**vars(draft), "vocabulary": words}), note="with words")

    assert first.vocabulary == words
    assert words in blob_refs(first)
    assert words.sha256 == NEWS.digest
    again = ReleaseManifest.model_validate_json(store.signed(first.release).manifest)
    assert again.vocabulary == words
    assert WordVocabulary.unpack(store.read_blob(words.sha256)) == NEWS
    assert store.commit(ReleaseDraft.like(first), note="next").vocabulary == words
    assert store.sweep(older_than_sec=0) == 0, "the release's words are kept"


def test_frozen_unicode_version_matches_the_rule() -> None:
    assert unicodedata.ucd_3_2_0.unidata_version == "3.2.0"
