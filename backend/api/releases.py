"""Routes of releases, their blobs, the pool's vectors and codes by day, popularity, and pictures.

The same for every device.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Path, Query, Response
from fastapi.responses import FileResponse
from pydantic import BaseModel, RootModel

from backend.api.openapi import JSON, answers
from backend.db.advisory_lock import awaited_lock
from backend.errors import CatalogueBehind, InvalidRequest, ReleaseRetired
from backend.recall.encoder_takeover import release_for_devices
from backend.recall.indexes.store import INDEX_FOLDER
from backend.recall.pool_codes import TRAINING, PoolCodeStore
from backend.recall.published_popularity import PublishedPopularity
from backend.recall.vector_shards import VectorShardStore
from backend.releases.errors import NothingPublished, UnknownBlob
from backend.releases.rotation import key_history
from backend.server.shared_answers import FOR_ALL
from protocol.broadcast import PoolCodes
from protocol.chain import LENGTHS, KeyHistory, ReleaseChain
from protocol.ids import NewsId, ReleaseId, Sha256, ShardName, ShortRelease, short_release
from protocol.pictures import PictureList
from protocol.popularity import Popularity
from protocol.releases import ReleaseManifest, ShardList, SignedManifest

if TYPE_CHECKING:
    from backend.composition import Services

BLOB_MEDIA_TYPE = "application/octet-stream"
TENSORS_MEDIA_TYPE = "application/vnd.safetensors"
IMMUTABLE = "public, max-age=31536000, immutable"


def router(services: Services) -> APIRouter:
    routes = APIRouter()
    store = VectorShardStore(services.live)
    codes = PoolCodeStore(
        services.live, services.storage.under(INDEX_FOLDER), partial(awaited_lock, services.engine, TRAINING)
    )
    popular = PublishedPopularity(services.live, services.counts)

    @routes.get(
        "/v1/releases/current", response_class=Response, responses=answers(404, also={200: SignedManifest, 304: None})
    )
    def current() -> Response:
        """The newest release that the live catalogue has vectors for, so that a device can always request recall."""
        signed = release_for_devices(services.releases, services.live.current)
        if signed is None:
            raise NothingPublished
        release = ReleaseManifest.model_validate_json(signed.manifest).release
        return _tagged(signed.model_dump_json().encode(), str(short_release(release)), JSON)

    @routes.get("/v1/keys", responses=answers(404))
    def keys(response: Response) -> KeyHistory:
        """The key that signs releases, and the rotations that lead a device from an older trusted key to it."""
        response.headers["Cache-Control"] = FOR_ALL
        return key_history(services.releases)

    @routes.get("/v1/releases/chain", responses=answers(404, 422))
    def chain(
        response: Response,
        last: Annotated[int, Query(description="So many last releases: 16, 256, 4096 or 65536.", examples=[16])] = 16,
    ) -> ReleaseChain:
        """The last releases by number, hash and date, oldest first; the same for every device.

        A device compares them with the releases that it has used, and its reader can compare the head with another
        reader's.
        """
        if last not in LENGTHS:
            raise InvalidRequest(
                "That number of releases can't be requested.",
                field="last",
                limit=f"one of {', '.join(map(str, LENGTHS))}",
            )
        response.headers["Cache-Control"] = FOR_ALL
        return services.releases.chain(last)

    @routes.get("/v1/blobs/{sha256}", response_class=Response, responses=answers(404, 422, also={200: BLOB_MEDIA_TYPE}))
    def blob(sha256: Annotated[Sha256, Path()]) -> Response:
        headers = {"Cache-Control": IMMUTABLE, "ETag": f'"{sha256}"'}
        for cut in (store.by_hash(sha256), codes.by_hash(sha256)):
            if cut is not None:
                return Response(cut, media_type=BLOB_MEDIA_TYPE, headers=headers)
        try:
            return FileResponse(services.releases.blob_path(sha256), media_type=BLOB_MEDIA_TYPE, headers=headers)
        except UnknownBlob:
            for of_others in (codes.of_another, services.pictures.shards.shard):
                if (cut := of_others(sha256)) is not None:
                    return Response(cut, media_type=BLOB_MEDIA_TYPE, headers=headers)
            raise

    @routes.get("/v1/releases/{short}/codes", response_class=Response, responses=_of_a_release(PoolCodes))
    def pool_codes(short: Annotated[ShortRelease, Path()]) -> Response:
        """A PoolCodes; its blobs are immutable, so a device needn't download those of an earlier listing again."""
        release = _of_live_encoder(services, short, services.live.current.encoder)
        content, etag = codes.listing(release)
        return _tagged(content, etag, JSON)

    @routes.get("/v1/releases/{short}/popularity", response_class=Response, responses=_of_a_release(Popularity))
    def popularity(short: Annotated[ShortRelease, Path()]) -> Response:
        """A Popularity: the pool's articles by private counts, the same for every device."""
        release = _of_live_encoder(services, short, services.live.current.encoder)
        content, etag = popular.answer(release)
        return _tagged(content, etag, JSON)

    @routes.get("/v1/releases/{short}/vectors", responses=answers(404, 409, 410, 422))
    def vectors(response: Response, short: Annotated[ShortRelease, Path()]) -> ShardList:
        response.headers["Cache-Control"] = FOR_ALL
        encoder, shards = store.list()
        release = _of_live_encoder(services, short, encoder)
        return ShardList(release=release, encoder=encoder, shards=shards)

    @routes.get(
        "/v1/releases/{short}/vectors/{shard}",
        response_class=Response,
        responses=_of_a_release(TENSORS_MEDIA_TYPE),
    )
    def shard_vectors(short: Annotated[ShortRelease, Path()], shard: Annotated[ShardName, Path()]) -> Response:
        _of_live_encoder(services, short, services.live.current.encoder)
        ref, content = store.blob(shard)
        return _tagged(content, ref.blob.sha256, TENSORS_MEDIA_TYPE)

    @routes.get("/v1/releases/{short}/vectors/{shard}/ids", response_class=Response, responses=_of_a_release(_Ids))
    def shard_ids(short: Annotated[ShortRelease, Path()], shard: Annotated[ShardName, Path()]) -> Response:
        """The ids of a shard's rows, with the hash of their vectors as tag: different tags mean the pool changed in
        between."""
        _of_live_encoder(services, short, services.live.current.encoder)
        ref, content = store.ids(shard)
        return _tagged(content, ref.blob.sha256, JSON)

    @routes.get("/v1/pictures", response_class=Response, responses=answers(also={200: PictureList, 304: None}))
    def pictures() -> Response:
        """The list, which is the same for every device.

        Its ETag is the hash of its bytes, which a device computes itself.
        """
        content, tag = services.pictures.shards.listing()
        return _tagged(content, tag, JSON)

    return routes


def _of_live_encoder(services: Services, short: int, encoder: str) -> ReleaseId:
    """The newest release with this number modulo 16.

    Raises UnknownRelease, or CatalogueBehind or ReleaseRetired if the live vectors are by another encoder.
    """
    manifest = services.releases.named(short)
    if manifest.encoder != encoder:
        newest = services.releases.require_current().release
        raise CatalogueBehind(manifest.release) if manifest.release == newest else ReleaseRetired(short, newest)
    return manifest.release


class _Ids(RootModel[list[NewsId]]):
    """Ids of a shard's rows, in row order."""


def _of_a_release(content: type[BaseModel] | str) -> dict[int | str, Any]:
    return answers(404, 409, 410, 422, also={200: content, 304: None})


def _tagged(content: bytes, tag: str, media_type: str) -> Response:
    return Response(content, media_type=media_type, headers={"ETag": f'"{tag}"', "Cache-Control": FOR_ALL})
