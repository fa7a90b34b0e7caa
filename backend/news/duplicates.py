"""Links each near-duplicate to the article of another source that reported the same first.

Articles of one feed are never duplicates of each other: a feed whose texts resemble each other (security advisories,
sports results) still reports something new each time. Two feeds that list the same page under the same title are
duplicates however short their texts are.

The rule covers all articles of the pool in order of arrival, since a copy could claim an earlier date: an article is a
duplicate of the oldest *original* that it is similar to; if there is none, it is an original itself. Similar means the
same page under the same title, or at least one MinHash bucket in common and an exact Jaccard index of 0.7 or more. So
the links depend only on the articles and their order, not on batches, and chains of slowly drifting headlines don't
merge. Devices get the original with the others (`NewsCard.also`) and choose which to show first.
"""

import heapq
import re
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple
from urllib.parse import urlsplit
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, bindparam, delete, insert, select

from backend.db.statements import among
from backend.db.tables import BucketRow, DuplicateRow, NewsRow
from backend.news.feed_addresses import is_feed

DUPLICATE_THRESHOLD = 0.7
"""Two articles whose shingles have at least this Jaccard index are near-duplicates."""
SHINGLE_WORDS = 2
LEAST_WORDS = 4
"""Minimum number of words: shorter texts ("Photos of the day") never count as duplicates, since equal words prove
nothing there.
"""
BANDS, BAND_ROWS = 10, 4
"""Pairs at 0.7 share one of ten bands of four with probability 0.94, at 0.8 with 0.995, at 0.2 with 0.016."""
MINHASH_SEED = 1

# Chinese and Japanese write no spaces, so each of their characters counts as a word.
_IDEOGRAPH = "\u3040-\u30ff\u3400-\u9fff"
_WORD = re.compile(rf"[{_IDEOGRAPH}]|[^\W_{_IDEOGRAPH}]+")
_MIX = np.uint64(0x9E3779B97F4A7C15)


def shingles(title: str, abstract: str) -> frozenset[str]:
    """The pairs of adjacent words of title and abstract, in lower case.

    Empty for fewer than four words.
    """
    words = _WORD.findall(f"{title} {abstract}".casefold())
    if len(words) < LEAST_WORDS:
        return frozenset()
    return frozenset(map(" ".join, zip(*(words[shift:] for shift in range(SHINGLE_WORDS)), strict=False)))


def jaccard(left: frozenset[str], right: frozenset[str]) -> float:
    """|left ∩ right| / |left ∪ right|; 0 if either is empty."""
    shared = len(left & right)
    return shared / (len(left) + len(right) - shared) if shared else 0.0


def bucket_keys(texts: Sequence[frozenset[str]]) -> NDArray[np.int64]:
    """The bucket of each band of each text, int64 [n, BANDS]; the same in every run.

    Empty sets share buckets too, so callers must leave them out.
    """
    if not texts:
        return np.empty((0, BANDS), np.int64)
    from datasketch import MinHash  # imports half of scipy: needed when articles are ingested, not when they are served

    hashed = MinHash.generator(
        ([shingle.encode() for shingle in text] for text in texts),
        hashfunc=crc32,  # four times as fast as the default SHA-1; the scheme mixes it again
        num_perm=BANDS * BAND_ROWS,
        seed=MINHASH_SEED,
        scheme="affine32",
    )
    signatures = np.stack([minhash.hashvalues for minhash in hashed]).astype(np.uint64)
    signatures = signatures.reshape(len(texts), BANDS, BAND_ROWS)  # [n, bands, rows]
    keys = np.broadcast_to(np.arange(1, BANDS + 1, dtype=np.uint64), (len(texts), BANDS)) * _MIX
    for row in range(BAND_ROWS):
        keys = (keys ^ signatures[:, :, row]) * _MIX
        keys ^= keys >> np.uint64(29)
    return keys.view(np.int64)


