"""The pool's vectors by encoder: written with the pool's version, read as one matrix."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, delete, func, insert, select

from backend.db.statements import among, chunks
from backend.db.tables import NewsRow, VectorRow
from backend.news.pool_version import lock_version, raise_version

VECTORS_PER_FETCH = 1_000
"""About a megabyte, which stays in the processor's cache."""


def read_vectors(connection: Connection, encoder: str) -> tuple[list[str], NDArray[np.float32]]:
    """Ids and vectors, float32 [n, D], of one encoder in order of arrival; [0, 0] if there are none."""
    of_encoder = VectorRow.encoder == encoder
    query = select(NewsRow.id, VectorRow.vector).join(NewsRow, NewsRow.number == VectorRow.news).where(of_encoder)
    query = query.order_by(VectorRow.news).execution_options(yield_per=VECTORS_PER_FETCH)
    size = select(func.count(), func.max(func.length(VectorRow.vector))).where(of_encoder)
    count, width_bytes = connection.execute(size).one()
    if not count:
        return [], np.empty((0, 0), np.float32)
    ids: list[str] = []
    vectors = np.empty((count, width_bytes // 4), "<f4")
    for rows in connection.execute(query).partitions():
        block = np.frombuffer(b"".join([vector for _, vector in rows]), "<f4")
        vectors[len(ids) : len(ids) + len(rows)] = block.reshape(len(rows), -1)
        ids += [news_id for news_id, _ in rows]
    return ids, vectors


def write_vectors(
    connection: Connection,
    encoder: str,
    ids: Sequence[str],
    vectors: NDArray[np.float32],
    titles: Sequence[str] | None = None,
) -> int:
    """Store vectors as `NewsPool.store_vectors` describes, within the caller's transaction."""
    _check_vectors(ids, vectors)
    if titles is not None and len(titles) != len(ids):
        raise ValueError(f"titles has {len(titles)} entries for {len(ids)} ids")
    encoded = dict(zip(ids, titles, strict=True)) if titles is not None else {}
    row_of = {news_id: row for row, news_id in enumerate(ids)}
    little_endian = np.ascontiguousarray(vectors, dtype="<f4")
    stored: list[int] = []
    lock_version(connection)
    for wanted in chunks(row_of):
        query = select(NewsRow.number, NewsRow.id, NewsRow.title).where(
            among(connection, NewsRow.id, wanted), NewsRow.taken_down_at.is_(None)
        )
        rows = [
            {"encoder": encoder, "news": number, "vector": little_endian[row_of[news_id]].tobytes()}
            for number, news_id, title in connection.execute(query)
            if encoded.get(news_id, title) == title
        ]
        numbers = [row["news"] for row in rows]
        connection.execute(
            delete(VectorRow).where(VectorRow.encoder == encoder, among(connection, VectorRow.news, numbers))
        )
        if rows:
            connection.execute(insert(VectorRow), rows)
        stored += numbers
    if stored:
        raise_version(connection, stored)
    return len(stored)


def _check_vectors(ids: Sequence[str], vectors: NDArray[np.float32]) -> None:
    if vectors.ndim != 2 or len(vectors) != len(ids):
        raise ValueError(f"vectors must have shape [{len(ids)}, D], got {list(vectors.shape)}")
    if vectors.dtype != np.float32:
        raise ValueError(f"vectors must be float32, got {vectors.dtype}")
    if not np.isfinite(vectors).all():
        raise ValueError("vectors must be finite")
