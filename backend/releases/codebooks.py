"""Initial values of a release from the pool alone.

These are basic interests, codebooks, vocabularies and group models. Topic centroids of the pool reveal nothing about
any reader and already improve recall (+1.1 to +1.8 of R@400 at K = 16); prototypes of readers learned by secure sums
replace them later (docs/decisions/011).

The vocabularies hold the words and categories of the pool's own articles, words if they occur at least twice (FINDING,
5.1). The group models of a ranker (`ModelEntry.groups`) start at its own weights.

The cluster distance d, how far apart clicks of one interest may be, is measured on pseudo-readers. The paper's d = 1
belongs to its own vectors. Ours is set so that readers of several topics get 3 to 4 channels on average; the design
study used a mean of 3.7.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

from backend.releases.errors import ReleaseNotPublished
from backend.releases.store import ReleaseStore
from protocol.releases import BlobRef, CategoryVocabulary, Codebook, Groups, ModelEntry, Topic
from protocol.tensors import TensorSpec, pack, unpack
from protocol.vocabulary import FIRST_WORD, WordVocabulary, split_words

READERS = 300
CLICKS = (10, 50)
TOPICS = (2, 5)
MEAN_CHANNELS = 3.5

Contexts = Callable[[NDArray[np.float32]], NDArray[np.float32]]


@dataclass(frozen=True)
class Calibration:
    """A cluster distance, its mean number of channels, and how many readers have 1, 2, .. channels."""

    cluster_distance: float
    mean_channels: float
    channel_counts: tuple[int, ...]
    readers: int
    seed: int

    def facts(self) -> dict[str, Any]:
        """Return the calibration as JSON for the release's row."""
        return asdict(self)


def pseudo_readers(
    vectors: NDArray[np.float32],
    topics: NDArray[np.int64],
    rng: np.random.Generator,
    *,
    readers: int = READERS,
) -> list[NDArray[np.float32]]:
    """Draw readers from the pool: each has 10 to 50 clicks on 2 to 5 topics with uneven shares.

    vectors is [n, D] and topics [n] the topic of each. Each reader is [H, D]; if the pool is smaller than a history,
    articles repeat.
    """
    members = [np.flatnonzero(topics == topic) for topic in np.unique(topics)]
    drawn = []
    for _ in range(readers):
        clicks = int(rng.integers(CLICKS[0], CLICKS[1] + 1))
        wanted = int(rng.integers(TOPICS[0], TOPICS[1] + 1))
        chosen = rng.choice(len(members), size=min(wanted, len(members)), replace=False)
        shares = rng.dirichlet(np.full(len(chosen), 2.0))
        picks = rng.choice(chosen, size=clicks, p=shares)
        rows = [int(rng.choice(members[topic])) for topic in picks]
        drawn.append(vectors[rows])
    return drawn


def calibrate(
    readers: Sequence[NDArray[np.float32]],
    contexts: Contexts,
    *,
    channels_limit: int,
    seed: int,
    mean_channels: float = MEAN_CHANNELS,
    distance: float | None = None,
) -> Calibration:
    """Return the distance whose mean channel count is closest to `mean_channels`.

    The count is over `readers`, capped at C_max. contexts maps one reader's clicks [H, D] to the context vectors that
    are clustered. The mean count decreases in d, so bisection over the merge heights that occur finds the distance; a
    given distance is only measured. Raises ValueError without readers, or if all merges happen at height 0.
    """
    if not readers:
        raise ValueError("readers: needs at least one")
    from scipy.cluster.hierarchy import linkage  # slow import, not needed by every server

    heights = [
        linkage(np.asarray(contexts(clicks), dtype=np.float64), method="average")[:, 2]
        for clicks in readers
        if len(clicks) > 1
    ]
    # A floor of 1e-9 always merges exact repeats: two clicks on nearly equal vectors are one interest.
    steps = np.unique(np.concatenate([*heights, np.array([1e-9])]))
    steps = steps[steps >= 1e-9]
    if len(steps) < 2:
        raise ValueError("readers: all clicks of all readers have the same context vector")
    low, high = 0, len(steps) - 1
    while low < high:
        middle = (low + high) // 2
        if _channels(heights, float(steps[middle]), channels_limit).mean() > mean_channels:
            low = middle + 1
        else:
            high = middle
    if distance is None:
        # Use the middle to the next height, so that rounding on a device can't move a merge across the distance.
        distance = float((steps[low] + steps[min(low + 1, len(steps) - 1)]) / 2)
    channels = _channels(heights, distance, channels_limit)
    return Calibration(
        cluster_distance=distance,
        mean_channels=float(channels.mean()),
        channel_counts=tuple(int(n) for n in np.bincount(channels, minlength=channels_limit + 1)[1:]),
        readers=len(heights),
        seed=seed,
    )


def _channels(heights: Sequence[NDArray[np.float64]], distance: float, limit: int) -> NDArray[np.int64]:
    """Return the number of channels of each reader: merges above the distance do not happen.

    C_max is the cap.
    """
    return np.array([min(limit, int((reader > distance).sum()) + 1) for reader in heights], dtype=np.int64)


ITERATIONS = 25