class Text(NamedTuple):
    """The parts of an article that are compared: its text, its link, and the source that delivered it."""

    title: str
    abstract: str
    url: str = ""
    source: str = ""

    @property
    def words(self) -> tuple[str, str]:
        return self.title, self.abstract

    @property
    def page(self) -> str:
        """The linked page and the title; empty for a link to a whole site, which many articles share."""
        try:
            parts = urlsplit(self.url)
        except ValueError:
            return ""
        leads = parts.path not in ("", "/") or parts.query or parts.fragment
        return f"{self.url.partition('://')[2]}\n{' '.join(self.title.casefold().split())}" if leads else ""


class Link(NamedTuple):
    """A duplicate's original, and the Jaccard index of the two."""

    original: int
    similarity: float


class UnlinkedDuplicates(NamedTuple):
    """orphans: articles that lost their original. originals: articles that lost a duplicate."""

    orphans: set[int]
    originals: set[int]


class Linked(NamedTuple):
    """links: by number, each article's link, or None for an original. touched: all articles whose links changed."""

    links: dict[int, Link | None]
    touched: set[int]


def unlink(connection: Connection, removed: Mapping[int, Text]) -> UnlinkedDuplicates:
    """Remove articles from the links before their rows are deleted or changed.

    `removed` holds the texts they were linked by. Pass the orphans to `link` in the same transaction.
    """
    pairs = [{"b": key, "n": number} for number, keys in _keys(removed).items() for key in keys]
    if pairs:
        one = delete(BucketRow).where(BucketRow.bucket == bindparam("b"), BucketRow.news == bindparam("n"))
        connection.execute(one, pairs)
    orphaned = among(connection, DuplicateRow.original, removed)
    orphans = set(connection.scalars(select(DuplicateRow.news).where(orphaned)))
    mine = among(connection, DuplicateRow.news, removed)
    originals = set(connection.scalars(select(DuplicateRow.original).where(mine)))
    connection.execute(delete(DuplicateRow).where(mine | orphaned))
    return UnlinkedDuplicates(orphans - removed.keys(), originals - removed.keys())


def link(connection: Connection, fresh: Mapping[int, Text], orphans: Iterable[int] = ()) -> Linked:
    """Link new or changed articles, whose rows must exist already, and all articles that depend on them."""
    keys_of = _keys(fresh)
    rows = [{"bucket": key, "news": number} for number, keys in keys_of.items() for key in keys]
    if rows:
        connection.execute(insert(BucketRow), rows)
    return _Neighbourhood(connection, keys_of).settle({*fresh, *orphans})


def says_the_same(left: Text, right: Text) -> bool:
    """Return whether the texts are near-duplicates, ignoring buckets, pages and sources."""
    return jaccard(shingles(*left.words), shingles(*right.words)) >= DUPLICATE_THRESHOLD


def _keys(texts: Mapping[int, Text]) -> dict[int, list[int]]:
    """The buckets of each text: by its words, unless it is too short, and by its page."""
    sets = {number: shingles(*text.words) for number, text in texts.items()}
    compared = [words for words in sets.values() if words]
    keys = iter(bucket_keys(compared).tolist())
    by_words = {number: next(keys) if words else [] for number, words in sets.items()}
    return {number: [*by_words[number], *_page_keys(text)] for number, text in texts.items()}


def _page_keys(text: Text) -> list[int]:
    if not (text.page and is_feed(text.source)):
        return []
    return [int.from_bytes(blake2b(text.page.encode(), digest_size=8).digest(), signed=True)]


