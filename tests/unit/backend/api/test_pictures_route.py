"""The list of pictures and its shards over the real server in process are the same for everybody."""

from __future__ import annotations

from pathlib import Path

import httpx

from backend.db.tables import MADE
from backend.news.pictures.store import PicturedStory
from protocol.pictures import PictureList, unpack_pictures
from tests.doubles.picture_files import small_picture
from tests.doubles.recall_app import running_server


def test_picture_list_names_public_blobs_and_answers_304_when_unchanged(tmp_path: Path) -> None:
    with running_server(tmp_path, news=40) as server:
        pictures, pool = server.services.pictures, server.services.pool
        empty = server.client.get("/v1/pictures")
        assert PictureList.model_validate_json(empty.content).shards == ()
        story = pool.live(server.services.live.current.built_at)[0]
        digest = pictures.shards.keep_picture(small_picture())
        made = PicturedStory(1, story.id, "https://img.example/a.jpg", MADE, 0, None, digest, len(small_picture()), 1)
        assert pictures.shards.publish([made]) == []
        answer = server.client.get("/v1/pictures")
        (shard,) = PictureList.model_validate_json(answer.content).shards
        blob = server.client.get(f"/v1/blobs/{shard.pictures.sha256}")
        assert unpack_pictures(blob.content, 1) == [(story.id, 0, small_picture())]
        again = server.client.get("/v1/pictures", headers={"if-none-match": answer.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        assert server.client.get(f"/v1/blobs/{digest}").status_code == httpx.codes.NOT_FOUND, "no single picture"
