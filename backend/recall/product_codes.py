"""Product quantisation of the pool (Jegou, Douze and Schmid 2011, by FAISS): M bytes a piece of news.

Each of M subspaces of D / M coordinates has 256 centroids; a code names one in each.
"""

from __future__ import annotations

import faiss
import numpy as np
from numpy.typing import NDArray

from backend.recall.index import VectorRows
from device_app.wire.broadcast import CENTROIDS

CODE_BITS = 8
TRAINING_VECTORS = 20_480
"""80 a centroid: more changes the codes' error in the third digit and costs seconds."""
NEWS_AT_ONCE = 16_384
SEED = 1_234


def train_book(vectors: VectorRows, subspaces: int, *, threads: int = 1) -> NDArray[np.float32]:
    """Centroids [M, 256, D / M] by k-means on the pool [n, D]; one pool, one book.

    A pool of 256 news or fewer is its own book: every code is then exact. Raises ValueError where M does not divide D.
    """
    count, dimensions = vectors.shape
    if dimensions % subspaces:
        raise ValueError(f"{subspaces} subspaces do not divide {dimensions} dimensions")
    width = dimensions // subspaces
    if count <= CENTROIDS:
        book = np.zeros((subspaces, CENTROIDS, width), dtype=np.float32)
        book[:, :count] = vectors[:].reshape(count, subspaces, width).transpose(1, 0, 2)
        return book
    faiss.omp_set_num_threads(threads)
    quantiser = _quantiser(dimensions, subspaces)
    quantiser.cp.seed = SEED
    quantiser.cp.min_points_per_centroid = 1  # small pools are meant; FAISS would warn of them on standard error
    quantiser.train(np.ascontiguousarray(vectors[:: -(-count // TRAINING_VECTORS)]))
    centroids: NDArray[np.float32] = faiss.vector_to_array(quantiser.centroids)
    return centroids.reshape(subspaces, CENTROIDS, width).copy()


def encode(vectors: VectorRows, book: NDArray[np.float32], *, threads: int = 1) -> NDArray[np.uint8]:
    """Codes uint8 [n, M]: the nearest centroid of each subspace."""
    subspaces, _, width = book.shape
    if not len(vectors):
        return np.empty((0, subspaces), dtype=np.uint8)
    faiss.omp_set_num_threads(threads)
    quantiser = _quantiser(subspaces * width, subspaces)
    faiss.copy_array_to_vector(np.ascontiguousarray(book, dtype=np.float32).ravel(), quantiser.centroids)
    blocks = (vectors[start : start + NEWS_AT_ONCE] for start in range(0, len(vectors), NEWS_AT_ONCE))
    return np.concatenate([quantiser.compute_codes(np.ascontiguousarray(block)) for block in blocks])


def mean_error(vectors: VectorRows, book: NDArray[np.float32]) -> float:
    """Mean squared distance of vectors [n, D] from what their codes stand for; 0 of none."""
    whole = 0.0
    for start in range(0, len(vectors), NEWS_AT_ONCE):
        block = vectors[start : start + NEWS_AT_ONCE]
        whole += float(np.square(block - decode(encode(block, book), book)).sum(dtype=np.float64))
    return whole / max(1, len(vectors))


def decode(codes: NDArray[np.uint8], book: NDArray[np.float32]) -> NDArray[np.float32]:
    """The vectors that codes [n, M] stand for: float32 [n, D]."""
    rows = book[np.arange(len(book))[None, :], codes]  # [n, M, D / M]
    return rows.reshape(len(codes), -1)


def _quantiser(dimensions: int, subspaces: int) -> faiss.ProductQuantizer:
    return faiss.ProductQuantizer(dimensions, subspaces, CODE_BITS)
