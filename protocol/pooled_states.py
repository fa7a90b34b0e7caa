"""Pooled states of the pool's articles in public shards, and the head above them.

Source: Efficient-FedRec, section 3.2. With BERT and its pooling frozen, an article is one row of S numbers for
training. The rows are public: every device downloads all shards completely, as data of a round, so that no request
depends on a click, and stores them by hash until BERT or pooling changes.
"""

import json
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError

from protocol.ids import NewsId
from protocol.releases import BLOB_LIMIT_BYTES
from protocol.tensors import DTYPES, TensorError, TensorSpec, pack, unpack

HEAD, GRAPH = "head", "head.gradient"
"""Materials of a round: the head's weights, and the ONNX graph of its gradient."""
SHARDS = "states."
"""Prefix of the shards' names among a round's materials."""
WEIGHT, BIAS = "head.weight", "head.bias"
WIDTH_LIMIT = 4_096
IDS, STATES = "ids", "states"
_IDS = TypeAdapter(tuple[NewsId, ...])


def pack_shard(ids: Sequence[str], name: str, rows: NDArray[Any]) -> bytes:
    """Pack a shard: `rows` [n, ...], and the rows' article ids as the bytes of a JSON list."""
    listed = np.frombuffer(json.dumps(list(ids)).encode(), dtype=np.uint8)
    return pack({IDS: listed, name: rows})


def unpack_shard(blob: bytes, name: str, rows: TensorSpec) -> tuple[tuple[str, ...], NDArray[Any]]:
    """Return what `pack_shard` wrote. Raises TensorError for anything else."""
    specs = {IDS: TensorSpec("uint8", (None,), axis_limit=BLOB_LIMIT_BYTES), name: rows}
    tensors = unpack(blob, specs, limit_bytes=BLOB_LIMIT_BYTES)
    try:
        ids = _IDS.validate_json(tensors[IDS].tobytes())
    except ValidationError as broken:
        raise TensorError("tensor ids: not the bytes of a JSON list of news ids") from broken
    if len(ids) != len(tensors[name]):
        raise TensorError(f"tensor ids: {len(ids)} ids for {len(tensors[name])} rows")
    return ids, tensors[name]


def joined_shards(shards: Sequence[bytes], name: str, rows: TensorSpec) -> tuple[dict[str, int], NDArray[Any]]:
    """Return all shards as one array, and each article id's row.

    If an article is in two shards, the last counts. No shards give no rows. Raises TensorError like `unpack_shard`.
    """
    found = [unpack_shard(blob, name, rows) for blob in shards]
    row_of = {news_id: row for row, news_id in enumerate(chain.from_iterable(ids for ids, _ in found))}
    nothing = np.empty((0, *(size or 0 for size in rows.shape[1:])), dtype=DTYPES[rows.dtype])
    return row_of, np.concatenate([part for _, part in found] or [nothing])


def pack_states(ids: Sequence[str], states: NDArray[np.float16]) -> bytes:
    """Return a shard of states, float16 [n, S]."""
    return pack_shard(ids, STATES, states.astype(np.float16))


def joined_states(shards: Sequence[bytes], width: int) -> tuple[dict[str, int], NDArray[np.float16]]:
    """Return all shards of states, as `joined_shards`."""
    return joined_shards(shards, STATES, TensorSpec("float16", (None, width)))


def pack_head(parameters: Mapping[str, NDArray[np.float32]]) -> bytes:
    """Return the weight [D, S] and bias [D] of a head as one blob."""
    return pack({name: parameters[name] for name in (WEIGHT, BIAS)})


def unpack_head(blob: bytes, dimensions: int) -> dict[str, NDArray[np.float32]]:
    """Return what `pack_head` wrote, with D = `dimensions`. Raises TensorError."""
    specs = {
        WEIGHT: TensorSpec("float32", (dimensions, None), axis_limit=WIDTH_LIMIT),
        BIAS: TensorSpec("float32", (dimensions,)),
    }
    return unpack(blob, specs, limit_bytes=BLOB_LIMIT_BYTES)
