"""Compute the similarity above which a page calls two articles close.

Random pairs hardly ever reach it. A fixed cosine would not work for all releases: under the encoder of a first release,
a tenth of all pairs are above 0.2. The threshold is therefore computed from the articles of the release itself.

Server and device compute it identically: the server over its pool when it publishes, the device over its default list
under a release that doesn't state it. It uses only vectors of public articles and nothing about the reader, so a seeded
generator, whose draws need not be secret, picks the pairs.
"""

import numpy as np
from numpy.typing import NDArray

SIMILARITY_PERCENTILE = 99.985
"""Percentile of the cosines of random pairs. Of those above the 99.5th, half share neither topic nor name; above this
one, nearly all pairs that a page calls close do (docs/decisions/025)."""
PAIRS = 200_000
FEWEST_NEWS = 50
"""With fewer articles no rare similarity can be estimated."""
PAIRS_AT_ONCE = 5_000


def similarity_floor(vectors: NDArray[np.float32], *, seed: int = 0) -> float | None:
    """Return the cosine above which two of these articles [n, D] are close.

    None for fewer than FEWEST_NEWS. It is the percentile of PAIRS random cosines, between -1 and 1. Rows may have any
    length; pairs are drawn with replacement and never pair a row with itself. The same rows give the same floor.
    """
    n = len(vectors)
    if n < FEWEST_NEWS:
        return None
    cosines = random_cosines(vectors, np.random.default_rng(seed), PAIRS)
    return float(np.clip(np.percentile(cosines, SIMILARITY_PERCENTILE), -1.0, 1.0))


def random_cosines(vectors: NDArray[np.float32], rng: np.random.Generator, pairs: int) -> NDArray[np.float32]:
    """Return the cosines [pairs] of random pairs of different rows of vectors [n, D], n > 1.

    All pairs are equally likely.
    """
    n = len(vectors)
    first = rng.integers(n, size=pairs)
    second = (first + rng.integers(1, n, size=pairs)) % n
    lengths = np.maximum(np.linalg.norm(vectors, axis=1), 1e-12)
    found = np.empty(pairs, dtype=np.float32)
    for start in range(0, pairs, PAIRS_AT_ONCE):  # all pairs at once would be a gigabyte where D is large
        a, b = first[start : start + PAIRS_AT_ONCE], second[start : start + PAIRS_AT_ONCE]
        found[start : start + len(a)] = np.einsum("pd,pd->p", vectors[a], vectors[b]) / (lengths[a] * lengths[b])
    return found
