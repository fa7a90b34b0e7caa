"""Training data of word-based article models, in public shards.

Titles are rows of a table of word vectors. FedNewsRec needs nothing else; NAML and LSTUR also get abstracts in the same
form, or category ids. The table is fixed, so for training a title is up to 30 row numbers. As with pooled states, every
device downloads all shards completely, so that no request depends on a click, and stores them by hash.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protocol.pooled_states import WIDTH_LIMIT, joined_shards, pack_shard
from protocol.releases import BLOB_LIMIT_BYTES
from protocol.tensors import TensorError, TensorSpec, pack, unpack

WORDS_LIMIT = 30
"""Words of a title, the papers' figure."""
ABSTRACT_WORDS_LIMIT = 50
"""Words of an abstract."""
PADDING = 0
"""The row of the table that is no word."""
MODEL, GRAPH = "words.model", "words.gradient"
"""Materials of a round: the article model's weights, and the ONNX graph of its gradient."""
TITLES, TABLE = "words.titles.", "words.table."
"""Prefixes of shards' names among a round's materials: titles, and the table."""
ABSTRACTS, CATEGORIES = "words.abstracts.", "words.categories."
"""Likewise for abstracts, and for the section and topic ids given by the release's categories."""
TABLE_ROWS = 8_192
WORDS, VECTORS, IDS = "words", "vectors", "categories"


def pack_texts(ids: Sequence[str], words: NDArray[np.int32]) -> bytes:
    """Return a shard of titles or abstracts.

    `words`: int32 [n, L], rows of the table, PADDING after a text's end.
    """
    return pack_shard(ids, WORDS, words.astype(np.int32))


def joined_texts(
    shards: Sequence[bytes], words: int, *, length: int = WORDS_LIMIT
) -> tuple[dict[str, int], NDArray[np.int32]]:
    """Return all texts as one matrix [n, length], and each article id's row.

    Raises TensorError, also for a word outside the table.
    """
    row_of, found = joined_shards(shards, WORDS, TensorSpec("int32", (None, length)))
    if found.size and not (found.min() >= 0 and found.max() < words):
        raise TensorError(f"tensor {WORDS}: has rows outside a table of {words}")
    return row_of, found


def pack_categories(ids: Sequence[str], categories: NDArray[np.int32]) -> bytes:
    """Return a shard of `categories`, int32 [n, 2].

    They are the section and topic ids of each article, 0 if unknown to the release.
    """
    return pack_shard(ids, IDS, categories.astype(np.int32))


def joined_categories(shards: Sequence[bytes]) -> tuple[dict[str, int], NDArray[np.int32]]:
    """Return all categories as one matrix, and each article id's row.

    Raises TensorError, also for a negative id.
    """
    row_of, found = joined_shards(shards, IDS, TensorSpec("int32", (None, 2)))
    if found.size and found.min() < 0:
        raise TensorError(f"tensor {IDS}: has negative ids")
    return row_of, found


def packed_table(vectors: NDArray[np.float16]) -> Iterator[tuple[str, bytes]]:
    """Yield the table [V, E] in parts, each with the name of its data item in the round.

    When the table grows at its end, earlier parts don't change.
    """
    for part, start in enumerate(range(0, len(vectors), TABLE_ROWS)):
        yield f"{TABLE}{part:03}", pack({VECTORS: np.ascontiguousarray(vectors[start : start + TABLE_ROWS])})


def joined_table(parts: Sequence[bytes], word_dim: int) -> NDArray[np.float16]:
    """Join the parts of `packed_table`, in the order of the names.

    Raises TensorError, also for a table without rows.
    """
    spec = {VECTORS: TensorSpec("float16", (None, word_dim))}
    found = [unpack(blob, spec, limit_bytes=BLOB_LIMIT_BYTES)[VECTORS] for blob in parts]
    if not sum(map(len, found)):
        raise TensorError(f"tensor {VECTORS}: there are no word vectors")
    return np.concatenate(found)


def unpack_model(blob: bytes, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, NDArray[Any]]:
    """Return the article model's weights, of the shapes that its graph declares.

    Raises TensorError.
    """
    specs = {name: TensorSpec("float32", shape, axis_limit=WIDTH_LIMIT) for name, shape in shapes.items()}
    return unpack(blob, specs, limit_bytes=BLOB_LIMIT_BYTES)