class _Neighbourhood:
    """Reads the articles that share buckets with some articles, as needed, and decides their links."""

    def __init__(self, connection: Connection, keys: Mapping[int, list[int]]) -> None:
        self._connection = connection
        self._keys = dict(keys)
        self._age: dict[int, tuple[int, int]] = {}  # of its text, oldest first
        self._text: dict[int, Text] = {}
        self._original: dict[int, int | None] = {}
        self._shingles: dict[int, frozenset[str]] = {}
        self._bucket: dict[int, list[int]] = {}

    def settle(self, unsettled: set[int]) -> Linked:
        """Decide the links of `unsettled` and all articles that depend on them; write and return the decisions.

        An article's link depends only on older articles, and only younger ones are added on the way. So the oldest
        is decided first, and each only once.
        """
        self._read(unsettled)
        waiting = [self._age[number] for number in unsettled]
        heapq.heapify(waiting)
        decided: dict[int, Link | None] = {}
        touched: set[int] = set()
        queued = set(unsettled)

        def enqueue(numbers: Iterable[int]) -> None:
            for number in numbers:
                if number not in queued:
                    queued.add(number)
                    heapq.heappush(waiting, self._age[number])

        while waiting:
            number = heapq.heappop(waiting)[1]
            if number not in unsettled:
                self._read({number})
            was_original = number not in unsettled and self._original[number] is None
            found = decided[number] = self._decide(number)
            touched.update(one for one in (number, self._original[number], found and found.original) if one is not None)
            self._original[number] = found.original if found else None
            if found is None and not was_original:
                enqueue(self._claimed_by(number))
            elif found is not None and was_original:
                enqueue(self._linked_to(number))
        self._write(decided)
        return Linked(decided, touched)

    def _decide(self, number: int) -> Link | None:
        age = self._age[number]
        originals = (n for n in self._near(number) if self._original[n] is None and self._age[n] < age)
        for candidate in sorted(originals, key=self._age.__getitem__):
            similarity = self._similarity(number, candidate)
            if similarity >= DUPLICATE_THRESHOLD:
                return Link(candidate, similarity)
        return None

    def _claimed_by(self, number: int) -> list[int]:
        """Younger similar articles that should be linked to the new original `number`."""
        age = self._age[number]
        return [
            near
            for near in self._near(number)
            if self._age[near] > age
            and ((rival := self._original[near]) is None or self._age_of(rival) > age)
            and self._similarity(number, near) >= DUPLICATE_THRESHOLD
        ]

    def _linked_to(self, number: int) -> list[int]:
        linked = list(self._connection.scalars(select(DuplicateRow.news).where(DuplicateRow.original == number)))
        self._read_rows(linked)
        return linked

    def _near(self, number: int) -> set[int]:
        """Articles that share a bucket, without those of the same feed."""
        near = {other for key in self._keys[number] for other in self._bucket[key]}
        near.discard(number)
        source = self._text[number].source
        return {other for other in near if self._text[other].source != source} if is_feed(source) else near

    def _similarity(self, number: int, other: int) -> float:
        page = self._text[number].page
        if page and page == self._text[other].page:
            return 1.0
        return jaccard(self._words(number), self._words(other))

    def _words(self, number: int) -> frozenset[str]:
        words = self._shingles.get(number)
        if words is None:
            words = self._shingles[number] = shingles(*self._text[number].words)
        return words

    def _age_of(self, number: int) -> tuple[int, int]:
        self._read_rows([number])
        return self._age[number]

    def _read(self, numbers: set[int]) -> None:
        """Read these articles, their buckets, and all articles in those."""
        self._read_rows(numbers)
        self._keys |= _keys({number: self._text[number] for number in numbers if number not in self._keys})
        unread = {key for number in numbers for key in self._keys[number]} - self._bucket.keys()
        self._bucket.update((key, []) for key in unread)
        sharing = among(self._connection, BucketRow.bucket, unread)
        for key, number in self._connection.execute(select(BucketRow.bucket, BucketRow.news).where(sharing)):
            self._bucket[key].append(number)
        self._read_rows({number for key in unread for number in self._bucket[key]})

    def _read_rows(self, numbers: Iterable[int]) -> None:
        columns = (NewsRow.number, NewsRow.title, NewsRow.abstract, NewsRow.url, NewsRow.source, NewsRow.arrival)
        joined = select(*columns, DuplicateRow.original).outerjoin(DuplicateRow, DuplicateRow.news == NewsRow.number)
        wanted = among(self._connection, NewsRow.number, {number for number in numbers if number not in self._age})
        for number, title, abstract, url, source, arrival, original in self._connection.execute(joined.where(wanted)):
            self._age[number] = (arrival, number)
            self._text[number] = Text(title, abstract, url, source)
            self._original[number] = original

    def _write(self, decided: Mapping[int, Link | None]) -> None:
        self._connection.execute(delete(DuplicateRow).where(among(self._connection, DuplicateRow.news, decided)))
        rows = [{"news": number, **found._asdict()} for number, found in decided.items() if found]
        if rows:
            self._connection.execute(insert(DuplicateRow), rows)
