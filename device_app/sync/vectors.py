"""Pulls article vectors by whole shards, as a release lists them, so that no request reveals a click."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError

from device_app.errors import AnswerMalformed
from device_app.sync.release_sync import checked_blob
from device_app.uplink.backend_client import parsed, read_codes
from device_app.uplink.http import HttpClient
from protocol.ids import NewsId, ReleaseId, short_release
from protocol.releases import BLOB_LIMIT_BYTES, ShardList, ShardRef
from protocol.text_catalogue import TextCatalogue

REQUESTS = TextCatalogue("device_app.uplink", "requests.toml")

_IDS = TypeAdapter(tuple[NewsId, ...])
IDS_LIMIT_BYTES = 64 * 1024 * 1024


def listed_shards(client: HttpClient, release: ReleaseId, encoder: str) -> ShardList:
    """All shards of a release. Raises network errors as in HttpClient, and AnswerMalformed."""
    answer = client.get(
        f"/v1/releases/{short_release(release)}/vectors",
        words=REQUESTS("shards"),
        purpose="sync",
    )
    listed = parsed(ShardList, answer, "shard list")
    if listed.encoder != encoder or listed.release != release:
        raise AnswerMalformed("shard list", f"it is for {listed.release} and encoder {listed.encoder[:12]}")
    return listed


def pull_shard(
    client: HttpClient, listed: ShardList, shard: ShardRef, dimensions: int
) -> tuple[tuple[NewsId, ...], NDArray[np.float32]]:
    """One shard's article ids and their vectors [n, D], checked.

    Raises HttpClient's network errors, AnswerMalformed and ReleaseRefused.
    """
    path = f"/v1/releases/{short_release(listed.release)}/vectors/{shard.name}"
    what = f"shard {shard.name}"
    blob = client.get(
        path,
        words=REQUESTS("shard", shard=shard.name),
        purpose="sync",
        accept="application/octet-stream",
        limit_bytes=max(1, min(shard.blob.size_bytes, BLOB_LIMIT_BYTES)),
    )
    content = checked_blob(blob.body, shard.blob, listed.release)
    vectors = read_codes(content, shard.count, dimensions, what, BLOB_LIMIT_BYTES)
    ids = client.get(
        f"{path}/ids",
        words=REQUESTS("shard_ids", shard=shard.name),
        purpose="sync",
        limit_bytes=IDS_LIMIT_BYTES,
    )
    try:
        rows = _IDS.validate_json(ids.body)
    except ValidationError as broken:
        raise AnswerMalformed(what, "its ids are not a list of news ids") from broken
    if len(rows) != shard.count:
        raise AnswerMalformed(what, f"{len(rows)} ids for {shard.count} vectors")
    return rows, vectors


def pull_all(
    client: HttpClient, release: ReleaseId, encoder: str, dimensions: int
) -> Iterator[tuple[tuple[NewsId, ...], NDArray[np.float32]]]:
    """Pull every shard, one after another: the vectors of the whole pool."""
    listed = listed_shards(client, release, encoder)
    for shard in listed.shards:
        yield pull_shard(client, listed, shard, dimensions)