def topic_centroids(
    vectors: NDArray[np.float32], *, basis_size: int, seed: int
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return k-means centroids by cosine, [B, D] of length 1, and the topic [n] of each vector.

    The result depends only on the seed. In a study before the implementation, topic centroids as keys and values lost
    nothing compared with the whole vector, while a free basis lost 1 to 5 points of recall. Raises ReleaseNotPublished
    if the pool is smaller than the basis.
    """
    if len(vectors) < basis_size:
        raise ReleaseNotPublished(
            f"The pool has {len(vectors)} articles with vectors.", field="vectors", limit=f"at least {basis_size}"
        )
    kmeans = faiss.Kmeans(
        vectors.shape[1], basis_size, niter=ITERATIONS, seed=seed, spherical=True, min_points_per_centroid=1
    )
    kmeans.train(np.ascontiguousarray(vectors, dtype=np.float32))
    _, topics = kmeans.index.search(np.ascontiguousarray(vectors, dtype=np.float32), 1)
    return np.asarray(kmeans.centroids, dtype=np.float32), topics[:, 0].astype(np.int64)


CODEBOOKS = {16: 4.0, 64: 8.0}
"""K -> epsilon: the default and the "high utility" choice (docs/results/recall.md)."""


def first_codebooks(store: ReleaseStore, vectors: NDArray[np.float32], *, seed: int) -> tuple[Codebook, ...]:
    """Return a codebook of each size in CODEBOOKS.

    The prototypes are the pool's topic centroids [K, D] of length 1. If the pool is smaller than K, there is no
    codebook of that size: readers report by a smaller one, or not at all.
    """
    found = []
    for size, epsilon in CODEBOOKS.items():
        if len(vectors) >= size:
            centroids, _ = topic_centroids(vectors, basis_size=size, seed=seed)
            blob = store.add_blob(pack({"prototypes": _unit(centroids)}))
            found.append(Codebook(size=size, epsilon=epsilon, prototypes=blob))
    return tuple(found)


def _unit(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.maximum(lengths, 1e-12), dtype=np.float32)


LEAST_COUNT = 2
ROWS_LIMIT = 30_000
"""The largest V, including padding and the unknown word, that the presets of models.builders.news support."""

SECTION_ROWS, TOPIC_ROWS = 32, 512
"""The most sections and topics, including the unknown one, that the presets support."""


def pool_vocabulary(
    texts: Iterable[str], *, least_count: int = LEAST_COUNT, rows_limit: int = ROWS_LIMIT
) -> WordVocabulary:
    """Return the most frequent words of `texts`; the order of the texts does not matter.

    Ties are in alphabetical order.
    """
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
    """Return the most frequent sections and topics of `news`; ties are in alphabetical order.

    Topics of sections that are left out are left out, too.
    """
    if section_rows < 1 or topic_rows < 1:
        raise ValueError(f"section_rows and topic_rows must be at least 1, got {section_rows} and {topic_rows}")
    topics = Counter(news)
    sections: Counter[str] = Counter()
    for (section, _), count in topics.items():
        sections[section] += count
    kept = sorted(sections, key=lambda name: (-sections[name], name))[: section_rows - 1]
    frequent = sorted((each for each in topics if each[0] in kept), key=lambda each: (-topics[each], each))
    return CategoryVocabulary(tuple(kept), tuple(frequent[: topic_rows - 1]))


CENTROIDS = "centroids"
CENTROIDS_LIMIT_BYTES = 16 * 1024 * 1024
DIRECTIONS = "basis_values"
"""Parameter of the recall model: its basic interests [B, D] in the space of articles, initially topic centroids of the
pool.
"""


def first_groups(store: ReleaseStore, entry: ModelEntry, recall: ModelEntry, *, size: int, seed: int) -> ModelEntry:
    """Return the ranker with `size` groups that all start at its own weights.

    The centroids are the K-means of the recall model's basic interests, so the first groups are topics of articles and
    reveal nothing about any reader. Raises ReleaseNotPublished if there are fewer interests than groups, or no weights.
    """
    if entry.weights is None or recall.weights is None:
        raise ReleaseNotPublished("Groups need a ranker and a recall model with weights.", field="weights")
    weights = store.read_weights(entry.weights)
    directions = store.read_weights(recall.weights)[DIRECTIONS]
    found, _ = topic_centroids(directions, basis_size=size, seed=seed)
    centroids = put_centroids(store, found / np.linalg.norm(found, axis=1, keepdims=True))
    groups = Groups(
        size=size,
        weights=put_weights(store, {name: np.repeat(value[None], size, axis=0) for name, value in weights.items()}),
        centroids=centroids,
        vectors=entry.weights,
        next_centroids=centroids,
        next_vectors=entry.weights,
    )
    return entry.model_copy(update={"groups": groups})


def put_weights(store: ReleaseStore, weights: Mapping[str, NDArray[np.float32]]) -> BlobRef:
    """Store each parameter [K, *shape] in a blob."""
    return store.add_blob(pack({name: np.asarray(value, dtype=np.float32) for name, value in weights.items()}))


def put_centroids(store: ReleaseStore, centroids: NDArray[np.floating[Any]]) -> BlobRef:
    """Store [K, D] as a blob."""
    return store.add_blob(pack({CENTROIDS: np.asarray(centroids, dtype=np.float32)}))


def read_centroids(store: ReleaseStore, ref: BlobRef, size: int) -> NDArray[np.float32]:
    """Return centroids [K, D]. Raises TensorError for another blob."""
    specs = {CENTROIDS: TensorSpec("float32", (size, None))}
    return unpack(store.read_blob(ref.sha256), specs, limit_bytes=CENTROIDS_LIMIT_BYTES)[CENTROIDS]
