"""When two texts say the same: word shingles, their exact Jaccard index, and MinHash buckets to find candidates."""

from __future__ import annotations

import re
from collections.abc import Sequence
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

DUPLICATE_THRESHOLD = 0.7
"""Two news whose shingles have at least this Jaccard index are near-duplicates."""
SHINGLE_WORDS = 2
LEAST_WORDS = 4
"""Shorter texts ("Photos of the day") are never called duplicates: equal words prove nothing there."""
BANDS, BAND_ROWS = 10, 4
"""Pairs at 0.7 share one of ten bands of four with probability 0.94, at 0.8 with 0.995, at 0.2 with 0.016."""
MINHASH_SEED = 1

# Chinese and Japanese write no spaces: each of their signs counts as a word.
_IDEOGRAPH = "\u3040-\u30ff\u3400-\u9fff"
_WORD = re.compile(rf"[{_IDEOGRAPH}]|[^\W_{_IDEOGRAPH}]+")
_MIX = np.uint64(0x9E3779B97F4A7C15)


def shingles(title: str, abstract: str) -> frozenset[str]:
    """The pairs of neighbouring words of title and abstract, in lower case; empty for fewer than four words."""
    words = _WORD.findall(f"{title} {abstract}".casefold())
    if len(words) < LEAST_WORDS:
        return frozenset()
    return frozenset(map(" ".join, zip(*(words[shift:] for shift in range(SHINGLE_WORDS)), strict=False)))


def jaccard(left: frozenset[str], right: frozenset[str]) -> float:
    """|left ∩ right| / |left ∪ right|; 0 where either is empty."""
    shared = len(left & right)
    return shared / (len(left) + len(right) - shared) if shared else 0.0


def bucket_keys(texts: Sequence[frozenset[str]]) -> NDArray[np.int64]:
    """The bucket of each band of each text, int64 [n, BANDS]; the same texts give the same keys in every run.

    Texts with an empty set share keys too: callers leave them out.
    """
    if not texts:
        return np.empty((0, BANDS), np.int64)
    from datasketch import MinHash  # brings half of scipy: loaded when news are taken in, not when they are served

    hashed = MinHash.generator(
        ([shingle.encode() for shingle in text] for text in texts),
        hashfunc=crc32,  # four times as quick as the default SHA-1; the scheme mixes it again
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
